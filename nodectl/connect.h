/* Questions to a node: which one, with which key, and what its refusals become. */
#ifndef JURY_NODECTL_CONNECT_H
#define JURY_NODECTL_CONNECT_H

#include "nodectl/ctl.h"

/* One call of a method with this run's flags (endpoints, key, timeout, stale).
 *
 * result: zeroed before; rpc_result_close it in every case.
 * On failure the sentence, and for -o json the server's code, reason, metadata and request id, are
 * in ctl->failure; without a leader also what the node knows of its peers (case A45). */
int ctl_call(struct ctl *ctl, const char *method, const ProtobufCMessage *request,
             struct rpc_result *result);

/* The same for what is only good to know: a refusal is told to the caller and nobody else, and what
 * ctl->failure says stays. That nobody answers or leads (ERR_UNREACHABLE, ERR_TIMEOUT,
 * ERR_NOLEADER) is a failure like any other: the next question would wait as long. */
int ctl_try(struct ctl *ctl, const char *method, const ProtobufCMessage *request,
            struct rpc_result *result);

/* What a change has to read first could not be read, for nobody leads (ERR_NOLEADER, returned):
 * says that nothing was changed, and takes back the advice to read this node's own copy. */
int ctl_fail_unchanged(struct ctl *ctl);

/* All pages of a list as one answer.
 *
 * request has `page_token`, the answer `next_page_token` and one repeated field. */
struct ctl_list {
    struct rpc_result *results; /* owned; one a page */
    size_t n_results;
    ProtobufCMessage *whole; /* the first answer with the elements of all */
    void **elements;         /* owned; of `whole` */
};
int ctl_call_list(struct ctl *ctl, const char *method, ProtobufCMessage *request,
                  struct ctl_list *ret_list);
void ctl_list_close(struct ctl_list *list);

#endif
