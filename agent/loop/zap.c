#include "agent/loop/zap.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "agent/loop/thread.h"
#include "common/base/log.h"
#include "common/base/str.h"

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"
#define ZAP_VERSION "1.0"
#define REPORT_VALUES 256
#define MECHANISM_CURVE "CURVE"
#define MECHANISM_NULL "NULL"
#define METADATA_BYTES (sizeof ZAP_KEY_PROPERTY + 4 + 2 * CURVE_KEY_BYTES)

/* Frames of a request; the credentials of CURVE are the public key. */
enum {
    FRAME_VERSION,
    FRAME_REQUEST_ID,
    FRAME_DOMAIN,
    FRAME_ADDRESS,
    FRAME_ROUTING_ID,
    FRAME_MECHANISM,
    FRAME_CREDENTIALS,
    N_FRAMES
};

struct zap {
    void *sockets[ZAP_CONTEXTS];
    size_t n_sockets;
    pthread_t thread;
    struct wake wake; /* a new table, or the end */
    struct mailbox tables;
    struct zap_table *table; /* the thread's */
    struct ring *reports;
    struct wake *report_wake;
    _Atomic bool must_stop;
    _Atomic uint64_t n_refused[ZAP_REFUSED_COUNT];
    _Atomic uint64_t n_accepted;
};

struct request {
    zmq_msg_t frames[N_FRAMES];
    size_t n_frames;
};

static bool frame_is(struct request *request, size_t index, const char *text)
{
    return zmq_msg_size(&request->frames[index]) == strlen(text) &&
           memcmp(zmq_msg_data(&request->frames[index]), text, strlen(text)) == 0;
}

/* Reads one whole request; false when none is there. Frames beyond N_FRAMES are dropped and make
 * n_frames another number than N_FRAMES. */
static bool read_request(void *socket, struct request *ret_request)
{
    int more = 1;

    ret_request->n_frames = 0;
    while (more) {
        zmq_msg_t spare;
        size_t n = ret_request->n_frames;
        zmq_msg_t *frame = n < N_FRAMES ? &ret_request->frames[n] : &spare;

        zmq_msg_init(frame);
        if (zmq_msg_recv(frame, socket, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(frame);
            return false;
        }
        more = zmq_msg_more(frame);
        if (n >= N_FRAMES) {
            zmq_msg_close(frame);
        }
        ret_request->n_frames++;
    }
    return true;
}

static void close_request(struct request *request)
{
    for (size_t i = 0; i < request->n_frames && i < N_FRAMES; i++) {
        zmq_msg_close(&request->frames[i]);
    }
}

/* Who the peer is, or why it is refused. */
static enum zap_refusal_reason judge_curve(const struct zap *zap, struct request *request,
                                           bool nodes_only, const char **ret_user_id)
{
    if (!frame_is(request, FRAME_MECHANISM, MECHANISM_CURVE)) {
        return ZAP_REFUSED_MECHANISM;
    }
    if (request->n_frames != N_FRAMES ||
        zmq_msg_size(&request->frames[FRAME_CREDENTIALS]) != CURVE_KEY_BYTES) {
        return ZAP_REFUSED_MALFORMED;
    }
    const struct zap_key *key =
        zap_table_find(zap->table, zmq_msg_data(&request->frames[FRAME_CREDENTIALS]));
    struct zap_identity identity;

    if (key == NULL) {
        return ZAP_REFUSED_UNKNOWN_KEY;
    }
    if (key->is_revoked) {
        return ZAP_REFUSED_REVOKED_KEY;
    }
    if (nodes_only &&
        (!zap_identity_parse(key->user_id, &identity) || identity.role != ZAP_ROLE_NODE)) {
        return ZAP_REFUSED_ROLE;
    }
    *ret_user_id = key->user_id;
    return ZAP_REFUSED_NONE;
}

static enum zap_refusal_reason judge(const struct zap *zap, struct request *request,
                                     const char **ret_user_id)
{
    if (request->n_frames <= FRAME_MECHANISM || !frame_is(request, FRAME_VERSION, ZAP_VERSION)) {
        return ZAP_REFUSED_MALFORMED;
    }
    if (frame_is(request, FRAME_DOMAIN, SOCK_DOMAIN_MESH)) {
        return judge_curve(zap, request, false, ret_user_id);
    }
    if (frame_is(request, FRAME_DOMAIN, SOCK_DOMAIN_RAFT)) {
        return judge_curve(zap, request, true, ret_user_id);
    }
    if (frame_is(request, FRAME_DOMAIN, SOCK_DOMAIN_LOCAL)) {
        if (!frame_is(request, FRAME_MECHANISM, MECHANISM_NULL)) {
            return ZAP_REFUSED_MECHANISM;
        }
        *ret_user_id = ZAP_LOCAL_USER;
        return ZAP_REFUSED_NONE;
    }
    return ZAP_REFUSED_DOMAIN;
}

static void copy_frame_text(struct request *request, size_t index, char *to, size_t to_bytes)
{
    size_t n_bytes = 0;

    if (index < request->n_frames && index < N_FRAMES) {
        n_bytes = zmq_msg_size(&request->frames[index]);
        n_bytes = n_bytes < to_bytes ? n_bytes : to_bytes - 1;
        memcpy(to, zmq_msg_data(&request->frames[index]), n_bytes);
    }
    to[n_bytes] = '\0';
}

/* The listening sockets are of both families, so that IPv4 comes as a mapped address. */
static void copy_address(struct request *request, char *to, size_t to_bytes)
{
    static const char mapped[] = "::ffff:";

    copy_frame_text(request, FRAME_ADDRESS, to, to_bytes);
    if (to[0] == ':' && strncmp(to, mapped, sizeof mapped - 1) == 0 && strchr(to, '.') != NULL) {
        memmove(to, to + sizeof mapped - 1, strlen(to) - (sizeof mapped - 1) + 1);
    }
}

static void report(struct zap *zap, enum zap_refusal_reason reason, struct request *request)
{
    struct zap_refusal refusal = {.reason = (uint8_t)reason};

    atomic_fetch_add_explicit(&zap->n_refused[reason], 1, memory_order_relaxed);
    copy_frame_text(request, FRAME_DOMAIN, refusal.domain, sizeof refusal.domain);
    copy_address(request, refusal.address, sizeof refusal.address);
    if (request->n_frames == N_FRAMES &&
        zmq_msg_size(&request->frames[FRAME_CREDENTIALS]) == CURVE_KEY_BYTES) {
        memcpy(refusal.public_key, zmq_msg_data(&request->frames[FRAME_CREDENTIALS]),
               CURVE_KEY_BYTES);
    }
    ring_push(zap->reports, &refusal);
    if (zap->report_wake != NULL) {
        wake_signal(zap->report_wake);
    }
}

/* As ZMTP's metadata (RFC 23): length and name, length and value. Returns the number of bytes; 0
 * for a connection without a key. */
static size_t put_key(struct request *request, uint8_t metadata[METADATA_BYTES])
{
    const size_t n_name = strlen(ZAP_KEY_PROPERTY);
    char hex[2 * CURVE_KEY_BYTES + 1];

    if (request->n_frames != N_FRAMES ||
        zmq_msg_size(&request->frames[FRAME_CREDENTIALS]) != CURVE_KEY_BYTES) {
        return 0;
    }
    str_hex(zmq_msg_data(&request->frames[FRAME_CREDENTIALS]), CURVE_KEY_BYTES, hex);
    memset(metadata, 0, METADATA_BYTES);
    metadata[0] = (uint8_t)n_name;
    memcpy(metadata + 1, ZAP_KEY_PROPERTY, n_name);
    metadata[1 + n_name + 3] = 2 * CURVE_KEY_BYTES;
    memcpy(metadata + 1 + n_name + 4, hex, 2 * CURVE_KEY_BYTES);
    return METADATA_BYTES;
}

static void answer(void *socket, struct request *request, enum zap_refusal_reason reason,
                   const char *user_id)
{
    const char *status = reason == ZAP_REFUSED_NONE          ? "200"
                         : reason == ZAP_REFUSED_REVOKED_KEY ? "400"
                                                             : "300";
    const char *texts[] = {status, zap_refusal_word(reason), user_id};
    uint8_t metadata[METADATA_BYTES];
    size_t n_metadata = reason == ZAP_REFUSED_NONE ? put_key(request, metadata) : 0;

    zmq_send(socket, ZAP_VERSION, strlen(ZAP_VERSION), ZMQ_SNDMORE);
    if (request->n_frames > FRAME_REQUEST_ID) {
        zmq_send(socket, zmq_msg_data(&request->frames[FRAME_REQUEST_ID]),
                 zmq_msg_size(&request->frames[FRAME_REQUEST_ID]), ZMQ_SNDMORE);
    } else {
        zmq_send(socket, "", 0, ZMQ_SNDMORE);
    }
    for (size_t i = 0; i < 3; i++) {
        zmq_send(socket, texts[i], strlen(texts[i]), ZMQ_SNDMORE);
    }
    zmq_send(socket, metadata, n_metadata, 0);
}

static void serve(struct zap *zap, void *socket)
{
    struct request request;

    while (read_request(socket, &request)) {
        const char *user_id = "";
        enum zap_refusal_reason reason = judge(zap, &request, &user_id);

        if (reason == ZAP_REFUSED_NONE) {
            atomic_fetch_add_explicit(&zap->n_accepted, 1, memory_order_relaxed);
        } else {
            report(zap, reason, &request);
        }
        answer(socket, &request, reason, user_id);
        close_request(&request);
    }
}

static void take_table(struct zap *zap)
{
    struct zap_table *table = mailbox_take(&zap->tables);

    if (table != NULL) {
        zap_table_unref(zap->table);
        zap->table = table;
    }
}

static void *run(void *arg)
{
    struct zap *zap = arg;
    zmq_pollitem_t items[ZAP_CONTEXTS + 1];

    for (size_t i = 0; i < zap->n_sockets; i++) {
        items[i] = (zmq_pollitem_t){.socket = zap->sockets[i], .events = ZMQ_POLLIN};
    }
    items[zap->n_sockets] = (zmq_pollitem_t){.fd = wake_fd(&zap->wake), .events = ZMQ_POLLIN};
    while (!atomic_load(&zap->must_stop)) {
        if (zmq_poll(items, (int)zap->n_sockets + 1, -1) < 0 && errno != EINTR) {
            /* Without its handler libzmq would leave every new connection hanging. */
            log_event(LOG_LEVEL_ERROR, "zap_failed", "error=\"%s\"", zmq_strerror(errno));
            abort();
        }
        wake_clear(&zap->wake);
        take_table(zap); /* before serving: a key that was added is known to the next question */
        for (size_t i = 0; i < zap->n_sockets; i++) {
            serve(zap, zap->sockets[i]);
        }
    }
    return NULL;
}

static int bind_all(struct zap *zap, const struct zap_options *options, struct errmsg *err)
{
    for (size_t i = 0; i < options->n_contexts; i++) {
        int linger_ms = 0;
        void *socket = zmq_socket(options->contexts[i], ZMQ_REP);

        if (socket == NULL) {
            return errmsg_set(err, ERR_INTERNAL, "cannot open the ZAP socket: %s",
                              zmq_strerror(errno));
        }
        zap->sockets[zap->n_sockets++] = socket;
        zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
        if (zmq_bind(socket, ZAP_ENDPOINT) != 0) {
            return errmsg_set(err, ERR_INTERNAL, "cannot bind the ZAP socket: %s",
                              zmq_strerror(errno));
        }
    }
    return 0;
}

static void free_zap(struct zap *zap)
{
    for (size_t i = 0; i < zap->n_sockets; i++) {
        zmq_close(zap->sockets[i]);
    }
    mailbox_close(&zap->tables);
    zap_table_unref(zap->table);
    ring_free(zap->reports);
    if (zap->wake.fd >= 0) {
        wake_close(&zap->wake);
    }
    free(zap);
}

int zap_start(const struct zap_options *options, struct zap **ret_zap, struct errmsg *err)
{
    assert(options->n_contexts > 0 && options->n_contexts <= ZAP_CONTEXTS);
    struct zap *zap = calloc(1, sizeof *zap);
    int rc;

    if (zap == NULL) {
        return errmsg_set(err, ERR_NOMEM, "no memory for the ZAP handler");
    }
    zap->wake.fd = -1;
    zap->report_wake = options->report_wake;
    mailbox_init(&zap->tables, zap_table_unref);
    zap->table = zap_table_new(NULL, 0);
    zap->reports = ring_new(sizeof(struct zap_refusal), REPORT_VALUES);
    if (zap->table == NULL || zap->reports == NULL) {
        rc = errmsg_set(err, ERR_NOMEM, "no memory for the ZAP handler");
        goto fail;
    }
    rc = wake_init(&zap->wake);
    if (rc != 0) {
        zap->wake.fd = -1;
        errmsg_set(err, rc, "cannot open an eventfd: raise the limit of open files (ulimit -n)");
        goto fail;
    }
    rc = bind_all(zap, options, err);
    if (rc != 0) {
        goto fail;
    }
    /* The sockets move to the thread: its creation is the full fence that libzmq asks for. */
    rc = thread_start(&zap->thread, "zap", run, zap);
    if (rc != 0) {
        errmsg_set(err, rc, "cannot start the ZAP thread");
        goto fail;
    }
    *ret_zap = zap;
    return 0;
fail:
    free_zap(zap);
    return rc;
}

void zap_stop(struct zap *zap)
{
    atomic_store(&zap->must_stop, true);
    wake_signal(&zap->wake);
    pthread_join(zap->thread, NULL);
    free_zap(zap);
}

void zap_set_table(struct zap *zap, struct zap_table *table)
{
    mailbox_put(&zap->tables, table);
    wake_signal(&zap->wake);
}

bool zap_next_refusal(struct zap *zap, struct zap_refusal *ret_refusal)
{
    return ring_pop(zap->reports, ret_refusal);
}

uint64_t zap_n_refused(const struct zap *zap, enum zap_refusal_reason reason)
{
    assert(reason < ZAP_REFUSED_COUNT);
    return atomic_load_explicit(&zap->n_refused[reason], memory_order_relaxed);
}

uint64_t zap_n_accepted(const struct zap *zap)
{
    return atomic_load_explicit(&zap->n_accepted, memory_order_relaxed);
}
