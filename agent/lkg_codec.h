/* Verdicts and deadlines as chunks of the last-known-good file: fixed-width little-endian records
 * behind a version word. Pure. A chunk is whole or refused. */
#ifndef JURY_AGENT_LKG_CODEC_H
#define JURY_AGENT_LKG_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "agent/core/last_known_good.h"
#include "common/base/err.h"

/* ret_data: given, free(). Errors: ERR_NOMEM. */
int lkg_encode_verdicts(const struct kept_verdict verdicts[], size_t n_verdicts, uint8_t **ret_data,
                        size_t *ret_n_bytes);
int lkg_encode_deadlines(const struct kept_deadline deadlines[], size_t n_deadlines,
                         uint8_t **ret_data, size_t *ret_n_bytes);

/* ret_...: given, free(); at least one element is allocated. Errors: ERR_VERSION (unknown major),
 * ERR_CORRUPT (size, or a value out of range), ERR_NOMEM. */
int lkg_decode_verdicts(const uint8_t *data, size_t n_bytes, struct kept_verdict **ret_verdicts,
                        size_t *ret_n_verdicts);
int lkg_decode_deadlines(const uint8_t *data, size_t n_bytes, struct kept_deadline **ret_deadlines,
                         size_t *ret_n_deadlines);

#endif
