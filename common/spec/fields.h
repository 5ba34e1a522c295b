/* The tables of the kinds, private to common/spec: field.h hands them out. */
#ifndef JURY_SPEC_FIELDS_H
#define JURY_SPEC_FIELDS_H

#include <stddef.h>

#include "common/spec/field.h"

/* In a row of a table: where the field is in the struct, and how large. */
#define AT(struct_name, member)                               \
    .offset = (uint32_t)offsetof(struct struct_name, member), \
    .bytes = (uint32_t)sizeof(((struct struct_name *)0)->member)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

extern const struct spec_table spec_group_table, spec_group_metadata_table;
/* Of the one check of a group, and of several. */
extern const struct spec_table spec_check_table;
extern const struct spec_list spec_check_list;
extern const struct spec_table spec_listener_table, spec_listener_metadata_table;
extern const struct spec_table spec_settings_table;
extern const struct spec_table spec_node_table;
extern const struct spec_table spec_key_table, spec_key_metadata_table;

/* The switch of the cluster and that of a group differ in whom they hold. */
#define SPEC_HOLD_HELP(whose)                                                                    \
    "on: the votes take no backend of " whose " out of service, recoveries apply. Left out, it " \
    "stays as it is, so that applying a file does not end a hold that somebody has set with "    \
    "`nodectl hold set`."

#endif
