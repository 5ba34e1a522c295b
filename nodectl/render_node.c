/* What a node says of itself, and its counters. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/model/reason.h"
#include "nodectl/render_cluster.h"

static void put_peers(struct ctl *ctl, const Jury__V1__DescribeNodeResponse *node)
{
    static const struct render_column columns[] = {
        {"PEER", false}, {"ENDPOINT", false}, {"HEARD", true},
        {"HELLO", true}, {"RECEIVED", true},  {"DROPPED", true},
        {"STALE", true}, {"REFUSED", true},   {"REMARKS", false}};
    struct render_table *table = render_table_new(columns, 9);
    char text[RENDER_TEXT_BYTES];

    if (node->n_peers > 0) {
        fputc('\n', ctl->out);
    }
    for (size_t i = 0; i < node->n_peers; i++) {
        const Jury__V1__PeerStatus *peer = node->peers[i];

        render_row(table);
        render_cell(table, "%" PRIu64, peer->node_id);
        render_cell(table, "%s", peer->endpoint);
        render_cell(table, "%s", render_duration(peer->age, text));
        render_cell(table, "%s", render_duration(peer->hello_age, text));
        render_cell(table, "%" PRIu64, peer->n_received);
        render_cell(table, "%" PRIu64, peer->n_dropped);
        render_cell(table, "%" PRIu64, peer->n_stale);
        render_cell(table, "%" PRIu64, peer->n_refused);
        render_cell(table, "%s", peer->is_restored ? "old data directory" : "");
    }
    render_table_print(ctl, table);
}

/* Kinds that an agent may be built without; one of an older version may lack them, too. */
static void put_not_built(FILE *out, const Jury__V1__ProbeEngine *engine)
{
    static const char *const kinds[] = {"tls", "grpc"};

    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        bool is_there = false;

        for (size_t i = 0; i < engine->n_capabilities; i++) {
            is_there = is_there || strcmp(engine->capabilities[i], kinds[kind]) == 0;
        }
        if (!is_there && engine->n_capabilities > 0) {
            fprintf(out,
                    "             %s probes are inconclusive here: the agent was built without "
                    "them\n",
                    kinds[kind]);
        }
    }
}

/* What is to be let through the backends' firewalls. */
static void put_probe_sources(FILE *out, const Jury__V1__DescribeNodeResponse *node)
{
    uint32_t n_shared_space = 0;

    for (size_t i = 0; i < node->n_probe_sources; i++) {
        const Jury__V1__ProbeSource *source = node->probe_sources[i];

        fprintf(out, "%s%s, of %" PRIu32 " target%s", i == 0 ? "probes from  " : "             ",
                source->address, source->n_targets, source->n_targets == 1 ? "" : "s");
        if (source->n_shared_space_targets > 0) {
            fprintf(out, ", %" PRIu32 " by check.source 100.64.0.0/10, the default of clb",
                    source->n_shared_space_targets);
        }
        fputc('\n', out);
        n_shared_space += source->n_shared_space_targets;
    }
    if (node->n_probe_sources > 0) {
        fprintf(out, "             (let %s through the backends' firewalls)\n",
                node->n_probe_sources == 1 ? "it" : "them");
    }
    if (n_shared_space > 0 && node->lacks_shared_space) {
        fprintf(out,
                "             WARNING: no address in 100.64.0.0/10 here, where %" PRIu32
                " target%s should be probed from:\n"
                "             packet filters made for a classic load balancer drop these probes; "
                "give the node\n"
                "             such an address, or name the one to use in its probeSources\n",
                n_shared_space, n_shared_space == 1 ? "" : "s");
    }
    if (node->n_targets_without_source > 0) {
        fprintf(out, "             no probe can leave for %" PRIu32 " target%s: %s: %s\n",
                node->n_targets_without_source, node->n_targets_without_source == 1 ? "" : "s",
                probe_reason_word((unsigned)node->without_source_reason),
                probe_reason_sentence((unsigned)node->without_source_reason));
    }
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void put_probe_budget(FILE *out, const Jury__V1__ProbeBudget *budget)
{
    char text[RENDER_TEXT_BYTES];

    if (budget == NULL) {
        return;
    }
    fprintf(out,
            "probe budget %" PRIu32 " a second, %" PRIu32 " used, %" PRIu32
            " wanted by the intervals\n",
            budget->per_second, budget->used, budget->demand);
    fprintf(out, "             %" PRIu32 " a second to one address", budget->per_second_to_address);
    if (budget->top_address[0] != '\0') {
        fprintf(out, ", at most %" PRIu32 " wanted, of %s", budget->top_demand,
                budget->top_address);
    }
    fputc('\n', out);
    if (budget->is_pressed) {
        fprintf(out,
                "             BACK-PRESSURE: probes begin up to %s late, %" PRIu32
                " target%s wait%s "
                "for an address\n",
                render_duration(budget->delay, text), budget->n_waiting, plural(budget->n_waiting),
                budget->n_waiting == 1 ? "s" : "");
        fprintf(out,
                "             windows are longer by that for each probe in them: failure "
                "windows by up to (U - 1) x %s\n",
                render_duration(budget->delay, text));
    }
    if (budget->n_delayed > 0) {
        fprintf(out, "             %" PRIu64 " probe%s delayed since the start", budget->n_delayed,
                plural(budget->n_delayed));
        fprintf(out, ", the longest by %s\n", render_duration(budget->delay_max, text));
    }
}

void render_node(struct ctl *ctl, const Jury__V1__DescribeNodeResponse *node)
{
    FILE *out = ctl->out;
    char text[RENDER_TEXT_BYTES];

    if (node->node_id == 0) {
        fprintf(out, "node         (not yet in a cluster)\n");
    } else {
        fprintf(out, "node         %" PRIu64 " of cluster %s\n", node->node_id, node->cluster_id);
    }
    fprintf(out, "version      %s\n", node->version);
    if (node->uptime != NULL) {
        fprintf(out, "started      %s ago, epoch %" PRIu64 "\n",
                render_duration(node->uptime, text), node->epoch);
    }
    fprintf(out, "time         %s\n", render_time(node->time, text));
    if (node->public_key[0] != '\0') {
        fprintf(out, "public key   %s\n", node->public_key);
    }
    if (node->mesh_address[0] != '\0') {
        fprintf(out, "listens      %s for votes and calls, %s for Raft\n", node->mesh_address,
                node->raft_address);
    }
    cluster_put_store(out, node->store, true);
    fprintf(out, "targets      %" PRIu32 "\n", node->n_targets);
    if (node->probe_engine != NULL && node->probe_engine->name[0] != '\0') {
        fprintf(out, "probes       engine %s (", node->probe_engine->name);
        for (size_t i = 0; i < node->probe_engine->n_capabilities; i++) {
            fprintf(out, "%s%s", i == 0 ? "" : ", ", node->probe_engine->capabilities[i]);
        }
        fprintf(out, "), %" PRIu32 " under way\n", node->probe_engine->n_in_flight);
        if (node->probe_engine->half_open_problem[0] != '\0') {
            fprintf(out, "             half-open probes are inconclusive here: %s\n",
                    node->probe_engine->half_open_problem);
            fprintf(out, "             and no RST follows the timeout of a full handshake "
                         "(onTimeout: rst)\n");
        }
        if (node->probe_engine->half_open_send[0] != '\0') {
            fprintf(out, "             half-open probes are sent by %s: %s\n",
                    strcmp(node->probe_engine->half_open_send, "link") == 0 ? "the link"
                                                                            : "the IP layer",
                    node->probe_engine->half_open_send_reason);
            fprintf(out, "             and their answers seen by %s: %s\n",
                    strcmp(node->probe_engine->half_open_receive, "xdp") == 0 ? "XDP"
                                                                              : "a packet socket",
                    node->probe_engine->half_open_receive_reason);
        }
        put_not_built(out, node->probe_engine);
    }
    put_probe_sources(out, node);
    put_probe_budget(out, node->probe_budget);
    cluster_put_doubt(out, node->self_doubt, true);
    fprintf(out, "table        generation %" PRIu64 "\n", node->published_generation);
    put_peers(ctl, node);
    cluster_put_data_planes(ctl, node->data_planes, node->n_data_planes);
}

void render_counters(struct ctl *ctl, const Jury__V1__ListCountersResponse *counters)
{
    static const struct render_column columns[] = {
        {"COUNTER", false}, {"OF", false}, {"VALUE", true}, {"WHAT", false}};
    struct render_table *table = render_table_new(columns, 4);

    for (size_t i = 0; i < counters->n_counters; i++) {
        const Jury__V1__Counter *counter = counters->counters[i];

        render_row(table);
        render_cell(table, "%s", counter->name);
        render_cell(table, "%s", counter->label);
        render_cell(table, "%" PRIu64, counter->value);
        render_cell(table, "%s", counter->help);
    }
    render_table_print(ctl, table);
}
