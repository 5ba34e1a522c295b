#include "common/model/profile.h"

#include <assert.h>
#include <string.h>

/* The 16 bytes that a UDP probe sends when the document names none: never empty, so that a closed
 * port is asked something it can refuse (case A16), and readable in a capture. */
static const char udp_payload[] = "jury-healthcheck";

/* One column of the table of spec.md 3. */
struct profile_row {
    enum profile profile;
    struct {
        uint16_t port;
        uint32_t timeout_ms, interval_ms;
        uint32_t udp_timeout_ms, udp_interval_ms;
        uint8_t healthy_threshold, unhealthy_threshold;
        struct tcp_check tcp;
        enum http_method http_method;
        enum http_version http_version;
        enum http_host http_host;
        unsigned http_code_last;
        enum udp_method udp_method;
        enum check_source source;
    } check;
    enum protocol protocol;
    enum scheduler scheduler;
    enum failover failover;
    enum rule_kind rule;
    uint32_t idle_timeout_ms;
};

static const struct profile_row profile_rows[] = {
    {
        .profile = PROFILE_GWLB,
        .check = {.port = 80, /* S79 */
                  .timeout_ms = 5000,
                  .interval_ms = 10000,
                  .udp_timeout_ms = 5000,
                  .udp_interval_ms = 10000,
                  .healthy_threshold = 2,
                  .unhealthy_threshold = 3, /* S19 */
                  .tcp = {.handshake = TCP_HALF_OPEN,
                          .close = TCP_CLOSE_RST,
                          .on_timeout = TCP_ON_TIMEOUT_NOTHING}, /* S6, S5 */
                  .http_method = HTTP_GET,                       /* S7 */
                  .http_version = HTTP_1_1,
                  .http_host = HTTP_HOST_ADDRESS_PORT, /* S25 */
                  .http_code_last = 299,
                  .udp_method = UDP_METHOD_NONE, /* S78: refused */
                  .source = CHECK_SOURCE_NODE},
        .protocol = PROTOCOL_GENEVE,
        .scheduler = SCHEDULER_5_TUPLE,
        .failover = FAILOVER_NO_REBALANCE,
        .rule = RULE_MAJORITY,
        .idle_timeout_ms = 350000,
    },
    {
        .profile = PROFILE_NLB,
        .check = {.port = 0,
                  .timeout_ms = 5000,
                  .interval_ms = 5000,
                  .udp_timeout_ms = 5000,
                  .udp_interval_ms = 5000,
                  .healthy_threshold = 2,
                  .unhealthy_threshold = 2,
                  .tcp = {.handshake = TCP_FULL,
                          .close = TCP_CLOSE_RST,
                          .on_timeout = TCP_ON_TIMEOUT_RST}, /* S95, S94 */
                  .http_method = HTTP_GET,
                  .http_version = HTTP_1_0,
                  .http_host = HTTP_HOST_OMITTED, /* S107 */
                  .http_code_last = 299,
                  .udp_method = UDP_PORT_ECHO,  /* S98 */
                  .source = CHECK_SOURCE_NODE}, /* S90 */
        .protocol = PROTOCOL_TCP,
        .scheduler = SCHEDULER_WRR,
        .failover = FAILOVER_NONE,
        .rule = RULE_LOCAL, /* S87 */
        .idle_timeout_ms = 900000,
    },
    {
        .profile = PROFILE_CLB,
        .check = {.port = 0,
                  .timeout_ms = 5000,
                  .interval_ms = 2000,
                  .udp_timeout_ms = 10000,
                  .udp_interval_ms = 5000,
                  .healthy_threshold = 3,
                  .unhealthy_threshold = 3, /* S58 */
                  .tcp = {.handshake = TCP_HALF_OPEN,
                          .close = TCP_CLOSE_RST,
                          .on_timeout = TCP_ON_TIMEOUT_RST}, /* S42, S41 */
                  .http_method = HTTP_HEAD,                  /* S36 */
                  .http_version = HTTP_1_0,
                  .http_host = HTTP_HOST_OMITTED,       /* S61 */
                  .http_code_last = 399,                /* S37 */
                  .udp_method = UDP_PORT,               /* S45-S48 */
                  .source = CHECK_SOURCE_SHARED_SPACE}, /* S32 */
        .protocol = PROTOCOL_TCP,
        .scheduler = SCHEDULER_WRR,
        .failover = FAILOVER_NONE,
        .rule = RULE_ANY,
        .idle_timeout_ms = 900000,
    },
};

static const struct profile_row *find_profile(enum profile profile)
{
    for (size_t i = 0; i < sizeof profile_rows / sizeof profile_rows[0]; i++) {
        if (profile_rows[i].profile == profile) {
            return &profile_rows[i];
        }
    }
    return NULL;
}

static enum check_type default_type(enum profile profile, enum protocol protocol)
{
    return profile == PROFILE_CLB && protocol == PROTOCOL_UDP ? CHECK_TYPE_UDP : CHECK_TYPE_TCP;
}

static void fill_http_fields(const struct profile_row *row, struct http_check *http)
{
    http->method = (uint8_t)row->check.http_method;
    http->version = (uint8_t)row->check.http_version;
    http->host = (uint8_t)row->check.http_host;
    strcpy(http->path, "/");
    http_codes_add(&http->expect, HTTP_CODE_MIN, row->check.http_code_last);
}

void profile_tls_defaults(struct tls_check *ret_tls)
{
    *ret_tls = (struct tls_check){
        .verify = TLS_VERIFY_NONE, .min_version = TLS_VERSION_1_2, .warn_days = 14};
}

static void fill_type_fields(const struct profile_row *row, struct health_check *check)
{
    switch ((enum check_type)check->type) {
    case CHECK_TYPE_NONE:
    case CHECK_TYPE_GRPC: /* in the clear, for the server as a whole */
        break;
    case CHECK_TYPE_TLS:
        profile_tls_defaults(&check->tls);
        break;
    case CHECK_TYPE_TCP:
        check->tcp = row->check.tcp;
        break;
    case CHECK_TYPE_HTTP:
        fill_http_fields(row, &check->http);
        break;
    case CHECK_TYPE_UDP:
        check->timeout_ms = row->check.udp_timeout_ms;
        check->interval_ms = row->check.udp_interval_ms;
        check->udp.method = (uint8_t)row->check.udp_method;
        check->udp.payload.n_bytes = sizeof udp_payload - 1;
        memcpy(check->udp.payload.bytes, udp_payload, sizeof udp_payload - 1);
        break;
    }
}

void profile_check_defaults(enum profile profile, enum protocol protocol, enum check_type type,
                            struct health_check *ret_check)
{
    const struct profile_row *row = find_profile(profile);

    assert(row != NULL);
    *ret_check = (struct health_check){
        .is_enabled = true,
        .type = (uint8_t)(type != CHECK_TYPE_NONE ? type : default_type(profile, protocol)),
        .pacing = PACING_END_TO_START,
        .source = (uint8_t)row->check.source,
        .port = row->check.port,
        .timeout_ms = row->check.timeout_ms,
        .interval_ms = row->check.interval_ms,
        .healthy_threshold = row->check.healthy_threshold,
        .unhealthy_threshold = row->check.unhealthy_threshold,
    };
    fill_type_fields(row, ret_check);
}

enum rule_kind profile_rule(enum profile profile)
{
    const struct profile_row *row = find_profile(profile);

    return row == NULL ? RULE_NONE : row->rule;
}

void profile_http_defaults(enum profile profile, struct http_check *ret_http)
{
    const struct profile_row *row = find_profile(profile);

    assert(row != NULL);
    *ret_http = (struct http_check){0};
    fill_http_fields(row, ret_http);
}

void profile_group_defaults(enum profile profile, enum protocol protocol,
                            struct server_group *ret_group)
{
    const struct profile_row *row = find_profile(profile);

    assert(row != NULL);
    if (protocol == PROTOCOL_NONE) {
        protocol = row->protocol;
    }
    *ret_group = (struct server_group){
        .profile = (uint8_t)profile,
        .type = GROUP_TYPE_IP,
        .protocol = (uint8_t)protocol,
        .address_family = ADDR_NONE,
        .scheduler = (uint8_t)row->scheduler,
        .all_bad = ALL_BAD_FAIL_OPEN, /* S91 */
        .fail_open_percent = 0,
        .failover = (uint8_t)row->failover,
        .rule = {.down = {.kind = (uint8_t)row->rule},
                 .up = {.kind = (uint8_t)row->rule},
                 .below_quorum = BELOW_QUORUM_HOLD},
        .drain = {.is_on = false, .timeout_ms = 300000},
        .guard = guard_policy_of(GUARD_PRESET_OFF),
        .idle_timeout_ms = row->idle_timeout_ms,
    };
    profile_check_defaults(profile, protocol, CHECK_TYPE_NONE, &ret_group->check);
}

void profile_backend_defaults(enum profile profile, struct backend *ret_backend)
{
    assert(profile != PROFILE_NONE);

    *ret_backend = (struct backend){.weight = 100, .admin_state = ADMIN_NONE};
}
