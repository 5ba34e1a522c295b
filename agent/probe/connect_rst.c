/* The RST after the timeout of a full handshake (check.tcp.onTimeout: rst, S94), by the raw sender.
 */
#include "agent/probe/connect_attempt.h"
#include "agent/probe/connect_engine.h"
#include "agent/probe/connect_socket.h"
#include "agent/probe/probe_note.h"
#include "agent/probe/syn_tap.h"
#include "common/base/plant.h"

void connect_engine_enable_rst(struct probe_engine *base)
{
    ((struct connect_engine *)base)->may_tap = true;
}

void connect_rst_close(struct connect_engine *engine)
{
    syn_tap_free(engine->tap);
    engine->tap = NULL;
}

static bool wants_rst(const struct health_check *check)
{
    return check->type == CHECK_TYPE_TCP && check->tcp.on_timeout == TCP_ON_TIMEOUT_RST;
}

/* The tap listens while a SYN is awaited that it has to see: the only one of a probe, or its
 * repetition (RFC 6298: after 1 s) once the first one has had no answer for half of that. So probes
 * that are answered pay nothing. */
#define UNANSWERED_NS (NS_PER_SECOND / 2)
#define REPEATED_MS 1100 /* with a longer T there is a repetition */

static void listen_for(struct connect_engine *engine, struct attempt *attempt)
{
    attempt->is_tapped = true;
    if (engine->n_tapped++ == 0) {
        syn_tap_listen(engine->tap, true);
    }
}

/* The first that wants it opens the tap. Without the rights it is not tried again. */
void connect_rst_prepare(struct connect_engine *engine, struct attempt *attempt,
                         const struct probe_target *target)
{
    const struct health_check *check = target->definition.check;

    if (engine->may_tap && wants_rst(check)) {
        engine->may_tap = false;
        (void)syn_tap_new(&engine->tap, NULL);
    }
    if (engine->tap != NULL && wants_rst(check) && check->timeout_ms <= REPEATED_MS) {
        listen_for(engine, attempt);
    }
}

uint64_t connect_rst_look_ns(const struct connect_engine *engine, const struct attempt *attempt)
{
    const struct probe_attempt *probe = &attempt->probe;
    bool has_repetition =
        engine->tap != NULL && wants_rst(probe->target->definition.check) && !attempt->is_tapped;

    return has_repetition ? probe->start_ns + UNANSWERED_NS : probe->deadline_ns;
}

bool connect_rst_look(struct connect_engine *engine, struct attempt *attempt)
{
    uint64_t look_ns = connect_rst_look_ns(engine, attempt);

    if (look_ns == attempt->probe.deadline_ns) {
        return false;
    }
    listen_for(engine, attempt);
    return true;
}

void connect_rst_end(struct connect_engine *engine, struct attempt *attempt)
{
    if (attempt->is_tapped) {
        attempt->is_tapped = false;
        if (--engine->n_tapped == 0) {
            syn_tap_listen(engine->tap, false);
        }
    }
}

void connect_rst_drain(struct connect_engine *engine)
{
    if (engine->n_tapped > 0) {
        syn_tap_drain(engine->tap);
    }
}

/* Nobody waits for it, and nothing depends on it. */
void connect_rst_send(struct connect_engine *engine, const struct attempt *attempt)
{
    const struct target_definition *definition = &attempt->probe.target->definition;
    struct endpoint from;

    if (engine->tap == NULL || !wants_rst(definition->check) ||
        !connect_socket_source(attempt->fd, &from) || plant_is("connect-timeout-quiet")) {
        return;
    }
    syn_tap_drain(engine->tap);
    if (syn_tap_reset(engine->tap, &from, &definition->to)) {
        probe_note(&engine->base, PROBE_STEP_RST_SENT);
    }
}
