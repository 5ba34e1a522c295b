#include "agent/core/path_stats.h"

#include "common/base/plant.h"

#define GAIN 8
#define TIME_US_MAX (UINT32_MAX / GAIN) /* nine minutes; a timeout is five at most */
#define MARK (UINT32_C(1) << PATH_STATS_PROBES)

enum path_outcome path_outcome_of(const struct probe_result *result, bool is_udp)
{
    if (result->probe_class == PROBE_INCONCLUSIVE || result->probe_class == PROBE_CLASS_NONE) {
        return PATH_TELLS_NOTHING;
    }
    if (plant_is("loss-all-failures") && result->probe_class == PROBE_FAIL) {
        return PATH_LOST;
    }
    switch ((enum probe_reason)result->reason) {
    case REASON_SILENT:
        return PATH_TELLS_NOTHING;
    case REASON_CONNECT_TIMEOUT:
    case REASON_NO_ECHO_REPLY:
        return PATH_LOST;
    case REASON_CONNECT_FAILED: /* else a router or this node says that there is no way */
        return result->is_refused ? PATH_REPLIED : PATH_LOST;
    case REASON_RECV_RESPONSE_TIMEOUT: /* of TCP: the connection was answered */
        return is_udp ? PATH_LOST : PATH_REPLIED;
    case REASON_NONE:
    case REASON_OK:
    case REASON_CONNECT_INTERRUPT:
    case REASON_HTTP_CODE_NOT_MATCH:
    case REASON_HTTP_INVALID_HEADER:
    case REASON_PORT_UNREACHABLE:
    case REASON_RESPONSE_MISMATCH:
    case REASON_ECHO:
    case REASON_TLS_HANDSHAKE_FAILED:
    case REASON_TLS_CERT_EXPIRED:
    case REASON_TLS_CERT_WRONG_NAME:
    case REASON_TLS_CERT_UNTRUSTED:
    case REASON_GRPC_NOT_SERVING:
    case REASON_GRPC_STATUS:
    case REASON_GRPC_INVALID:
    case REASON_LOCAL_NO_DESCRIPTOR:
    case REASON_LOCAL_NO_PORT:
    case REASON_LOCAL_NO_BUFFER:
    case REASON_LOCAL_NO_PERMISSION:
    case REASON_LOCAL_SOURCE_MISSING:
    case REASON_LOCAL_NO_ROUTE:
    case REASON_LOCAL_FORBIDDEN:
    case REASON_LOCAL_LATE:
    case REASON_LOCAL_UNSUPPORTED:
    case REASON_LOCAL_NOT_BUILT:
    case REASON_LOCAL_NO_TRUST:
    case REASON_LOCAL_DELAYED:
    case REASON_ICMP_LIMITED:
        break;
    }
    return PATH_REPLIED;
}

static void note_time(struct path_stats *path, const struct probe_result *result)
{
    uint64_t took_us = (result->end_ns - result->start_ns) / 1000;
    uint32_t us = took_us < TIME_US_MAX ? (uint32_t)took_us : TIME_US_MAX;

    if (path->smoothed_us == 0) {
        path->smoothed_us = us * GAIN;
    } else {
        path->smoothed_us += us - path->smoothed_us / GAIN;
    }
    if (path->smoothed_us == 0) {
        path->smoothed_us = 1; /* known, and less than can be told */
    }
}

enum path_outcome path_stats_note(struct path_stats *path, const struct probe_result *result,
                                  bool is_udp)
{
    enum path_outcome outcome = path_outcome_of(result, is_udp);

    if (outcome == PATH_TELLS_NOTHING) {
        return outcome;
    }
    uint32_t before = path->lost == 0 ? 1 : path->lost;
    path->lost = before << 1 | (outcome == PATH_LOST);
    if (path->lost >= MARK << 1) {
        path->lost = MARK | (path->lost & (MARK - 1));
    }
    if (result->reason == REASON_OK) {
        note_time(path, result);
    }
    return outcome;
}

bool path_stats_time(const struct path_stats *path, uint32_t *ret_us)
{
    if (path->smoothed_us == 0) {
        return false;
    }
    *ret_us = path->smoothed_us / GAIN;
    return true;
}

unsigned path_stats_n_probes(const struct path_stats *path)
{
    unsigned n = 0;

    for (uint32_t rest = path->lost; rest > 1; rest >>= 1) {
        n++;
    }
    return n;
}

unsigned path_stats_n_lost(const struct path_stats *path)
{
    return path->lost == 0 ? 0 : (unsigned)__builtin_popcount(path->lost) - 1;
}
