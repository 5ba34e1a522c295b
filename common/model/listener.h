/* Listeners: where clients connect (layer 4; no TLS termination, S35). */
#ifndef JURY_MODEL_LISTENER_H
#define JURY_MODEL_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/addr.h"
#include "common/base/limits.h"
#include "common/model/group.h"

struct listener {
    char name[LIMIT_NAME_BYTES + 1];
    struct endpoint at;       /* unspecified address = all of that family */
    uint16_t port_last;       /* of a range; this stage: equal to at.port */
    uint8_t protocol;         /* enum protocol; this stage: PROTOCOL_TCP */
    uint32_t idle_timeout_ms; /* 0 = the group's; else 1000..6000000 */
    char group[LIMIT_NAME_BYTES + 1];
};

#endif
