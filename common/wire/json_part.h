/* Parts that both directions of ProtoJSON share: times as text, and the layout of protobuf-c's
 * arrays. Private to common/wire/json*.c. */
#ifndef JURY_WIRE_JSON_PART_H
#define JURY_WIRE_JSON_PART_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"

#define JSON_TIME_BYTES 48

/* "1.5s": at most nine digits behind the point, at most 10000 years. False: not such a time. */
bool json_duration_read(const char *text, Google__Protobuf__Duration *duration);
/* "2026-01-31T12:00:00.25+01:00" (RFC 3339), years 1 to 9999. */
bool json_timestamp_read(const char *text, Google__Protobuf__Timestamp *timestamp);
/* The same as text, with 0, 3, 6 or 9 digits behind the point; false when it is out of range. */
bool json_duration_write(const Google__Protobuf__Duration *duration, char text[JSON_TIME_BYTES]);
bool json_timestamp_write(const Google__Protobuf__Timestamp *timestamp, char text[JSON_TIME_BYTES]);

/* Size of one value in the array of a repeated field. */
size_t json_value_bytes(ProtobufCType type);

#endif
