/* Whether this node's addresses, routes, rules or links have changed: what was found out about them
 * may be kept until then. The kernel tells it over netlink; no rights are needed. */
#ifndef JURY_PROBE_ROUTE_WATCH_H
#define JURY_PROBE_ROUTE_WATCH_H

#include <stdbool.h>

struct route_watch {
    int fd; /* -1 = the kernel tells nothing: what is kept is old at once */
};

/* Never fails: without a socket everything counts as changed. */
void route_watch_open(struct route_watch *watch);
void route_watch_close(struct route_watch *watch);

/* Whether anything changed since the last call, or may have. */
bool route_watch_changed(struct route_watch *watch);

#endif
