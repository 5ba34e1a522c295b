#include "agent/loop/resolver.h"

#include <assert.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/loop/ring.h"
#include "agent/loop/thread.h"
#include "agent/loop/wake.h"
#include "common/base/str.h"

#define STOP_WAIT_MS 200

struct question {
    uint64_t cookie;
    char host[RESOLVER_HOST_BYTES];
};

/* The wake of the loop and both rings live as long as the resolver; the watch as long as the loop's
 * client. */
struct resolver_client {
    struct resolver *resolver;
    struct ring *questions; /* loop -> thread */
    struct ring *answers;   /* thread -> loop */
    struct wake wake;
    struct wake_watch watch;
    _Atomic bool is_closed;
    void (*answered)(void *user, const struct resolver_answer *answer);
    void *user;
};

struct resolver {
    pthread_t thread;
    struct wake wake;
    _Atomic bool must_stop;
    _Atomic uint32_t n_clients; /* clients[0..n) are complete */
    struct resolver_client *clients[RESOLVER_CLIENTS];
    pthread_mutex_t opening; /* between loops that open a client; the thread never takes it */
};

static bool copy_address(const struct addrinfo *info, struct addr *ret_addr)
{
    const void *from = info->ai_addr;

    *ret_addr = (struct addr){0};
    if (info->ai_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof in);
        ret_addr->family = ADDR_IPV4;
        memcpy(ret_addr->bytes, &in.sin_addr, 4);
        return true;
    }
    if (info->ai_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, from, sizeof in6);
        ret_addr->family = ADDR_IPV6;
        memcpy(ret_addr->bytes, &in6.sin6_addr, 16);
        return true;
    }
    return false;
}

static int map_error(int rc)
{
    switch (rc) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return ERR_NOTFOUND;
    case EAI_MEMORY:
    case EAI_SYSTEM:
        return ERR_LIMIT;
    default:
        return ERR_UNREACHABLE;
    }
}

static void resolve(const struct question *question, struct resolver_answer *ret_answer)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    struct addrinfo *list = NULL;

    *ret_answer = (struct resolver_answer){.cookie = question->cookie};
    str_copy(ret_answer->host, sizeof ret_answer->host, question->host);
    int rc = getaddrinfo(question->host, NULL, &hints, &list);
    if (rc != 0) {
        ret_answer->err = map_error(rc);
        return;
    }
    for (const struct addrinfo *info = list; info != NULL; info = info->ai_next) {
        if (ret_answer->n_addresses == RESOLVER_ADDRESSES) {
            break;
        }
        if (copy_address(info, &ret_answer->addresses[ret_answer->n_addresses])) {
            ret_answer->n_addresses++;
        }
    }
    freeaddrinfo(list);
    ret_answer->err = ret_answer->n_addresses > 0 ? 0 : ERR_NOTFOUND;
}

/* One question of each client in turn, so that one loop's list does not hold up the other's. */
static bool serve_one_each(struct resolver *resolver)
{
    bool did_work = false;
    uint32_t n_clients = atomic_load(&resolver->n_clients);

    for (uint32_t i = 0; i < n_clients && !atomic_load(&resolver->must_stop); i++) {
        struct resolver_client *client = resolver->clients[i];
        struct question question;
        struct resolver_answer answer;

        if (!ring_pop(client->questions, &question)) {
            continue;
        }
        did_work = true;
        if (atomic_load(&client->is_closed)) {
            continue;
        }
        resolve(&question, &answer);
        /* Never full: it holds as many answers as there may be questions under way. */
        ring_push(client->answers, &answer);
        wake_signal(&client->wake);
    }
    return did_work;
}

static void *run(void *arg)
{
    struct resolver *resolver = arg;

    while (!atomic_load(&resolver->must_stop)) {
        struct pollfd fd = {.fd = wake_fd(&resolver->wake), .events = POLLIN};

        poll(&fd, 1, -1);
        wake_clear(&resolver->wake);
        while (serve_one_each(resolver)) {
        }
    }
    return NULL;
}

int resolver_start(struct resolver **ret_resolver)
{
    struct resolver *resolver = calloc(1, sizeof *resolver);

    if (resolver == NULL) {
        return ERR_NOMEM;
    }
    int rc = wake_init(&resolver->wake);
    if (rc != 0) {
        free(resolver);
        return rc;
    }
    pthread_mutex_init(&resolver->opening, NULL);
    rc = thread_start(&resolver->thread, "resolver", run, resolver);
    if (rc != 0) {
        wake_close(&resolver->wake);
        free(resolver);
        return rc;
    }
    *ret_resolver = resolver;
    return 0;
}

static void free_client(struct resolver_client *client)
{
    ring_free(client->questions);
    ring_free(client->answers);
    if (client->wake.fd >= 0) {
        wake_close(&client->wake);
    }
    free(client);
}

void resolver_stop(struct resolver *resolver)
{
    struct timespec until;

    atomic_store(&resolver->must_stop, true);
    wake_signal(&resolver->wake);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += STOP_WAIT_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    if (pthread_timedjoin_np(resolver->thread, NULL, &until) != 0) {
        /* A name server that does not answer holds the thread for many seconds. It owns the memory
         * then, and the process ends without it. */
        pthread_detach(resolver->thread);
        return;
    }
    for (uint32_t i = 0; i < resolver->n_clients; i++) {
        free_client(resolver->clients[i]);
    }
    wake_close(&resolver->wake);
    pthread_mutex_destroy(&resolver->opening);
    free(resolver);
}

static void on_wake(void *user)
{
    struct resolver_client *client = user;
    struct resolver_answer answer;

    while (!atomic_load(&client->is_closed) && ring_pop(client->answers, &answer)) {
        client->answered(client->user, &answer);
    }
}

static void add_client(struct resolver *resolver, struct resolver_client *client)
{
    pthread_mutex_lock(&resolver->opening);
    uint32_t n_clients = atomic_load(&resolver->n_clients);
    assert(n_clients < RESOLVER_CLIENTS);
    resolver->clients[n_clients] = client;
    atomic_store(&resolver->n_clients, n_clients + 1);
    pthread_mutex_unlock(&resolver->opening);
}

int resolver_client_open(struct resolver *resolver, uv_loop_t *loop,
                         void (*answered)(void *user, const struct resolver_answer *answer),
                         void *user, struct resolver_client **ret_client)
{
    struct resolver_client *client = calloc(1, sizeof *client);
    int rc = ERR_NOMEM;

    if (client == NULL) {
        return ERR_NOMEM;
    }
    *client = (struct resolver_client){
        .resolver = resolver, .answered = answered, .user = user, .wake = {.fd = -1}};
    client->questions = ring_new(sizeof(struct question), RESOLVER_QUESTIONS);
    client->answers = ring_new(sizeof(struct resolver_answer), RESOLVER_QUESTIONS * 2);
    if (client->questions == NULL || client->answers == NULL) {
        goto fail;
    }
    rc = wake_init(&client->wake);
    if (rc != 0) {
        client->wake.fd = -1;
        goto fail;
    }
    rc = wake_watch_start(&client->watch, loop, &client->wake, on_wake, client);
    if (rc != 0) {
        goto fail;
    }
    add_client(resolver, client);
    *ret_client = client;
    return 0;
fail:
    free_client(client);
    return rc;
}

void resolver_client_close(struct resolver_client *client)
{
    atomic_store(&client->is_closed, true);
    wake_watch_stop(&client->watch);
}

int resolver_ask(struct resolver_client *client, uint64_t cookie, const char *host)
{
    struct question question = {.cookie = cookie};

    if (!str_copy(question.host, sizeof question.host, host)) {
        return ERR_INVALID;
    }
    if (!ring_push(client->questions, &question)) {
        return ERR_BUSY;
    }
    wake_signal(&client->resolver->wake);
    return 0;
}
