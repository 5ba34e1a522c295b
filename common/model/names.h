/* The words of documents, API and output for the model's enums: one table each, used by the
 * document reader, the encoder, help texts and nodectl. */
#ifndef JURY_MODEL_NAMES_H
#define JURY_MODEL_NAMES_H

#include <stddef.h>

struct name_row {
    unsigned value;
    const char *word;
};

struct name_table {
    const char *what; /* "scheduler" */
    const struct name_row *rows;
    size_t n_rows;
};

extern const struct name_table names_profile, names_group_type, names_protocol, names_scheduler,
    names_admin_state, names_all_bad, names_failover, names_check_type, names_check_class,
    names_tcp_handshake, names_tcp_close, names_tcp_on_timeout, names_http_method,
    names_http_version, names_http_host, names_udp_method, names_tls_verify, names_tls_version,
    names_pacing, names_check_source, names_rule, names_below_quorum, names_hold,
    names_guard_preset, names_graded_weight, names_raft_role, names_key_role;

/* The word, or "?" for a value that is not in the table. */
const char *names_word(const struct name_table *table, unsigned value);
/* The value, or 0 (never a valid choice) for an unknown word. */
unsigned names_value(const struct name_table *table, const char *word);
/* "a, b or c" for error sentences. Returns text. */
const char *names_list(const struct name_table *table, char *text, size_t text_bytes);

#endif
