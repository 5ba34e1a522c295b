/* Status, readiness, members and keys. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/model/doubt.h"
#include "common/model/names.h"
#include "common/model/reason.h"
#include "nodectl/render_cluster.h"

#define KEY_WARNING_DAYS 30
#define DAY_S 86400

static const char *health_word(Jury__V1__ClusterHealth health)
{
    switch (health) {
    case JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_HEALTHY:
        return "healthy";
    case JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_DEGRADED:
        return "degraded";
    case JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_UNAVAILABLE:
        return "unavailable";
    case JURY__V1__CLUSTER_HEALTH__CLUSTER_HEALTH_UNSPECIFIED:
    case _JURY__V1__CLUSTER_HEALTH_IS_INT_SIZE:
        break;
    }
    return "unknown";
}

static const char *store_word(const Jury__V1__StoreStatus *store)
{
    static const char *const words[] = {"unknown", "waiting for cluster init", "starting",
                                        "running", "failed"};
    unsigned state = (unsigned)store->state;

    return words[state < sizeof words / sizeof words[0] ? state : 0];
}

static const char *role_word(const Jury__V1__StoreStatus *store)
{
    static const char *const words[] = {"unknown", "follower", "candidate", "leader"};
    unsigned role = (unsigned)store->role;

    return words[role < sizeof words / sizeof words[0] ? role : 0];
}

static bool is_cause_now(const Jury__V1__SelfDoubt *doubt, Jury__V1__DoubtCause cause)
{
    for (size_t i = 0; i < doubt->n_causes_now; i++) {
        if (doubt->causes_now[i] == cause) {
            return true;
        }
    }
    return false;
}

void cluster_put_doubt(FILE *out, const Jury__V1__SelfDoubt *doubt, bool trusted_too)
{
    char text[RENDER_TEXT_BYTES];

    if (doubt == NULL || (!trusted_too && doubt->score == 0 && doubt->n_suspect == 0)) {
        return;
    }
    fprintf(out, "self-doubt   score %" PRIu32 " of 7 (suspect from 4 on), ", doubt->score);
    if (doubt->n_suspect == 0) {
        fputs("its own probes are trusted", out);
    }
    for (size_t i = 0; i < doubt->n_suspect; i++) {
        fprintf(out, "%s%s", i == 0 ? "doubts its " : ", ",
                names_word(&names_check_type, (unsigned)doubt->suspect[i]));
    }
    if (doubt->n_suspect > 0) {
        fprintf(out, " probes for %s", render_duration(doubt->since, text));
    }
    fprintf(out, "; sentinels that answered lately: %" PRIu32 "\n", doubt->n_sentinels);
    if (doubt->calm_left != NULL) {
        fprintf(out,
                "             the score is low again: they are trusted if it stays so for "
                "another %s\n",
                render_duration(doubt->calm_left, text));
    }
    for (size_t i = 0; i < doubt->n_causes; i++) {
        bool is_past = doubt->n_suspect > 0 && !is_cause_now(doubt, doubt->causes[i]);

        fprintf(out, "             %s%s: %s\n", doubt_cause_word((unsigned)doubt->causes[i]),
                is_past ? " (not now)" : "", doubt_cause_sentence((unsigned)doubt->causes[i]));
    }
}

/* "every group, by the cluster (set by ops at 2026-01-02 03:04:05)", a line each. */
static void put_holds(FILE *out, const Jury__V1__GetStatusResponse *status)
{
    char time[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < status->n_holds; i++) {
        const Jury__V1__Hold *hold = status->holds[i];
        bool is_node = hold->source == JURY__V1__HOLD_SOURCE__HOLD_SOURCE_NODE ||
                       hold->source == JURY__V1__HOLD_SOURCE__HOLD_SOURCE_NODE_GROUP;

        fprintf(out, "%s%s, on %s", i == 0 ? "hold         " : "             ",
                hold->group[0] != '\0' ? hold->group : "every group",
                is_node ? "this node alone" : "all nodes");
        if (hold->actor[0] != '\0') {
            fprintf(out, ", by %s", hold->actor);
        }
        fprintf(out, "%s%s\n", hold->time != NULL ? ", since " : "",
                hold->time != NULL ? render_time(hold->time, time) : "");
    }
    if (status->holds_total > status->n_holds) {
        fprintf(out, "             and %zu more: nodectl hold show\n",
                status->holds_total - status->n_holds);
    }
    if (status->holds_total > 0) {
        fprintf(out, "             %" PRIu32 " %s in service here against the votes\n",
                status->n_held_by_hold,
                status->n_held_by_hold == 1 ? "backend stays" : "backends stay");
    }
}

void cluster_put_store(FILE *out, const Jury__V1__StoreStatus *store, bool with_message)
{
    char age[RENDER_TEXT_BYTES];

    if (store == NULL) {
        return;
    }
    fprintf(out, "store        %s, %s, term %" PRIu64 ", ", store_word(store), role_word(store),
            store->term);
    if (store->leader_id == 0) {
        fprintf(out, "no leader known");
    } else {
        fprintf(out, "leader node %" PRIu64, store->leader_id);
    }
    if (store->leader_age != NULL) {
        fprintf(out, " (heard %s ago)", render_duration(store->leader_age, age));
    }
    fprintf(out, ", applied %" PRIu64 " of %" PRIu64 "\n", store->applied_index, store->last_index);
    if (store->is_disk_full || store->is_disk_slow) {
        fprintf(out, "             the disk is %s, %" PRIu64 " MiB are free\n",
                store->is_disk_full ? "full: writes are refused" : "slow",
                store->free_bytes / 1048576);
    }
    if (with_message && store->message[0] != '\0') {
        render_sentence(out, "             ", store->message);
    }
}

static const char *plane_word(const Jury__V1__DataPlaneStatus *plane)
{
    static const char *const words[] = {"unknown", "alive", "absent", "refused", "gone"};
    unsigned state = (unsigned)plane->state;

    if (state == 0) { /* an older agent */
        return plane->is_alive ? "alive" : "absent";
    }
    return words[state < sizeof words / sizeof words[0] ? state : 0];
}

/* How many generations of the table it has not adopted yet. A generation is the agent's start and a
 * counter, so those of two starts have no difference. */
static char *behind_text(const Jury__V1__DataPlaneStatus *plane, char text[RENDER_TEXT_BYTES])
{
    uint64_t published = plane->published_generation, adopted = plane->adopted_generation;

    if (!plane->is_alive) {
        snprintf(text, RENDER_TEXT_BYTES, "-");
    } else if (adopted == 0) {
        snprintf(text, RENDER_TEXT_BYTES, "has none");
    } else if (published >> 32 != adopted >> 32) {
        snprintf(text, RENDER_TEXT_BYTES, "another start");
    } else {
        snprintf(text, RENDER_TEXT_BYTES, "%" PRIu64,
                 published > adopted ? published - adopted : 0);
    }
    return text;
}

void cluster_put_data_planes(struct ctl *ctl, Jury__V1__DataPlaneStatus *const planes[], size_t n)
{
    static const struct render_column columns[] = {{"DATA PLANE", false}, {"PID", true},
                                                   {"STATE", false},      {"HEARTBEAT", true},
                                                   {"BEHIND", true},      {"FLOWS", true}};
    char age[RENDER_TEXT_BYTES];

    if (n == 0) {
        return;
    }
    struct render_table *table = render_table_new(columns, 6);
    for (size_t i = 0; i < n; i++) {
        const Jury__V1__DataPlaneStatus *plane = planes[i];
        render_row(table);
        render_cell(table, "%s", plane->name);
        render_cell(table, "%" PRIu32, plane->pid);
        render_cell(table, "%s", plane_word(plane));
        render_cell_color(table, plane->is_alive ? RENDER_GOOD : RENDER_BAD);
        render_cell(table, "%s", render_duration(plane->age, age));
        render_cell(table, "%s", behind_text(plane, age));
        if (plane->is_alive) {
            render_cell(table, "%" PRIu64, plane->flows);
        } else {
            render_cell(table, "-");
        }
    }
    fputc('\n', ctl->out);
    render_table_print(ctl, table);
}

/* "10.0.0.1:7400 7401" of the first endpoint, or "-". */
static char *member_address(const Jury__V1__MemberNode *node, char text[RENDER_TEXT_BYTES])
{
    if (node == NULL || node->n_endpoints == 0) {
        snprintf(text, RENDER_TEXT_BYTES, "-");
        return text;
    }
    return render_endpoint(node->endpoints[0]->host, node->endpoints[0]->mesh_port, text);
}

/* What is unusual about a member, or "". */
static char *member_remarks(const Jury__V1__MemberStatus *member, char text[RENDER_TEXT_BYTES])
{
    size_t used = 0;

    text[0] = '\0';
    if (member->catalog_differs) {
        used = (size_t)snprintf(text, RENDER_TEXT_BYTES, "catalog differs");
    }
    if (member->is_restored) {
        used += (size_t)snprintf(text + used, RENDER_TEXT_BYTES - used, "%sold data directory",
                                 used == 0 ? "" : ", ");
    }
    if (member->store_is_down && member->is_heard) {
        used += (size_t)snprintf(text + used, RENDER_TEXT_BYTES - used, "%sstore does not run",
                                 used == 0 ? "" : ", ");
    }
    if (!member->counts) {
        used += (size_t)snprintf(text + used, RENDER_TEXT_BYTES - used, "%snot counted yet",
                                 used == 0 ? "" : ", ");
    }
    for (size_t i = 0; i < member->n_suspect && used < RENDER_TEXT_BYTES; i++) {
        used += (size_t)snprintf(text + used, RENDER_TEXT_BYTES - used, "%sdoubts its %s probes",
                                 used == 0 ? "" : ", ",
                                 names_word(&names_check_type, (unsigned)member->suspect[i]));
    }
    return text;
}

static void put_members(struct ctl *ctl, Jury__V1__MemberStatus *const members[], size_t n)
{
    static const struct render_column columns[] = {
        {"NODE", false},    {"ROLE", false},   {"ZONE", false},   {"ADDRESS", false},
        {"REACHED", false}, {"VOTES", true},   {"RAFT", true},    {"REVISION", true},
        {"EPOCH", true},    {"LEADER", false}, {"REMARKS", false}};
    struct render_table *table = render_table_new(columns, 11);
    char text[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < n; i++) {
        const Jury__V1__MemberStatus *member = members[i];
        const Jury__V1__MemberNode *node = member->node;
        bool is_there = member->is_self || member->is_heard;

        render_row(table);
        render_cell(table, "%" PRIu64, node == NULL ? 0 : node->node_id);
        render_cell(table, "%s",
                    names_word(&names_raft_role, node == NULL ? 0 : (unsigned)node->role));
        render_cell(table, "%s", node == NULL ? "" : node->zone);
        render_cell(table, "%s", member_address(node, text));
        render_cell(table, "%s", member->is_self ? "self" : is_there ? "yes" : "no");
        render_cell_color(table, is_there ? RENDER_GOOD : RENDER_BAD);
        render_cell(table, "%s", member->is_self ? "" : render_duration(member->age, text));
        render_cell(table, "%s", member->is_self ? "" : render_duration(member->raft_age, text));
        render_cell(table, "%" PRIu64, member->revision);
        render_cell(table, "%" PRIu64, member->epoch);
        render_cell(table, "%s", member->is_leader ? "leader" : "");
        render_cell(table, "%s", member_remarks(member, text));
    }
    render_table_print(ctl, table);
}

/* What is wrong, and below each what to run next. */
static void put_findings(FILE *out, const Jury__V1__GetStatusResponse *status)
{
    for (size_t i = 0; i < status->n_findings; i++) {
        render_sentence(out, "  ! ", status->findings[i]->sentence);
        if (status->findings[i]->next[0] != '\0') {
            render_sentence(out, "      ", status->findings[i]->next);
        }
    }
    for (size_t i = status->n_findings; i < status->n_problems; i++) { /* of an older agent */
        render_sentence(out, "  ! ", status->problems[i]);
    }
}

void render_status(struct ctl *ctl, const Jury__V1__GetStatusResponse *status)
{
    const Jury__V1__GroupCounts *groups = status->groups;
    const Jury__V1__BackendCounts *backends = status->backends;
    FILE *out = ctl->out;

    if (status->cluster_id[0] == '\0') {
        fprintf(out, "%s: this node belongs to no cluster yet\n", health_word(status->health));
    } else {
        fprintf(out, "cluster %s is %s, seen from node %" PRIu64 "\n", status->cluster_id,
                health_word(status->health), status->node_id);
    }
    put_findings(out, status);
    fprintf(out, "revision     %" PRIu64 "%s\n", status->revision,
            status->is_last_known_good ? " from the last-known-good file, not from the store" : "");
    if (status->state_hash[0] != '\0') {
        fprintf(out, "state hash   %s\n", status->state_hash);
    }
    cluster_put_store(out, status->store, status->n_problems == 0);
    if (status->n_observers > 0) {
        fprintf(out,
                "votes        of %" PRIu32 " from %" PRIu32 " observers are fresh, %" PRIu32
                " must count for a backend to go down (not under rule local)\n",
                status->n_fresh, status->n_observers, status->quorum);
    }
    cluster_put_doubt(out, status->self_doubt, false);
    put_holds(out, status);
    if (groups != NULL) {
        fprintf(out,
                "groups       %" PRIu32 ": %" PRIu32 " ok, %" PRIu32 " degraded, %" PRIu32
                " fail-open, %" PRIu32 " closed",
                groups->total, groups->ok, groups->degraded, groups->fail_open, groups->closed);
        if (groups->warming > 0) {
            fprintf(out, "; %" PRIu32 " of them warming up", groups->warming);
        }
        fputc('\n', out);
    }
    if (backends != NULL) {
        fprintf(out,
                "backends     %" PRIu32 ": %" PRIu32 " healthy, %" PRIu32 " unhealthy, %" PRIu32
                " initial, %" PRIu32 " with checks off, %" PRIu32 " in maintenance\n",
                backends->total, backends->healthy, backends->unhealthy, backends->initial,
                backends->unavailable, backends->unused);
        if (backends->unreachable > 0 || backends->held > 0 || backends->removing > 0 ||
            backends->draining > 0) {
            fprintf(out,
                    "             %" PRIu32 " not reachable from here, %" PRIu32 " held, %" PRIu32
                    " being removed, %" PRIu32 " draining\n",
                    backends->unreachable, backends->held, backends->removing, backends->draining);
        }
    }
    if (status->n_members > 0) {
        fputc('\n', out);
        put_members(ctl, status->members, status->n_members);
    }
    cluster_put_data_planes(ctl, status->data_planes, status->n_data_planes);
}

void render_ready(struct ctl *ctl, const Jury__V1__CheckReadyResponse *ready)
{
    static const struct render_column columns[] = {
        {"CHECK", false}, {"STATE", false}, {"WHY", false}};
    struct render_table *table = render_table_new(columns, 3);

    const char *why = "";
    for (size_t i = ready->n_checks; i-- > 0;) {
        why = ready->checks[i]->is_ok ? why : ready->checks[i]->message;
    }
    fprintf(ctl->out, "%s%s%s\n", ready->is_ready ? "ready" : "not ready",
            why[0] != '\0' ? ": " : "", why);
    for (size_t i = 0; i < ready->n_checks; i++) {
        const Jury__V1__ReadyCheck *check = ready->checks[i];

        render_row(table);
        render_cell(table, "%s", check->name);
        render_cell(table, "%s", check->is_ok ? "ok" : "not ok");
        render_cell_color(table, check->is_ok ? RENDER_GOOD : RENDER_BAD);
        render_cell(table, "%s", check->message);
    }
    render_table_print(ctl, table);
}

void render_members(struct ctl *ctl, const Jury__V1__ListMembersResponse *members)
{
    fprintf(ctl->out, "cluster %s\n", members->cluster_id);
    put_members(ctl, members->members, members->n_members);
}

void render_peers(struct ctl *ctl, const Jury__V1__GetStatusResponse *status)
{
    char *lines = ctl->failure.lines;
    size_t used = 0;

    for (size_t i = 0; i < status->n_members; i++) {
        const Jury__V1__MemberStatus *member = status->members[i];
        char address[RENDER_TEXT_BYTES];
        char age[RENDER_TEXT_BYTES];
        char key[48];
        char value[3 * RENDER_TEXT_BYTES];

        if (member->node == NULL || member->is_self) {
            continue;
        }
        member_address(member->node, address);
        snprintf(key, sizeof key, "node_%" PRIu64, member->node->node_id);
        /* The leader is chosen by the store, so its contact counts here. */
        const Google__Protobuf__Duration *heard =
            member->raft_age != NULL ? member->raft_age : member->age;
        if (heard == NULL) {
            snprintf(value, sizeof value, "%s, never heard since this node started", address);
        } else {
            snprintf(value, sizeof value, "%s, last heard %s ago%s", address,
                     render_duration(heard, age), member->is_heard ? "" : ", not answering now");
        }
        ctl_detail(ctl, key, value);
        int n = snprintf(lines + used, sizeof ctl->failure.lines - used, "%s  node %" PRIu64 ": %s",
                         used == 0 ? "" : "\n", member->node->node_id, value);
        used += n > 0 ? (size_t)n : 0;
        if (used >= sizeof ctl->failure.lines) {
            return;
        }
    }
}

/* A key that is over, or soon will be, needs no arithmetic to be seen. */
static void put_expiry(struct render_table *table, const Google__Protobuf__Timestamp *expires)
{
    char text[RENDER_TEXT_BYTES];
    int64_t left_s = expires == NULL ? 0 : expires->seconds - clock_wall_ms() / 1000;

    if (expires == NULL) {
        render_cell(table, "never");
    } else if (left_s <= 0) {
        render_cell(table, "%s (expired)", render_time(expires, text));
    } else if (left_s < KEY_WARNING_DAYS * DAY_S) {
        render_cell(table, "%s (%" PRId64 " days left)", render_time(expires, text),
                    left_s / DAY_S);
    } else {
        render_cell(table, "%s", render_time(expires, text));
    }
}

void render_keys(struct ctl *ctl, const Jury__V1__ListKeysResponse *keys)
{
    static const struct render_column columns[] = {{"NAME", false},
                                                   {"ROLE", false},
                                                   {"EXPIRES", false},
                                                   {"PUBLIC KEY", false},
                                                   {"REVISION", true}};
    struct render_table *table = render_table_new(columns, 5);

    for (size_t i = 0; i < keys->n_keys; i++) {
        const Jury__V1__AccessKey *key = keys->keys[i]->key;

        if (key == NULL) {
            continue;
        }
        render_row(table);
        render_cell(table, "%s", key->name);
        render_cell(table, "%s", names_word(&names_key_role, (unsigned)key->role));
        put_expiry(table, key->expires);
        render_cell(table, "%s", key->public_key);
        render_cell(table, "%" PRIu64, keys->keys[i]->changed_revision);
    }
    render_table_print(ctl, table);
}
