/* The tables of the kinds, private to common/spec: field.h hands them out. */
#ifndef JURY_SPEC_FIELDS_H
#define JURY_SPEC_FIELDS_H

#include "common/spec/field.h"

extern const struct spec_table spec_group_table, spec_group_metadata_table;
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
