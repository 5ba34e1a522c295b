/* ICMP errors that the kernel keeps for a socket which asked for them (IP_RECVERR). */
#ifndef JURY_PROBE_ICMP_TOLD_H
#define JURY_PROBE_ICMP_TOLD_H

#include <stdint.h>

#include "common/base/addr.h"

struct icmp_told {
    struct addr sender; /* ADDR_NONE: the error is no ICMP message */
    uint8_t type;
    uint8_t code;
};

enum icmp_read {
    ICMP_READ_NOTHING, /* for now */
    ICMP_READ_ERROR,   /* *ret_told is filled in */
    ICMP_READ_OTHER    /* something else was in the queue */
};

/* Of both families: ask for them. Returns 0, or -1 and errno. */
int icmp_told_ask(int fd, uint8_t family);
/* The oldest that was not read yet. */
enum icmp_read icmp_told_next(int fd, struct icmp_told *ret_told);

#endif
