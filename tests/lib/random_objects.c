#include "tests/lib/random_objects.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static unsigned between(struct prng *prng, unsigned min, unsigned max)
{
    return min + (unsigned)prng_below(prng, max - min + 1U);
}

static void random_bytes(struct prng *prng, uint8_t *to, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        to[i] = (uint8_t)prng_next(prng);
    }
}

/* ASCII, blanks and some letters of two and three bytes in UTF-8. */
static void random_text(struct prng *prng, size_t max_bytes, char *to)
{
    static const char *const pieces[] = {"a",  "Z", " ", "7",  "\"",
                                         "\\", "/", "#", "\t", ":",
                                         "{}", "é", "ß", "漢", "\xf0\x9f\x90\x8c"};
    size_t n_bytes = between(prng, 0, (unsigned)max_bytes);
    size_t used = 0;

    for (;;) {
        const char *piece = pieces[prng_below(prng, sizeof pieces / sizeof pieces[0])];

        if (used + strlen(piece) > n_bytes) {
            break;
        }
        memcpy(to + used, piece, strlen(piece));
        used += strlen(piece);
    }
    to[used] = '\0';
}

void random_name(struct prng *prng, size_t min, size_t max, char *to)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = between(prng, (unsigned)min, (unsigned)max);

    for (size_t i = 0; i < n; i++) {
        to[i] = letters[prng_below(prng, i == 0 ? 52 : sizeof letters - 1)];
    }
    to[n] = '\0';
}

static void random_addr(struct prng *prng, struct addr *ret_addr)
{
    *ret_addr = (struct addr){.family = prng_below(prng, 2) == 0 ? ADDR_IPV4 : ADDR_IPV6};
    random_bytes(prng, ret_addr->bytes, ret_addr->family == ADDR_IPV4 ? 4 : 16);
    if (ret_addr->family == ADDR_IPV6 && prng_below(prng, 2) == 0) {
        memset(ret_addr->bytes + 4, 0, 10); /* text with "::" */
    }
    if (ret_addr->family == ADDR_IPV6) {
        ret_addr->bytes[0] = 0xfd; /* never an IPv4-mapped one */
    }
}

void random_endpoint(struct prng *prng, struct endpoint *ret_endpoint)
{
    memset(ret_endpoint, 0, sizeof *ret_endpoint);
    random_addr(prng, &ret_endpoint->addr);
    ret_endpoint->port = (uint16_t)between(prng, 1, 65535);
}

static void random_http(struct prng *prng, struct http_check *http)
{
    http->method = (uint8_t)between(prng, 1, 2);
    http->version = (uint8_t)between(prng, 1, 2);
    http->host = (uint8_t)between(prng, 1, 4);
    http->path[0] = '/';
    random_name(prng, 1, LIMIT_PATH_BYTES - 1, http->path + 1);
    if (http->host == HTTP_HOST_DOMAIN) {
        random_name(prng, 1, LIMIT_DOMAIN_BYTES, http->domain);
    }
    for (unsigned i = between(prng, 1, 5); i > 0; i--) {
        unsigned first = between(prng, HTTP_CODE_MIN, HTTP_CODE_MAX);
        http_codes_add(&http->expect, first, between(prng, first, HTTP_CODE_MAX));
    }
}

static void random_tls(struct prng *prng, struct tls_check *tls)
{
    tls->verify = (uint8_t)between(prng, 1, 2);
    tls->min_version = (uint8_t)between(prng, 1, 4);
    tls->warn_days = (uint16_t)prng_below(prng, LIMIT_WARN_DAYS + 1);
    if (tls->verify == TLS_VERIFY_CA || prng_below(prng, 2) == 0) {
        random_name(prng, 1, LIMIT_DOMAIN_BYTES, tls->server_name);
    }
    if (prng_below(prng, 2) == 0) {
        random_name(prng, 1, LIMIT_ALPN_BYTES, tls->alpn);
    }
}

static void random_grpc(struct prng *prng, struct health_check *check)
{
    if (prng_below(prng, 2) == 0) {
        random_name(prng, 1, LIMIT_GRPC_SERVICE_BYTES, check->grpc.service);
    }
    if (prng_below(prng, 2) == 0) {
        random_tls(prng, &check->tls);
    }
}

static void random_check(struct prng *prng, struct health_check *check)
{
    memset(check, 0, sizeof *check);
    check->is_enabled = prng_below(prng, 4) != 0;
    check->type = (uint8_t)between(prng, CHECK_TYPE_TCP, CHECK_TYPE_GRPC);
    check->pacing = (uint8_t)between(prng, 1, 2);
    check->port = (uint16_t)prng_below(prng, 65536);
    check->timeout_ms = between(prng, 100, 300000);
    check->interval_ms = between(prng, 100, 300000);
    check->healthy_threshold = (uint8_t)between(prng, 1, 10);
    check->unhealthy_threshold = (uint8_t)between(prng, 1, 10);
    if (prng_below(prng, 3) == 0) {
        check->probers = (uint8_t)between(prng, 1, LIMIT_NODES);
    }
    check->recheck = prng_below(prng, 3) == 0;
    check->source = (uint8_t)between(prng, 1, 2);
    if (check->type == CHECK_TYPE_TCP) {
        check->tcp = (struct tcp_check){.handshake = (uint8_t)between(prng, 1, 2),
                                        .close = (uint8_t)between(prng, 1, 2),
                                        .on_timeout = (uint8_t)between(prng, 1, 2)};
    } else if (check->type == CHECK_TYPE_HTTP) {
        random_http(prng, &check->http);
    } else if (check->type == CHECK_TYPE_TLS) {
        random_tls(prng, &check->tls);
        if (prng_below(prng, 2) == 0) {
            random_http(prng, &check->http);
        }
    } else if (check->type == CHECK_TYPE_GRPC) {
        random_grpc(prng, check);
    } else {
        check->udp.method = (uint8_t)between(prng, 1, 3);
        check->udp.payload.n_bytes = (uint16_t)between(prng, 1, LIMIT_UDP_PAYLOAD_BYTES);
        check->udp.expect.n_bytes = (uint16_t)prng_below(prng, LIMIT_UDP_PAYLOAD_BYTES + 1);
        check->udp.mask.n_bytes = (uint16_t)prng_below(prng, LIMIT_CHECK_LINE_BYTES + 1);
        random_bytes(prng, check->udp.payload.bytes, check->udp.payload.n_bytes);
        random_bytes(prng, check->udp.expect.bytes, check->udp.expect.n_bytes);
        random_bytes(prng, check->udp.mask.bytes, check->udp.mask.n_bytes);
    }
}

static struct rule_column random_column(struct prng *prng)
{
    struct rule_column column = {.kind = (uint8_t)between(prng, RULE_LOCAL, RULE_ZONE_MAJORITY)};

    if (column.kind == RULE_AT_LEAST) {
        column.value = (uint8_t)between(prng, 1, LIMIT_NODES);
    } else if (column.kind == RULE_PERCENT) {
        column.value = (uint8_t)between(prng, 1, 100);
    }
    return column;
}

/* Two to eight, the first one local. */
static void random_checks(struct prng *prng, struct server_group *group)
{
    static const uint8_t kinds[] = {RULE_ALL, RULE_ANY, RULE_AT_LEAST};
    uint32_t n = between(prng, 2, LIMIT_CHECKS);

    group->checks = calloc(n, sizeof *group->checks);
    assert(group->checks != NULL);
    group->n_checks = n;
    for (uint32_t i = 0; i < n; i++) {
        struct named_check *check = &group->checks[i];

        random_check(prng, &check->check);
        check->check_class =
            (uint8_t)(i == 0 ? CHECK_LOCAL : between(prng, CHECK_LOCAL, CHECK_DEPENDENCY));
        random_name(prng, 1, LIMIT_CHECK_NAME_BYTES, check->name);
    }
    group->pass.kind = kinds[prng_below(prng, sizeof kinds)];
    if (group->pass.kind == RULE_AT_LEAST) {
        group->pass.value = (uint8_t)between(prng, 1, group_n_local(group));
    }
    group_settle_checks(group);
}

static void random_backends(struct prng *prng, uint32_t n_max, struct server_group *group)
{
    uint32_t n = (uint32_t)prng_below(prng, n_max + 1U);

    if (n == 0) {
        return;
    }
    group->backends = calloc(n, sizeof *group->backends);
    assert(group->backends != NULL);
    for (uint32_t i = 0; i < n; i++) {
        struct backend *backend = &group->backends[i];

        random_endpoint(prng, &backend->at);
        backend->weight = (uint8_t)prng_below(prng, 101);
        backend->admin_state = (uint8_t)between(prng, ADMIN_NONE, ADMIN_MAINTENANCE);
        random_text(prng, LIMIT_ZONE_BYTES, backend->zone);
        random_text(prng, LIMIT_DESCRIPTION_BYTES, backend->description);
    }
    group->n_backends = n;
    server_group_sort_backends(group);
    group->n_backends = 1;
    for (uint32_t i = 1; i < n; i++) {
        struct backend *last = &group->backends[group->n_backends - 1];

        if (endpoint_compare(&last->at, &group->backends[i].at) != 0) {
            group->backends[group->n_backends++] = group->backends[i];
        }
    }
}

void random_group(struct prng *prng, uint32_t n_backends_max, struct server_group *ret_group)
{
    memset(ret_group, 0, sizeof *ret_group);
    random_name(prng, 2, LIMIT_NAME_BYTES, ret_group->name);
    ret_group->profile = (uint8_t)between(prng, 1, 3);
    ret_group->type = (uint8_t)between(prng, 1, 2);
    ret_group->protocol = (uint8_t)between(prng, 1, 4);
    ret_group->address_family = (uint8_t)(prng_below(prng, 2) == 0   ? ADDR_NONE
                                          : prng_below(prng, 2) == 0 ? ADDR_IPV4
                                                                     : ADDR_IPV6);
    ret_group->scheduler = (uint8_t)between(prng, 1, 9);
    ret_group->all_bad = (uint8_t)between(prng, 1, 2);
    ret_group->fail_open_percent = (uint8_t)prng_below(prng, 101);
    if (ret_group->profile == PROFILE_GWLB) {
        ret_group->failover = (uint8_t)between(prng, 1, 2);
    }
    if (ret_group->type == GROUP_TYPE_INSTANCE) {
        random_name(prng, 2, LIMIT_NAME_BYTES, ret_group->vpc);
    }
    random_check(prng, &ret_group->check);
    ret_group->rule.down = random_column(prng);
    ret_group->rule.is_split = prng_below(prng, 3) == 0;
    ret_group->rule.up = ret_group->rule.is_split ? random_column(prng) : ret_group->rule.down;
    ret_group->rule.below_quorum = (uint8_t)between(prng, 1, 2);
    ret_group->drain.is_on = prng_below(prng, 2) == 0;
    ret_group->drain.timeout_ms = (uint32_t)prng_below(prng, 3600001);
    ret_group->idle_timeout_ms = between(prng, 1000, 6000000);
    ret_group->guard.velocity_percent = (uint8_t)prng_below(prng, 101);
    ret_group->guard.velocity_window_ms = between(prng, 1000, 3600000);
    ret_group->guard.exempt_below = (uint16_t)prng_below(prng, 1001);
    ret_group->guard.flap_hold_ms = prng_below(prng, 2) == 0 ? 0 : between(prng, 1000, 300000);
    if (prng_below(prng, 3) == 0) {
        ret_group->guard.slow_start_ms = 1 + (uint32_t)prng_below(prng, 900000);
    }
    ret_group->graded_weight = (uint8_t)prng_below(prng, 3);
    ret_group->guard.return_percent = (uint8_t)prng_below(prng, 101);
    ret_group->guard.return_window_ms = between(prng, 1000, 3600000);
    ret_group->guard.shadow_cycles = (uint16_t)prng_below(prng, 1001);
    ret_group->guard.shadow_stop = prng_below(prng, 2) == 1;
    ret_group->guard.correlated_alarm = prng_below(prng, 2) == 1;
    ret_group->hold = (uint8_t)between(prng, HOLD_OFF, HOLD_ON);
    ret_group->n_labels = (uint32_t)prng_below(prng, LIMIT_LABELS + 1);
    for (uint32_t i = 0; i < ret_group->n_labels; i++) {
        random_name(prng, 1, LIMIT_LABEL_KEY_BYTES, ret_group->labels[i].key);
        random_text(prng, LIMIT_LABEL_VALUE_BYTES, ret_group->labels[i].value);
    }
    random_backends(prng, n_backends_max, ret_group);
    if (prng_below(prng, 4) == 0) {
        random_checks(prng, ret_group);
    }
}

bool is_same_group(const struct server_group *a, const struct server_group *b)
{
    struct server_group left = *a;
    struct server_group right = *b;

    if (a->n_backends != b->n_backends || a->n_checks != b->n_checks ||
        (a->n_backends > 0 &&
         memcmp(a->backends, b->backends, a->n_backends * sizeof *a->backends) != 0) ||
        (a->n_checks > 0 && memcmp(a->checks, b->checks, a->n_checks * sizeof *a->checks) != 0)) {
        return false;
    }
    left.backends = right.backends = NULL;
    left.checks = right.checks = NULL;
    return memcmp(&left, &right, sizeof left) == 0;
}

void random_listener(struct prng *prng, struct listener *ret_listener)
{
    memset(ret_listener, 0, sizeof *ret_listener);
    random_name(prng, 2, LIMIT_NAME_BYTES, ret_listener->name);
    random_endpoint(prng, &ret_listener->at);
    ret_listener->port_last = (uint16_t)between(prng, ret_listener->at.port, 65535);
    ret_listener->protocol = (uint8_t)between(prng, 1, 4);
    ret_listener->idle_timeout_ms = prng_below(prng, 2) == 0 ? 0 : between(prng, 1000, 6000000);
    random_name(prng, 2, LIMIT_NAME_BYTES, ret_listener->group);
}

void random_settings(struct prng *prng, struct cluster_settings *ret_settings)
{
    memset(ret_settings, 0, sizeof *ret_settings);
    ret_settings->vote_interval_ms = between(prng, 200, 5000);
    ret_settings->hold = (uint8_t)between(prng, HOLD_OFF, HOLD_ON);
    ret_settings->n_allowed = between(prng, 1, LIMIT_CIDRS);
    for (uint32_t i = 0; i < ret_settings->n_allowed; i++) {
        struct cidr *cidr = &ret_settings->allowed[i];
        unsigned n_bits;

        random_addr(prng, &cidr->addr);
        n_bits = cidr->addr.family == ADDR_IPV4 ? 32 : 128;
        cidr->prefix_bits = (uint8_t)between(prng, 0, n_bits);
        for (unsigned bit = cidr->prefix_bits; bit < n_bits; bit++) {
            cidr->addr.bytes[bit / 8] &= (uint8_t) ~(0x80U >> bit % 8);
        }
    }
}

void random_node(struct prng *prng, struct member_node *ret_node)
{
    memset(ret_node, 0, sizeof *ret_node);
    ret_node->node_id = prng_next(prng) | 1;
    ret_node->role = (uint8_t)between(prng, 1, 3);
    random_text(prng, LIMIT_ZONE_BYTES, ret_node->zone);
    random_bytes(prng, ret_node->key.bytes, sizeof ret_node->key.bytes);
    ret_node->n_endpoints = between(prng, 1, LIMIT_ENDPOINTS_PER_NODE);
    for (uint32_t i = 0; i < ret_node->n_endpoints; i++) {
        random_name(prng, 1, HOST_BYTES, ret_node->endpoints[i].host);
        ret_node->endpoints[i].mesh_port = (uint16_t)between(prng, 1, 65535);
        ret_node->endpoints[i].raft_port = (uint16_t)between(prng, 1, 65535);
    }
    for (unsigned i = prng_below(prng, 2) == 0 ? 2 : 0; i > 0; i--) {
        struct addr addr;

        random_addr(prng, &addr);
        ret_node->probe_sources[addr.family == ADDR_IPV4 ? 0 : 1] = addr;
    }
}

void random_key(struct prng *prng, struct access_key *ret_key)
{
    memset(ret_key, 0, sizeof *ret_key);
    random_name(prng, 2, LIMIT_NAME_BYTES, ret_key->name);
    random_bytes(prng, ret_key->key.bytes, sizeof ret_key->key.bytes);
    ret_key->role = (uint8_t)between(prng, 1, 3);
    ret_key->expires_wall_ms =
        prng_below(prng, 2) == 0 ? 0 : (int64_t)prng_below(prng, 4102444800000) + 1;
}
