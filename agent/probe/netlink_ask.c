#include "agent/probe/netlink_ask.h"

#include <errno.h>
#include <sys/socket.h>

/* No chunk of a dump is greater, whatever room there is. */
#define ANSWER_BYTES (32 * 1024)

int netlink_ask_open(struct netlink_ask *ask, int protocol)
{
    *ask = (struct netlink_ask){.socket = mnl_socket_open2(protocol, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (ask->socket == NULL) {
        return errno;
    }
    if (mnl_socket_bind(ask->socket, 0, MNL_SOCKET_AUTOPID) != 0) {
        int errnum = errno;
        netlink_ask_close(ask);
        return errnum;
    }
    return 0;
}

void netlink_ask_close(struct netlink_ask *ask)
{
    if (ask->socket != NULL) {
        mnl_socket_close(ask->socket);
    }
    ask->socket = NULL;
}

int netlink_ask(struct netlink_ask *ask, struct nlmsghdr *request, mnl_cb_t take, void *user)
{
    _Alignas(struct nlmsghdr) uint8_t answer[ANSWER_BYTES];
    unsigned port = mnl_socket_get_portid(ask->socket);
    int going = MNL_CB_OK;

    request->nlmsg_seq = ++ask->sequence;
    request->nlmsg_flags |= NLM_F_REQUEST;
    if (mnl_socket_sendto(ask->socket, request, request->nlmsg_len) < 0) {
        return errno;
    }
    while (going > MNL_CB_STOP) {
        ssize_t n = mnl_socket_recvfrom(ask->socket, answer, sizeof answer);

        if (n < 0) {
            return errno;
        }
        going = mnl_cb_run(answer, (size_t)n, request->nlmsg_seq, port, take, user);
        if (going == MNL_CB_ERROR && (errno == EPROTO || errno == ESRCH)) {
            going = MNL_CB_OK; /* what is left of an older question that was given up */
        }
    }
    return going == MNL_CB_ERROR ? errno : 0;
}

struct search {
    uint16_t type;
    size_t n_bytes;
    const struct nlattr *found;
};

static int compare(const struct nlattr *attribute, void *user)
{
    struct search *search = user;

    if (mnl_attr_get_type(attribute) == search->type &&
        mnl_attr_get_payload_len(attribute) >= search->n_bytes) {
        search->found = attribute;
        return MNL_CB_STOP;
    }
    return MNL_CB_OK;
}

const struct nlattr *netlink_find(const struct nlmsghdr *message, unsigned header_bytes,
                                  uint16_t type, size_t n_bytes)
{
    struct search search = {.type = type, .n_bytes = n_bytes};

    if (mnl_nlmsg_get_payload_len(message) >= header_bytes) {
        (void)mnl_attr_parse(message, header_bytes, compare, &search);
    }
    return search.found;
}
