/* Bytes to events of one engine of three: results, messages of peers and of strangers with any
 * content, catalogs, restarts' last-known-good, time. After each step: what the engine counts is
 * possible, nothing goes down below the quorum, every action is within its bounds, and it wants to
 * be woken later than now.
 *
 * Input: events, each a kind byte and its fields (little-endian); missing bytes read as zero. */
#include <stdlib.h>
#include <string.h>

#include "agent/core/engine.h"
#include "agent/core/engine_view.h"
#include "common/base/bytes.h"
#include "tests/lib/catalog_builder.h"
#include "tests/lib/engine_lines.h"

#define N_CATALOGS 3
#define EVENTS_MAX 128

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct catalog *catalogs[N_CATALOGS]; /* made once: what is fuzzed are the events */

static void must(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static void make_catalogs(void)
{
    static const char *const backends[N_CATALOGS] = {"10.0.0.1:80 10.0.0.2:80",
                                                     "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80",
                                                     "10.0.0.1:80 10.0.0.3:80"};
    struct catalog_state *state = build_state(3);

    for (unsigned i = 0; i < N_CATALOGS; i++) {
        struct command command = {0};
        struct server_group group;

        build_group(&group, "web", backends[i]);
        group.rule.down = group.rule.up = (struct rule_column){.kind = RULE_MAJORITY};
        group.check.interval_ms += i == 2 ? 1000 : 0;
        build_put_group(&command, &group);
        server_group_close(&group);
        build_commit(state, &command);
        catalogs[i] = catalog_state_catalog(state);
    }
    catalog_state_free(state);
}

static struct target_id read_target(struct bytes_reader *reader)
{
    uint8_t slot = bytes_read_u8(reader);

    return (struct target_id){.slot = slot == 255 ? UINT32_MAX : slot,
                              .birth = bytes_read_u8(reader)};
}

static void read_chunk(struct bytes_reader *reader, struct vote_chunk *chunk)
{
    *chunk = (struct vote_chunk){.epoch = bytes_read_u8(reader),
                                 .sequence = bytes_read_u16(reader),
                                 .revision = bytes_read_u8(reader),
                                 .floor = bytes_read_u8(reader),
                                 .chunk = bytes_read_u8(reader),
                                 .n_chunks = bytes_read_u8(reader),
                                 .n_births = bytes_read_u8(reader),
                                 .suspect_mask = bytes_read_u8(reader)};
    if (bytes_read_u8(reader) % 2 == 0 && chunk->chunk < LIMIT_VOTE_CHUNKS) {
        chunk->digest = catalog_chunk_digest(catalogs[chunk->revision % N_CATALOGS], chunk->chunk);
    }
    for (unsigned i = 0; i < 4; i++) {
        chunk->births[i] = read_target(reader);
        chunk->opinions[i] = bytes_read_u8(reader);
    }
}

static void read_change(struct bytes_reader *reader, struct vote_change *change)
{
    *change = (struct vote_change){.epoch = bytes_read_u8(reader),
                                   .sequence = bytes_read_u16(reader),
                                   .target = read_target(reader),
                                   .opinion = bytes_read_u8(reader),
                                   .reason = bytes_read_u8(reader),
                                   .since_ms = bytes_read_u64(reader),
                                   .suspect_mask = bytes_read_u8(reader)};
}

static void read_report(struct bytes_reader *reader, struct drain_report *report)
{
    *report =
        (struct drain_report){.epoch = bytes_read_u8(reader), .n_entries = bytes_read_u16(reader)};
    for (unsigned i = 0; i < 2; i++) {
        report->entries[i] = (struct drain_entry){.row = bytes_read_u8(reader),
                                                  .birth = bytes_read_u8(reader),
                                                  .drain_revision = bytes_read_u8(reader),
                                                  .n_flows = bytes_read_u64(reader),
                                                  .is_counting = bytes_read_u8(reader) & 1,
                                                  .is_done = bytes_read_u8(reader) & 1};
    }
}

struct payload {
    struct vote_chunk chunk;
    struct vote_change change;
    struct vote_question question;
    struct drain_report report;
    struct hello hello;
    struct probe_result result;
    struct sentinel_result sentinel;
    struct hold_override hold;
    struct data_plane_row row;
    struct data_plane_status status;
    struct kept_verdict verdict;
    struct last_known_good kept;
};

static void read_local(struct bytes_reader *reader, uint64_t now_ns, struct payload *to,
                       struct engine_event *event)
{
    switch ((enum engine_event_kind)event->kind) {
    case ENGINE_CATALOG:
        event->u.catalog = catalogs[bytes_read_u8(reader) % N_CATALOGS];
        break;
    case ENGINE_PROBE_RESULT:
        to->result = (struct probe_result){.id = read_target(reader),
                                           .probe_class = bytes_read_u8(reader) % 5,
                                           .reason = bytes_read_u8(reader),
                                           .end_ns = now_ns - bytes_read_u8(reader)};
        to->result.start_ns = to->result.end_ns - bytes_read_u8(reader);
        event->u.result = &to->result;
        break;
    case ENGINE_DATA_PLANE:
        to->row = (struct data_plane_row){.row = bytes_read_u16(reader),
                                          .birth = bytes_read_u8(reader),
                                          .n_flows = bytes_read_u64(reader),
                                          .is_adopted = bytes_read_u8(reader) & 1};
        to->status = (struct data_plane_status){.is_counting = true, .rows = &to->row, .n_rows = 1};
        event->u.data_plane = &to->status;
        break;
    case ENGINE_LAST_KNOWN_GOOD:
        to->verdict = (struct kept_verdict){.row = bytes_read_u8(reader),
                                            .birth = bytes_read_u8(reader),
                                            .health_state = bytes_read_u8(reader)};
        to->kept = (struct last_known_good){.verdicts = &to->verdict, .n_verdicts = 1};
        event->u.kept = &to->kept;
        break;
    case ENGINE_ASK:
        event->u.target = read_target(reader);
        break;
    case ENGINE_LOOP_LATE:
        event->u.late_ns = bytes_read_u64(reader);
        break;
    case ENGINE_SENTINEL:
        to->sentinel = (struct sentinel_result){.node_id = bytes_read_u8(reader),
                                                .kinds = bytes_read_u8(reader),
                                                .reason = bytes_read_u8(reader),
                                                .is_refused = now_ns % 2 == 1,
                                                .end_ns = now_ns - bytes_read_u8(reader)};
        event->u.sentinel = &to->sentinel;
        break;
    case ENGINE_PROBE_BUDGET:
        event->u.pressure.is_on = bytes_read_u8(reader) & 1;
        event->u.pressure.delay_ns = bytes_read_u64(reader);
        break;
    case ENGINE_HOLD:
        to->hold = (struct hold_override){.group = bytes_read_u8(reader) % 2 == 0 ? "" : "web",
                                          .is_on = bytes_read_u8(reader) & 1,
                                          .actor = "somebody"};
        event->u.hold = &to->hold;
        break;
    case ENGINE_TICK:
    case ENGINE_NEWS:
    case ENGINE_HELLO:
    case ENGINE_VOTE_CHUNK:
    case ENGINE_VOTE_CHANGE:
    case ENGINE_VOTE_QUESTION:
    case ENGINE_DRAIN_REPORT:
        break;
    }
}

static void read_message(struct bytes_reader *reader, struct payload *to,
                         struct engine_event *event)
{
    event->peer = bytes_read_u8(reader) % 5;
    if (event->kind == ENGINE_HELLO) {
        to->hello = (struct hello){.cluster_id = catalog_cluster_id(catalogs[0]),
                                   .node_id = bytes_read_u8(reader) % 5,
                                   .epoch = bytes_read_u8(reader),
                                   .revision = bytes_read_u64(reader),
                                   .is_observer = bytes_read_u8(reader) & 1};
        event->u.hello = &to->hello;
    } else if (event->kind == ENGINE_VOTE_CHUNK) {
        read_chunk(reader, &to->chunk);
        event->u.chunk = &to->chunk;
    } else if (event->kind == ENGINE_VOTE_CHANGE) {
        read_change(reader, &to->change);
        event->u.change = &to->change;
    } else if (event->kind == ENGINE_VOTE_QUESTION) {
        to->question.n_targets = bytes_read_u8(reader);
        to->question.targets[0] = read_target(reader);
        event->u.question = &to->question;
    } else {
        read_report(reader, &to->report);
        event->u.report = &to->report;
    }
}

static void check_views(const struct engine *engine, uint64_t now_ns)
{
    struct backend_line lines[8];
    struct backend_view view;
    struct engine_status status;
    struct peer_view peers[LIMIT_NODES];
    size_t n = engine_view_lines(engine, "web", lines, 8);

    for (size_t i = 0; i < n; i++) {
        must(engine_view_backend(engine, "web", &lines[i].at, now_ns, now_ns, &view) == 0);
        must(view.n_counted <= view.n_observers && view.n_counted == view.n_fail + view.n_pass);
        must(view.health_state >= HEALTH_INITIAL && view.health_state <= HEALTH_UNUSED);
        must(memchr(view.sentence, 0, sizeof view.sentence) != NULL);
    }
    engine_view_status(engine, now_ns, &status);
    engine_view_peers(engine, now_ns, peers);
}

static void check_actions(const struct engine *engine, const struct engine_actions *actions,
                          uint64_t now_ns)
{
    must(actions->wake_ns > now_ns);
    must(actions->n_rows <= actions->rows_capacity &&
         actions->n_probes <= actions->probes_capacity);
    must(actions->n_chunks <= LIMIT_VOTE_CHUNKS && actions->n_changes <= ENGINE_CHANGES);
    for (uint32_t i = 0; i < actions->n_events; i++) {
        const struct event *event = engine_event_at(engine, actions->first_event + i);

        if (event != NULL && event->kind == EVENT_VERDICT_CHANGED && event->n_observers > 0 &&
            event->to == HEALTH_UNHEALTHY && (event->marks & MARK_GRAY) == 0) {
            must(event->n_counted >= event->n_observers / 2 + 1);
            must(2 * event->n_fail > event->n_counted);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct engine_config config = {.node_id = 1, .epoch = 1, .seed = 1};
    static struct engine_actions actions; /* grows once and is used again */
    struct bytes_reader reader;
    uint64_t now_ns = UINT64_C(1000000000000);

    if (catalogs[0] == NULL) {
        make_catalogs();
    }
    struct engine *engine = engine_new(&config, now_ns);
    must(engine != NULL);
    bytes_reader_init(&reader, data, size);
    for (unsigned n = 0; n < EVENTS_MAX && reader.left > 0; n++) {
        struct payload payload;
        struct engine_event event = {
            .kind = (uint8_t)(1 + bytes_read_u8(&reader) % ENGINE_PROBE_BUDGET)};

        memset(&payload, 0, sizeof payload);
        now_ns += bytes_read_u16(&reader) * UINT64_C(1000000);
        if (event.kind >= ENGINE_HELLO && event.kind <= ENGINE_DRAIN_REPORT) {
            read_message(&reader, &payload, &event);
        } else {
            read_local(&reader, now_ns, &payload, &event);
        }
        event.now_ns = now_ns;
        event.boot_ns = now_ns;
        must(engine_step(engine, &event, &actions) == 0);
        check_actions(engine, &actions, now_ns);
        if (n % 16 == 15) {
            check_views(engine, now_ns); /* long; all of them look at the same state */
        }
    }
    check_views(engine, now_ns);
    engine_free(engine);
    return 0;
}
