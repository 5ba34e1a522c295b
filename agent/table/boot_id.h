/* This machine's boot id: deadlines in CLOCK_BOOTTIME mean something within one boot only. */
#ifndef JURY_TABLE_BOOT_ID_H
#define JURY_TABLE_BOOT_ID_H

#include <stdint.h>

#include "common/base/err.h"

struct boot_id {
    uint8_t bytes[16];
};

/* Errors: ERR_IO. */
int boot_id_read(struct boot_id *ret_boot_id, struct errmsg *err);
/* As the two words of the root and status files. */
void boot_id_words(const struct boot_id *boot_id, uint64_t *ret_low, uint64_t *ret_high);

#endif
