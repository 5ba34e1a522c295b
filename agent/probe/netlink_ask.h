/* One question to the kernel over netlink, and its answers (libmnl reads them). The kernel answers
 * while it is asked, so nothing is waited for but locks of its own. */
#ifndef JURY_PROBE_NETLINK_ASK_H
#define JURY_PROBE_NETLINK_ASK_H

#include <libmnl/libmnl.h>

struct netlink_ask {
    struct mnl_socket *socket; /* NULL = closed */
    uint32_t sequence;
};

/* protocol: NETLINK_ROUTE and the like. Zero-initialised is closed, and closing that is fine.
 * Returns 0, or an errno. */
int netlink_ask_open(struct netlink_ask *ask, int protocol);
void netlink_ask_close(struct netlink_ask *ask);

/* request: with type, flags and attributes; its sequence number is set here.
 * take: of each answer; MNL_CB_OK: a dump, which says itself where it ends; MNL_CB_STOP: the only
 * one, or of a dump enough: then it has to be closed before the next question. Returns 0, or the
 * errno that the kernel answered or that the socket has. */
int netlink_ask(struct netlink_ask *ask, struct nlmsghdr *request, mnl_cb_t take, void *user);

/* The attribute of that type and of at least n_bytes, behind a header of header_bytes; its content
 * is in the message. NULL: there is none. */
const struct nlattr *netlink_find(const struct nlmsghdr *message, unsigned header_bytes,
                                  uint16_t type, size_t n_bytes);

#endif
