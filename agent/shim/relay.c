#include "agent/shim/relay.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "common/base/err.h"

int relay_buffers_init(struct relay_buffers *buffers, uint32_t n_buffers)
{
    size_t n_bytes = (size_t)n_buffers * RELAY_BUFFER_BYTES;
    /* Pages that were never used cost nothing. */
    void *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    *buffers = (struct relay_buffers){.n_buffers = n_buffers};
    if (memory == MAP_FAILED) {
        return ERR_NOMEM;
    }
    buffers->memory = memory;
    buffers->free = calloc(n_buffers, sizeof *buffers->free);
    if (buffers->free == NULL) {
        relay_buffers_close(buffers);
        return ERR_NOMEM;
    }
    return 0;
}

void relay_buffers_close(struct relay_buffers *buffers)
{
    if (buffers->memory != NULL) {
        munmap(buffers->memory, (size_t)buffers->n_buffers * RELAY_BUFFER_BYTES);
    }
    free(buffers->free);
    *buffers = (struct relay_buffers){.n_buffers = 0};
}

bool relay_buffers_left(const struct relay_buffers *buffers)
{
    return buffers->n_free > 0 || buffers->n_touched < buffers->n_buffers;
}

/* The one given back last first: its pages are warm. */
static uint8_t *take_buffer(struct relay_buffers *buffers)
{
    if (buffers->n_free > 0) {
        return buffers->free[--buffers->n_free];
    }
    if (buffers->n_touched == buffers->n_buffers) {
        return NULL;
    }
    return buffers->memory + (size_t)buffers->n_touched++ * RELAY_BUFFER_BYTES;
}

static void drop_buffer(struct relay_pipe *pipe, struct relay_buffers *buffers)
{
    if (pipe->bytes != NULL) {
        assert(buffers->n_free < buffers->n_buffers);
        buffers->free[buffers->n_free++] = pipe->bytes;
    }
    *pipe = (struct relay_pipe){.bytes = NULL};
}

void relay_release(struct relay *relay, struct relay_buffers *buffers)
{
    drop_buffer(&relay->pipes[RELAY_CLIENT], buffers);
    drop_buffer(&relay->pipes[RELAY_BACKEND], buffers);
}

/* What a step came to, beside the outcomes: it did something, go on. */
#define STEP_AGAIN (-1)

static int step_write(struct relay_pipe *pipe, struct relay_end *to)
{
    if (!to->is_writable) {
        return RELAY_WAIT;
    }
    ssize_t n = send(to->fd, pipe->bytes + pipe->begin, pipe->end - pipe->begin,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) {
        return STEP_AGAIN;
    }
    if (n < 0 && errno == EAGAIN) {
        to->is_writable = false;
        return RELAY_WAIT;
    }
    if (n < 0) {
        return RELAY_BROKEN;
    }
    pipe->begin += (uint32_t)n;
    return STEP_AGAIN;
}

static int step_read(struct relay_pipe *pipe, struct relay_end *from, struct relay_buffers *buffers)
{
    if (!from->is_readable) {
        return RELAY_WAIT;
    }
    if (pipe->bytes == NULL) {
        pipe->bytes = take_buffer(buffers);
        if (pipe->bytes == NULL) {
            return RELAY_STARVED;
        }
    }
    pipe->begin = 0;
    pipe->end = 0;
    ssize_t n = recv(from->fd, pipe->bytes, RELAY_BUFFER_BYTES, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) {
        return STEP_AGAIN;
    }
    if (n < 0 && errno == EAGAIN) {
        /* Only this answer, or FIN, proves that the next edge will be told. */
        from->is_readable = false;
        return RELAY_WAIT;
    }
    if (n < 0) {
        return RELAY_BROKEN;
    }
    from->saw_eof = n == 0;
    pipe->end = (uint32_t)n;
    return STEP_AGAIN;
}

static int step(struct relay *relay, enum relay_side side, struct relay_buffers *buffers)
{
    struct relay_end *from = &relay->ends[side];
    struct relay_end *to = &relay->ends[1 - side];
    struct relay_pipe *pipe = &relay->pipes[side];

    if (pipe->begin < pipe->end) {
        return step_write(pipe, to);
    }
    if (!from->saw_eof) {
        int outcome = step_read(pipe, from, buffers);

        relay->n_bytes[side] += outcome == STEP_AGAIN ? pipe->end : 0;
        return outcome;
    }
    if (!to->is_shut) {
        /* ENOTCONN: the other side is gone by RST; reading from it will say so. */
        shutdown(to->fd, SHUT_WR);
        to->is_shut = true;
    }
    return RELAY_WAIT;
}

static enum relay_outcome pump_one(struct relay *relay, enum relay_side side,
                                   struct relay_buffers *buffers)
{
    uint64_t limit = relay->n_bytes[side] + RELAY_BUDGET_BYTES;
    struct relay_pipe *pipe = &relay->pipes[side];
    int outcome = STEP_AGAIN;

    while (outcome == STEP_AGAIN) {
        if (relay->n_bytes[side] >= limit && pipe->begin == pipe->end) {
            return RELAY_MORE;
        }
        outcome = step(relay, side, buffers);
    }
    if (pipe->begin == pipe->end) {
        drop_buffer(pipe, buffers);
    }
    return (enum relay_outcome)outcome;
}

enum relay_outcome relay_pump(struct relay *relay, struct relay_buffers *buffers)
{
    enum relay_outcome up = pump_one(relay, RELAY_CLIENT, buffers);
    enum relay_outcome down =
        up == RELAY_BROKEN ? RELAY_BROKEN : pump_one(relay, RELAY_BACKEND, buffers);

    if (up == RELAY_BROKEN || down == RELAY_BROKEN) {
        return RELAY_BROKEN;
    }
    if (relay->ends[RELAY_CLIENT].is_shut && relay->ends[RELAY_BACKEND].is_shut) {
        return RELAY_DONE;
    }
    if (up == RELAY_MORE || down == RELAY_MORE) {
        return RELAY_MORE;
    }
    return up == RELAY_STARVED || down == RELAY_STARVED ? RELAY_STARVED : RELAY_WAIT;
}
