#include "common/model/doubt.h"

#include <stdio.h>

#include "common/model/names.h"

const char *doubt_cause_word(unsigned cause)
{
    switch ((enum doubt_cause)cause) {
#define DOUBT_WORD(name, number, word, sentence) \
    case name:                                   \
        return word;
        DOUBT_CAUSES(DOUBT_WORD)
#undef DOUBT_WORD
    case DOUBT_NONE:
        break;
    }
    return "other";
}

const char *doubt_cause_sentence(unsigned cause)
{
    switch ((enum doubt_cause)cause) {
#define DOUBT_SENTENCE(name, number, word, sentence) \
    case name:                                       \
        return sentence;
        DOUBT_CAUSES(DOUBT_SENTENCE)
#undef DOUBT_SENTENCE
    case DOUBT_NONE:
        break;
    }
    return "for a cause that this version does not know";
}

char *doubt_causes_format(uint32_t causes, char text[DOUBT_TEXT_BYTES])
{
    size_t n = 0;

    snprintf(text, DOUBT_TEXT_BYTES, "none");
    for (unsigned cause = 1; cause < 32; cause++) {
        if ((causes >> cause & 1) != 0 && n < DOUBT_TEXT_BYTES) {
            n += (size_t)snprintf(text + n, DOUBT_TEXT_BYTES - n, "%s%s", n > 0 ? "," : "",
                                  doubt_cause_word(cause));
        }
    }
    return text;
}

char *doubt_kinds_format(uint32_t kinds, char text[DOUBT_KINDS_BYTES])
{
    size_t n = 0;

    text[0] = '\0';
    for (unsigned type = 0; type < 32 && n < DOUBT_KINDS_BYTES; type++) {
        if ((kinds >> type & 1) != 0) {
            n += (size_t)snprintf(text + n, DOUBT_KINDS_BYTES - n, "%s%s", n > 0 ? ", " : "",
                                  names_word(&names_check_type, type));
        }
    }
    return text;
}

char *doubt_sentence_format(uint32_t kinds, uint32_t causes, char text[DOUBT_SENTENCE_BYTES])
{
    char words[DOUBT_KINDS_BYTES];
    char why[DOUBT_TEXT_BYTES];

    snprintf(text, DOUBT_SENTENCE_BYTES,
             "this node doubts its own %s probes (%s): they count nowhere",
             doubt_kinds_format(kinds, words), doubt_causes_format(causes, why));
    return text;
}
