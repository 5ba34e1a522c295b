#include "agent/core/engine_sentence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"

#define RULE_TEXT 64

static void append(char *text, size_t text_bytes, const char *more)
{
    size_t used = strlen(text);

    snprintf(text + used, text_bytes - used, "%s", more);
}

/* "; 2 of 3 zones fail" */
static void say_zones(struct backend_view *view, bool is_down)
{
    unsigned n = is_down ? view->n_zones_fail : view->n_zones_pass;
    char text[48];

    snprintf(text, sizeof text, "; %u of %u zones %s", n, view->n_zones,
             is_down ? (n == 1 ? "fails" : "fail") : (n == 1 ? "passes" : "pass"));
    append(view->sentence, sizeof view->sentence, text);
}

/* "rule majority", "rule majority, below quorum local" where the own vote decides by the latter. */
static char *own_rule_text(const struct backend_view *view, char text[2 * RULE_TEXT])
{
    char rule[RULE_TEXT];
    bool is_local = view->rule.down.kind == RULE_LOCAL || view->rule.up.kind == RULE_LOCAL;

    snprintf(text, 2 * RULE_TEXT, "rule %s%s", verdict_rule_format(&view->rule, rule, sizeof rule),
             is_local ? "" : ", below quorum local");
    return text;
}

static const char *own_vote_text(uint8_t opinion)
{
    return opinion == OPINION_FAIL   ? "this node's own vote fails"
           : opinion == OPINION_PASS ? "this node's own vote passes"
                                     : "this node's own vote decides";
}

/* Under rule local the votes of others are no ground: none of them is counted out. */
static void say_own_vote(struct backend_view *view)
{
    char rule[2 * RULE_TEXT];
    bool has_reason = view->own == OPINION_FAIL && view->reason != REASON_NONE;

    snprintf(view->sentence, sizeof view->sentence, "%s%s %s (%s)%s%s",
             health_state_word((enum health_state)view->health_state),
             view->is_against_votes ? ", though" : ":", own_vote_text(view->own),
             own_rule_text(view, rule), has_reason ? ", " : "",
             has_reason ? probe_reason_word(view->reason) : "");
}

static void say_votes(struct backend_view *view)
{
    char rule[RULE_TEXT];
    /* Of one that waits to return, the votes say so already: those are what there is to tell. */
    bool tells_fails =
        (view->health_state == HEALTH_UNHEALTHY && !view->is_returning) || view->is_against_votes;
    unsigned n = tells_fails ? view->n_fail : view->n_pass;
    bool has_reason = tells_fails && n > 0 && view->reason != REASON_NONE;

    if (view->is_by_own) {
        say_own_vote(view);
        return;
    }
    snprintf(view->sentence, sizeof view->sentence, "%s%s %u of %u counted votes %s (rule %s)%s%s",
             health_state_word((enum health_state)view->health_state),
             view->is_against_votes ? ", though" : ":", n, view->n_counted,
             tells_fails ? (n == 1 ? "fails" : "fail") : (n == 1 ? "passes" : "pass"),
             verdict_rule_format(&view->rule, rule, sizeof rule), has_reason ? ", mostly " : "",
             has_reason ? probe_reason_word(view->reason) : "");
    if (view->n_zones > 0) {
        say_zones(view, tells_fails);
    }
}

static void say_returning(struct backend_view *view)
{
    char text[160];
    char left[32];

    if (!view->is_damped) {
        append(view->sentence, sizeof view->sentence,
               "; pending: the votes bring it back when the group's limit on returns lets it");
        return;
    }
    snprintf(
        text, sizeof text,
        "; flapping: went down again %u %s in 10 minutes, returns if the votes stay for %s",
        view->n_flaps, view->n_flaps == 1 ? "time" : "times",
        units_format_span_us((view->damped_ns + NS_PER_US - 1) / NS_PER_US, left, sizeof left));
    append(view->sentence, sizeof view->sentence, text);
}

static void say_held(struct backend_view *view)
{
    char text[96];
    bool lacks_votes = view->n_counted < view->quorum;

    if ((view->held_causes & HELD_FEW_VOTES) != 0 && !lacks_votes) {
        snprintf(text, sizeof text, "; held: %u of %u zones have a vote here, %u are needed",
                 view->n_zones_heard, view->n_zones, view->n_zones / 2U + 1);
        append(view->sentence, sizeof view->sentence, text);
    }
    if ((view->held_causes & HELD_FEW_VOTES) != 0 && lacks_votes) {
        snprintf(text, sizeof text, "; held: %u of %u observers have a vote here, %u are needed",
                 view->n_counted, view->n_observers, view->quorum);
        append(view->sentence, sizeof view->sentence, text);
    }
    if ((view->held_causes & HELD_NO_OWN_VOTE) != 0) {
        append(view->sentence, sizeof view->sentence, "; held: this node has no vote of its own");
    }
    if ((view->held_causes & HELD_CHECK_CHANGED) != 0) {
        append(view->sentence, sizeof view->sentence, "; held: check changed, no new verdict yet");
    }
    if (view->is_returning) {
        say_returning(view);
    } else if ((view->marks & MARK_PENDING) != 0) {
        append(view->sentence, sizeof view->sentence,
               "; pending: the votes take it out when the group's velocity limit lets it");
    }
    if ((view->held_causes & HELD_BY_SHADOW) != 0) {
        append(view->sentence, sizeof view->sentence,
               "; held: the changed check is in its shadow, so its votes take nothing out");
    }
    if ((view->held_causes & HELD_BY_HOLD) != 0) {
        append(view->sentence, sizeof view->sentence,
               "; held: hold is on, so the votes take nothing out");
    }
    if ((view->held_causes & HELD_LAST_KNOWN_GOOD) != 0) {
        append(view->sentence, sizeof view->sentence,
               "; held: known from before this agent's start");
    }
}

static void say_initial(struct backend_view *view)
{
    char rule[2 * RULE_TEXT];

    if (view->is_by_own) {
        snprintf(view->sentence, sizeof view->sentence, "initial: no verdict yet, %s (%s)",
                 own_vote_text(view->own), own_rule_text(view, rule));
    } else {
        snprintf(view->sentence, sizeof view->sentence,
                 "initial: no verdict yet, %u of %u observers have a vote", view->n_counted,
                 view->n_observers);
    }
}

void engine_sentence_state(struct backend_view *view)
{
    switch ((enum health_state)view->health_state) {
    case HEALTH_NONE:
    case HEALTH_INITIAL:
        say_initial(view);
        break;
    case HEALTH_HEALTHY:
    case HEALTH_UNHEALTHY:
        say_votes(view);
        break;
    case HEALTH_UNAVAILABLE:
        snprintf(view->sentence, sizeof view->sentence,
                 "unavailable: health checks are off, used as healthy");
        return;
    case HEALTH_UNUSED:
        snprintf(view->sentence, sizeof view->sentence, "unused: in maintenance, not probed");
        return;
    }
    say_held(view);
    if ((view->marks & MARK_GRAY) != 0) {
        append(view->sentence, sizeof view->sentence,
               "; gray: the votes are tied, this node follows its own probes");
    }
    if ((view->marks & MARK_DEGRADED) != 0) {
        append(view->sentence, sizeof view->sentence, "; degraded: a dependency of it is down");
    }
    if (view->is_unreachable) {
        append(view->sentence, sizeof view->sentence,
               "; unreachable from here: this node's own probes fail");
    }
}

/* Results in a row that this node's own opinion is away from `to`. */
static uint8_t own_distance(const struct backend_view *view, const struct tally *tally,
                            enum health_state to)
{
    bool fails = to == HEALTH_UNHEALTHY;
    uint8_t threshold = fails ? view->unhealthy_threshold : view->healthy_threshold;
    uint32_t streak = fails ? view->fail_streak : view->pass_streak;

    if (view->n_local > 1) {
        uint8_t n_parts;

        return engine_checks_distance(view, fails, &n_parts);
    }
    if (tally_own_rests(tally) || tally->own_opinion == (fails ? OPINION_FAIL : OPINION_PASS)) {
        return 0;
    }
    return (uint8_t)(streak < threshold ? threshold - streak : 1);
}

/* ", such as of nodes 4 and 5": with zones not every vote helps as much. */
static void say_whose(const struct backend_view *view, uint64_t moved, char text[96])
{
    unsigned left = (unsigned)__builtin_popcountll(moved);
    int used = snprintf(text, 96, left == 1 ? ", such as of node" : ", such as of nodes");

    for (unsigned i = 0; i < view->n_votes && used < 64; i++) {
        if ((moved >> view->votes[i].index & 1) == 0) {
            continue;
        }
        left--;
        used += snprintf(text + used, (size_t)(96 - used), " %" PRIu64 "%s", view->votes[i].node_id,
                         left > 1    ? ","
                         : left == 1 ? " and"
                                     : "");
    }
    if (left > 0 && used < 96) {
        snprintf(text + used, (size_t)(96 - used), " %u more", left);
    }
}

static bool is_own_column(const struct backend_view *view, enum health_state to)
{
    return (to == HEALTH_UNHEALTHY ? view->rule.down.kind : view->rule.up.kind) == RULE_LOCAL;
}

/* "", or of how many checks those results must be. */
static const char *of_checks(const struct backend_view *view, enum health_state to, char text[32])
{
    uint8_t n_parts = 0;

    text[0] = '\0';
    if (view->n_local > 1) {
        engine_checks_distance(view, to == HEALTH_UNHEALTHY, &n_parts);
        snprintf(text, 32, n_parts == 1 ? " of one check" : " of each of %u checks", n_parts);
    }
    return text;
}

/* Under rule local one vote is asked, and no other would help. */
static void say_own_need(const struct backend_view *view, const char *kind, const char *rule,
                         struct next_change *next)
{
    const char *to = health_state_word((enum health_state)next->to);
    char of[32];

    if (next->own_results > 0) {
        snprintf(next->sentence, sizeof next->sentence,
                 "goes %s when this node's own vote turns to %s, after %u more in a row%s (now %s, "
                 "rule %s)",
                 to, kind, next->own_results, of_checks(view, (enum health_state)next->to, of),
                 opinion_word((enum opinion)view->own), rule);
    } else {
        snprintf(next->sentence, sizeof next->sentence,
                 "goes %s when this node's own vote to %s counts (now %s, rule %s)", to, kind,
                 opinion_word((enum opinion)view->own), rule);
    }
}

static void say_need(const struct backend_view *view, const struct verdict_need *need,
                     struct next_change *next)
{
    const char *to = health_state_word((enum health_state)next->to);
    const char *kind = next->to == HEALTH_UNHEALTHY ? "fail" : "pass";
    char rule[RULE_TEXT];
    char whose[96] = "";
    verdict_rule_format(&view->rule, rule, sizeof rule);
    if (!need->is_possible) {
        snprintf(next->sentence, sizeof next->sentence,
                 "no votes could make it %s now (rule %s, %u observers)", to, rule,
                 view->n_observers);
        return;
    }
    if (is_own_column(view, (enum health_state)next->to)) {
        say_own_need(view, kind, rule, next);
        return;
    }
    if (need->needs_own) {
        snprintf(whose, sizeof whose, ", this node's own among them");
    } else if (need->moved != 0) {
        say_whose(view, need->moved, whose);
    }
    snprintf(next->sentence, sizeof next->sentence,
             "goes %s with %u more %s to %s%s (now %u fail, %u pass of %u, rule %s)", to,
             next->votes, next->votes == 1 ? "vote" : "votes", kind, whose, view->n_fail,
             view->n_pass, view->n_observers, rule);
    if (view->n_zones > 0) {
        char zones[64];

        snprintf(zones, sizeof zones, "; of %u zones %u fail, %u pass", view->n_zones,
                 view->n_zones_fail, view->n_zones_pass);
        append(next->sentence, sizeof next->sentence, zones);
    }
    if (next->own_results > 0) {
        char own[112], of[32];

        snprintf(own, sizeof own, "; this node's own vote turns to %s after %u more in a row%s",
                 kind, next->own_results, of_checks(view, (enum health_state)next->to, of));
        append(next->sentence, sizeof next->sentence, own);
    }
}

static void find_next(const struct backend_view *view, const struct tally *tally,
                      enum health_state to, struct next_change *next)
{
    *next = (struct next_change){.to = (uint8_t)to};
    if (view->target.slot == CATALOG_NO_SLOT) {
        snprintf(next->sentence, sizeof next->sentence,
                 view->health_state == HEALTH_UNUSED
                     ? "not probed in maintenance: `nodectl backend ready` ends it"
                     : "not probed: health checks are off");
        return;
    }
    if (view->health_state == to && view->held_causes == 0 && (view->marks & MARK_GRAY) == 0) {
        next->is_possible = true;
        snprintf(next->sentence, sizeof next->sentence, "is %s",
                 health_state_word((enum health_state)to));
        return;
    }
    if (to == HEALTH_HEALTHY && view->is_returning) {
        next->is_possible = true;
        snprintf(next->sentence, sizeof next->sentence, "%s",
                 view->is_damped
                     ? "goes healthy when its hold time is over: the votes say so already"
                     : "goes healthy when its turn comes: the votes say so already");
        return;
    }
    if (to == HEALTH_UNHEALTHY && (view->held_causes & HELD_BY_SHADOW) != 0) {
        next->is_possible = true;
        snprintf(next->sentence, sizeof next->sentence,
                 "goes unhealthy when the shadow of the changed check ends: the votes say so "
                 "already");
        return;
    }
    if (to == HEALTH_UNHEALTHY && (view->marks & MARK_PENDING) != 0 && !view->is_returning) {
        next->is_possible = true;
        snprintf(next->sentence, sizeof next->sentence,
                 "goes unhealthy when its turn comes: the votes say so already");
        return;
    }
    if (to == HEALTH_UNHEALTHY && (view->held_causes & HELD_BY_HOLD) != 0) {
        next->is_possible = true;
        snprintf(next->sentence, sizeof next->sentence,
                 "goes unhealthy when hold ends: the votes say so already");
        return;
    }
    struct verdict_need need = verdict_need(&view->rule, tally, to);
    next->is_possible = need.is_possible;
    next->votes = (uint8_t)(need.n_turned + need.n_new);
    next->own_results = own_distance(view, tally, to);
    say_need(view, &need, next);
}

void engine_sentence_next(struct backend_view *view, const struct tally *tally)
{
    find_next(view, tally, HEALTH_UNHEALTHY, &view->down);
    find_next(view, tally, HEALTH_HEALTHY, &view->up);
}
