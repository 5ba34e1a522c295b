/* ProtoJSON as a filter, for comparison with other implementations
 * (tests/integration/protojson.py).
 *
 * Each input line is "out TYPE HEX" or "in TYPE JSON"; each output line is the JSON of the message,
 * its bytes in hex, or "error SENTENCE". TYPE is any message that a method of the API leads to. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/wire/json.h"
#include "common/wire/method.h"
#include "common/wire/unpack.h"

#define LINE_BYTES (4 * 1024 * 1024)

static const struct wire_limits limits = {.bytes_max = 1024 * 1024, .elements_max = 262144};

/* Depth first; the types do not contain themselves. */
static const ProtobufCMessageDescriptor *find_in(const ProtobufCMessageDescriptor *type,
                                                 const char *name)
{
    const ProtobufCMessageDescriptor *found = strcmp(type->name, name) == 0 ? type : NULL;

    for (unsigned i = 0; found == NULL && i < type->n_fields; i++) {
        if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE) {
            found = find_in(type->fields[i].descriptor, name);
        }
    }
    return found;
}

static const ProtobufCMessageDescriptor *find_type(const char *name)
{
    for (size_t i = 0; i < wire_n_methods(); i++) {
        const ProtobufCMessageDescriptor *found = find_in(wire_method_at(i)->request, name);

        if (found == NULL) {
            found = find_in(wire_method_at(i)->response, name);
        }
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

static int to_json(const ProtobufCMessageDescriptor *type, const char *hex,
                   struct wire_arena *arena, struct errmsg *err)
{
    size_t n_bytes = strlen(hex) / 2;
    uint8_t *data = malloc(n_bytes + 1);
    ProtobufCMessage *message;
    int rc = data != NULL && str_unhex(hex, data, n_bytes)
                 ? wire_unpack(type, &limits, data, n_bytes, arena, &message, err)
                 : errmsg_set(err, ERR_INVALID, "not hex");

    free(data);
    if (rc == 0) {
        json_t *json = wire_json_new(message);
        char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

        puts(text != NULL ? text : "error no memory");
        free(text);
        json_decref(json);
    }
    return rc;
}

static int from_json(const ProtobufCMessageDescriptor *type, const char *text,
                     struct wire_arena *arena, struct errmsg *err)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ProtobufCMessage *message;
    int rc = json != NULL ? wire_json_read(type, json, arena, &message, err)
                          : errmsg_set(err, ERR_INVALID, "%s", error.text);

    if (rc == 0) {
        size_t n_bytes;
        uint8_t *data = wire_pack(message, arena, &n_bytes);

        for (size_t i = 0; data != NULL && i < n_bytes; i++) {
            printf("%02x", data[i]);
        }
        putchar('\n');
    }
    json_decref(json);
    return rc;
}

static void handle_line(char *line)
{
    char *rest = line;
    char *way = strsep(&rest, " ");
    char *name = strsep(&rest, " ");
    const ProtobufCMessageDescriptor *type = name != NULL ? find_type(name) : NULL;
    struct wire_arena arena;
    struct errmsg err = {"unknown type or no data"};
    int rc = ERR_INVALID;

    wire_arena_init(&arena, wire_budget(&limits));
    if (type != NULL && rest != NULL) {
        rc = strcmp(way, "out") == 0 ? to_json(type, rest, &arena, &err)
                                     : from_json(type, rest, &arena, &err);
    }
    if (rc != 0) {
        printf("error %s\n", err.text);
    }
    wire_arena_close(&arena);
    fflush(stdout);
}

int main(void)
{
    char *line = malloc(LINE_BYTES);

    while (line != NULL && fgets(line, LINE_BYTES, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        handle_line(line);
    }
    free(line);
    return 0;
}
