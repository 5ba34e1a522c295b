#include "agent/mesh/peer_bounds.h"

#include <assert.h>

#include "jury/internal/peer.pb-c.h"

/* What a kind may weigh, header aside. Each holds our own largest message of the kind with room for
 * fields that a later minor version adds. */
struct kind_bounds {
    const ProtobufCMessageDescriptor *type;
    struct wire_limits limits;
};

static const struct kind_bounds bounds[] = {
    [PEER_HELLO] = {&jury__internal__hello__descriptor, {.bytes_max = 512, .elements_max = 64}},
    [PEER_VOTE_CHUNK] = {&jury__internal__vote_chunk__descriptor,
                         {.bytes_max = 4096, .elements_max = 512}},
    [PEER_VOTE_CHANGE] = {&jury__internal__vote_change__descriptor,
                          {.bytes_max = 512, .elements_max = 64}},
    [PEER_VOTE_QUESTION] = {&jury__internal__vote_question__descriptor,
                            {.bytes_max = 1024, .elements_max = 128}},
    [PEER_DRAIN_REPORT] = {&jury__internal__drain_report__descriptor,
                           {.bytes_max = 16384, .elements_max = 4096}},
    [PEER_FORWARD_REQUEST] = {&jury__internal__forward_request__descriptor,
                              {.bytes_max = 512, .elements_max = 64}},
    [PEER_FORWARD_RESPONSE] = {&jury__internal__forward_response__descriptor,
                               {.bytes_max = 256, .elements_max = 64}},
};

const ProtobufCMessageDescriptor *peer_type(uint8_t kind)
{
    assert(kind > PEER_NONE && kind < PEER_N_KINDS);
    return bounds[kind].type;
}

const struct wire_limits *peer_limits(uint8_t kind)
{
    assert(kind > PEER_NONE && kind < PEER_N_KINDS);
    return &bounds[kind].limits;
}
