#include "agent/rpc/plane_trouble.h"

#include "common/base/plant.h"
#include "common/base/units.h"

static bool say_absent(const struct plane_look *look, struct errmsg *ret_text)
{
    char age[32];

    if (look->age_ns == RPC_NEVER_NS) {
        errmsg_set(ret_text, 0,
                   "data plane %s is absent, without a heartbeat since this machine was started: "
                   "start it, or remove its status file if it is not to come back",
                   look->name);
        return true;
    }
    errmsg_set(ret_text, 0,
               "data plane %s is absent, its last heartbeat was %s ago: start it, or remove its "
               "status file if it is not to come back",
               look->name, units_format_span_us(look->age_ns / 1000, age, sizeof age));
    return true;
}

bool plane_trouble(const struct plane_look *look, struct errmsg *ret_text)
{
    ret_text->text[0] = '\0';
    switch ((enum rpc_plane_state)look->state) {
    case RPC_PLANE_ALIVE:
        return false;
    case RPC_PLANE_ABSENT:
        return say_absent(look, ret_text);
    case RPC_PLANE_REFUSED:
    case RPC_PLANE_GONE:
        errmsg_set(ret_text, 0, "%s", look->problem);
        return true;
    case RPC_PLANE_NONE:
        break;
    }
    errmsg_set(ret_text, 0, "it is not known how data plane %s is", look->name);
    return true;
}

void plane_tally_add(struct plane_tally *tally, const struct plane_look *look)
{
    struct errmsg text;

    tally->n_planes++;
    if (plane_trouble(look, &text) && tally->n_bad++ == 0) {
        tally->first = text;
    }
}

void plane_tally_check(const struct plane_tally *tally, struct rpc_ready_check *ret_check)
{
    ret_check->is_ok = tally->n_bad == 0 || plant_is("ready-without-data-plane");
    ret_check->message.text[0] = '\0';
    if (tally->n_planes == 0) {
        errmsg_set(&ret_check->message, 0, "no data plane has attached: this node only judges");
    } else if (tally->n_bad == 1) {
        ret_check->message = tally->first;
    } else if (tally->n_bad > 1) {
        errmsg_set(&ret_check->message, 0, "%s (and so on of %u more)", tally->first.text,
                   tally->n_bad - 1);
    }
}
