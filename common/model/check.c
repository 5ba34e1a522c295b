#include "common/model/check.h"

#include <assert.h>
#include <limits.h>

bool http_codes_has(const struct http_codes *codes, unsigned code)
{
    if (code < HTTP_CODE_MIN || code > HTTP_CODE_MAX) {
        return false;
    }
    unsigned bit = code - HTTP_CODE_MIN;
    return (codes->words[bit / 64] >> (bit % 64) & 1) != 0;
}

void http_codes_add(struct http_codes *codes, unsigned first, unsigned last)
{
    assert(first >= HTTP_CODE_MIN);
    assert(last <= HTTP_CODE_MAX);

    for (unsigned code = first; code <= last; code++) {
        unsigned bit = code - HTTP_CODE_MIN;

        codes->words[bit / 64] |= UINT64_C(1) << (bit % 64);
    }
}

uint64_t check_round_ms(const struct health_check *check, uint64_t probe_ms)
{
    if (check->pacing != PACING_FIXED || check->interval_ms == 0) {
        return probe_ms + check->interval_ms;
    }
    return (probe_ms / check->interval_ms + 1) * check->interval_ms;
}

static uint64_t window_ms(const struct health_check *check, uint64_t probe_ms, uint64_t threshold)
{
    return threshold == 0 ? 0 : check_round_ms(check, probe_ms) * (threshold - 1) + probe_ms;
}

uint64_t check_failure_window_ms(const struct health_check *check)
{
    return window_ms(check, check->timeout_ms, check->unhealthy_threshold);
}

bool check_asks_http(const struct health_check *check)
{
    return check->http.method != HTTP_METHOD_NONE;
}

bool check_is_secured(const struct health_check *check)
{
    return check->tls.verify != TLS_VERIFY_UNSET;
}

bool check_passes_by_silence(const struct health_check *check)
{
    return check->type == CHECK_TYPE_UDP && check->udp.method != UDP_EXCHANGE;
}

uint64_t check_success_window_ms(const struct health_check *check, uint64_t response_ms)
{
    if (check_passes_by_silence(check)) {
        response_ms = check->timeout_ms;
    }
    return window_ms(check, response_ms, check->healthy_threshold);
}

bool addr_is_shared_space(const struct addr *addr)
{
    return addr->family == ADDR_IPV4 && addr->bytes[0] == 100 && (addr->bytes[1] & 0xC0U) == 64;
}

bool check_is_from_shared_space(const struct health_check *check, const struct addr *to)
{
    return check->source == CHECK_SOURCE_SHARED_SPACE && to->family == ADDR_IPV4;
}

uint8_t check_kinds(const struct health_check *check)
{
    if (check->type == CHECK_TYPE_NONE) {
        return check->part_kinds;
    }
    /* Bytes that are damaged may hold any type: they are read before they are judged. */
    return (uint8_t)(check->type <= CHECK_TYPE_GRPC ? 1U << check->type : 0U);
}

bool check_is_shared(const struct health_check *check)
{
    return check->probers != 0 || check->recheck;
}

static uint64_t rounded(uint64_t dividend, uint64_t divisor)
{
    return (dividend + divisor / 2) / divisor;
}

static bool is_limited_among(const struct health_check *check, unsigned n_observers)
{
    return check->probers != 0 && check->probers < n_observers;
}

struct check_load check_load_of(const struct health_check *check, unsigned n_observers)
{
    bool is_limited = is_limited_among(check, n_observers);
    unsigned n_probers = is_limited ? check->probers : n_observers;
    unsigned n_worst = is_limited || check->recheck ? 2 * n_observers : n_observers;

    assert(check->interval_ms > 0);
    return (struct check_load){
        .n_probers = n_probers,
        .steady_per_1000s = rounded(n_probers * UINT64_C(1000000), check->interval_ms),
        .worst_per_1000s = rounded(n_worst * UINT64_C(1000000), check->interval_ms),
    };
}

struct check_demand check_demand_of(const struct health_check *check, unsigned n_observers)
{
    assert(check->interval_ms > 0);
    bool is_limited = is_limited_among(check, n_observers == 0 ? UINT_MAX : n_observers);
    double of_each = 1000.0 / check->interval_ms;

    return (struct check_demand){
        .steady = is_limited && n_observers != 0 ? of_each * check->probers / n_observers : of_each,
        .worst = is_limited || check->recheck ? 2 * of_each : of_each,
    };
}
