/* Starting a thread the one way this product does: named (at most 15 characters), with every signal
 * blocked, so that signals reach the loop that watches for them. */
#ifndef JURY_LOOP_THREAD_H
#define JURY_LOOP_THREAD_H

#include <pthread.h>

/* name, arg: kept. Errors: ERR_LIMIT. */
int thread_start(pthread_t *ret_thread, const char *name, void *(*body)(void *arg), void *arg);

#endif
