/* Which checks the groups of documents have where that is not what they forward, and which nodes
 * were built without them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/model/check.h"
#include "common/model/names.h"
#include "common/model/profile.h"
#include "nodectl/load.h"
#include "nodectl/remark.h"

/* --- what is probed --- */

/* "http on port 81", "udp (port+echo) on each backend's own port" */
static void put_check(const struct health_check *check, char *text, size_t text_bytes)
{
    bool is_udp = check->type == CHECK_TYPE_UDP;
    char port[16] = "";

    if (check->port != 0) {
        snprintf(port, sizeof port, "%u", check->port);
    }
    snprintf(text, text_bytes, "%s%s%s%s on %s%s", names_word(&names_check_type, check->type),
             is_udp ? " (" : "", is_udp ? names_word(&names_udp_method, check->udp.method) : "",
             is_udp ? ")" : "", port[0] == '\0' ? "each backend's own port" : "port ", port);
}

char *remark_checked_by(const struct server_group *group, char text[REMARK_CHECKED_BYTES])
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < group_n_checks(group) && used < REMARK_CHECKED_BYTES; i++) {
        char one[96];

        put_check(group_check_at(group, i), one, sizeof one);
        used += (size_t)snprintf(text + used, REMARK_CHECKED_BYTES - used, "%s%s%s", one,
                                 group->n_checks == 0 ? "" : " as ",
                                 group->n_checks == 0 ? "" : group->checks[i].name);
        if (i + 1 < group_n_checks(group) && used < REMARK_CHECKED_BYTES) {
            used += (size_t)snprintf(text + used, REMARK_CHECKED_BYTES - used, ", ");
        }
    }
    return text;
}

/* What answers datagrams alone fails a check over TCP on its own port. */
static bool needs_a_tcp_port(const struct server_group *group)
{
    const struct health_check *check = &group->check;

    return group->n_checks == 0 && group->protocol == PROTOCOL_UDP && check->port == 0 &&
           check->type != CHECK_TYPE_UDP;
}

void remark_checks(struct ctl *ctl, const struct spec_document *document)
{
    const struct server_group *group = document->u.group;
    char object[LOAD_OBJECT_BYTES];
    char text[REMARK_CHECKED_BYTES];

    if (document->kind != SPEC_GROUP || group->protocol == PROTOCOL_TCP ||
        !group->check.is_enabled) {
        return;
    }
    ctl_note(ctl, "%s: protocol %s, checked by %s%s", load_object(document, object),
             names_word(&names_protocol, group->protocol), remark_checked_by(group, text),
             needs_a_tcp_port(group) ? ", which has to take TCP connections; check: {type: udp} "
                                       "asks by datagrams"
                                     : "");
}

/* --- parts of an agent that may not be there --- */

static bool wants(const struct spec_document *document, enum check_type part)
{
    unsigned n = document->kind == SPEC_GROUP ? group_n_checks(document->u.group) : 0;

    for (unsigned i = 0; i < n; i++) {
        const struct health_check *check = group_check_at(document->u.group, i);
        bool is_in_tls = part == CHECK_TYPE_TLS && check_is_secured(check);

        if (check->is_enabled && (check->type == part || is_in_tls)) {
            return true;
        }
    }
    return false;
}

#define NODES_NAMED 8

/* "1, 2 and 3 more" */
static void name_nodes(const struct remark_nodes *nodes, char *text, size_t text_bytes)
{
    size_t used = 0;

    for (unsigned i = 0; i < nodes->n && i < NODES_NAMED && used < text_bytes; i++) {
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%" PRIu64, i == 0 ? "" : ", ",
                                 nodes->ids[i]);
    }
    if (nodes->n > NODES_NAMED && used < text_bytes) {
        snprintf(text + used, text_bytes - used, " and %u more", nodes->n - NODES_NAMED);
    }
}

static void warn_of_part(struct ctl *ctl, const struct spec_set *set, enum check_type part,
                         const struct remark_nodes *nodes)
{
    const char *first = NULL;
    char text[256] = "";
    unsigned n = 0;

    for (uint32_t i = 0; nodes->n > 0 && i < set->n_documents; i++) {
        if (wants(&set->documents[i], part)) {
            first = n++ == 0 ? set->documents[i].u.group->name : first;
        }
    }
    if (n > 0) {
        name_nodes(nodes, text, sizeof text);
        ctl_warn(
            ctl,
            "node%s %s %s no vote on server group \"%s\"%s (LOCAL_NOT_BUILT): built without %s "
            "checks; see nodectl node describe",
            nodes->n == 1 ? "" : "s", text, nodes->n == 1 ? "has" : "have", first,
            n > 1 ? " and others" : "", names_word(&names_check_type, part));
    }
}

void remark_parts(struct ctl *ctl, const struct spec_set *set, const struct remark_probing *probing)
{
    warn_of_part(ctl, set, CHECK_TYPE_TLS, &probing->without_tls);
    warn_of_part(ctl, set, CHECK_TYPE_GRPC, &probing->without_grpc);
}
