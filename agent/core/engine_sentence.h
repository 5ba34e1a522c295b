/* The sentences of a backend view, from its values. Private to agent/core/engine_view.c. */
#ifndef JURY_CORE_ENGINE_SENTENCE_H
#define JURY_CORE_ENGINE_SENTENCE_H

#include "agent/core/engine_view.h"

/* view->sentence: the state and its ground. */
void engine_sentence_state(struct backend_view *view);
/* view->down and view->up: what would change the verdict (N6). tally: as judged. */
void engine_sentence_next(struct backend_view *view, const struct tally *tally);
/* engine_view_checks.c: results in a row until this node's own vote of several checks fails
 * (passes); of so many checks each, *ret_n_parts. 0 = it does. */
uint8_t engine_checks_distance(const struct backend_view *view, bool fails, uint8_t *ret_n_parts);

#endif
