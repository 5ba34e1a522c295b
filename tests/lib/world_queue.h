/* What is to happen in a world. Private to tests/lib/world*.c. */
#ifndef JURY_TESTS_WORLD_QUEUE_H
#define JURY_TESTS_WORLD_QUEUE_H

#include "tests/lib/world.h"

/* What falls into one nanosecond happens in this order, so that it does not hang on when it was
 * planned: repeated messages plan wakes anew. */
enum happening_kind {
    HAPPENS_WAKE = 1,  /* an engine's timer */
    HAPPENS_PROBE_DUE, /* a schedule's next start */
    HAPPENS_PROBE_END, /* result */
    HAPPENS_MESSAGE,   /* message */
    HAPPENS_CATALOG,   /* revision */
    HAPPENS_FLOWS,     /* the data plane is looked at again */
    HAPPENS_STALL_END, /* late_ns */
    HAPPENS_REPLAY     /* message, to the life of the node that has taken it already */
};

/* A message is shared by all that it goes to. */
struct world_message {
    uint32_t n_users;
    uint8_t kind; /* enum engine_event_kind */
    uint64_t from;
    union {
        struct hello hello;
        struct vote_chunk chunk;
        struct vote_change change;
        struct vote_question question;
        struct drain_report report;
    } u;
};

struct happening {
    uint8_t kind; /* enum happening_kind */
    uint64_t node_id;
    uint64_t epoch; /* of the node when it was planned; messages are not bound to it */
    uint64_t token;
    union {
        struct world_message *message;
        struct probe_result result; /* times are the node's own */
        uint64_t revision;
        uint64_t late_ns;
    } u;
};

void world_plan(struct world *world, uint64_t at_ns, const struct happening *happening);
/* Plan a happening of a timer of the node, at a time of its own clock; TIMER_NEVER plans nothing.
 * What was planned before with this token is no longer due. */
void world_plan_wake(struct world *world, struct world_node *node, enum happening_kind kind,
                     uint64_t local_ns, uint64_t *token);
/* Do with the node's probe schedule what its engine's last step says. */
void world_follow_probes(struct world *world, struct world_node *node);
/* Start the probes that are due: each is answered by its backend's truth. */
void world_start_probes(struct world *world, struct world_node *node);
void world_end_probe(struct world *world, struct world_node *node,
                     const struct probe_result *result);
/* Send what a step's actions say. */
void world_send_actions(struct world *world, struct world_node *node);
/* After the first delivery of a message, when there is noise. */
void world_make_noise(struct world *world, const struct world_node *node,
                      struct world_message *message);
void world_noise_close(struct world *world);
void world_deliver(struct world *world, struct world_node *node, struct world_message *message);
void world_message_unref(struct world_message *message);

#endif
