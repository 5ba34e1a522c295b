/* What a message of each kind may weigh. Private to the codec. */
#ifndef JURY_MESH_PEER_BOUNDS_H
#define JURY_MESH_PEER_BOUNDS_H

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "agent/mesh/peer_codec.h"
#include "common/wire/unpack.h"

#define PEER_MAGIC_0 'J'
#define PEER_MAGIC_1 'M'
#define PEER_N_KINDS (PEER_FORWARD_RESPONSE + 1)

/* kind: not PEER_NONE, below PEER_N_KINDS. The header is not counted. */
const ProtobufCMessageDescriptor *peer_type(uint8_t kind);
const struct wire_limits *peer_limits(uint8_t kind);

#endif
