#include "agent/table/boot_id.h"

#include <stdio.h>
#include <string.h>

#include "common/base/str.h"

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

int boot_id_read(struct boot_id *ret_boot_id, struct errmsg *err)
{
    char text[64] = "";
    char digits[33];
    size_t n_digits = 0;
    FILE *file = fopen(BOOT_ID_FILE, "re");
    bool is_read = file != NULL && fgets(text, sizeof text, file) != NULL;

    if (file != NULL) {
        fclose(file);
    }
    for (const char *at = text; is_read && *at != '\0' && *at != '\n'; at++) {
        if (*at != '-' && n_digits < sizeof digits - 1) {
            digits[n_digits++] = *at;
        }
    }
    digits[n_digits] = '\0';
    if (!is_read || !str_unhex(digits, ret_boot_id->bytes, sizeof ret_boot_id->bytes)) {
        return errmsg_set(err, ERR_IO, "%s: the machine's boot id can not be read", BOOT_ID_FILE);
    }
    return 0;
}

void boot_id_words(const struct boot_id *boot_id, uint64_t *ret_low, uint64_t *ret_high)
{
    memcpy(ret_low, boot_id->bytes, 8);
    memcpy(ret_high, boot_id->bytes + 8, 8);
}
