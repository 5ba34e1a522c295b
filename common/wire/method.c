#include "common/wire/method.h"

#include <assert.h>
#include <string.h>

#include "jury/v1/cluster.pb-c.h"
#include "jury/v1/config.pb-c.h"
#include "jury/v1/event.pb-c.h"
#include "jury/v1/group.pb-c.h"
#include "jury/v1/hold.pb-c.h"
#include "jury/v1/listener.pb-c.h"
#include "jury/v1/probe.pb-c.h"
#include "jury/v1/simulation.pb-c.h"
#include "jury/v1/verdict.pb-c.h"

static const struct wire_method methods[] = {
#define METHOD(name, role, kind, request, response) {name, role, kind, &request, &response},
#include "jury/methods.inc"
#undef METHOD
};

size_t wire_n_methods(void)
{
    return sizeof methods / sizeof methods[0];
}

const struct wire_method *wire_method_at(size_t index)
{
    assert(index < wire_n_methods());
    return &methods[index];
}

const struct wire_method *wire_method_find(const char *name)
{
    for (size_t i = 0; i < wire_n_methods(); i++) {
        if (strcmp(methods[i].name, name) == 0) {
            return &methods[i];
        }
    }
    return NULL;
}
