/* Small values of the API: times, references, rules. */
#include "common/wire/object.h"

#include "common/base/units.h"
#include "common/model/names.h"
#include "common/wire/read_field.h"

#define NANOS_PER_SECOND 1000000000
#define NANOS_PER_MS 1000000

Google__Protobuf__Duration *wire_duration_new(struct wire_arena *arena, uint64_t ns)
{
    Google__Protobuf__Duration *duration =
        WIRE_NEW(arena, Google__Protobuf__Duration, google__protobuf__duration);

    if (duration != NULL) {
        duration->seconds = (int64_t)(ns / NS_PER_SECOND);
        duration->nanos = (int32_t)(ns % NS_PER_SECOND);
    }
    return duration;
}

int wire_duration_read(const Google__Protobuf__Duration *duration, const char *what,
                       uint64_t ms_max, uint32_t *ret_ms, struct errmsg *err)
{
    if (duration->seconds < 0 || duration->nanos < 0 || duration->nanos >= NANOS_PER_SECOND) {
        return errmsg_set(err, ERR_INVALID, "%s must be a time of 0 or more", what);
    }
    if (duration->nanos % NANOS_PER_MS != 0) {
        return errmsg_set(err, ERR_INVALID, "%s must not be finer than a millisecond", what);
    }
    uint64_t seconds = (uint64_t)duration->seconds;
    uint64_t ms = (uint64_t)duration->nanos / NANOS_PER_MS;
    if (ms_max > UINT32_MAX) {
        ms_max = UINT32_MAX;
    }
    if (seconds > ms_max / 1000 || seconds * 1000 + ms > ms_max) {
        char text[32];

        return errmsg_set(err, ERR_INVALID, "%s must be at most %s", what,
                          units_format_duration_ms(ms_max, text, sizeof text));
    }
    *ret_ms = (uint32_t)(seconds * 1000 + ms);
    return 0;
}

Google__Protobuf__Timestamp *wire_timestamp_new(struct wire_arena *arena, int64_t wall_ms)
{
    Google__Protobuf__Timestamp *timestamp =
        WIRE_NEW(arena, Google__Protobuf__Timestamp, google__protobuf__timestamp);

    if (timestamp != NULL) {
        int64_t ms = wall_ms % 1000;

        ms += ms < 0 ? 1000 : 0;
        timestamp->seconds = (wall_ms - ms) / 1000;
        timestamp->nanos = (int32_t)(ms * NANOS_PER_MS);
    }
    return timestamp;
}

Jury__V1__BackendRef *wire_backend_ref_new(struct wire_arena *arena, const char *group,
                                           const struct endpoint *at)
{
    char text[ADDR_TEXT_BYTES];
    Jury__V1__BackendRef *ref = WIRE_NEW(arena, Jury__V1__BackendRef, jury__v1__backend_ref);

    if (ref != NULL) {
        ref->group = wire_text(arena, group);
        if (at->addr.family != ADDR_NONE) {
            ref->address = wire_text(arena, addr_format(&at->addr, text));
            ref->port = at->port;
        }
    }
    return ref;
}

int wire_backend_ref_read(const Jury__V1__BackendRef *ref, char ret_group[LIMIT_NAME_BYTES + 1],
                          struct endpoint *ret_at, struct errmsg *err)
{
    struct endpoint at = {0};

    if (ref == NULL) {
        return errmsg_set(err, ERR_INVALID, "backend must be set: group, address and port");
    }
    int rc = read_addr("backend.address", ref->address, &at.addr, err);
    if (rc == 0) {
        rc = read_port("backend.port", ref->port, 1, &at.port, err);
    }
    if (rc == 0) {
        rc = read_text("backend.group", ref->group, ret_group, LIMIT_NAME_BYTES + 1, err);
    }
    if (rc == 0) {
        *ret_at = at;
    }
    return rc;
}

int wire_backend_set_read(const Jury__V1__SetBackendRequest *message, struct backend_update *update,
                          struct errmsg *err)
{
    int rc = wire_backend_ref_read(message->backend, update->group, &update->at, err);

    if (rc == 0) {
        rc = read_enum("admin_state", &names_admin_state, (int)message->admin_state,
                       &update->admin_state, err);
    }
    if (rc == 0 &&
        message->weight_choice_case == JURY__V1__SET_BACKEND_REQUEST__WEIGHT_CHOICE_WEIGHT) {
        update->has_weight = true;
        rc = read_u8("weight", message->weight, 0, 100, &update->weight, err);
    }
    return rc;
}

Jury__V1__Rule *wire_rule_new(struct wire_arena *arena, const struct rule_column *column)
{
    Jury__V1__Rule *rule = WIRE_NEW(arena, Jury__V1__Rule, jury__v1__rule);

    if (rule != NULL) {
        rule->kind = (Jury__V1__Rule__Kind)column->kind;
        rule->value = column->value;
    }
    return rule;
}

Jury__V1__VerdictRule *wire_verdict_rule_new(struct wire_arena *arena,
                                             const struct verdict_rule *rule)
{
    Jury__V1__VerdictRule *message = WIRE_NEW(arena, Jury__V1__VerdictRule, jury__v1__verdict_rule);

    if (message != NULL) {
        message->down = wire_rule_new(arena, &rule->down);
        message->up = rule->is_split ? wire_rule_new(arena, &rule->up) : NULL;
        message->below_quorum = (Jury__V1__BelowQuorum)rule->below_quorum;
    }
    return message;
}
