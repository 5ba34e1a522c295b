/* Backends that answer an http probe wrongly, without end or not at all: one habit a port, at every
 * address of the namespace, thousands of connections in one thread. A habit is a row of `habits`.
 *
 * usage: hostile_server HABIT... Prints a JSON line {HABIT: PORT, ...}; ends with its input. */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILES 60000
#define TICK_MS 50
#define OK_LINE "HTTP/1.1 200 OK\r\n"

enum ending {
    KEEP,  /* open until the other side closes */
    FIN,   /* close politely */
    RESET, /* close rudely */
    FLOOD, /* `then`, as fast as it is taken */
    DRIP   /* a byte of `then` each tick */
};

struct habit {
    const char *name;
    enum ending ending;
    bool is_rash; /* does not wait for a request */
    const char *first;
    size_t n_first;
    const char *then;
};

#define SAYS(text) .first = (text), .n_first = sizeof(text) - 1

static const struct habit habits[] = {
    {"silent", KEEP, .first = NULL},
    {"hangup", FIN, .is_rash = true},
    {"reset-at-once", RESET, .is_rash = true},
    {"half-status", KEEP, SAYS("HTTP/1.1 20")},
    {"reset-in-header", RESET, SAYS(OK_LINE "Server: x")},
    {"tls", KEEP, SAYS("\x15\x03\x01\0\x02\x02\x16")},
    {"nul", KEEP, SAYS(OK_LINE "X: \0\0\0\0\r\n\r\n")},
    {"huge-chunk", KEEP, SAYS(OK_LINE "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx")},
    {"redirect", FIN, SAYS("HTTP/1.1 302 Found\r\nLocation: http://198.51.100.9/up\r\n\r\n")},
    {"drip", DRIP, SAYS(OK_LINE "X: "), .then = "x"},
    {"endless-header", FLOOD, SAYS(OK_LINE), .then = "X-Pad: 01234567890123456789\r\n"},
    {"endless-body", FLOOD, SAYS(OK_LINE "\r\n"), .then = "0123456789abcdef"},
    {"endless-status", FLOOD, SAYS("HTTP/1.1 200 "), .then = "OOOOOOOOOOOOOOOO"},
    {"continue", FLOOD, .first = NULL, .then = "HTTP/1.1 100 Continue\r\n\r\n"},
};
#define N_HABITS (sizeof habits / sizeof habits[0])

struct connection {
    const struct habit *habit; /* NULL = none here */
    bool is_listener;
    bool is_answering;
    size_t n_then; /* bytes of it that were sent: where the next one begins */
};

struct server {
    int epoll_fd;
    int max_fd;
    struct connection by_fd[FILES];
};

static void die(const char *what)
{
    fprintf(stderr, "hostile_server: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void watch(struct server *server, int fd, const struct habit *habit, bool is_listener)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = fd};

    if (fd >= FILES || epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        die("watch");
    }
    server->by_fd[fd] = (struct connection){.habit = habit, .is_listener = is_listener};
    server->max_fd = fd > server->max_fd ? fd : server->max_fd;
}

static int listen_for(struct server *server, const char *name)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t n_bytes = sizeof any;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    size_t at = 0;

    while (at < N_HABITS && strcmp(habits[at].name, name) != 0) {
        at++;
    }
    if (at == N_HABITS || fd < 0 || bind(fd, (const struct sockaddr *)&any, n_bytes) != 0 ||
        listen(fd, 4096) != 0 || getsockname(fd, (struct sockaddr *)&any, &n_bytes) != 0) {
        die(name);
    }
    watch(server, fd, &habits[at], true);
    return ntohs(any.sin_port);
}

static void end(struct server *server, int fd)
{
    server->by_fd[fd].habit = NULL;
    close(fd);
}

/* So much of a text that has no end as the socket takes, up to n_max. False: the connection is
 * over. */
static bool pour(int fd, struct connection *connection, size_t n_max)
{
    const char *then = connection->habit->then;
    const size_t n_period = strlen(then);
    char bytes[4096];

    while (n_max > 0) {
        size_t n = n_max < sizeof bytes ? n_max : sizeof bytes;

        for (size_t i = 0; i < n; i++) {
            bytes[i] = then[(connection->n_then + i) % n_period];
        }
        ssize_t n_sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (n_sent < 0) {
            return errno == EAGAIN;
        }
        connection->n_then += (size_t)n_sent;
        n_max -= (size_t)n_sent;
    }
    return true;
}

static void finish(struct server *server, int fd, enum ending ending)
{
    const struct linger rude = {.l_onoff = 1, .l_linger = 0};

    switch (ending) {
    case RESET:
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &rude, sizeof rude);
        end(server, fd);
        return;
    case FIN:
        (void)shutdown(fd, SHUT_WR);
        return;
    case KEEP:
    case FLOOD:
    case DRIP:
        return;
    }
}

static void answer(struct server *server, int fd)
{
    struct connection *connection = &server->by_fd[fd];
    const struct habit *habit = connection->habit;

    connection->is_answering = true;
    if (habit->n_first > 0 &&
        send(fd, habit->first, habit->n_first, MSG_NOSIGNAL) != (ssize_t)habit->n_first) {
        end(server, fd);
        return;
    }
    finish(server, fd, habit->ending);
}

static void accept_all(struct server *server, int listener)
{
    const struct habit *habit = server->by_fd[listener].habit;
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        watch(server, fd, habit, false);
        if (habit->is_rash) {
            answer(server, fd);
        }
    }
}

static void serve(struct server *server, int fd)
{
    struct connection *connection = &server->by_fd[fd];
    char request[4096];
    ssize_t n;

    while ((n = recv(fd, request, sizeof request, 0)) > 0) {
        if (!connection->is_answering) {
            answer(server, fd);
        }
        if (connection->habit == NULL) {
            return;
        }
    }
    bool is_over = n == 0 || errno != EAGAIN;
    if (!is_over && connection->is_answering && connection->habit->ending == FLOOD) {
        is_over = !pour(fd, connection, 1 << 20);
    }
    if (is_over) {
        end(server, fd);
    }
}

static void tick(struct server *server)
{
    for (int fd = 0; fd <= server->max_fd; fd++) {
        struct connection *connection = &server->by_fd[fd];

        if (connection->habit != NULL && connection->is_answering &&
            connection->habit->ending == DRIP && !pour(fd, connection, 1)) {
            end(server, fd);
        }
    }
}

int main(int argc, char **argv)
{
    static struct server server; /* large */
    const struct rlimit many = {.rlim_cur = FILES, .rlim_max = FILES};
    struct epoll_event events[256];

    (void)setrlimit(RLIMIT_NOFILE, &many);
    server.epoll_fd = epoll_create1(0);
    for (int i = 1; i < argc; i++) {
        printf("%s\"%s\": %d", i == 1 ? "{" : ", ", argv[i], listen_for(&server, argv[i]));
    }
    printf("}\n");
    fflush(stdout);
    watch(&server, STDIN_FILENO, NULL, false);
    for (;;) {
        int n = epoll_wait(server.epoll_fd, events, 256, TICK_MS);

        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;

            if (fd == STDIN_FILENO) {
                return 0; /* nothing is ever said there */
            }
            if (server.by_fd[fd].is_listener) {
                accept_all(&server, fd);
            } else if (server.by_fd[fd].habit != NULL) {
                serve(&server, fd);
            }
        }
        tick(&server);
    }
}
