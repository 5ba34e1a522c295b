/* Who is at the other end of a connected descriptor. */
#ifndef JURY_LOOP_PEERNAME_H
#define JURY_LOOP_PEERNAME_H

#include "common/base/addr.h"

/* IPv4 of a socket of both families comes as IPv4. ADDR_NONE: not known, or a unix socket. */
struct endpoint peername_of(int fd);

#endif
