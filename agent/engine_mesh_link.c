#include "agent/engine_mesh_link.h"

bool engine_event_of(uint64_t peer, const struct peer_message *message,
                     struct engine_event *ret_event)
{
    struct engine_event event = {.peer = peer};

    switch ((enum peer_kind)message->kind) {
    case PEER_HELLO:
        event.kind = ENGINE_HELLO;
        event.u.hello = &message->u.hello;
        break;
    case PEER_VOTE_CHUNK:
        event.kind = ENGINE_VOTE_CHUNK;
        event.u.chunk = &message->u.chunk;
        break;
    case PEER_VOTE_CHANGE:
        event.kind = ENGINE_VOTE_CHANGE;
        event.u.change = &message->u.change;
        break;
    case PEER_VOTE_QUESTION:
        event.kind = ENGINE_VOTE_QUESTION;
        event.u.question = &message->u.question;
        break;
    case PEER_DRAIN_REPORT:
        event.kind = ENGINE_DRAIN_REPORT;
        event.u.report = &message->u.report;
        break;
    case PEER_NONE:
    case PEER_FORWARD_REQUEST:
    case PEER_FORWARD_RESPONSE:
        return false;
    }
    *ret_event = event;
    return true;
}

static void send_changes(struct mesh *mesh, const struct engine_actions *actions)
{
    for (uint16_t i = 0; i < actions->n_changes; i++) {
        mesh_send_change(mesh, &actions->changes[i]);
    }
}

/* In rising sequence: a receiver drops what is older than the last it took. */
void engine_messages_send(struct mesh *mesh, const struct engine_actions *actions,
                          const struct hello_shell *shell)
{
    bool changes_first = actions->n_chunks == 0 || actions->n_changes == 0 ||
                         actions->changes[0].sequence < actions->chunks[0].sequence;

    if (actions->has_hello) {
        struct hello hello = actions->hello;

        hello.sentinel_port = shell->sentinel_port;
        hello.lacks_shared_space = shell->lacks_shared_space;
        hello.unbuilt = shell->unbuilt;
        hello.store_is_down = shell->store_is_down;
        mesh_send_hello(mesh, &hello);
    }
    if (changes_first) {
        send_changes(mesh, actions);
    }
    if (actions->n_chunks > 0) {
        mesh_send_vector(mesh, actions->chunks, actions->n_chunks);
    }
    if (!changes_first) {
        send_changes(mesh, actions);
    }
    if (actions->has_drain_report) {
        mesh_send_report(mesh, &actions->drain_report);
    }
    if (actions->has_question) {
        mesh_send_question(mesh, &actions->question);
    }
    for (uint16_t i = 0; i < actions->n_replies; i++) {
        mesh_reply_change(mesh, actions->replies[i].to, &actions->replies[i].change);
    }
}
