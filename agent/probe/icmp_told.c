#include "agent/probe/icmp_told.h"

#include <time.h>

#include <linux/errqueue.h> /* wants struct timespec */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/probe/connect_socket.h"

/* Room for the error and the address behind it, and for a timestamp that somebody may add. */
#define CONTROL_BYTES 256

/* As the kernel gives it: who sent the message stands right behind (SO_EE_OFFENDER). */
struct kept_error {
    struct sock_extended_err error;
    struct sockaddr_in6 sender; /* or a sockaddr_in */
};

int icmp_told_ask(int fd, uint8_t family)
{
    const int yes = 1;
    const bool is_ipv6 = family == ADDR_IPV6;

    return setsockopt(fd, is_ipv6 ? SOL_IPV6 : SOL_IP, is_ipv6 ? IPV6_RECVERR : IP_RECVERR, &yes,
                      sizeof yes);
}

static struct icmp_told told_of(const struct kept_error *kept)
{
    struct icmp_told told = {.type = kept->error.ee_type, .code = kept->error.ee_code};
    struct sockaddr_storage address = {0};

    if (kept->error.ee_origin == SO_EE_ORIGIN_ICMP || kept->error.ee_origin == SO_EE_ORIGIN_ICMP6) {
        memcpy(&address, &kept->sender, sizeof kept->sender);
        connect_socket_read_address(&address, &told.sender);
    }
    return told;
}

enum icmp_read icmp_told_next(int fd, struct icmp_told *ret_told)
{
    _Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);

    if (n < 0) {
        return ICMP_READ_NOTHING;
    }
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one != NULL;
         one = CMSG_NXTHDR(&message, one)) {
        struct kept_error kept = {0};

        if (!((one->cmsg_level == SOL_IP && one->cmsg_type == IP_RECVERR) ||
              (one->cmsg_level == SOL_IPV6 && one->cmsg_type == IPV6_RECVERR))) {
            continue;
        }
        size_t n_bytes = one->cmsg_len - CMSG_LEN(0);
        memcpy(&kept, CMSG_DATA(one), n_bytes < sizeof kept ? n_bytes : sizeof kept);
        *ret_told = told_of(&kept);
        return ICMP_READ_ERROR;
    }
    return ICMP_READ_OTHER;
}
