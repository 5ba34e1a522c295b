/* Backends for measuring http probes: one thread, answers each request on a port, at every address
 * of its namespace, with the same 97 bytes, and closes. Cheap, so that what is measured is who
 * asks.
 *
 * usage: http_counter PORT. Prints "ready"; for each line of its input, the number of requests so
 * far; ends with the input. */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n"
                            "Connection: close\r\n\r\nall is well\n";

static void die(const char *what)
{
    fprintf(stderr, "http_counter: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        die("epoll");
    }
}

static int listen_on(int port)
{
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof any) != 0 ||
        listen(fd, 4096) != 0) {
        die("listen");
    }
    return fd;
}

static void accept_all(int epoll_fd, int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0) {
            return;
        }
        watch(epoll_fd, fd);
    }
}

/* Returns whether a request was answered; the connection is over in any case. */
static int serve(int fd)
{
    char request[4096];
    ssize_t n = recv(fd, request, sizeof request, 0);

    if (n < 0 && errno == EAGAIN) {
        return 0;
    }
    int is_answered = n > 0 && send(fd, reply, sizeof reply - 1, MSG_NOSIGNAL) > 0;
    close(fd);
    return is_answered;
}

int main(int argc, char **argv)
{
    const struct rlimit many = {.rlim_cur = 20000, .rlim_max = 20000};
    struct epoll_event events[256];
    uint64_t n_requests = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: http_counter PORT\n");
        return 2;
    }
    (void)setrlimit(RLIMIT_NOFILE, &many);
    int listener = listen_on(atoi(argv[1]));
    int epoll_fd = epoll_create1(0);
    watch(epoll_fd, listener);
    watch(epoll_fd, STDIN_FILENO);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    for (;;) {
        int n = epoll_wait(epoll_fd, events, 256, -1);

        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;

            if (fd == listener) {
                accept_all(epoll_fd, listener);
            } else if (fd == STDIN_FILENO) {
                char line[16];
                if (read(fd, line, sizeof line) <= 0) {
                    return 0;
                }
                printf("%llu\n", (unsigned long long)n_requests);
            } else {
                n_requests += (uint64_t)serve(fd);
            }
        }
    }
}
