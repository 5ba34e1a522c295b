#include "agent/table/table_rescue.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/plant.h"

/* end 0: not in use. The end is stored last and cleared first. */
static struct {
    _Atomic uintptr_t start;
    _Atomic uintptr_t end;
    atomic_flag is_taken;
} maps[TABLE_RESCUE_MAPS];
static uintptr_t page_bytes;

static bool is_watched(uintptr_t at)
{
    for (size_t i = 0; i < TABLE_RESCUE_MAPS; i++) {
        if (at < atomic_load(&maps[i].end) && at >= atomic_load(&maps[i].start)) {
            return true;
        }
    }
    return false;
}

static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    int errnum = errno;

    (void)context;
    if (info->si_code == BUS_ADRERR && is_watched(at) && !plant_is("table-cut-kills") &&
        mmap((void *)(at & ~(page_bytes - 1)), page_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
        errno = errnum;
        return;
    }
    signal(signal_number, SIG_DFL); /* the access is repeated and ends the process */
}

void table_rescue_install(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&action.sa_mask);
    int result = sigaction(SIGBUS, &action, NULL);
    assert(result == 0); /* it fails for a signal that does not exist, and for nothing else */
    (void)result;
}

void table_rescue_watch(const void *start, size_t n_bytes)
{
    for (size_t i = 0; i < TABLE_RESCUE_MAPS; i++) {
        if (!atomic_flag_test_and_set(&maps[i].is_taken)) {
            atomic_store(&maps[i].start, (uintptr_t)start);
            atomic_store(&maps[i].end, (uintptr_t)start + n_bytes);
            return;
        }
    }
}

void table_rescue_forget(const void *start)
{
    for (size_t i = 0; i < TABLE_RESCUE_MAPS; i++) {
        if (atomic_load(&maps[i].end) != 0 && atomic_load(&maps[i].start) == (uintptr_t)start) {
            atomic_store(&maps[i].end, 0);
            atomic_flag_clear(&maps[i].is_taken);
            return;
        }
    }
}
