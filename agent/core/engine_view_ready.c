/* What readiness asks the engine: its votes, and how far it trusts its own probes. */
#include "agent/core/engine_state.h"
#include "agent/core/engine_view.h"
#include "common/model/doubt.h"

bool engine_votes_suffice(const struct engine *engine, uint64_t now_ns, struct errmsg *ret_text)
{
    struct engine_status status;

    engine_view_status(engine, now_ns, &status);
    bool is_enough = status.n_trusted >= status.quorum;
    ret_text->text[0] = '\0';
    if (status.n_trusted < status.n_fresh) {
        errmsg_set(ret_text, 0,
                   "%u of %u observers are fresh, %u of them doubt their own probes; %u are needed",
                   status.n_fresh, status.n_observers, status.n_fresh - status.n_trusted,
                   status.quorum);
    } else if (!is_enough) {
        errmsg_set(ret_text, 0, "votes of %u of %u observers are fresh, %u are needed",
                   status.n_fresh, status.n_observers, status.quorum);
    }
    return is_enough;
}

bool engine_probes_are_trusted(const struct engine *engine, struct errmsg *ret_text)
{
    struct doubt_look look;
    char text[DOUBT_SENTENCE_BYTES];

    ret_text->text[0] = '\0';
    if (engine->suspect_mask == 0) {
        return true;
    }
    self_doubt_look(&engine->doubt, &look);
    errmsg_set(ret_text, 0, "%s", doubt_sentence_format(engine->suspect_mask, look.causes, text));
    return false;
}
