/* Foreign bytes: what a backend sends within and instead of TLS. A real server of OpenSSL stands on
 * the other side; the input says what of its bytes is changed on the way, in which pieces they
 * come, and what it says inside. Oracle: no input crashes; what is read inside is a prefix of what
 * was written inside, whatever was changed; unchanged it is all of it, with a good handshake.
 *
 * parses: agent/probe/tls_session.c agent/core/http_reply.c
 * part: JURY_TLS */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/http_reply.h"
#include "agent/probe/tls_session.h"

#define CONTROL_BYTES 6
#define ROUNDS_MAX 4096 /* pieces that one conversation may take */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

struct talk {
    SSL *server;
    struct tls_session *session;
    struct tls_check check;
    const uint8_t *inside; /* what the server says inside */
    size_t n_inside;
    size_t n_read; /* of it */
    size_t n_sent; /* by the server so far, on the wire */
    size_t change_at, change_n;
    uint8_t change;
    size_t piece;
    bool is_written, is_done, is_over;
    struct http_reply reply;
};

static SSL_CTX *server_context_new(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();

    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 24L * 60 * 60);
    if (X509_set_pubkey(cert, key) != 1 || X509_sign(cert, key, EVP_sha256()) == 0 ||
        SSL_CTX_use_certificate(context, cert) != 1 || SSL_CTX_use_PrivateKey(context, key) != 1) {
        abort();
    }
    X509_free(cert);
    EVP_PKEY_free(key);
    return context;
}

/* What the session has for the server. */
static void push(struct talk *talk)
{
    const void *bytes;
    size_t n;

    while ((n = tls_session_output(talk->session, &bytes)) > 0) {
        n = n < talk->piece ? n : talk->piece;
        BIO_write(SSL_get_rbio(talk->server), bytes, (int)n);
        tls_session_drop(talk->session, n);
    }
}

/* The server goes on as far as it can, and one piece of what it has goes to the session.
 * False: it has nothing to send. */
static bool pull(struct talk *talk)
{
    uint8_t bytes[256];

    ERR_clear_error();
    if (SSL_do_handshake(talk->server) == 1 && !talk->is_written && talk->n_inside > 0) {
        talk->is_written =
            SSL_write(talk->server, talk->inside, (int)talk->n_inside) == (int)talk->n_inside;
    }
    int n = BIO_read(SSL_get_wbio(talk->server), bytes, (int)talk->piece);
    if (n <= 0) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        size_t at = talk->n_sent++;

        bytes[i] ^= at - talk->change_at < talk->change_n ? talk->change : 0;
    }
    return tls_session_take(talk->session, bytes, (size_t)n);
}

static void read_inside(struct talk *talk)
{
    uint8_t bytes[64];
    size_t n = 0;

    while (!talk->is_over) {
        switch (tls_session_read(talk->session, bytes, sizeof bytes, &n)) {
        case TLS_MORE:
            return;
        case TLS_CLOSED:
        case TLS_FAILED:
            talk->is_over = true;
            return;
        case TLS_DONE:
            break;
        }
        if (n > talk->n_inside - talk->n_read ||
            memcmp(bytes, talk->inside + talk->n_read, n) != 0) {
            abort();
        }
        talk->n_read += n;
        http_reply_feed(&talk->reply, bytes, n);
    }
}

/* As connect_tls.c does. */
static void advance(struct talk *talk)
{
    if (!talk->is_done) {
        switch (tls_session_shake(talk->session)) {
        case TLS_MORE:
            return;
        case TLS_CLOSED:
        case TLS_FAILED:
            talk->is_over = true;
            return;
        case TLS_DONE:
            break;
        }
        talk->is_done = true;
        (void)tls_session_cert_end(talk->session, &talk->check);
        talk->is_over = tls_session_judge(talk->session, &talk->check) != REASON_OK ||
                        !tls_session_write(talk->session, "GET", 3);
    }
    read_inside(talk);
}

static void converse(struct talk *talk)
{
    http_reply_init(&talk->reply);
    for (unsigned n = 0; n < ROUNDS_MAX && !talk->is_over; n++) {
        advance(talk);
        push(talk);
        if (!talk->is_over && !pull(talk)) {
            break;
        }
    }
    tls_session_finish(talk->session);
    push(talk);
}

/* First bytes: options, piece, where the change begins (2), how long it is, what it is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static struct tls_contexts *contexts;
    static SSL_CTX *server_context;

    if (contexts == NULL) {
        contexts = tls_contexts_new();
        server_context = server_context_new();
    }
    if (n_bytes < CONTROL_BYTES) {
        return 0;
    }
    struct talk talk = {.check = {.verify = TLS_VERIFY_NONE, .min_version = TLS_VERSION_1_2},
                        .inside = data + CONTROL_BYTES,
                        .n_inside = n_bytes - CONTROL_BYTES,
                        .piece = data[1] + 1U,
                        .change_at = (size_t)data[2] << 8 | data[3],
                        .change_n = data[4],
                        .change = data[5]};
    if ((data[0] & 2) != 0) {
        strcpy(talk.check.alpn, "h2"); /* which the server does not choose */
    }
    if (tls_session_new(contexts, &talk.check, &talk.session) != REASON_NONE) {
        abort();
    }
    if ((data[0] & 4) != 0) { /* no server at all: the input itself */
        (void)tls_session_take(talk.session, talk.inside, talk.n_inside);
        (void)tls_session_shake(talk.session);
        tls_session_free(talk.session);
        return 0;
    }
    talk.server = SSL_new(server_context);
    SSL_set_bio(talk.server, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_max_proto_version(talk.server, (data[0] & 1) != 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
    SSL_set_accept_state(talk.server);
    converse(&talk);
    bool is_unchanged = talk.change == 0 || talk.change_n == 0 || talk.change_at >= talk.n_sent;
    if (is_unchanged && talk.n_inside < 8192 &&
        (!talk.is_done || ((data[0] & 2) == 0 && talk.n_read != talk.n_inside))) {
        abort();
    }
    SSL_free(talk.server);
    tls_session_free(talk.session);
    return 0;
}
