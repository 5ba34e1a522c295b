/* LD_PRELOAD: a process whose wall clock is off. The seconds are an int64 in the file that
 * JURY_TEST_WALL_CLOCK names, mapped, so that a test can let the clock jump. All other clocks are
 * as they are. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_s; /* NULL = not off */

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("JURY_TEST_WALL_CLOCK");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset_s, PROT_READ, MAP_SHARED, fd, 0);

    if (map != MAP_FAILED) {
        offset_s = map;
    }
    if (fd >= 0) {
        close(fd);
    }
}

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    static int (*next)(clockid_t, struct timespec *);

    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    }
    int rc = next(clock, ret_time);
    if (rc == 0 && offset_s != NULL &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        ret_time->tv_sec += *offset_s;
    }
    return rc;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret_time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret_time)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_time != NULL) {
        *ret_time = now.tv_sec;
    }
    return now.tv_sec;
}
