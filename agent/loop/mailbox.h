/* A one-slot mailbox for immutable, counted values: the newest wins, nobody waits.
 *
 * A put replaces what was not taken yet and drops it; so a reader that comes late sees only the
 * newest catalog, key table or target list. Several threads may put, one takes. The mailbox wakes
 * nobody: see wake.h. */
#ifndef JURY_LOOP_MAILBOX_H
#define JURY_LOOP_MAILBOX_H

#include <stdatomic.h>

typedef void (*mailbox_drop)(void *value);

struct mailbox {
    _Atomic(void *) slot;
    mailbox_drop drop;
};

/* drop: releases one reference of a value nobody will take; called on the thread of the put that
 * replaced it, or of mailbox_close. */
void mailbox_init(struct mailbox *mailbox, mailbox_drop drop);
/* When no other thread uses it any more. */
void mailbox_close(struct mailbox *mailbox);

/* value: one reference, taken; not NULL. */
void mailbox_put(struct mailbox *mailbox, void *value);
/* The newest value, its reference given to the caller; NULL when nothing came since the last. */
void *mailbox_take(struct mailbox *mailbox);

#endif
