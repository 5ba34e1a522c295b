/* Words of classes, policies and data planes, for stories and for what failing tests say. */
#ifndef JURY_TESTS_ROW_WORDS_H
#define JURY_TESTS_ROW_WORDS_H

/* enum row_class: "healthy", "unreachable", ...; "?" for an unknown number. */
const char *row_class_word(unsigned row_class);
/* enum flow_policy: "keep", "close-at", ... */
const char *flow_policy_word(unsigned flow_policy);
/* enum plane_state: "alive", "absent", ... */
const char *plane_state_word(unsigned plane_state);

#endif
