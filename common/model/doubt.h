/* Why a node doubts its own probes (spec.md 5, R-SELF-1..5): the words of it.
 *
 * Numbers travel in votes, events and the API and are never reused. A set of causes has bit
 * 1 << cause for each. */
#ifndef JURY_MODEL_DOUBT_H
#define JURY_MODEL_DOUBT_H

#include <stdint.h>

/* X(name, number, word, sentence for people; "this node" is the one that doubts) */
#define DOUBT_CAUSES(X)                                                                          \
    X(DOUBT_LOOP_LATE, 1, "loop-late", "its loops stood still or are starved of processor time") \
    X(DOUBT_LOCAL_FAULTS, 2, "local-faults",                                                     \
      "it lacks descriptors, ports, memory or time for many of its probes")                      \
    X(DOUBT_LOOPBACK, 3, "loopback", "its probes of itself fail")                                \
    X(DOUBT_LOSSY, 4, "lossy", "its probes of most peers are lost")                              \
    X(DOUBT_ISOLATED, 5, "isolated", "it hears too few peers")                                   \
    X(DOUBT_CONTRADICTED, 6, "contradicted", "most peers reach what it cannot reach")

enum doubt_cause {
    DOUBT_NONE = 0,
#define DOUBT_ENUM(name, number, word, sentence) name = number,
    DOUBT_CAUSES(DOUBT_ENUM)
#undef DOUBT_ENUM
};

/* Unknown numbers (a newer peer's) answer "other" and a sentence that says so. */
const char *doubt_cause_word(unsigned cause);
const char *doubt_cause_sentence(unsigned cause);

/* "loop-late,isolated"; "none" for the empty set. Cut when it does not fit. Returns text. */
#define DOUBT_TEXT_BYTES 96
char *doubt_causes_format(uint32_t causes, char text[DOUBT_TEXT_BYTES]);
/* "tcp, http" of bits 1 << enum check_type. Returns text. */
#define DOUBT_KINDS_BYTES 64
char *doubt_kinds_format(uint32_t kinds, char text[DOUBT_KINDS_BYTES]);
/* "this node doubts its own tcp, http probes (loop-late): they count nowhere". Returns text. */
#define DOUBT_SENTENCE_BYTES 256
char *doubt_sentence_format(uint32_t kinds, uint32_t causes, char text[DOUBT_SENTENCE_BYTES]);

#endif
