/* The methods of the API: names, messages, role and kind, made from the .proto files at build time
 * (proto/jury/v1/options.proto). There is no second list. */
#ifndef JURY_WIRE_METHOD_H
#define JURY_WIRE_METHOD_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of jury.v1.MethodKind. */
enum method_kind {
    METHOD_NONE = 0,
    METHOD_LOCAL = 1, /* this node's own knowledge: no leader, no quorum */
    METHOD_READ = 2,  /* the catalog: linearizable, or `stale` */
    METHOD_WRITE = 3  /* a change of the catalog: forwarded, applied once, safe to retry */
};

struct wire_method {
    const char *name; /* "jury.v1.GroupService/GetGroup" */
    uint8_t role;     /* the least enum key_role that may call it */
    uint8_t kind;     /* enum method_kind */
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
};

size_t wire_n_methods(void);
const struct wire_method *wire_method_at(size_t index);
/* NULL: unknown. */
const struct wire_method *wire_method_find(const char *name);

#endif
