#include "common/model/doubt.h"

#include <stdio.h>

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
