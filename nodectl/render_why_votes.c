/* The votes that `why` shows. */
#include "nodectl/render_why.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/model/doubt.h"
#include "common/model/reason.h"

#define TOLD_NOW_S 2 /* `why` asks the peers and waits for a second */

static const char *standing_word(Jury__V1__VoteStanding standing)
{
    switch (standing) {
    case JURY__V1__VOTE_STANDING__VOTE_STANDING_COUNTED:
        return "counts";
    case JURY__V1__VOTE_STANDING__VOTE_STANDING_REMEMBERED:
        return "lost, only blocks";
    case JURY__V1__VOTE_STANDING__VOTE_STANDING_SUSPECT:
        return "suspect, not used";
    case JURY__V1__VOTE_STANDING__VOTE_STANDING_WAITING:
        return "not counted yet";
    case JURY__V1__VOTE_STANDING__VOTE_STANDING_RESTING:
        return "does not probe it";
    case JURY__V1__VOTE_STANDING__VOTE_STANDING_UNSPECIFIED:
    case _JURY__V1__VOTE_STANDING_IS_INT_SIZE:
        break;
    }
    return "no vote";
}

/* "suspect: loop-late" */
static char *standing_text(const Jury__V1__NodeVote *vote, char text[RENDER_TEXT_BYTES])
{
    char causes[DOUBT_TEXT_BYTES];
    uint32_t set = 0;

    for (size_t i = 0; i < vote->n_doubt_causes; i++) {
        set |= UINT32_C(1) << ((unsigned)vote->doubt_causes[i] % 32);
    }
    if (vote->standing != JURY__V1__VOTE_STANDING__VOTE_STANDING_SUSPECT || set == 0) {
        snprintf(text, RENDER_TEXT_BYTES, "%s", standing_word(vote->standing));
    } else {
        snprintf(text, RENDER_TEXT_BYTES, "suspect, not used: %s",
                 doubt_causes_format(set, causes));
    }
    return text;
}

enum render_color why_opinion_color(Jury__V1__Opinion opinion)
{
    switch ((int)opinion) {
    case OPINION_PASS:
        return RENDER_GOOD;
    case OPINION_FAIL:
        return RENDER_BAD;
    default:
        return RENDER_DIM;
    }
}

char *why_reason_text(Jury__V1__ProbeReason reason, uint32_t http_status,
                      char text[RENDER_TEXT_BYTES])
{
    const char *word = probe_reason_word((unsigned)reason);

    if (http_status != 0) {
        snprintf(text, RENDER_TEXT_BYTES, "%s (%" PRIu32 ")", word, http_status);
    } else {
        snprintf(text, RENDER_TEXT_BYTES, "%s", word);
    }
    return text;
}

/* Of several checks one is enough to fail a vote; one that passes has others beside it. */
static bool names_check(const Jury__V1__NodeVote *vote)
{
    return vote->detail->check[0] != '\0' && (enum opinion)vote->opinion == OPINION_FAIL;
}

static bool is_lost(const Jury__V1__NodeVote *vote)
{
    return vote->standing == JURY__V1__VOTE_STANDING__VOTE_STANDING_REMEMBERED;
}

/* What it said is of that time: its node is not heard any more, or did not answer when it was asked
 * just now. */
static bool is_of_then(const Jury__V1__NodeVote *vote)
{
    const Google__Protobuf__Duration *age = vote->detail->age;

    return !vote->is_self && age != NULL && (is_lost(vote) || age->seconds >= TOLD_NOW_S);
}

static int64_t nanos_of(const Google__Protobuf__Duration *duration)
{
    return duration->seconds * 1000000000 + duration->nanos;
}

/* How long it is known to have been of that opinion: of a lost one until it was heard last. */
static char *for_text(const Jury__V1__NodeVote *vote, char text[RENDER_TEXT_BYTES])
{
    const Google__Protobuf__Duration *since = vote->detail->since;
    Google__Protobuf__Duration held;

    if (!is_lost(vote) || since == NULL || vote->age == NULL) {
        return render_duration(since, text);
    }
    int64_t nanos = nanos_of(since) - nanos_of(vote->age);
    google__protobuf__duration__init(&held);
    held.seconds = nanos > 0 ? nanos / 1000000000 : 0;
    held.nanos = nanos > 0 ? (int32_t)(nanos % 1000000000) : 0;
    return render_duration(&held, text);
}

static void put_meaning(struct render_table *table, const Jury__V1__NodeVote *vote)
{
    const Jury__V1__VoteDetail *detail = vote->detail;
    const char *sentence = detail->sentence[0] != '\0'
                               ? detail->sentence
                               : probe_reason_sentence((unsigned)detail->reason);
    char text[RENDER_TEXT_BYTES];

    if (is_of_then(vote)) {
        render_cell(table, "told %s ago: %s", render_duration(detail->age, text), sentence);
    } else {
        render_cell(table, "%s", sentence);
    }
}

static void put_detail(struct render_table *table, const Jury__V1__NodeVote *vote)
{
    const Jury__V1__VoteDetail *detail = vote->detail;
    char text[RENDER_TEXT_BYTES];

    if (detail == NULL) {
        bool may_come =
            vote->age != NULL && vote->standing != JURY__V1__VOTE_STANDING__VOTE_STANDING_RESTING;

        render_cell(table, "%s", may_come ? "not received" : "-");
        for (int i = 0; i < 5; i++) {
            render_cell(table, "-");
        }
        return;
    }
    if (detail->reason == JURY__V1__PROBE_REASON__PROBE_REASON_UNSPECIFIED) {
        for (int i = 0; i < 5; i++) {
            render_cell(table, "-");
        }
        render_cell(table, "%s", probe_reason_sentence((unsigned)detail->reason));
        return;
    }
    render_cell(table, "%s%s%.40s", why_reason_text(detail->reason, detail->http_status, text),
                names_check(vote) ? " by " : "", names_check(vote) ? detail->check : "");
    render_cell(table, "%s",
                render_duration(detail->probe_age != NULL ? detail->probe_age : detail->age, text));
    render_cell(table, "%" PRIu32 "%s", detail->streak, is_of_then(vote) ? " then" : "");
    render_cell(table, "%s%s", for_text(vote, text), is_lost(vote) ? " then" : "");
    render_cell(table, "%s", render_duration(detail->response_time, text));
    put_meaning(table, vote);
}

void why_put_votes(struct ctl *ctl, const Jury__V1__WhyResponse *why)
{
    static const struct render_column columns[] = {
        {"NODE", false},    {"VOTE", false},   {"STANDING", false}, {"HEARD", true},
        {"REASON", false},  {"PROBED", true},  {"STREAK", true},    {"FOR", true},
        {"RESPONSE", true}, {"MEANING", false}};
    struct render_table *table = render_table_new(columns, 10);
    char text[RENDER_TEXT_BYTES];

    for (size_t i = 0; i < why->n_votes; i++) {
        const Jury__V1__NodeVote *vote = why->votes[i];

        render_row(table);
        render_cell(table, "%" PRIu64 "%s", vote->node_id, vote->is_self ? " (this)" : "");
        render_cell(table, "%s", opinion_word((enum opinion)vote->opinion));
        render_cell_color(table, why_opinion_color(vote->opinion));
        render_cell(table, "%s", standing_text(vote, text));
        render_cell(table, "%s", render_duration(vote->age, text));
        put_detail(table, vote);
    }
    render_table_print(ctl, table);
}

static bool is_counted(const Jury__V1__NodeVote *vote, enum opinion opinion)
{
    return vote->standing == JURY__V1__VOTE_STANDING__VOTE_STANDING_COUNTED &&
           (enum opinion)vote->opinion == opinion;
}

size_t why_list_nodes(const Jury__V1__WhyResponse *why, enum opinion opinion,
                      char text[RENDER_TEXT_BYTES])
{
    size_t n_all = 0;
    size_t n = 0;

    for (size_t i = 0; i < why->n_votes; i++) {
        n_all += is_counted(why->votes[i], opinion);
    }
    size_t used = (size_t)snprintf(text, RENDER_TEXT_BYTES, n_all == 1 ? "node" : "nodes");
    for (size_t i = 0; i < why->n_votes && used < RENDER_TEXT_BYTES; i++) {
        if (!is_counted(why->votes[i], opinion)) {
            continue;
        }
        const char *between = n == 0 ? " " : n + 1 == n_all ? " and " : ", ";
        used += (size_t)snprintf(text + used, RENDER_TEXT_BYTES - used, "%s%" PRIu64, between,
                                 why->votes[i]->node_id);
        n++;
    }
    return n_all;
}

void why_put_disagreement(FILE *out, const Jury__V1__WhyResponse *why)
{
    char passing[RENDER_TEXT_BYTES];
    char failing[RENDER_TEXT_BYTES];

    if (why_list_nodes(why, OPINION_PASS, passing) > 0 &&
        why_list_nodes(why, OPINION_FAIL, failing) > 0) {
        fprintf(out, "\nthe nodes disagree: it passes for %s and fails for %s\n", passing, failing);
    }
}

const char *why_check_of(const Jury__V1__WhyResponse *why, Jury__V1__ProbeReason reason)
{
    for (size_t i = 0; i < why->n_votes; i++) {
        const Jury__V1__NodeVote *vote = why->votes[i];

        if (is_counted(vote, OPINION_FAIL) && vote->detail != NULL &&
            vote->detail->reason == reason) {
            return vote->detail->check;
        }
    }
    return "";
}
