/* LD_PRELOAD: how many bytes a process read of one connection at most. It is an int64 in the file
 * that JURY_TEST_MOST_READ names, mapped; a descriptor's count begins anew with each connect(). Of
 * one thread that reads. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILES 65536

static volatile int64_t *most_read; /* NULL = not wanted */
static uint32_t n_read[FILES];

__attribute__((constructor)) static void map_result(void)
{
    const char *path = getenv("JURY_TEST_MOST_READ");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED
                       : mmap(NULL, sizeof *most_read, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (map != MAP_FAILED) {
        most_read = map;
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* The type is the C library's own, a union that is transparent. */
int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t n_bytes)
{
    static int (*next)(int, __CONST_SOCKADDR_ARG, socklen_t);

    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "connect");
    }
    if (fd >= 0 && fd < FILES) {
        n_read[fd] = 0;
    }
    return next(fd, to, n_bytes);
}

ssize_t recv(int fd, void *bytes, size_t n_bytes, int flags)
{
    static ssize_t (*next)(int, void *, size_t, int);

    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "recv");
    }
    ssize_t n = next(fd, bytes, n_bytes, flags);
    if (n > 0 && fd >= 0 && fd < FILES && most_read != NULL) {
        n_read[fd] += (uint32_t)n;
        *most_read = n_read[fd] > *most_read ? n_read[fd] : *most_read;
    }
    return n;
}
