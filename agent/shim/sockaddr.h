/* Endpoints and the C library's socket addresses. */
#ifndef JURY_SHIM_SOCKADDR_H
#define JURY_SHIM_SOCKADDR_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "common/base/addr.h"

/* Returns the length to pass on. */
socklen_t sockaddr_put(const struct endpoint *from, struct sockaddr_storage *ret_address);
/* Family ADDR_NONE for what is neither IPv4 nor IPv6. */
void sockaddr_get(const struct sockaddr_storage *from, struct endpoint *ret_endpoint);

#endif
