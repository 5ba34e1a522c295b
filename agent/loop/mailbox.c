#include "agent/loop/mailbox.h"

#include <assert.h>
#include <stddef.h>

void mailbox_init(struct mailbox *mailbox, mailbox_drop drop)
{
    assert(drop != NULL);
    atomic_init(&mailbox->slot, NULL);
    mailbox->drop = drop;
}

void mailbox_close(struct mailbox *mailbox)
{
    void *value = mailbox_take(mailbox);

    if (value != NULL) {
        mailbox->drop(value);
    }
}

void mailbox_put(struct mailbox *mailbox, void *value)
{
    assert(value != NULL);
    /* Release: what the value points to was written before. Acquire: the reader of the replaced
     * one is never anybody else than this thread now. */
    void *replaced = atomic_exchange_explicit(&mailbox->slot, value, memory_order_acq_rel);
    if (replaced != NULL) {
        mailbox->drop(replaced);
    }
}

void *mailbox_take(struct mailbox *mailbox)
{
    return atomic_exchange_explicit(&mailbox->slot, NULL, memory_order_acq_rel);
}
