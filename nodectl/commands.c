#include "nodectl/commands.h"

#include <string.h>

#include "common/spec/field.h"

const struct ctl_command ctl_commands[] = {
    {.section = "Everyday",
     .name = "status",
     .arguments = "",
     .summary = "how the cluster is, seen from one node",
     .help =
         "Prints one word and what is behind it. healthy: nothing is found wrong; backends that "
         "are bad and out are no fault of the cluster. degraded: it works, and not as it should "
         "- a node is away, doubts itself or judges nothing, a hold or missing votes keep bad "
         "backends in, a group is in fail-open or closed. unavailable: the configuration cannot "
         "be changed. unknown: it could not be found out. Below it stands what is wrong, the "
         "worst first, and what to run next. Exits with 0 only when it is healthy, with 1 when "
         "it is not, with -o json as well.",
     .run = cmd_status},
    {.section = "Everyday",
     .name = "ready",
     .arguments = "",
     .summary = "whether the asked node does its whole work",
     .help = "Exits with 0 when it does and with 1 when it does not, naming each part that is not "
             "ready. A data plane (jury-shim) that was here and is absent is such a part; a node "
             "that never had one is ready, and it is said. Backends are not looked at.",
     .run = cmd_ready},
    {.section = "Everyday",
     .name = "why",
     .arguments = "GROUP[/BACKEND]",
     .summary = "why a backend is what it is: votes, rule and what would change it",
     .help = "Shows the verdict of the asked node: each node's vote with reason, age and streak, "
             "the rule and its thresholds, and what would change the verdict. BACKEND is "
             "ADDRESS:PORT, an address that only one backend of the group has, or a backend's "
             "description. Without BACKEND all backends of the group are explained.",
     .examples = "nodectl why web/10.77.0.1:8080\nnodectl why web/web-1\nnodectl why "
                 "'mail/[fd20::13]:25'",
     .run = cmd_why,
     .n_args_min = 1,
     .n_args_max = 1},
    {.section = "Everyday",
     .name = "probe",
     .arguments = "GROUP/BACKEND",
     .summary = "probe a backend once, now, and show every step with its time",
     .help = "The asked node, or those named, make one attempt beside their schedule, as the "
             "group's check says: the address and port that are really probed, where it comes "
             "from, packets or lines, ICMP errors, the reason. It counts in no streak, vote or "
             "verdict. A backend whose checks are off or that is in maintenance is probed, too. "
             "Each node makes at most 4 at a time, and one of a backend each second (busy, exit "
             "code 10, beyond that). Exits with 0 when all passed, with 1 when not. Needs the role "
             "operator.",
     .examples = "nodectl probe web/10.77.0.1:8080\nnodectl probe web/web-1 --all-nodes\nnodectl "
                 "probe web/10.77.0.1:8080 --from 2 -o json",
     .run = cmd_probe,
     .n_args_min = 1,
     .n_args_max = 1,
     .flags = {FLAG_FROM, FLAG_ALL_NODES, FLAG_CHECK}},
    {.section = "Everyday",
     .name = "events",
     .arguments = "",
     .summary = "what changed on the asked node, newest last",
     .help = "A node keeps its newest 4096 events until it is started again. Types node, leader "
             "and few-votes tell of the others: who is lost and heard again, who leads or that "
             "nobody does, and whether enough votes count, each with the time that it lasted. Of "
             "what flaps six changes are told, then one in two minutes with the number of those "
             "that were left out.",
     .run = cmd_events,
     .examples = "nodectl events --group web --since 1h\nnodectl events --follow -o json",
     .flags = {FLAG_GROUP, FLAG_TYPE, FLAG_LIMIT, FLAG_SINCE, FLAG_FOLLOW}},

    {.section = "Documents",
     .name = "apply",
     .arguments = "",
     .summary = "carry out documents: all of them as one revision, or none",
     .help =
         "Objects that the documents do not name stay as they are. The documents are checked "
         "here first, then by the cluster; nothing is applied if one of them is wrong. The "
         "answer comes when the change is committed and applied, and says which fields changed: a "
         "document is the whole object, what it does not say goes back to its default, and a "
         "list is replaced, not extended.",
     .examples = "nodectl apply -f web.yaml\nnodectl apply -f web.yaml --dry-run\ncat *.yaml | "
                 "nodectl apply -f -",
     .run = cmd_apply,
     .flags = {FLAG_FILE, FLAG_DRY_RUN, FLAG_FORCE, FLAG_EXPECTED_REVISION}},
    {.section = "Documents",
     .name = "delete",
     .arguments = "",
     .summary = "delete the objects of documents: all of them as one revision, or none",
     .help = "Only kind and name of each document count; objects that are not named stay. A group "
             "that a listener uses goes only together with it. Open flows of a deleted group end "
             "as those of removed backends do.",
     .examples = "nodectl delete -f web.yaml\nnodectl delete -f web.yaml --dry-run",
     .run = cmd_delete,
     .flags = {FLAG_FILE, FLAG_DRY_RUN, FLAG_FORCE, FLAG_EXPECTED_REVISION}},
    {.section = "Documents",
     .name = "export",
     .arguments = "[KIND[/NAME] ...]",
     .summary = "what the cluster has, as documents that apply takes",
     .help = "Prints the configuration as it is committed: cluster settings, nodes, keys (the "
             "public ones), groups, listeners. Applied again right away it changes nothing: apply "
             "--dry-run says so. Of a group only what differs from its profile's defaults is "
             "written; that a backend is enabled and a hold off is left out, too, and leaves both "
             "as they are. With --full every field is written. Comments of the file that was "
             "applied are not kept. With -o json it is the request of ConfigService/Apply. The "
             "objects are read one after the other: what is changed meanwhile may be there or "
             "not.",
     .examples = "nodectl export > cluster.yaml\nnodectl export group/web --full\nnodectl export "
                 "group listener\nnodectl export group/web | nodectl apply -f - --dry-run",
     .run = cmd_export,
     .n_args_max = CTL_ARGS_MAX,
     .flags = {FLAG_FULL}},
    {.section = "Documents",
     .name = "validate",
     .arguments = "",
     .summary = "check documents without a cluster, and give advice",
     .help = "Exits with 3 and names file, line and column if a document is wrong. What only a "
             "cluster can know - whether a listener's group exists, the allowed prefixes, limits - "
             "is checked by apply --dry-run.",
     .examples = "nodectl validate -f web.yaml",
     .run = cmd_validate,
     .flags = {FLAG_FILE}},
    {.section = "Documents",
     .name = "simulate",
     .arguments = "",
     .summary = "what a changed group would have come to with the votes that were counted",
     .help =
         "The asked node keeps the votes that it counted for a while. It plays those of the "
         "group once more with the changed document, given whole, and shows each change of a "
         "verdict as it was and as it would have been. Nothing is applied. The rule, "
         "belowQuorum, the guard, the hold, the fields of fail-open and the two thresholds can "
         "be changed; the rest of the check and backends cannot, since other probes would have "
         "had other results. With other thresholds the results of the asked node are counted "
         "anew, and the votes of the others are as they were. A document that changes nothing "
         "shows what happened. Of a file with several groups --group chooses the one to replay.",
     .examples = "nodectl simulate -f web.yaml\nnodectl simulate -f all.yaml --group web\nnodectl "
                 "simulate -f web.yaml --since 1h -o json",
     .run = cmd_simulate,
     .flags = {FLAG_FILE, FLAG_GROUP, FLAG_SINCE}},
    {.section = "Documents",
     .name = "explain",
     .arguments = "[PATH | TOPIC [WORD]]",
     .summary = "fields of documents, defaults of profiles, reasons and rules",
     .help = "PATH is a kind of document or a field of one. Topics: verdict (one page for "
             "the night), profile [NAME], reason [WORD], rules [WORD], flows, guards, self-doubt, "
             "probers, checks, loss, budget.  "
             "Without any it lists them. A word that answers show is explained by its name: held, "
             "EPOCH, CONNECT_TIMEOUT.",
     .examples = "nodectl explain verdict\nnodectl explain group\nnodectl explain "
                 "group.check.http.expect\nnodectl explain "
                 "profile gwlb\nnodectl explain reason CONNECT_TIMEOUT\nnodectl explain group "
                 "--example",
     .run = cmd_explain,
     .n_args_max = 2,
     .flags = {FLAG_EXAMPLE}},

    {.section = "Groups and backends",
     .name = "group list",
     .arguments = "",
     .summary = "all server groups and their state on the asked node",
     .run = cmd_group_list},
    {.section = "Groups and backends",
     .name = "group describe",
     .arguments = "NAME",
     .summary = "one group: its fields, its windows and its backends",
     .run = cmd_group_describe,
     .n_args_min = 1,
     .n_args_max = 1},
    {.section = "Groups and backends",
     .name = "group delete",
     .arguments = "NAME",
     .summary = "delete a group that no listener uses",
     .help = "Its open flows end as those of removed backends do; until then it is listed as "
             "deleted.",
     .examples = "nodectl listener delete web-http && nodectl group delete web",
     .run = cmd_group_delete,
     .n_args_min = 1,
     .n_args_max = 1,
     .flags = {FLAG_DRY_RUN, FLAG_FORCE, FLAG_EXPECTED_REVISION}},
    {.section = "Groups and backends",
     .name = "backend list",
     .arguments = "[GROUP]",
     .summary = "backends and their state on the asked node",
     .examples = "nodectl backend list web\nnodectl backend list --state unhealthy",
     .run = cmd_backend_list,
     .n_args_max = 1,
     .flags = {FLAG_STATE}},
    {.section = "Groups and backends",
     .name = "backend drain",
     .arguments = "GROUP/BACKEND",
     .summary = "no new flows for a backend; its open flows end at a deadline",
     .help = "Open flows live on until they end or the timeout has passed. With --wait the command "
             "returns when every node reports that it is done or its deadline has passed.",
     .examples = "nodectl backend drain web/10.77.0.1:8080 --wait --timeout 30s\nnodectl backend "
                 "drain web/10.77.0.1:8080 --cancel",
     .run = cmd_backend_drain,
     .n_args_min = 1,
     .n_args_max = 1,
     .flags = {FLAG_WAIT, FLAG_DRAIN_TIMEOUT, FLAG_CANCEL, FLAG_FORCE, FLAG_EXPECTED_REVISION}},
    {.section = "Groups and backends",
     .name = "backend ready",
     .arguments = "GROUP/BACKEND",
     .summary = "take a drain or maintenance back",
     .run = cmd_backend_ready,
     .n_args_min = 1,
     .n_args_max = 1,
     .flags = {FLAG_EXPECTED_REVISION}},
    {.section = "Groups and backends",
     .name = "backend weight",
     .arguments = "GROUP/BACKEND WEIGHT",
     .summary = "another share of new flows, 0-100; 0: none, open flows stay",
     .help = "Until a document says another one: a document that leaves the weight out means the "
             "profile's. Weight 0 takes a backend out of service as a drain does: most of a group, "
             "or what is left of it, needs --force.",
     .examples = "nodectl backend weight web/10.77.0.1:8080 50",
     .run = cmd_backend_weight,
     .n_args_min = 2,
     .n_args_max = 2,
     .flags = {FLAG_FORCE, FLAG_EXPECTED_REVISION}},
    {.section = "Groups and backends",
     .name = "backend maintenance",
     .arguments = "GROUP/BACKEND",
     .summary = "no flows and no probes; open flows are closed at once",
     .help = "Drain it first if they are to end by themselves: nodectl backend drain --wait. "
             "`backend ready` ends it; the backend then waits until it passed.",
     .examples = "nodectl backend drain web/10.77.0.1:8080 --wait && nodectl backend maintenance "
                 "web/10.77.0.1:8080",
     .run = cmd_backend_maintenance,
     .n_args_min = 1,
     .n_args_max = 1,
     .flags = {FLAG_FORCE, FLAG_EXPECTED_REVISION}},
    {.section = "Groups and backends",
     .name = "backend remove",
     .arguments = "GROUP/BACKEND",
     .summary = "take a backend out of its group",
     .help = "Its open flows end as the group's drain says. All else of the group stays, also what "
             "others change at the same time.",
     .run = cmd_backend_remove,
     .n_args_min = 1,
     .n_args_max = 1,
     .flags = {FLAG_DRY_RUN, FLAG_FORCE, FLAG_EXPECTED_REVISION}},
    {.section = "Groups and backends",
     .name = "hold set",
     .arguments = "[GROUP]",
     .summary = "freeze: the votes take no backend out of service, recoveries apply",
     .help = "Without GROUP for every group. The switch is replicated and reaches every node that "
             "the leader reaches; with --local it is the hold of the asked node alone, which "
             "needs no leader. A hold that is on anywhere counts; each is cleared by itself.",
     .examples = "nodectl hold set\nnodectl hold set web\nnodectl hold set --local",
     .run = cmd_hold_set,
     .n_args_max = 1,
     .flags = {FLAG_LOCAL}},
    {.section = "Groups and backends",
     .name = "hold clear",
     .arguments = "[GROUP]",
     .summary = "end a hold; what the votes say takes effect at once",
     .help = "Without GROUP the hold of the cluster; holds of single groups stay. With --local the "
             "hold of the asked node alone.",
     .run = cmd_hold_clear,
     .n_args_max = 1,
     .flags = {FLAG_LOCAL}},
    {.section = "Groups and backends",
     .name = "hold show",
     .arguments = "",
     .summary = "the holds that are on for the asked node, who set them and when",
     .run = cmd_hold_show},
    {.section = "Groups and backends",
     .name = "listener list",
     .arguments = "",
     .summary = "all listeners",
     .run = cmd_listener_list},
    {.section = "Groups and backends",
     .name = "listener delete",
     .arguments = "NAME",
     .summary = "delete a listener; its group stays",
     .run = cmd_listener_delete,
     .n_args_min = 1,
     .n_args_max = 1,
     .flags = {FLAG_DRY_RUN, FLAG_FORCE, FLAG_EXPECTED_REVISION}},

    {.section = "Cluster",
     .name = "cluster init",
     .arguments = "",
     .summary = "make a cluster of the asked node and the others named here, once",
     .help = "All first members are named at once; the asked node must be one of them. They can "
             "also come from documents of kind Node, with ClusterSettings and Key documents "
             "beside them.",
     .examples = "nodectl cluster init --node id=1,key=node-1.key,endpoint=10.0.0.1:7400:7401 \\\n"
                 "    --node id=2,key=node-2.key,endpoint=10.0.0.2:7400:7401 \\\n"
                 "    --node id=3,key=node-3.key,endpoint=10.0.0.3:7400:7401 \\\n"
                 "    --access-key name=admin,role=admin,key=admin.key\n"
                 "nodectl cluster init -f cluster.yaml",
     .run = cmd_cluster_init,
     .flags = {FLAG_NODE, FLAG_ACCESS_KEY, FLAG_FILE}},
    {.section = "Cluster",
     .name = "cluster members",
     .arguments = "",
     .summary = "the members and how the asked node hears them",
     .run = cmd_cluster_members},
    {.section = "Cluster",
     .name = "node describe",
     .arguments = "",
     .summary = "what the asked node is and does",
     .run = cmd_node_describe},
    {.section = "Cluster",
     .name = "node counters",
     .arguments = "",
     .summary = "counters of the asked node since its start",
     .run = cmd_node_counters},
    {.section = "Cluster",
     .name = "node metrics",
     .arguments = "",
     .summary = "counters, verdicts, groups and what status finds, as text for Prometheus",
     .help =
         "To raise an alarm by: jury_healthy is 1 while nodectl status says so, jury_findings has "
         "by "
         "kind what it finds; jury_group_fail_open and jury_group_closed, and jury_group_backends "
         "by "
         "verdict, are of each group; jury_store_has_leader, jury_suspect, jury_peer_heard. "
         "jury_probe_results_total counts probes by reason and result (pass, fail, inconclusive). "
         "A group has 10 series. Of each backend: jury_backend_healthy, _unhealthy and _initial "
         "are "
         "the verdict, jury_backend_draining and _maintenance what an operator did (in maintenance "
         "none of the three is 1), jury_backend_weight; of the first 10000, "
         "jury_backends_left_out says how many are not told. Times are in seconds. Of the way to "
         "backends, as the asked node's "
         "own probes saw it: "
         "jury_probe_response_time_seconds: smoothed, a new probe counts for an eighth, of "
         "probes that pass by an answer. jury_probe_loss_ratio: of the last 30 probes that "
         "wanted a reply, the part that got none at all within the timeout; one that is refused or "
         "answered wrongly got one, and faults of this node are left out. Over longer times: "
         "jury_engine_probes_without_reply_total. Two series a backend, or of several checks two "
         "each; nodectl explain loss has all of it.",
     .examples = "nodectl node metrics >/var/lib/prometheus/node-exporter/jury.prom.new && mv "
                 "/var/lib/prometheus/node-exporter/jury.prom.new "
                 "/var/lib/prometheus/node-exporter/jury.prom",
     .run = cmd_node_metrics},

    {.section = "Keys",
     .name = "key generate",
     .arguments = "[FILE]",
     .summary = "make a key pair, or with --nodes a set of them; never overwrites",
     .examples = "nodectl key generate ops-anna.key\nnodectl key generate --nodes 3 --out keys",
     .run = cmd_key_generate,
     .n_args_max = 1,
     .flags = {FLAG_NODES, FLAG_OUT}},
    {.section = "Keys",
     .name = "key show",
     .arguments = "FILE",
     .summary = "the public key of a key file",
     .run = cmd_key_show,
     .n_args_min = 1,
     .n_args_max = 1,
     .flags = {FLAG_PUBLIC}},
    {.section = "Keys",
     .name = "key list",
     .arguments = "",
     .summary = "who may call the cluster over the network",
     .run = cmd_key_list},

    {.section = "This program",
     .name = "version",
     .arguments = "",
     .summary = "of nodectl and of the asked node",
     .help = "The node is left out, with a warning, if it cannot be asked.",
     .run = cmd_version},
};
const size_t ctl_n_commands = sizeof ctl_commands / sizeof ctl_commands[0];

/* How many of the words are the command's name; 0 = none or not all of it. */
static size_t match(const struct ctl_command *command, char *const words[], size_t n_words)
{
    const char *name = command->name;
    size_t n = 0;

    for (;;) {
        size_t n_part = strcspn(name, " ");

        if (n == n_words || strlen(words[n]) != n_part || strncmp(words[n], name, n_part) != 0) {
            return 0;
        }
        n++;
        if (name[n_part] == '\0') {
            return n;
        }
        name += n_part + 1;
    }
}

bool ctl_is_noun(const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i < ctl_n_commands; i++) {
        if (strncmp(ctl_commands[i].name, word, n) == 0 && ctl_commands[i].name[n] == ' ') {
            return true;
        }
    }
    return false;
}

/* First words of all commands, or the verbs of one noun. Returns their number. */
static size_t collect(const char *noun, const char *ret_words[], size_t n_max)
{
    size_t n_noun = strlen(noun);
    size_t n = 0;

    for (size_t i = 0; i < ctl_n_commands && n < n_max; i++) {
        const char *name = ctl_commands[i].name;

        if (n_noun == 0) {
            ret_words[n++] = name;
        } else if (strncmp(name, noun, n_noun) == 0 && name[n_noun] == ' ') {
            ret_words[n++] = name + n_noun + 1;
        }
    }
    return n;
}

static int refuse_verb(struct ctl *ctl, const char *noun, const char *verb)
{
    const char *verbs[16];
    char list[160] = "";
    size_t n = collect(noun, verbs, 16);

    for (size_t i = 0; i < n; i++) {
        const char *between = i == 0 ? "" : i + 1 == n ? " or " : ", ";

        strncat(list, between, sizeof list - strlen(list) - 1);
        strncat(list, verbs[i], sizeof list - strlen(list) - 1);
    }
    if (verb == NULL) {
        ctl_hint(ctl, "see: nodectl %s --help", noun);
        return ctl_fail(ctl, ERR_USAGE, "nodectl %s needs a verb: %s", noun, list);
    }
    const char *near = spec_nearest(verb, verbs, n);
    if (strcmp(noun, "node") == 0 && strcmp(verb, "list") == 0) {
        ctl_hint(ctl, "did you mean \"cluster members\"?");
    } else if (near != NULL) {
        ctl_hint(ctl, "did you mean \"%s %s\"?", noun, near);
    } else {
        ctl_hint(ctl, "see: nodectl %s --help", noun);
    }
    return ctl_fail(ctl, ERR_USAGE, "nodectl %s has no verb \"%.60s\": %s", noun, verb, list);
}

/* A word that is near a command, a noun, or the verb of a noun. */
static int refuse_word(struct ctl *ctl, const char *word)
{
    static const char *const nouns[] = {"group",   "backend", "hold", "listener",
                                        "cluster", "node",    "key"};
    const char *names[64];
    size_t n = collect("", names, 56);

    for (size_t i = 0; i < sizeof nouns / sizeof nouns[0]; i++) {
        names[n++] = nouns[i];
    }
    const char *near = spec_nearest(word, names, n);
    for (size_t i = 0; near == NULL && i < ctl_n_commands; i++) {
        const char *verb = strchr(ctl_commands[i].name, ' ');

        if (verb != NULL && strcmp(verb + 1, word) == 0) {
            near = ctl_commands[i].name;
        }
    }
    if (near != NULL) {
        ctl_hint(ctl, "did you mean \"%s\"?", near);
    } else {
        ctl_hint(ctl, "see: nodectl --help");
    }
    return ctl_fail(ctl, ERR_USAGE, "unknown command \"%.60s\"", word);
}

int ctl_command_find(struct ctl *ctl, char *const words[], size_t n_words,
                     const struct ctl_command **ret_command, size_t *ret_n_used)
{
    if (n_words == 0) {
        ctl_hint(ctl, "see: nodectl --help");
        return ctl_fail(ctl, ERR_USAGE, "no command is given");
    }
    for (size_t i = 0; i < ctl_n_commands; i++) {
        size_t n_used = match(&ctl_commands[i], words, n_words);

        if (n_used > 0) {
            *ret_command = &ctl_commands[i];
            *ret_n_used = n_used;
            return 0;
        }
    }
    if (ctl_is_noun(words[0])) {
        return refuse_verb(ctl, words[0], n_words > 1 ? words[1] : NULL);
    }
    return refuse_word(ctl, words[0]);
}
