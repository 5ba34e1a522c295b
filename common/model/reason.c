#include "common/model/reason.h"

#include <stddef.h>

#include "common/model/check.h"

struct reason_row {
    unsigned number;
    enum probe_class class;
    const char *word;
    const char *sentence;
};

static const struct reason_row reason_rows[] = {
#define REASON_ROW(name, number, class, word, sentence) {number, class, word, sentence},
    PROBE_REASONS(REASON_ROW)
#undef REASON_ROW
};

static const struct reason_row *find_reason(unsigned reason)
{
    for (size_t i = 0; i < sizeof reason_rows / sizeof reason_rows[0]; i++) {
        if (reason_rows[i].number == reason) {
            return &reason_rows[i];
        }
    }
    return NULL;
}

const char *probe_reason_word(unsigned reason)
{
    const struct reason_row *row = find_reason(reason);

    return row != NULL ? row->word : "UNKNOWN_REASON";
}

const char *probe_reason_sentence(unsigned reason)
{
    const struct reason_row *row = find_reason(reason);

    return row != NULL ? row->sentence : "a reason that this version does not know";
}

const char *probe_reason_sentence_of(unsigned reason, unsigned check_type)
{
    /* UDP has no connection that could be refused, or be there. */
    if (check_type == CHECK_TYPE_UDP && reason == REASON_RECV_RESPONSE_TIMEOUT) {
        return "no answer to the datagram within the timeout";
    }
    if (check_type == CHECK_TYPE_UDP && reason == REASON_CONNECT_FAILED) {
        return "the address is unreachable";
    }
    if (check_type != CHECK_TYPE_NONE && reason == REASON_RECV_RESPONSE_TIMEOUT) {
        return "connected, but no complete answer within the timeout";
    }
    return probe_reason_sentence(reason);
}

static char upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

/* By no locale, which strcasecmp would ask. word: in capitals. */
static bool is_same_word(const char *word, const char *other)
{
    size_t i = 0;

    while (word[i] != '\0' && word[i] == upper(other[i])) {
        i++;
    }
    return word[i] == '\0' && other[i] == '\0';
}

unsigned probe_reason_find(const char *word)
{
    for (size_t i = 0; i < sizeof reason_rows / sizeof reason_rows[0]; i++) {
        if (is_same_word(reason_rows[i].word, word)) {
            return reason_rows[i].number;
        }
    }
    return REASON_NONE;
}

enum probe_class probe_reason_class(unsigned reason)
{
    const struct reason_row *row = find_reason(reason);

    return row != NULL ? row->class : PROBE_CLASS_NONE;
}

const char *opinion_word(enum opinion opinion)
{
    switch (opinion) {
    case OPINION_NONE:
        return "none";
    case OPINION_PASS:
        return "pass";
    case OPINION_FAIL:
        return "fail";
    }
    return "?";
}

const char *health_state_word(enum health_state state)
{
    switch (state) {
    case HEALTH_NONE:
        return "none";
    case HEALTH_INITIAL:
        return "initial";
    case HEALTH_HEALTHY:
        return "healthy";
    case HEALTH_UNHEALTHY:
        return "unhealthy";
    case HEALTH_UNAVAILABLE:
        return "unavailable";
    case HEALTH_UNUSED:
        return "unused";
    }
    return "?";
}

const char *group_state_word(enum group_state state)
{
    switch (state) {
    case GROUP_NONE:
        return "none";
    case GROUP_OK:
        return "ok";
    case GROUP_DEGRADED:
        return "degraded";
    case GROUP_FAIL_OPEN:
        return "fail-open";
    case GROUP_CLOSED:
        return "closed";
    }
    return "?";
}
