#include "common/model/names.h"

#include <stdio.h>
#include <string.h>

#include "common/model/check.h"
#include "common/model/cluster.h"
#include "common/model/group.h"
#include "common/model/guard.h"
#include "common/model/rule.h"

#define NAME_TABLE(table, what_text, ...)                        \
    static const struct name_row table##_rows[] = {__VA_ARGS__}; \
    const struct name_table names_##table = {                    \
        .what = (what_text),                                     \
        .rows = table##_rows,                                    \
        .n_rows = sizeof table##_rows / sizeof table##_rows[0],  \
    }

NAME_TABLE(profile, "profile", {PROFILE_GWLB, "gwlb"}, {PROFILE_NLB, "nlb"}, {PROFILE_CLB, "clb"});
NAME_TABLE(group_type, "group type", {GROUP_TYPE_INSTANCE, "instance"}, {GROUP_TYPE_IP, "ip"});
NAME_TABLE(protocol, "protocol", {PROTOCOL_GENEVE, "geneve"}, {PROTOCOL_TCP, "tcp"},
           {PROTOCOL_UDP, "udp"}, {PROTOCOL_TCP_UDP, "tcp_udp"});
NAME_TABLE(scheduler, "scheduler", {SCHEDULER_5_TUPLE, "5-tuple"}, {SCHEDULER_4_TUPLE, "4-tuple"},
           {SCHEDULER_3_TUPLE, "3-tuple"}, {SCHEDULER_2_TUPLE, "2-tuple"},
           {SCHEDULER_SOURCE, "source"}, {SCHEDULER_QUIC_ID, "quic-id"}, {SCHEDULER_RR, "rr"},
           {SCHEDULER_WRR, "wrr"}, {SCHEDULER_WLC, "wlc"});
NAME_TABLE(admin_state, "admin state", {ADMIN_ENABLED, "enabled"}, {ADMIN_DRAINING, "draining"},
           {ADMIN_MAINTENANCE, "maintenance"});
NAME_TABLE(all_bad, "all backends bad", {ALL_BAD_FAIL_OPEN, "fail-open"},
           {ALL_BAD_FAIL_CLOSED, "fail-closed"});
NAME_TABLE(failover, "failover", {FAILOVER_NO_REBALANCE, "no-rebalance"},
           {FAILOVER_REBALANCE, "rebalance"});
NAME_TABLE(check_type, "check type", {CHECK_TYPE_TCP, "tcp"}, {CHECK_TYPE_HTTP, "http"},
           {CHECK_TYPE_UDP, "udp"}, {CHECK_TYPE_TLS, "tls"}, {CHECK_TYPE_GRPC, "grpc"});
NAME_TABLE(check_class, "check class", {CHECK_LOCAL, "local"}, {CHECK_DEPENDENCY, "dependency"});
NAME_TABLE(tcp_handshake, "tcp handshake", {TCP_HALF_OPEN, "half-open"}, {TCP_FULL, "full"});
NAME_TABLE(tcp_close, "tcp close", {TCP_CLOSE_RST, "rst"}, {TCP_CLOSE_FIN, "fin"});
NAME_TABLE(tcp_on_timeout, "on tcp timeout", {TCP_ON_TIMEOUT_NOTHING, "nothing"},
           {TCP_ON_TIMEOUT_RST, "rst"});
NAME_TABLE(http_method, "http method", {HTTP_GET, "GET"}, {HTTP_HEAD, "HEAD"});
NAME_TABLE(http_version, "http version", {HTTP_1_0, "1.0"}, {HTTP_1_1, "1.1"});
NAME_TABLE(http_host, "http host", {HTTP_HOST_DOMAIN, "domain"}, {HTTP_HOST_ADDRESS, "address"},
           {HTTP_HOST_ADDRESS_PORT, "address:port"}, {HTTP_HOST_OMITTED, "omitted"});
NAME_TABLE(udp_method, "udp method", {UDP_PORT, "port"}, {UDP_PORT_ECHO, "port+echo"},
           {UDP_EXCHANGE, "exchange"});
NAME_TABLE(tls_verify, "tls verify", {TLS_VERIFY_NONE, "none"}, {TLS_VERIFY_CA, "ca"});
NAME_TABLE(tls_version, "tls version", {TLS_VERSION_1_0, "1.0"}, {TLS_VERSION_1_1, "1.1"},
           {TLS_VERSION_1_2, "1.2"}, {TLS_VERSION_1_3, "1.3"});
NAME_TABLE(pacing, "pacing", {PACING_END_TO_START, "end-to-start"}, {PACING_FIXED, "fixed"});
NAME_TABLE(check_source, "check source", {CHECK_SOURCE_NODE, "node"},
           {CHECK_SOURCE_SHARED_SPACE, "100.64.0.0/10"});
NAME_TABLE(rule, "verdict rule", {RULE_LOCAL, "local"}, {RULE_ANY, "any"},
           {RULE_MAJORITY, "majority"}, {RULE_ALL, "all"}, {RULE_AT_LEAST, "at-least"},
           {RULE_PERCENT, "percent"}, {RULE_ZONE_MAJORITY, "zone-majority"});
NAME_TABLE(below_quorum, "below quorum", {BELOW_QUORUM_HOLD, "hold"},
           {BELOW_QUORUM_LOCAL, "local"});
NAME_TABLE(hold, "hold", {HOLD_OFF, "off"}, {HOLD_ON, "on"});
NAME_TABLE(guard_preset, "guard", {GUARD_PRESET_OFF, "off"}, {GUARD_PRESET_STANDARD, "standard"});
NAME_TABLE(graded_weight, "graded weight", {GRADED_BY_VOTES, "votes"},
           {GRADED_BY_LATENCY, "latency"});
NAME_TABLE(raft_role, "raft role", {ROLE_VOTER, "voter"}, {ROLE_STANDBY, "standby"},
           {ROLE_SPARE, "spare"});
NAME_TABLE(key_role, "key role", {KEY_ROLE_VIEWER, "viewer"}, {KEY_ROLE_OPERATOR, "operator"},
           {KEY_ROLE_ADMIN, "admin"});

const char *names_word(const struct name_table *table, unsigned value)
{
    for (size_t i = 0; i < table->n_rows; i++) {
        if (table->rows[i].value == value) {
            return table->rows[i].word;
        }
    }
    return "?";
}

unsigned names_value(const struct name_table *table, const char *word)
{
    for (size_t i = 0; i < table->n_rows; i++) {
        if (strcmp(table->rows[i].word, word) == 0) {
            return table->rows[i].value;
        }
    }
    return 0;
}

const char *names_list(const struct name_table *table, char *text, size_t text_bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < table->n_rows && used < text_bytes; i++) {
        const char *between = i == 0 ? "" : i + 1 == table->n_rows ? " or " : ", ";
        int n = snprintf(text + used, text_bytes - used, "%s%s", between, table->rows[i].word);

        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}
