/* From a catalog to the bytes of a layout file (agent/table/jury_table.h): a pure function, made
 * for a pool thread. Equal catalogs give equal bytes on every node. */
#ifndef JURY_CORE_FWD_LAYOUT_H
#define JURY_CORE_FWD_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "agent/core/catalog.h"
#include "agent/table/jury_table.h"
#include "common/base/err.h"

/* The records as they shall stand in the file. What the builder fills in itself (select_id,
 * first_slot, n_slots) may be anything. Members of a scope are consecutive. */
struct fwd_source {
    uint64_t revision;
    struct cluster_id cluster_id;
    uint32_t n_rows;
    const struct jury_listener *listeners;
    uint32_t n_listeners;
    const struct jury_scope *scopes; /* sorted by name, so that the last layout can be used */
    uint32_t n_scopes;
    const struct jury_member *members;
    uint32_t n_members;
};

struct fwd_layout {
    uint8_t *bytes; /* fwd_layout_close frees them */
    size_t n_bytes;
};

/* last: a layout of this function, or NULL: selection arrays of scopes with the same members and
 * weights are copied from it, so that a small change costs a small change; the bytes are the same
 * either way. Errors: ERR_NOMEM, ERR_LIMIT (a scope with more than 65534 members). */
int fwd_layout_build(const struct fwd_source *source, const struct fwd_layout *last,
                     struct fwd_layout *ret_layout, struct errmsg *err);
int fwd_layout_from_catalog(const struct catalog *catalog, const struct fwd_layout *last,
                            struct fwd_layout *ret_layout, struct errmsg *err);
void fwd_layout_close(struct fwd_layout *layout);

/* An endpoint as the table writes it, and back. */
void fwd_endpoint_put(const struct endpoint *from, struct jury_endpoint *to);
void fwd_endpoint_get(const struct jury_endpoint *from, struct endpoint *to);

/* CRC of a layout's bytes, as it stands in its header. n_bytes: at least the header. */
uint32_t fwd_layout_crc(const uint8_t *bytes, size_t n_bytes);

#endif
