/* What `explain` says besides fields: profiles, reasons, rules, flows, guards, self-doubt and
 * probers. */
#include "nodectl/explain.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/model/doubt.h"
#include "common/model/profile.h"
#include "common/model/reason.h"
#include "common/spec/value.h"
#include "nodectl/render.h"

/* The default, or how it is when nothing says it. */
static const char *profile_cell(const struct spec_field *field, const void *base, char *text,
                                size_t text_bytes)
{
    if ((field->flags & SPEC_LATER) != 0) {
        return "-";
    }
    if ((field->flags & SPEC_ZERO_KEEPS) != 0 && field->names != NULL) {
        /* As it is; a new object begins with the first word. */
        snprintf(text, text_bytes, "%s", field->names->rows[0].word);
        return text;
    }
    explain_default_text(field, base, text, text_bytes);
    return text[0] != '\0' ? text : "none";
}

/* The name and the backends of a group are its own, and the profile is the column. */
static bool is_of_profile(const struct spec_field *field)
{
    return (field->flags & (SPEC_REQUIRED | SPEC_ALTERNATE)) == 0 &&
           field->type != SPEC_TYPE_LIST && field->type != SPEC_TYPE_ENDPOINT;
}

/* Rows of all fields below a table, one column a profile. */
static void put_profile_rows(struct render_table *rows, const struct spec_table *table,
                             const uint8_t *const bases[], size_t n_bases, const char *prefix)
{
    for (size_t i = 0; i < table->n_fields; i++) {
        const struct spec_field *field = &table->fields[i];
        const uint8_t *inner[3];
        char path[RENDER_TEXT_BYTES];
        char text[VALUE_TEXT_BYTES];

        snprintf(path, sizeof path, "%s%s", prefix, field->name);
        if (field->type == SPEC_TYPE_OBJECT) {
            strncat(path, ".", sizeof path - strlen(path) - 1);
            for (size_t b = 0; b < n_bases; b++) {
                inner[b] = bases[b] + field->offset;
            }
            if (spec_field_applies(field, bases[0])) {
                put_profile_rows(rows, field->fields, inner, n_bases, path);
            }
            continue;
        }
        if (!is_of_profile(field)) {
            continue;
        }
        render_row(rows);
        render_cell(rows, "%s", path);
        for (size_t b = 0; b < n_bases; b++) {
            render_cell(rows, "%s",
                        bases[b] == NULL ? "-" : profile_cell(field, bases[b], text, sizeof text));
        }
        if ((field->flags & SPEC_LATER) != 0) {
            render_cell(rows, "not available yet");
            continue;
        }
        render_cell(
            rows, "%s%s%s", value_format_allowed(field, text, sizeof text),
            field->later == NULL ? "" : "; not yet: ", field->later == NULL ? "" : field->later);
    }
}

static void put_weight_row(struct render_table *rows, const enum profile wanted[], size_t n)
{
    const struct spec_list *list =
        spec_field_find(spec_kind_info(SPEC_GROUP)->spec, "backends")->list;
    const struct spec_field *field = spec_field_find(list->fields, "weight");
    char text[VALUE_TEXT_BYTES];

    render_row(rows);
    render_cell(rows, "backends.weight");
    for (size_t i = 0; i < n; i++) {
        struct backend backend = {0};

        profile_backend_defaults(wanted[i], &backend);
        render_cell(rows, "%s", explain_default_text(field, &backend, text, sizeof text));
    }
    render_cell(rows, "%s", value_format_allowed(field, text, sizeof text));
}

/* Fields of a check that exist with its type only; gwlb has no more than the first. */
static const struct {
    enum check_type type;
    const char *field;
} typed_parts[] = {
    {CHECK_TYPE_HTTP, "http"},
    {CHECK_TYPE_UDP, "udp"},
    {CHECK_TYPE_TLS, "tls"},
    {CHECK_TYPE_GRPC, "grpc"},
};

static void put_typed_rows(struct render_table *rows, struct server_group groups[],
                           const enum profile wanted[], size_t n)
{
    const struct spec_kind_info *kind = spec_kind_info(SPEC_GROUP);
    const struct spec_table *check = spec_field_find(kind->spec, "check")->fields;

    for (size_t part = 0; part < sizeof typed_parts / sizeof typed_parts[0]; part++) {
        const struct spec_field *field = spec_field_find(check, typed_parts[part].field);
        const uint8_t *bases[3];
        char prefix[RENDER_TEXT_BYTES];

        for (size_t i = 0; i < n; i++) {
            explain_defaults(kind, wanted[i], typed_parts[part].type, &groups[i]);
            bases[i] = part > 0 && wanted[i] == PROFILE_GWLB
                           ? NULL
                           : (const uint8_t *)&groups[i].check + field->offset;
        }
        snprintf(prefix, sizeof prefix, "check.%s.", field->name);
        put_profile_rows(rows, field->fields, bases, n, prefix);
    }
}

static int put_profiles(struct ctl *ctl, const enum profile wanted[], size_t n)
{
    struct render_column columns[5] = {{"FIELD", false}};
    struct server_group *groups = calloc(n, sizeof *groups);
    const uint8_t *plain[3];

    if (groups == NULL) {
        return ctl_fail(ctl, ERR_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < n; i++) {
        columns[i + 1].title = names_word(&names_profile, wanted[i]);
        explain_defaults(spec_kind_info(SPEC_GROUP), wanted[i], CHECK_TYPE_NONE, &groups[i]);
        plain[i] = (const uint8_t *)&groups[i];
    }
    columns[n + 1].title = "ALLOWED";
    struct render_table *rows = render_table_new(columns, n + 2);
    put_profile_rows(rows, spec_kind_info(SPEC_GROUP)->spec, plain, n, "");
    put_typed_rows(rows, groups, wanted, n);
    put_weight_row(rows, wanted, n);
    render_table_print(ctl, rows);
    free(groups);
    fputs(
        "\n- = not available. The check is tcp by default, with clb and protocol udp it is udp "
        "with\n"
        "timeout 10s and interval 5s; check.http.*, check.udp.*, check.tls.* and check.grpc.* are\n"
        "the defaults of such checks: a tls check asks nothing inside unless http is written, a\n"
        "grpc check is in the clear unless tls is. With gwlb a check is tcp or http and a weight\n"
        "is 0 or 100. Self-doubt and the hold switch are always there: nodectl explain\n"
        "self-doubt, nodectl explain guards.\n",
        ctl->out);
    return 0;
}

/* The word that may be meant, or where all of them are. */
static void suggest(struct ctl *ctl, const char *word, const char *const words[], size_t n,
                    const char *all)
{
    const char *near = spec_nearest(word, words, n);

    if (near != NULL) {
        ctl_hint(ctl, "did you mean \"%s\"?", near);
    } else {
        ctl_hint(ctl, "see: %s", all);
    }
}

int explain_profile(struct ctl *ctl, const char *word)
{
    const char *words[3];

    if (word == NULL) {
        return put_profiles(ctl, explain_profiles, 3);
    }
    enum profile profile = (enum profile)names_value(&names_profile, word);
    if (profile != PROFILE_NONE) {
        return put_profiles(ctl, &profile, 1);
    }
    for (size_t i = 0; i < 3; i++) {
        words[i] = names_word(&names_profile, explain_profiles[i]);
    }
    suggest(ctl, word, words, 3, "nodectl explain profile");
    return ctl_fail(ctl, ERR_NOTFOUND, "there is no profile \"%.40s\": gwlb, nlb or clb", word);
}

int explain_reason(struct ctl *ctl, const char *word)
{
    static const struct render_column columns[] = {
        {"REASON", false}, {"COUNTS AS", false}, {"MEANING", false}};
    static const char *const classes[] = {"-", "pass", "fail", "nothing"};
    struct render_table *rows = render_table_new(columns, 3);
    size_t n = 0;

#define REASON_ROW(name, number, class, text, sentence) \
    if (word == NULL || strcasecmp(word, text) == 0) {  \
        render_row(rows);                               \
        render_cell(rows, "%s", text);                  \
        render_cell(rows, "%s", classes[class]);        \
        render_cell(rows, "%s", sentence);              \
        n++;                                            \
    }
    PROBE_REASONS(REASON_ROW)
#undef REASON_ROW
    render_table_print(ctl, rows);
    if (n > 0) {
        return 0;
    }
#define REASON_WORD(name, number, class, text, sentence) text,
    static const char *const words[] = {PROBE_REASONS(REASON_WORD)};
#undef REASON_WORD
    suggest(ctl, word, words, sizeof words / sizeof words[0], "nodectl explain reason");
    return ctl_fail(ctl, ERR_NOTFOUND, "there is no reason \"%.60s\"", word);
}

/* "at-least" and "at-least 2" name "at-least K". */
static bool is_rule(const char *rule, const char *word)
{
    size_t n = strcspn(rule, " ");

    return strncasecmp(rule, word, n) == 0 && (word[n] == '\0' || word[n] == ' ');
}

int explain_rules(struct ctl *ctl, const char *word)
{
    static const char *const rows_text[][3] = {
        {"local", "this node's own vote is fail", "this node's own vote is pass"},
        {"any", "one counted vote is fail", "none is fail and one is pass"},
        {"majority", "more than half of the counted votes fail",
         "more than half of the counted votes pass"},
        {"zone-majority", "more than half of the zones with votes fail",
         "more than half of the zones with votes pass"},
        {"all", "every counted vote is fail", "one counted vote is pass"},
        {"at-least K", "K counted votes or more fail", "fewer than K fail and one passes"},
        {"percent X", "X percent of the counted votes or more fail",
         "fewer than X percent fail and one passes"},
    };
    static const struct render_column columns[] = {
        {"RULE", false}, {"A BACKEND GOES DOWN WHEN", false}, {"AND COMES UP WHEN", false}};
    struct render_table *rows = render_table_new(columns, 3);
    size_t n = 0;

    for (size_t i = 0; i < sizeof rows_text / sizeof rows_text[0]; i++) {
        if (word != NULL && !is_rule(rows_text[i][0], word)) {
            continue;
        }
        n++;
        render_row(rows);
        for (size_t c = 0; c < 3; c++) {
            render_cell(rows, "%s", rows_text[i][c]);
        }
    }
    render_table_print(ctl, rows);
    if (n == 0) {
        static const char *const words[] = {"local", "any",      "majority", "zone-majority",
                                            "all",   "at-least", "percent"};

        suggest(ctl, word, words, sizeof words / sizeof words[0], "nodectl explain rules");
        return ctl_fail(ctl, ERR_NOTFOUND,
                        "there is no rule \"%.40s\": local, any, majority, all, at-least, "
                        "percent or zone-majority",
                        word);
    }
    fputs(
        "\nWith {down: RULE, up: RULE} each side is set apart: `up` is then the left column with\n"
        "passes in the place of failures. Down is looked at first. Except under local, a backend\n"
        "goes down only while the votes of more than half of the observers count; belowQuorum\n"
        "says what happens with fewer.\n\n"
        "zone-majority: a zone fails when more than half of its counted votes fail and at least\n"
        "half of its observers count; it passes when more than half of its counted votes pass. A\n"
        "backend goes down only while more than half of the zones have a counted vote, too. The\n"
        "zone is a field of the node; nodes without one are a zone together, so that with no zone\n"
        "at all the rule is majority.\n\n"
        "Words for what the products do: gwlb is majority, nlb is local, clb is any, r53 is\n"
        "percent 82.\n",
        ctl->out);
    return 0;
}

int explain_flows(struct ctl *ctl)
{
    fputs(
        "A new flow takes a backend of the first line that has one. Weight 0, draining, removed\n"
        "and in maintenance: never.\n"
        "\n"
        "  healthy      healthy, or checks off, and reachable from this node\n"
        "  unreachable  healthy by the votes, but this node's own probes fail\n"
        "  fail-open    every backend, when none is healthy or fewer than failOpenPercent\n"
        "\n"
        "Warming. When an agent or a group starts with nothing known, the backends that it began\n"
        "with share the flows until each is judged, for the failure window + interval + 2 vote\n"
        "intervals at most; unhealthy ones get none. The group is `ok` meanwhile, or `degraded`\n"
        "with an unhealthy one, and is said to be warming. The first one judged does not end\n"
        "it: it would get all flows alone. A backend that is added or comes back from\n"
        "maintenance after the group's first probe is no part of it and gets nothing before it\n"
        "passed.\n"
        "\n"
        "Weights. Those of one choice share the flows by weight, with a scheduler that takes\n"
        "turns by as much of it as counts: 100 -> 40 in `group describe` and `why` is 40 of 100.\n"
        "  slow start  guard.slowStart: nodectl explain guards\n"
        "  votes       gradedWeight: votes. Of a healthy backend with 2 of 3 counted votes that\n"
        "              pass 67 % count: a cut path or a sick zone is seen before it is a verdict.\n"
        "              One that is held or pending has all of its weight.\n"
        "  latency     gradedWeight: latency. Each node takes the response times of its own\n"
        "              probes, smoothed over about 8, and compares them with that of the backend\n"
        "              in the middle of its group: one that takes 4 times as long gets a quarter.\n"
        "              Relative, so a slow link makes nobody less. Looked at once an interval;\n"
        "              less than 25 % off changes nothing; below a millisecond all are alike. It\n"
        "              needs 3 healthy backends that this node knows well, and steers its flows\n"
        "              alone: nodes differ, so it is refused where all are to choose alike.\n"
        "None of it changes a verdict or a vote, and none leaves less than a tenth. A data plane\n"
        "that does not read it uses whole weights.\n",
        ctl->out);
    return 0;
}

int explain_guards(struct ctl *ctl)
{
    fputs("Guards limit what the votes take out of service, and how it returns. Each node\n"
          "works them out by itself, from the votes that it holds. A backend that a guard\n"
          "keeps in service is used as healthy. The first line of `nodectl group describe`\n"
          "says which guards are at work; entry and exit are events and counters.\n"
          "\n"
          "  hold      A switch: while it is on, no backend goes out; those that would are\n"
          "            marked `held`. Recoveries apply. `nodectl hold set [GROUP]` and the\n"
          "            field hold are replicated; with --local it is the hold of the asked\n"
          "            node alone, needs no leader, and ends with that agent. One that is on\n"
          "            is enough.\n"
          "  velocity  At most guard.velocityPercent of a group, rounded down, and at least\n"
          "            one backend go out in any guard.velocityWindow. What is more is\n"
          "            `pending` until its turn comes: more fail votes first, then the lower\n"
          "            id. Groups of fewer backends than guard.exemptBelow have no limit. Off\n"
          "            unless velocityPercent is written.\n"
          "  damping   A backend that goes down again within 10 minutes is `flapping` and\n"
          "            returns when the votes have said healthy for guard.flapHold without a\n"
          "            break; each further time doubles that, up to 5 minutes. It is the\n"
          "            return that waits: what is down is never kept in service by it.\n"
          "            10 minutes after it last went down all is forgotten.\n"
          "  return    At most guard.returnPercent of a group, rounded down, and at least one\n"
          "            backend return in any guard.returnWindow; what is more is `pending`:\n"
          "            more pass votes first, then the lower id. Nobody waits to return in a\n"
          "            group in fail-open or closed, nor, for this limit, one returnWindow\n"
          "            after that.\n"
          "  slow start  Limits flows and no verdict: for guard.slowStart the weight of a\n"
          "            backend that takes new flows after it took none rises in ten steps, 10 %,\n"
          "            19 %, .. 91 %, and then all. So it is after a return, a drain, weight 0\n"
          "            and for one that is added. It needs another backend of the group that has\n"
          "            all of its weight: when the last one leaves, the others have all of theirs\n"
          "            at once. None at a cold start, for what was used in fail-open, and on a\n"
          "            node that has just started. Each node begins when it sees the return.\n"
          "            Only with schedulers that take turns: by a hash all nodes choose alike.\n"
          "  shadow    For guard.shadowCycles after its check was changed a group loses\n"
          "            nothing by the votes; those that would go out are marked `held`. With\n"
          "            guard.shadowStop it goes on while more would go out, or cannot be judged\n"
          "            yet, than velocity lets out in one window; the first line then says that\n"
          "            it is `kept`. To accept what the check finds apply the group with\n"
          "            shadowCycles: 0, to revert it with the check as it was; it ends by\n"
          "            itself when fewer would go out. Each node remembers it by\n"
          "            itself, over restarts in its last-known-good file: one that starts\n"
          "            without that file knows no shadow.\n"
          "  correlated  An alarm that changes nothing, on unless guard.correlatedAlarm is\n"
          "            false: at least 3 backends and over 30 % of a group went bad within one\n"
          "            failure window (two intervals, if that is more) and one vote interval.\n"
          "            Look for one cause. It ends when no longer that many are bad.\n"
          "\n"
          "With velocity or damping an ejection, and with damping or return a return, waits\n"
          "for one vote interval, in which all nodes come to hold the same votes.\n"
          "`guard: standard` is velocityPercent 10, flapHold 30s, returnPercent 25 and, with a\n"
          "scheduler that takes turns, slowStart 30s.\n"
          "\n"
          "See: nodectl explain group.guard, nodectl hold show, nodectl events --type guard\n",
          ctl->out);
    return 0;
}

int explain_self_doubt(struct ctl *ctl)
{
    /* What each cause adds to the score: agent/core/self_doubt.h. */
    static const char *const points[] = {
        [DOUBT_LOOP_LATE] = "1 to 4", [DOUBT_LOCAL_FAULTS] = "4",  [DOUBT_LOOPBACK] = "4",
        [DOUBT_LOSSY] = "2 to 4",     [DOUBT_ISOLATED] = "2 or 4", [DOUBT_CONTRADICTED] = "2 or 4"};
    static const struct render_column columns[] = {
        {"CAUSE", false}, {"POINTS", false}, {"MEANING", false}};
    struct render_table *rows = render_table_new(columns, 3);

    fputs("A node adds up what speaks against its own probes, for each kind of probe. From 4\n"
          "points on the kind is suspect: the node's votes by it count nowhere, not even\n"
          "under local, until it has had 2 points or fewer for 5s. No probe is changed by that.\n"
          "\n",
          ctl->out);
    for (unsigned cause = DOUBT_NONE + 1; cause < sizeof points / sizeof points[0]; cause++) {
        render_row(rows);
        render_cell(rows, "%s", doubt_cause_word(cause));
        render_cell(rows, "%s", points[cause]);
        render_cell(rows, "%s", doubt_cause_sentence(cause));
    }
    render_table_print(ctl, rows);
    fputs("\nTo test itself a node probes a port of its own and of up to four peers: its\n"
          "sentinels. Nobody listens there: the kernel's refusal is the answer, and a flood\n"
          "of connections has nothing to fill. To hear no peer is no doubt by itself, nor is a\n"
          "cut path to some backends: for that there is `unreachable from here`.\n"
          "\n"
          "See: nodectl node describe, nodectl why, nodectl events --type doubt\n",
          ctl->out);
    return 0;
}

int explain_probers(struct ctl *ctl)
{
    fputs("With `check: {probers: k}` k of the n nodes that observe probe each backend while all\n"
          "is well; `all` is the default, and a k of n or more is the same. Each node works out\n"
          "which ones by itself, from the members and the target, so that no node probes more\n"
          "than its share. `nodectl why` shows who does; the others \"do not probe it\" and have\n"
          "no vote. T is check.timeout, I check.interval, U check.unhealthyThreshold, H\n"
          "check.healthyThreshold, V the cluster's voteInterval; W = T x U + I x (U - 1) is the\n"
          "failure window; q is more than half of n.\n"
          "\n"
          "  who votes    n and q of the rule are those of the k. After the first failed probe\n"
          "               they are of the k, of who has voted since, and of who cannot be heard:\n"
          "               a few nodes that are cut off throw nobody out.\n"
          "  all probe    from the first failed probe of any node on, at once; and while fewer\n"
          "               of the k vote than their quorum. One that is called to a healthy\n"
          "               backend and sees it pass votes pass at once; thresholds hold for all\n"
          "               else.\n"
          "  until        nothing failed for T x H + I x (H - 1) + 3 V: no vote is fail, no last\n"
          "               probe failed. A backend that is down is probed by all until it is up.\n"
          "  members      when nodes come or go, the former ones go on until each new one has\n"
          "               voted, for I + the longer window + 3 V at most.\n"
          "  phases       the probes of the k are I / k apart, with all nodes about I / n. A\n"
          "               pause is shorter than the interval by up to an eighth until that is\n"
          "               so, and never longer. Probes that take over I / 8 do not get there.\n"
          "  detection    a backend that is dead for everybody is down on every node that hears\n"
          "               the votes within I + W + 2 V + 100ms, as when everyone probes; mostly\n"
          "               within I / k + T + W + 2 V + 100ms. When some of the k die with it,\n"
          "               within I + T + W + 2 V + 100ms; when all of them do, within 3 V + W +\n"
          "               2 V + 100ms: their votes expire, and then all probe.\n"
          "  load         k / I probes a second at a backend; when one fails n at once, and at\n"
          "               most 2 n / I: `nodectl group describe` has the numbers.\n"
          "\n"
          "Not with rule local, nor with at-least more than k. Fewer than 3 is a warning.\n"
          "\n"
          "`check: {recheck: true}` (with or without probers) lets a node probe at once when\n"
          "another node's probe of the backend fails for the first time, if it does not know of\n"
          "a failure itself, and once an interval at most. That is one more result and changes\n"
          "no threshold: what is dead for all is found up to an interval sooner.\n",
          ctl->out);
    return 0;
}
