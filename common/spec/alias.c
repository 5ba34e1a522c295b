#include "common/spec/alias.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* In small letters, without `-` and `_`. Of haproxy, keepalived, nginx, Envoy, and of container
 * platforms and clouds. */
static const struct {
    const char *word;
    const char *name;
} aliases[] = {
    {"rise", "healthyThreshold"},
    {"passes", "healthyThreshold"},
    {"successthreshold", "healthyThreshold"},
    {"fall", "unhealthyThreshold"},
    {"fails", "unhealthyThreshold"},
    {"failurethreshold", "unhealthyThreshold"},
    {"retry", "unhealthyThreshold"},
    {"retries", "unhealthyThreshold"},
    {"inter", "interval"},
    {"period", "interval"},
    {"periodseconds", "interval"},
    {"intervalseconds", "interval"},
    {"intervalms", "interval"},
    {"delayloop", "interval"},
    {"timeoutseconds", "timeout"},
    {"timeoutms", "timeout"},
    {"connecttimeout", "timeout"},
    {"uri", "path"},
    {"url", "path"},
    {"status", "expect"},
    {"codes", "expect"},
    {"matcher", "expect"},
    {"expectedstatuses", "expect"},
    {"sni", "serverName"},
    {"balance", "scheduler"},
    {"algorithm", "scheduler"},
    {"lbpolicy", "scheduler"},
    {"lbalgo", "scheduler"},
    {"healthcheck", "check"},
    {"servers", "backends"},
    {"members", "backends"},
    {"targets", "backends"},
    {"realserver", "backends"},
    {"ip", "address"},
    {"addr", "address"},
    {"server", "at"},
    {"bind", "at"},
    {"listen", "at"},
    {"defaultbackend", "group"},
    {"usebackend", "group"},
    {"disabled", "adminState"},
    {"drain", "adminState"},
    {"maint", "adminState"},
    {"maintenance", "adminState"},
    {"slowstart", "slowStart"},
    {"allowed", "allowedCidrs"},
};

const char *spec_alias(const char *word)
{
    char low[32];
    size_t n = 0;

    for (; *word != '\0'; word++) {
        if (*word == '-' || *word == '_') {
            continue;
        }
        if (n == sizeof low - 1) {
            return NULL;
        }
        low[n++] = (char)tolower((unsigned char)*word);
    }
    low[n] = '\0';
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strcmp(aliases[i].word, low) == 0) {
            return aliases[i].name;
        }
    }
    return NULL;
}
