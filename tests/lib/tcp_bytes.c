#include "tests/lib/tcp_bytes.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define FDS_MAX 1024

uint64_t tcp_bytes_sent(void)
{
    uint64_t sum = 0;

    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct tcp_info info = {0};
        socklen_t n_bytes = sizeof info;

        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n_bytes) == 0) {
            sum += info.tcpi_bytes_sent;
        }
    }
    return sum;
}
