/* The sentences of a backend view, from its values. Private to agent/core/engine_view.c. */
#ifndef JURY_CORE_ENGINE_SENTENCE_H
#define JURY_CORE_ENGINE_SENTENCE_H

#include "agent/core/engine_view.h"

/* view->sentence: the state and its ground. */
void engine_sentence_state(struct backend_view *view);
/* view->down and view->up: what would change the verdict (N6). tally: as judged. */
void engine_sentence_next(struct backend_view *view, const struct tally *tally);

#endif
