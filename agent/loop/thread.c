#include "agent/loop/thread.h"

#include <signal.h>

#include "common/base/err.h"

int thread_start(pthread_t *ret_thread, const char *name, void *(*body)(void *arg), void *arg)
{
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all);
    /* Faults of the thread itself must still end the process, and SIGABRT is the watchdog's. */
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        return ERR_LIMIT;
    }
    pthread_setname_np(thread, name);
    *ret_thread = thread;
    return 0;
}
