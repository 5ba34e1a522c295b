/* A Raft entry of any bytes: refused, or a command that has exactly these bytes (if they are of
 * this minor version) and that check and apply answer alike. */
#include <stdlib.h>
#include <string.h>

#include "common/model/feature_level.h"
#include "tests/lib/catalog_builder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static void encode_again(const struct command *command, const uint8_t *data, size_t size)
{
    uint8_t *again;
    size_t n_bytes;

    must(command_encode(command, &again, &n_bytes, NULL) == 0);
    must(n_bytes == size && memcmp(again, data, size) == 0);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct command command;
    struct apply_answer checked;
    struct apply_answer applied;

    if (command_decode(data, size, &command, NULL) != 0) {
        return 0;
    }
    if (data[5] >= FEATURE_LEVEL_BASE) { /* an older minor is written anew as the base */
        encode_again(&command, data, size);
    }
    struct catalog_state *state = build_state(3);
    catalog_check(state, &command, &checked);
    catalog_apply(state, &command, &applied);
    must(memcmp(&checked, &applied, sizeof checked) == 0);
    command_close(&command);
    catalog_state_free(state);
    return 0;
}
