/* This node's address in 100.64.0.0/10, which probes come from where their check asks for it. */
#ifndef JURY_PROBE_SHARED_SPACE_H
#define JURY_PROBE_SHARED_SPACE_H

#include "common/base/addr.h"

/* The lowest one, of a link that is up; ADDR_NONE: there is none. Errors: ERR_NOMEM, ERR_LIMIT or
 * ERR_IO where the kernel does not tell. */
int shared_space_find(struct addr *ret_addr);

#endif
