#include "agent/probe/probe_engine.h"

#include <stdio.h>

static uint32_t udp_capability(enum udp_method method)
{
    switch (method) {
    case UDP_PORT:
        return PROBE_CAN_UDP_PORT;
    case UDP_PORT_ECHO:
        return PROBE_CAN_UDP_PORT_ECHO;
    case UDP_EXCHANGE:
        return PROBE_CAN_UDP_EXCHANGE;
    case UDP_METHOD_NONE:
        break;
    }
    return 0;
}

uint32_t probe_capability_of(const struct target_definition *definition)
{
    const struct health_check *check = definition->check;

    switch ((enum check_type)check->type) {
    case CHECK_TYPE_TCP:
        return check->tcp.handshake == TCP_HALF_OPEN ? PROBE_CAN_TCP_HALF_OPEN : PROBE_CAN_TCP_FULL;
    case CHECK_TYPE_HTTP:
        return PROBE_CAN_HTTP;
    case CHECK_TYPE_UDP:
        return udp_capability((enum udp_method)check->udp.method);
    case CHECK_TYPE_TLS:
        return PROBE_CAN_TLS;
    case CHECK_TYPE_GRPC:
        return check_is_secured(check) ? PROBE_CAN_GRPC_TLS : PROBE_CAN_GRPC;
    case CHECK_TYPE_NONE:
        break;
    }
    return 0;
}

char *probe_capabilities_format(uint32_t capabilities, char *text, size_t text_bytes)
{
    static const struct {
        enum probe_capability bit;
        const char *word;
    } words[] = {
        {PROBE_CAN_TCP_FULL, "tcp-full"},
        {PROBE_CAN_TCP_HALF_OPEN, "tcp-half-open"},
        {PROBE_CAN_HTTP, "http"},
        {PROBE_CAN_UDP_PORT, "udp-port"},
        {PROBE_CAN_UDP_PORT_ECHO, "udp-port+echo"},
        {PROBE_CAN_UDP_EXCHANGE, "udp-exchange"},
        {PROBE_CAN_TLS, "tls"},
        {PROBE_CAN_GRPC, "grpc"},
        {PROBE_CAN_GRPC_TLS, "grpc-tls"},
    };
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0] && at < text_bytes; i++) {
        if ((capabilities & words[i].bit) != 0) {
            int n = snprintf(text + at, text_bytes - at, "%s%s", at == 0 ? "" : ",", words[i].word);
            at += (size_t)n;
        }
    }
    return text;
}
