/* What this process sent. (A file of its own: <linux/tcp.h> and <uv.h> do not go together.) */
#ifndef JURY_TESTS_TCP_BYTES_H
#define JURY_TESTS_TCP_BYTES_H

#include <stdint.h>

/* Payload handed to TCP by all sockets that are open now, sent again or not. */
uint64_t tcp_bytes_sent(void);

#endif
