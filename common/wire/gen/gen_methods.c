/* Build tool: the method table out of a set of descriptors (protoc --descriptor_set_out).
 *
 * protobuf-c's own descriptors keep no options, so role and kind of each method are read here from
 * the .proto files' options (proto/jury/v1/options.proto). The build stops when a method of ours
 * has none, and when a message type contains itself, directly or through others: protobuf-c unpacks
 * by recursion and without a bound (S-PB-1). */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "google/protobuf/descriptor.pb-c.h"

#define OPTION_ROLE 50001
#define OPTION_KIND 50002
#define MESSAGES_MAX 1024
#define NAME_BYTES 256

typedef Google__Protobuf__FileDescriptorSet FileSet;
typedef Google__Protobuf__FileDescriptorProto File;
typedef Google__Protobuf__DescriptorProto Message;

enum visit {
    VISIT_NONE = 0,
    VISIT_OPEN,
    VISIT_DONE
};

struct type {
    char name[NAME_BYTES]; /* ".jury.v1.Backend" */
    const Message *message;
    enum visit visit;
};

struct types {
    struct type items[MESSAGES_MAX];
    size_t n_items;
};

static bool is_ours(const File *file)
{
    return strncmp(file->package, "jury.", 5) == 0;
}

static void types_add(struct types *types, const char *scope, const Message *message)
{
    if (types->n_items == MESSAGES_MAX) {
        fprintf(stderr, "gen_methods: more than %d message types\n", MESSAGES_MAX);
        exit(1);
    }
    struct type *type = &types->items[types->n_items++];
    if ((size_t)snprintf(type->name, sizeof type->name, "%s.%s", scope, message->name) >=
        sizeof type->name) {
        fprintf(stderr, "gen_methods: the name %s is too long\n", message->name);
        exit(1);
    }
    type->message = message;
    for (size_t i = 0; i < message->n_nested_type; i++) {
        types_add(types, type->name, message->nested_type[i]);
    }
}

static struct type *types_find(struct types *types, const char *name)
{
    for (size_t i = 0; i < types->n_items; i++) {
        if (strcmp(types->items[i].name, name) == 0) {
            return &types->items[i];
        }
    }
    fprintf(stderr, "gen_methods: no message type %s\n", name);
    exit(1);
}

/* Depth first; an open type met again is a cycle. */
static void refuse_cycles(struct types *types, struct type *type)
{
    if (type->visit == VISIT_DONE) {
        return;
    }
    if (type->visit == VISIT_OPEN) {
        fprintf(stderr, "message type %s contains itself: not allowed, see gen_methods.c\n",
                type->name + 1);
        exit(1);
    }
    type->visit = VISIT_OPEN;
    for (size_t i = 0; i < type->message->n_field; i++) {
        const Google__Protobuf__FieldDescriptorProto *field = type->message->field[i];
        if (field->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_MESSAGE) {
            refuse_cycles(types, types_find(types, field->type_name));
        }
    }
    type->visit = VISIT_DONE;
}

static unsigned option_value(const Google__Protobuf__MethodOptions *options, unsigned number)
{
    if (options != NULL) {
        for (unsigned i = 0; i < options->base.n_unknown_fields; i++) {
            const ProtobufCMessageUnknownField *field = &options->base.unknown_fields[i];
            if (field->tag == number && field->len == 1) {
                return field->data[0];
            }
        }
    }
    return 0;
}

/* ".jury.v1.BackendRef" -> "jury__v1__backend_ref__descriptor", protobuf-c's spelling. */
static void descriptor_name(const char *type_name, char *to)
{
    char last = '.';
    for (const char *at = type_name + 1; *at != '\0'; at++) {
        bool is_upper = *at >= 'A' && *at <= 'Z';
        if (*at == '.') {
            *to++ = '_';
            *to++ = '_';
        } else {
            if (is_upper && last != '.' && !(last >= 'A' && last <= 'Z')) {
                *to++ = '_';
            }
            *to++ = (char)(is_upper ? *at - 'A' + 'a' : *at);
        }
        last = *at;
    }
    strcpy(to, "__descriptor");
}

static void write_method(FILE *out, const File *file, const char *service,
                         const Google__Protobuf__MethodDescriptorProto *method)
{
    char request[2 * NAME_BYTES], response[2 * NAME_BYTES];
    unsigned role = option_value(method->options, OPTION_ROLE);
    unsigned kind = option_value(method->options, OPTION_KIND);
    if (role == 0 || kind == 0) {
        fprintf(stderr, "%s: method %s/%s has no role or no kind\n", file->name, service,
                method->name);
        exit(1);
    }
    descriptor_name(method->input_type, request);
    descriptor_name(method->output_type, response);
    fprintf(out, "METHOD(\"%s.%s/%s\", %u, %u, %s, %s)\n", file->package, service, method->name,
            role, kind, request, response);
}

static uint8_t *read_file(const char *path, size_t *ret_n_bytes)
{
    FILE *in = fopen(path, "rb");
    size_t capacity = 4U << 20;
    uint8_t *data = malloc(capacity);
    if (in == NULL || data == NULL) {
        fprintf(stderr, "gen_methods: cannot read %s\n", path);
        exit(1);
    }
    *ret_n_bytes = fread(data, 1, capacity, in);
    fclose(in);
    return data;
}

static void write_table(FILE *out, const FileSet *set)
{
    fputs("/* Made from the .proto files by gen_methods. */\n", out);
    for (size_t i = 0; i < set->n_file; i++) {
        const File *file = set->file[i];
        for (size_t j = 0; is_ours(file) && j < file->n_service; j++) {
            const Google__Protobuf__ServiceDescriptorProto *service = file->service[j];
            for (size_t k = 0; k < service->n_method; k++) {
                write_method(out, file, service->name, service->method[k]);
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: gen_methods DESCRIPTOR_SET OUTPUT\n");
        return 2;
    }
    size_t n_bytes;
    uint8_t *data = read_file(argv[1], &n_bytes);
    FileSet *set = google__protobuf__file_descriptor_set__unpack(NULL, n_bytes, data);
    struct types *types = calloc(1, sizeof *types);
    if (set == NULL || types == NULL) {
        fprintf(stderr, "gen_methods: %s is not a set of descriptors\n", argv[1]);
        return 1;
    }
    for (size_t i = 0; i < set->n_file; i++) {
        char scope[NAME_BYTES];
        snprintf(scope, sizeof scope, ".%s", set->file[i]->package);
        for (size_t j = 0; j < set->file[i]->n_message_type; j++) {
            types_add(types, scope, set->file[i]->message_type[j]);
        }
    }
    for (size_t i = 0; i < types->n_items; i++) {
        if (strncmp(types->items[i].name, ".jury.", 6) == 0) {
            refuse_cycles(types, &types->items[i]);
        }
    }
    FILE *out = fopen(argv[2], "w");
    if (out == NULL) {
        fprintf(stderr, "gen_methods: cannot write %s\n", argv[2]);
        return 1;
    }
    write_table(out, set);
    google__protobuf__file_descriptor_set__free_unpacked(set, NULL);
    free(types);
    free(data);
    bool is_whole = ferror(out) == 0;
    return fclose(out) == 0 && is_whole ? 0 : 1;
}
