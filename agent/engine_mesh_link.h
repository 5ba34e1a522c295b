/* Between the engine and the vote mesh: messages of peers to events, actions to messages. What does
 * it in the agent does it in benchmarks of nodes that have no more than the two. */
#ifndef JURY_AGENT_ENGINE_MESH_LINK_H
#define JURY_AGENT_ENGINE_MESH_LINK_H

#include "agent/core/engine.h"
#include "agent/mesh/mesh.h"

/* False: the message is none of the engine's. The event borrows from the message. */
bool engine_event_of(uint64_t peer, const struct peer_message *message,
                     struct engine_event *ret_event);
/* What a hello says besides the engine's. */
struct hello_shell {
    uint16_t sentinel_port; /* 0 = there is none */
    bool lacks_shared_space;
    uint8_t unbuilt; /* set of enum hello_unbuilt */
    bool store_is_down;
};

/* All messages of a step. */
void engine_messages_send(struct mesh *mesh, const struct engine_actions *actions,
                          const struct hello_shell *shell);

#endif
