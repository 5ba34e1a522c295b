#include "nodectl/backend_ref.h"

#include <stdio.h>
#include <string.h>

#include "jury/v1/group.pb-c.h"
#include "nodectl/commands.h"
#include "nodectl/connect.h"
#include "nodectl/render.h"

static void set_ref(struct backend_ref *ref, const char *address, uint32_t port)
{
    snprintf(ref->address, sizeof ref->address, "%s", address);
    ref->ref.group = ref->group;
    ref->ref.address = ref->address;
    ref->ref.port = port;
}

static bool is_named(const Jury__V1__Backend *backend, const char *word, const struct addr *addr)
{
    struct addr other;

    if (addr->family != ADDR_NONE) {
        return addr_parse(backend->address, &other, NULL) == 0 && addr_compare(&other, addr) == 0;
    }
    return strcmp(backend->description, word) == 0;
}

/* The backends that are meant by a word; the last of them is put into the reference. */
static size_t find_named(struct backend_ref *ref, const Jury__V1__ListBackendsResponse *backends,
                         const char *word, char names[RENDER_TEXT_BYTES])
{
    struct addr addr = {0};
    size_t used = 0;
    size_t n = 0;

    (void)addr_parse(word, &addr, NULL);
    names[0] = '\0';
    for (size_t i = 0; i < backends->n_backends; i++) {
        const Jury__V1__Backend *backend = backends->backends[i]->backend;
        char endpoint[RENDER_TEXT_BYTES];
        if (backend == NULL || !is_named(backend, word, &addr)) {
            continue;
        }
        render_endpoint(backend->address, backend->port, endpoint);
        if (used < RENDER_TEXT_BYTES) {
            int n_more = snprintf(names + used, RENDER_TEXT_BYTES - used, "%s%.100s",
                                  n == 0 ? "" : ", ", endpoint);
            used += n_more > 0 ? (size_t)n_more : 0;
        }
        set_ref(ref, backend->address, backend->port);
        n++;
    }
    return n;
}

static int resolve(struct ctl *ctl, const char *word, struct backend_ref *ref)
{
    Jury__V1__ListBackendsRequest request;
    struct ctl_list list = {0};
    char names[RENDER_TEXT_BYTES];

    jury__v1__list_backends_request__init(&request);
    request.group = ref->group;
    int rc = ctl_call_list(ctl, "jury.v1.BackendService/ListBackends", &request.base, &list);
    if (rc == 0) {
        size_t n = find_named(ref, (const Jury__V1__ListBackendsResponse *)(const void *)list.whole,
                              word, names);

        if (n == 0) {
            ctl_hint(ctl, "see: nodectl backend list %s", ref->group);
            rc = ctl_fail(ctl, ERR_NOTFOUND, ERR_SAY_NO_BACKEND, word, ref->group);
        } else if (n > 1) {
            rc = ctl_fail(ctl, ERR_USAGE, "\"%.80s\" is more than one backend of group \"%s\": %s",
                          word, ref->group, names);
        }
    }
    ctl_list_close(&list);
    return rc;
}

int backend_ref_parse(struct ctl *ctl, const char *text, struct backend_ref *ref)
{
    const char *slash = strchr(text, '/');
    struct endpoint at;
    char address[ADDR_TEXT_BYTES];

    if (slash == NULL || slash == text || slash[1] == '\0' ||
        (size_t)(slash - text) > LIMIT_NAME_BYTES) {
        ctl_hint(ctl, "usage: nodectl %s %s", ctl->command->name, ctl->command->arguments);
        return ctl_fail(ctl, ERR_USAGE, "\"%.80s\" is not GROUP/BACKEND", text);
    }
    *ref = (struct backend_ref){.group = ""};
    jury__v1__backend_ref__init(&ref->ref);
    snprintf(ref->group, sizeof ref->group, "%.*s", (int)(slash - text), text);
    if (endpoint_parse(slash + 1, &at, NULL) == 0) {
        set_ref(ref, addr_format(&at.addr, address), at.port);
        return 0;
    }
    return resolve(ctl, slash + 1, ref);
}
