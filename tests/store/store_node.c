/* One store node for tests: a real store with a toy state machine, driven by lines on standard
 * input, answering with one JSON object a line on standard output.
 *
 *   init <cookie> <cluster> <id:role:port> ...   make a cluster (role 1 voter, 2 standby, 3 spare)
 *   append <cookie> <id> [<padding bytes>]
 *   put <cookie> <id> <role> <port> | del <cookie> <id>
 *   refused <cookie> | barrier <cookie> | transfer <cookie> <id>
 *   status | dump <file> | quit
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>
#include <zmq.h>

#include "agent/loop/sock.h"
#include "agent/loop/wake.h"
#include "agent/loop/zap.h"
#include "agent/store/store.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "tests/store/toy_fsm.h"

struct node {
    struct toy_fsm toy;
    struct store *store;
    struct store_options options;
    struct curve_keys keys;
    struct wake wake;
    struct zap *zap;
    void *context;
    struct store_status status;
    uint64_t taken_revision;
    char line[65536];
    size_t n_line;
};

static const char *outcome_word(uint8_t outcome)
{
    static const char *words[] = {"none", "done",      "not_leader", "unknown", "full",
                                  "busy", "not_ready", "refused",    "exists"};

    return words[outcome];
}

static void on_wake(void *user)
{
    wake_signal(&((struct node *)user)->wake);
}

static void on_fail_stop(void *user, int exit_code, const char *sentence)
{
    (void)user;
    (void)sentence;
    _exit(exit_code);
}

static void set_table(struct node *node, const struct store_members *members)
{
    struct zap_key keys[2 * LIMIT_NODES];
    uint8_t secret[32];
    size_t n = 0;

    memset(keys, 0, sizeof keys);
    for (uint32_t i = 0; i < node->options.n_trusted; i++) {
        uint64_t id = node->options.trusted[i].node_id;

        toy_keys(id, keys[n].public_key, secret);
        zap_node_user_id(id, keys[n++].user_id);
    }
    for (uint32_t i = 0; members != NULL && i < members->n_nodes; i++) {
        memcpy(keys[n].public_key, members->nodes[i].key.bytes, 32);
        zap_node_user_id(members->nodes[i].node_id, keys[n++].user_id);
    }
    zap_set_table(node->zap, zap_table_new(keys, n));
}

static void print_status(const struct node *node)
{
    const struct store_status *s = &node->status;
    char message[ERRMSG_BYTES * 2];

    printf("{\"ev\":\"status\",\"state\":%u,\"raft\":%u,\"ready\":%d,\"node\":%" PRIu64
           ",\"incarnation\":\"%016" PRIx64 "\",\"epoch\":%" PRIu64 ",\"leader\":%" PRIu64
           ",\"term\":%" PRIu64 ",\"last\":%" PRIu64 ",\"stored\":%" PRIu64 ",\"commit\":%" PRIu64
           ",\"applied\":%" PRIu64 ",\"revision\":%" PRIu64 ",\"hash\":\"%016" PRIx64
           "\",\"full\":%d,\"slow\":%d,\"fsync_max_us\":%" PRIu64 ",\"err\":%d,\"taken\":%" PRIu64
           ",\"message\":%s",
           s->state, s->raft_state, s->is_ready, s->node_id, s->incarnation, s->epoch, s->leader_id,
           s->term, s->last_index, s->stored_index, s->commit_index, s->applied_index, s->revision,
           s->state_hash.low, s->is_disk_full, s->is_disk_slow, s->fsync_max_us, s->err,
           node->taken_revision, log_quote(message, sizeof message, s->message.text));
#define PRINT_COUNTER(name, text) printf(",\"%s\":%" PRIu64, #name, s->counters.name);
    STORE_COUNTERS(PRINT_COUNTER)
#undef PRINT_COUNTER
    printf(",\"peers\":{");
    for (uint32_t i = 0; i < s->n_peers; i++) {
        printf("%s\"%" PRIu64 "\":{\"state\":%u,\"role\":%u,\"match\":%" PRIu64 "}",
               i == 0 ? "" : ",", s->peers[i].node_id, s->peers[i].state, s->peers[i].raft_role,
               s->peers[i].match_index);
    }
    printf("}}\n");
}

static void take(struct node *node)
{
    static struct store_members members;
    struct store_completion done;
    void *state;

    wake_clear(&node->wake);
    while (store_next_completion(node->store, &done)) {
        uint64_t answer = 0;
        char message[ERRMSG_BYTES * 2];

        if (done.n_answer_bytes == 8) {
            memcpy(&answer, done.answer, 8);
        }
        printf("{\"ev\":\"done\",\"cookie\":%" PRIu64 ",\"outcome\":\"%s\",\"leader\":%" PRIu64
               ",\"index\":%" PRIu64 ",\"revision\":%" PRIu64 ",\"answer\":%" PRIu64
               ",\"message\":%s}\n",
               done.cookie, outcome_word(done.outcome), done.leader_id, done.index, done.revision,
               answer, log_quote(message, sizeof message, done.message.text));
        store_completion_close(&done);
    }
    while ((state = store_take_state(node->store)) != NULL) {
        memcpy(&node->taken_revision, state, 8);
        free(state);
    }
    store_take_status(node->store, &node->status);
    if (store_take_members(node->store, &members)) {
        set_table(node, &members);
    }
}

static void dump(const struct node *node, const char *path)
{
    /* Read while the store thread sleeps: the caller has stopped all writes. */
    FILE *file = fopen(path, "w");

    for (size_t i = 0; file != NULL && i < node->toy.n_entries; i++) {
        fprintf(file, "%zu %" PRIu64 " %016" PRIx64 "\n", i + 1, node->toy.entries[i].id,
                node->toy.entries[i].hash);
    }
    if (file != NULL) {
        fclose(file);
    }
    printf("{\"ev\":\"dumped\",\"n\":%zu}\n", node->toy.n_entries);
}

static uint64_t number(char **at)
{
    char *text = strtok_r(NULL, " ", at);

    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

static void sent(uint64_t cookie, int result)
{
    if (result != 0) {
        printf("{\"ev\":\"done\",\"cookie\":%" PRIu64 ",\"outcome\":\"busy\",\"leader\":0}\n",
               cookie);
    }
}

static void do_init(struct node *node, uint64_t cookie, char **at)
{
    uint64_t words[2 + 3 * 16] = {TOY_INIT, 0};
    struct store_init init = {.node_id = node->options.node_id};
    uint8_t command[sizeof words];
    char *text = strtok_r(NULL, " ", at);

    snprintf((char *)init.cluster_id.bytes, sizeof init.cluster_id.bytes, "%s", text);
    while ((text = strtok_r(NULL, " ", at)) != NULL && words[1] < 16) {
        sscanf(text, "%" SCNu64 ":%" SCNu64 ":%" SCNu64, &words[2 + 3 * words[1]],
               &words[3 + 3 * words[1]], &words[4 + 3 * words[1]]);
        words[1]++;
    }
    init.command = command;
    init.n_command_bytes = toy_command(words, 2 + 3 * words[1], 0, command);
    sent(cookie, store_init(node->store, cookie, &init));
}

static bool obey(struct node *node, char *line)
{
    static uint8_t command[LIMIT_COMMAND_BYTES + 64]; /* one that is too large, too */
    char *at = NULL;
    const char *verb = strtok_r(line, " ", &at);

    if (verb == NULL || strcmp(verb, "quit") == 0) {
        return verb == NULL;
    }
    if (strcmp(verb, "status") == 0) {
        take(node);
        print_status(node);
        return true;
    }
    if (strcmp(verb, "dump") == 0) {
        dump(node, strtok_r(NULL, " ", &at));
        return true;
    }
    uint64_t cookie = number(&at);
    uint64_t words[4] = {0};
    size_t n_words = 0, padding = 0;
    if (strcmp(verb, "init") == 0) {
        do_init(node, cookie, &at);
        return true;
    }
    if (strcmp(verb, "barrier") == 0) {
        sent(cookie, store_barrier(node->store, cookie));
        return true;
    }
    if (strcmp(verb, "transfer") == 0) {
        sent(cookie, store_transfer(node->store, cookie, number(&at)));
        return true;
    }
    if (strcmp(verb, "append") == 0) {
        words[n_words++] = TOY_APPEND;
        words[n_words++] = number(&at);
        padding = number(&at);
    } else if (strcmp(verb, "put") == 0) {
        words[n_words++] = TOY_PUT_MEMBER;
        words[n_words++] = number(&at);
        words[n_words++] = number(&at);
        words[n_words++] = number(&at);
    } else if (strcmp(verb, "del") == 0) {
        words[n_words++] = TOY_DEL_MEMBER;
        words[n_words++] = number(&at);
    } else {
        words[n_words++] = TOY_REFUSED;
    }
    size_t n_bytes = toy_command(words, n_words, padding, command);
    sent(cookie, store_propose(node->store, cookie, command, n_bytes));
    return true;
}

/* False at the end of input or after `quit`. */
static bool read_lines(struct node *node)
{
    ssize_t n = read(STDIN_FILENO, node->line + node->n_line, sizeof node->line - node->n_line - 1);

    if (n <= 0) {
        return n < 0 && errno == EINTR;
    }
    node->n_line += (size_t)n;
    node->line[node->n_line] = '\0';
    char *begin = node->line;
    char *end;
    while ((end = strchr(begin, '\n')) != NULL) {
        *end = '\0';
        if (!obey(node, begin)) {
            return false;
        }
        begin = end + 1;
    }
    node->n_line -= (size_t)(begin - node->line);
    memmove(node->line, begin, node->n_line);
    return true;
}

static void parse_options(struct node *node, int argc, char **argv)
{
    struct store_options *o = &node->options;
    const struct {
        const char *name;
        uint32_t *value;
    } numbers[] = {
        {"--election", &o->election_timeout_ms}, {"--heartbeat", &o->heartbeat_ms},
        {"--threshold", &o->snapshot_threshold}, {"--trailing", &o->snapshot_trailing},
        {"--segment", &o->segment_bytes},        {"--padding", &node->toy.padding_bytes}};

    o->n_bind = 1;
    addr_parse("127.0.0.1", &o->bind[0].addr, NULL);
    o->free_space_min_bytes = 1;
    for (int i = 1; i < argc; i++) {
        const char *text = i + 1 < argc ? argv[i + 1] : "";
        uint64_t value = strtoull(text, NULL, 10);

        if (strcmp(argv[i], "--allow-tmpfs") == 0) {
            o->allow_tmpfs = true;
            continue;
        }
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            if (strcmp(argv[i], numbers[k].name) == 0) {
                *numbers[k].value = (uint32_t)value;
            }
        }
        if (strcmp(argv[i], "--id") == 0) {
            o->node_id = value;
        } else if (strcmp(argv[i], "--dir") == 0) {
            o->data_dir = text;
        } else if (strcmp(argv[i], "--port") == 0) {
            o->bind[0].port = (uint16_t)value;
        } else if (strcmp(argv[i], "--trust") == 0) {
            o->trusted[o->n_trusted++].node_id = value;
        } else if (strcmp(argv[i], "--free-min") == 0) {
            o->free_space_min_bytes = value;
        }
        i++;
    }
}

int main(int argc, char **argv)
{
    static struct node node;
    struct errmsg err;
    uint8_t secret[32];

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (sodium_init() < 0 || wake_init(&node.wake) != 0) {
        return 10;
    }
    log_init("store_node", LOG_LEVEL_INFO);
    toy_fsm_init(&node.toy);
    parse_options(&node, argc, argv);
    for (uint32_t i = 0; i < node.options.n_trusted; i++) {
        toy_keys(node.options.trusted[i].node_id, node.options.trusted[i].key.bytes, secret);
    }
    toy_keys(node.options.node_id, node.keys.public_key, node.keys.secret_key);
    node.context = zmq_ctx_new();
    struct zap_options zap = {.contexts = {node.context}, .n_contexts = 1};
    if (zap_start(&zap, &node.zap, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 10;
    }
    set_table(&node, NULL);
    node.options.keys = &node.keys;
    node.options.zmq_context = node.context;
    node.options.fsm = &node.toy.fsm;
    node.options.hooks =
        (struct store_hooks){.user = &node, .wake = on_wake, .fail_stop = on_fail_stop};
    if (store_start(&node.options, &node.store, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        return 3;
    }
    printf("{\"ev\":\"started\",\"port\":%u}\n", store_bound_port(node.store, 0));
    for (;;) {
        struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                {.fd = wake_fd(&node.wake), .events = POLLIN}};

        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            break;
        }
        if (fds[1].revents != 0) {
            take(&node);
        }
        if (fds[0].revents != 0 && !read_lines(&node)) {
            break;
        }
    }
    store_stop(node.store);
    zap_stop(node.zap);
    zmq_ctx_term(node.context);
    toy_fsm_close(&node.toy);
    wake_close(&node.wake);
    return 0;
}
