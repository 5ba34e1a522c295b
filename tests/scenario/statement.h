/* Statements by file, and what they share. Private to this folder's .c files. */
#ifndef JURY_TESTS_SCENARIO_STATEMENT_H
#define JURY_TESTS_SCENARIO_STATEMENT_H

#include "tests/scenario/script.h"

/* statement_catalog.c */
void statement_vote_interval(struct scenario *scenario, const char *text);
void statement_zones(struct scenario *scenario);
void statement_group(struct scenario *scenario);
void statement_weight(struct scenario *scenario);
void statement_hold(struct scenario *scenario);
void statement_admin(struct scenario *scenario);
void statement_churn(struct scenario *scenario);

/* golden.c */
void statement_golden(struct scenario *scenario);
void statement_ask(struct scenario *scenario);

#endif
