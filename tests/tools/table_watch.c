/* Follows a node's forwarding table with nothing but the public header and prints each change.
 *
 * usage: table_watch TABLES [MICROSECONDS]     between two looks; ends when standard input does
 * A JSON line for each change of heartbeat: {"at", "generation", "heartbeat"} in seconds, `at`
 * since 1970 and `heartbeat` of CLOCK_BOOTTIME; and one for each change of what may be used: {"at",
 * "generation", "layout", "inode", "groups": {NAME: {"ADDRESS:PORT": RANK}}}, rank 0 = no new flow.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/table/jury_table.h"

#define TEXT_BYTES 65536

struct map {
    const char *bytes;
    size_t n_bytes;
    uint64_t number; /* in the name; of the root: its inode */
};

struct watch {
    const char *dir;
    struct map root, layout, state;
    uint64_t heartbeat_ns;
    char text[TEXT_BYTES]; /* groups as last printed */
    uint64_t generation, layout_number, inode;
};

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static bool map_open(struct watch *watch, const char *name, struct map *map)
{
    char path[4200];
    struct stat file;

    snprintf(path, sizeof path, "%s/%s", watch->dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &file) != 0 || file.st_size < 128) {
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    void *bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED) {
        return false;
    }
    if (map->bytes != NULL) {
        munmap((void *)(uintptr_t)map->bytes, map->n_bytes);
    }
    *map = (struct map){.bytes = bytes, .n_bytes = (size_t)file.st_size, .number = file.st_ino};
    return true;
}

static const struct jury_root *root_of(const struct watch *watch)
{
    return (const void *)watch->root.bytes;
}

/* Another inode under the root's name is another agent. */
static bool follow_root(struct watch *watch)
{
    char path[4200];
    struct stat file;

    snprintf(path, sizeof path, "%s/root", watch->dir);
    if (stat(path, &file) != 0) {
        return watch->root.bytes != NULL;
    }
    if (watch->root.bytes == NULL || file.st_ino != watch->root.number) {
        if (!map_open(watch, "root", &watch->root)) {
            return false;
        }
        watch->layout.number = watch->state.number = 0;
    }
    return root_of(watch)->magic == JURY_ROOT_MAGIC;
}

static bool follow_files(struct watch *watch)
{
    const struct jury_root *root = root_of(watch);
    char name[64];

    for (int i = 0; i < 10; i++) {
        uint64_t layout = jury_load(&root->layout), state = jury_load(&root->state);

        snprintf(name, sizeof name, "layout.%016" PRIx64, layout);
        bool is_there = layout == watch->layout.number || map_open(watch, name, &watch->layout);
        snprintf(name, sizeof name, "state.%" PRIu64, state);
        is_there =
            is_there && (state == watch->state.number || map_open(watch, name, &watch->state));
        if (is_there) {
            watch->layout.number = layout;
            watch->state.number = state;
            return true;
        }
        watch->layout.number = watch->state.number = 0; /* one has gone: the root says more */
    }
    return false;
}

static const struct jury_member *member_at(const struct watch *watch, uint64_t i)
{
    const struct jury_layout *layout = (const void *)watch->layout.bytes;

    return (const void *)(watch->layout.bytes + layout->members_at +
                          i * (size_t)layout->member_bytes);
}

static size_t put_member(const struct watch *watch, const struct jury_member *member, char *text)
{
    const struct jury_state *state = (const void *)watch->state.bytes;
    const struct jury_row *rows = (const void *)(watch->state.bytes + state->rows_at);
    uint64_t word = jury_load(&rows[member->row].word);
    unsigned rank =
        jury_word_is_of(word, member->birth) ? jury_class_rank(jury_word_class(word)) : 0;
    char address[INET6_ADDRSTRLEN];
    bool is_4 = member->at.family == 4;

    inet_ntop(is_4 ? AF_INET : AF_INET6, member->at.address, address, sizeof address);
    return (size_t)sprintf(text, "\"%s%s%s:%u\": %u", is_4 ? "" : "[", address, is_4 ? "" : "]",
                           member->at.port, member->weight == 0 || member->is_going ? 0 : rank);
}

/* One scope, its words between two equal and even loads of its sequence. */
static size_t put_scope(const struct watch *watch, const struct jury_scope *scope, char *text)
{
    const struct jury_state *state = (const void *)watch->state.bytes;
    const uint64_t *sequences = (const void *)(watch->state.bytes + state->sequences_at);
    size_t n = 0;

    for (int tries = 0; tries < JURY_SCOPE_TRIES; tries++) {
        uint64_t before = jury_load(&sequences[scope->row]);

        n = (size_t)sprintf(text, "\"%s\": {", scope->name);
        for (uint32_t i = 0; i < scope->n_members; i++) {
            n += (size_t)sprintf(text + n, "%s", i == 0 ? "" : ", ");
            n += put_member(watch, member_at(watch, scope->first_member + i), text + n);
        }
        n += (size_t)sprintf(text + n, "}");
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if ((before & 1) == 0 && jury_load(&sequences[scope->row]) == before) {
            break;
        }
    }
    return n;
}

static void put_groups(const struct watch *watch, char *text)
{
    const struct jury_layout *layout = (const void *)watch->layout.bytes;
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < layout->n_scopes && n < TEXT_BYTES / 2; i++) {
        const struct jury_scope *scope = (const void *)(watch->layout.bytes + layout->scopes_at +
                                                        i * (size_t)layout->scope_bytes);

        n += (size_t)sprintf(text + n, "%s", i == 0 ? "" : ", ");
        n += put_scope(watch, scope, text + n);
    }
}

static void look(struct watch *watch)
{
    static char text[TEXT_BYTES];

    if (!follow_root(watch)) {
        return;
    }
    const struct jury_root *root = root_of(watch);
    uint64_t heartbeat_ns = jury_load(&root->heartbeat_ns);
    uint64_t generation = jury_load(&root->generation);
    if (heartbeat_ns != watch->heartbeat_ns) {
        watch->heartbeat_ns = heartbeat_ns;
        printf("{\"at\": %.6f, \"generation\": %" PRIu64 ", \"heartbeat\": %.6f}\n", now(),
               generation, (double)heartbeat_ns / 1e9);
    }
    if (!follow_files(watch)) {
        return;
    }
    put_groups(watch, text);
    if (generation != watch->generation || watch->layout.number != watch->layout_number ||
        watch->root.number != watch->inode || strcmp(text, watch->text) != 0) {
        watch->generation = generation;
        watch->layout_number = watch->layout.number;
        watch->inode = watch->root.number;
        memcpy(watch->text, text, sizeof text);
        printf("{\"at\": %.6f, \"generation\": %" PRIu64 ", \"layout\": %" PRIu64
               ", \"inode\": %" PRIu64 ", \"groups\": {%s}}\n",
               now(), generation, watch->layout.number, watch->root.number, text);
    }
}

int main(int argc, char *argv[])
{
    struct watch *watch = calloc(1, sizeof *watch);
    useconds_t pause_us = argc > 2 ? (useconds_t)atoi(argv[2]) : 500;
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

    if (argc < 2 || watch == NULL) {
        fprintf(stderr, "usage: table_watch TABLES [MICROSECONDS]\n");
        return 2;
    }
    watch->dir = argv[1];
    while (poll(&in, 1, 0) == 0) {
        look(watch);
        fflush(stdout);
        usleep(pause_us);
    }
    free(watch);
    return 0;
}
