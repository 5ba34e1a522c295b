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

/* The first that wants it opens the tap, before its SYN leaves: SYNs of all connections of this
 * machine pass it, so it is not there for nothing. Without the rights it is not tried again. */
void connect_rst_prepare(struct connect_engine *engine, const struct probe_target *target)
{
    if (engine->may_tap && wants_rst(target->definition.check)) {
        engine->may_tap = false;
        (void)syn_tap_new(&engine->tap, NULL);
    }
}

void connect_rst_drain(struct connect_engine *engine)
{
    if (engine->tap != NULL) {
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
