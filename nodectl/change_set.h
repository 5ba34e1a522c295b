/* A change set on its way: what apply and the verbs that delete send, and the words for what became
 * of it. */
#ifndef JURY_NODECTL_CHANGE_SET_H
#define JURY_NODECTL_CHANGE_SET_H

#include <stddef.h>

#include "common/spec/spec.h"
#include "common/wire/arena.h"
#include "jury/v1/config.pb-c.h"
#include "nodectl/ctl.h"

/* Zero-initialise; change_set_close in every case. */
struct change_set {
    struct wire_arena arena;
    Jury__V1__ApplyRequest request;
    struct rpc_result result;
};

/* A request of so many empty documents, with what --dry-run, --force and --expected-revision say.
 * Errors: ERR_USAGE (--expected-revision with several), ERR_LIMIT. */
int change_set_init(struct ctl *ctl, struct change_set *changes, size_t n_documents);
/* Make a document that of the object. */
void change_put_object(struct wire_arena *arena, const struct spec_document *from,
                       Jury__V1__Document *to);
/* Make a document the deletion of an object; of a node, name is its id in digits. */
int change_set_delete(struct ctl *ctl, struct change_set *changes, size_t index,
                      Jury__V1__ObjectKind kind, const char *name);
/* documents: where those of the request stand, for the sentence of a refusal; NULL: nowhere. */
int change_set_send(struct ctl *ctl, struct change_set *changes, const struct spec_set *documents);
/* Once it was sent. */
const Jury__V1__ApplyResponse *change_set_answer(const struct change_set *changes);
void change_set_close(struct change_set *changes);

const char *change_plan_word(Jury__V1__ApplyAction action); /* "create": what a dry run would do */
const char *change_done_word(Jury__V1__ApplyAction action); /* "created" */

#endif
