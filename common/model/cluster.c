#include "common/model/cluster.h"

#include <assert.h>
#include <stddef.h>

void cluster_settings_default(struct cluster_settings *settings)
{
    static const char *const prefixes[] = {"10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12",
                                           "192.168.0.0/16", "fc00::/7"};

    *settings = (struct cluster_settings){.vote_interval_ms = CLUSTER_VOTE_INTERVAL_MS};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        int rc = cidr_parse(prefixes[i], &settings->allowed[settings->n_allowed], NULL);

        assert(rc == 0);
        settings->n_allowed++;
    }
}
