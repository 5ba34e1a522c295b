/* Any bytes as layout, state and root file: refused with a sentence, or safe to walk over. The
 * first byte chooses the file. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/fwd_layout.h"
#include "agent/table/table_layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static uint64_t walk(const struct table_layout *layout)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < layout->header->n_listeners; i++) {
        sum += table_layout_scope(layout, table_layout_listener(layout, i)->scope)->row;
    }
    for (uint32_t i = 0; i < layout->header->n_scopes; i++) {
        const struct jury_scope *scope = table_layout_scope(layout, i);

        sum += strlen(scope->name);
        for (uint32_t k = 0; k < scope->n_slots; k++) {
            uint16_t member = table_layout_slots(layout, scope)[k];

            if (member != JURY_NO_MEMBER) {
                sum += table_layout_member(layout, scope->first_member + member)->weight;
            }
        }
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static volatile uint64_t sink;
    struct errmsg err = {{0}};
    struct table_layout layout;

    if (n_bytes == 0) {
        return 0;
    }
    uint8_t *bytes = malloc(n_bytes); /* aligned, and ends where the bytes end */
    memcpy(bytes, data + 1, n_bytes - 1);
    n_bytes--;
    if (data[0] % 3 == 0 && n_bytes >= sizeof(struct jury_layout)) {
        /* The checksum is for damage: get past it. */
        uint32_t crc = fwd_layout_crc(bytes, n_bytes);
        memcpy(bytes + offsetof(struct jury_layout, crc32c), &crc, sizeof crc);
    }
    if (data[0] % 3 == 0) {
        if (table_layout_check(bytes, n_bytes, "layout", &layout, &err) == 0) {
            sink = walk(&layout);
        } else {
            assert(err.text[0] != '\0');
        }
    } else if (data[0] % 3 == 1) {
        assert(table_state_check(bytes, n_bytes, 16, "state", &err) == 0 || err.text[0] != '\0');
    } else {
        assert(table_root_check(bytes, n_bytes, &err) == 0 || err.text[0] != '\0');
    }
    free(bytes);
    (void)sink;
    return 0;
}
