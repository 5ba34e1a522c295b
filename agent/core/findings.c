#include "agent/core/findings.h"

#include "common/base/plant.h"

static enum cluster_word word_of(unsigned kind)
{
    switch ((enum finding_kind)kind) {
#define FINDING_WORD(name, number, word) \
    case FINDING_##name:                 \
        return word;
        FINDING_KINDS(FINDING_WORD)
#undef FINDING_WORD
    case FINDING_NONE:
        break;
    }
    return CLUSTER_DEGRADED; /* never better than that */
}

/* Of the words of findings, which is the worse. */
static unsigned badness(enum cluster_word word)
{
    switch (word) {
    case CLUSTER_HEALTHY:
        return 0;
    case CLUSTER_DEGRADED:
        return 1;
    case CLUSTER_UNAVAILABLE:
        return 2;
    case CLUSTER_UNKNOWN:
        break;
    }
    return 3;
}

enum cluster_word findings_word(const struct finding findings[], size_t n_findings)
{
    enum cluster_word worst = CLUSTER_HEALTHY;

    for (size_t i = 0; i < n_findings; i++) {
        enum cluster_word word = word_of(findings[i].kind);

        if (badness(word) > badness(worst)) {
            worst = word;
        }
    }
    return worst == CLUSTER_DEGRADED && plant_is("status-always-healthy") ? CLUSTER_HEALTHY : worst;
}

/* By insertion: they are few, and most come in order. */
void findings_sort(struct finding findings[], size_t n_findings)
{
    for (size_t i = 1; i < n_findings; i++) {
        struct finding moved = findings[i];
        size_t at = i;

        for (; at > 0 && findings[at - 1].kind > moved.kind; at--) {
            findings[at] = findings[at - 1];
        }
        findings[at] = moved;
    }
}
