#include "common/spec/value.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/plant.h"
#include "common/base/str.h"
#include "common/base/units.h"
#include "common/spec/rfc3339.h"

static int refuse_kind(const struct doc_node *node, const char *wanted, struct errmsg *err)
{
    if (node->kind == DOC_SCALAR) {
        return errmsg_set(err, ERR_INVALID, "must be %s, got \"%.60s\"", wanted, node->text);
    }
    return errmsg_set(err, ERR_INVALID, "must be %s, got %s", wanted, doc_kind_word(node));
}

/* Add "; did you mean ...?" to a sentence, if there is something that may be meant. */
static int say_meant(struct errmsg *err, const char *near, const char *how)
{
    size_t used = err == NULL ? 0 : strlen(err->text);

    if (err != NULL && near != NULL) {
        snprintf(err->text + used, sizeof err->text - used, "; did you mean \"%s\"%s?", near, how);
    }
    return ERR_INVALID;
}

static void store_uint(void *to, uint32_t bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        *(uint8_t *)to = (uint8_t)value;
        return;
    case 2:
        *(uint16_t *)to = (uint16_t)value;
        return;
    case 4:
        *(uint32_t *)to = (uint32_t)value;
        return;
    default:
        assert(bytes == 8);
        *(uint64_t *)to = value;
        return;
    }
}

static int refuse_range(const struct spec_field *field, const char *text, struct errmsg *err)
{
    char allowed[VALUE_TEXT_BYTES];

    return errmsg_set(err, ERR_INVALID, "must be %s, got \"%.60s\"",
                      value_format_allowed(field, allowed, sizeof allowed), text);
}

static int parse_text(const struct spec_field *field, const struct doc_node *node, void *to,
                      struct errmsg *err)
{
    size_t n_bytes = strlen(node->text);

    if (n_bytes < field->min || n_bytes > field->max) {
        return errmsg_set(err, ERR_INVALID, "must have %" PRIu64 "..%" PRIu64 " bytes, got %zu",
                          field->min, field->max, n_bytes);
    }
    if (!str_is_text(node->text)) {
        return errmsg_set(err, ERR_INVALID, "must not contain control characters");
    }
    assert(field->max < field->bytes);
    memset(to, 0, field->bytes);
    memcpy(to, node->text, n_bytes);
    return 0;
}

/* The word that other YAML readers take for true or false; NULL: none. */
static const char *bool_of_others(const char *text)
{
    static const char *const words[][2] = {{"true", "true"},   {"yes", "true"}, {"on", "true"},
                                           {"false", "false"}, {"no", "false"}, {"off", "false"}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i][0]) == 0) {
            return words[i][1];
        }
    }
    return NULL;
}

static int parse_bool(const struct doc_node *node, void *to, struct errmsg *err)
{
    if (node->is_quoted || (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0)) {
        const char *meant = bool_of_others(node->text);

        refuse_kind(node, "true or false", err);
        return meant == NULL ? ERR_INVALID
                             : say_meant(err, meant, node->is_quoted ? " without quotes" : "");
    }
    *(bool *)to = node->text[0] == 't';
    return 0;
}

static int parse_uint(const struct spec_field *field, const struct doc_node *node, void *to,
                      struct errmsg *err)
{
    uint64_t value = 0;
    bool has_leading_zero = node->text[0] == '0' && node->text[1] != '\0';

    if (node->is_quoted) {
        return errmsg_set(err, ERR_INVALID, "must be a number without quotes, got \"%.60s\"",
                          node->text);
    }
    /* 010 is eight for one YAML reader and ten for another. */
    if (has_leading_zero || !str_parse_u64(node->text, field->max, &value) || value < field->min) {
        return refuse_range(field, node->text, err);
    }
    store_uint(to, field->bytes, value);
    return 0;
}

static int parse_duration(const struct spec_field *field, const struct doc_node *node, void *to,
                          struct errmsg *err)
{
    char allowed[VALUE_TEXT_BYTES];
    struct errmsg why = {{0}};
    uint64_t ms = 0;
    int rc = units_parse_duration_ms(node->text, &ms, &why);

    if (rc != 0) {
        return errmsg_set(err, rc, "%s (allowed: %s)", why.text,
                          value_format_allowed(field, allowed, sizeof allowed));
    }
    if ((ms < field->min || ms > field->max) && !plant_is("spec-range")) {
        return refuse_range(field, node->text, err);
    }
    *(uint32_t *)to = (uint32_t)ms;
    return 0;
}

static int parse_word(const struct spec_field *field, const struct doc_node *node, void *to,
                      struct errmsg *err)
{
    const char *words[32];
    char allowed[VALUE_TEXT_BYTES];
    size_t n_words = 0;
    unsigned value = names_value(field->names, node->text);

    if (value != 0) {
        *(uint8_t *)to = (uint8_t)value;
        return 0;
    }
    for (size_t i = 0; i < field->names->n_rows && n_words < 31; i++) {
        words[n_words++] = field->names->rows[i].word;
    }
    if (field->zero_word != NULL) {
        words[n_words++] = field->zero_word;
    }
    errmsg_set(err, ERR_INVALID, "must be %s, got \"%.60s\"",
               value_format_allowed(field, allowed, sizeof allowed), node->text);
    return say_meant(err, spec_nearest(node->text, words, n_words), "");
}

static int parse_address(const struct spec_field *field, const struct doc_node *node, void *to,
                         struct errmsg *err)
{
    struct addr addr;
    int rc = addr_parse(node->text, &addr, err);

    if (rc != 0) {
        return rc;
    }
    if (field->max != 0 && addr.family != field->max) {
        return errmsg_set(err, ERR_INVALID, "must be an IPv%u address, got \"%.60s\"",
                          (unsigned)field->max, node->text);
    }
    *(struct addr *)to = addr;
    return 0;
}

/* One of "200", "200-299", "2xx"; text of n bytes. False: no such thing. */
static bool parse_code_item(const char *text, size_t n, struct http_codes *codes)
{
    unsigned first = 0;
    unsigned last = 0;

    if (n != 3 && n != 7) {
        return false;
    }
    if (n == 3 && text[1] == 'x' && text[2] == 'x') {
        if (text[0] < '2' || text[0] > '5') {
            return false;
        }
        first = (unsigned)(text[0] - '0') * 100;
        http_codes_add(codes, first, first + 99);
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 3 ? text[i] != '-' : text[i] < '0' || text[i] > '9') {
            return false;
        }
    }
    first = (unsigned)((text[0] - '0') * 100 + (text[1] - '0') * 10 + (text[2] - '0'));
    last =
        n == 3 ? first : (unsigned)((text[4] - '0') * 100 + (text[5] - '0') * 10 + (text[6] - '0'));
    if (first < HTTP_CODE_MIN || last > HTTP_CODE_MAX || first > last) {
        return false;
    }
    http_codes_add(codes, first, last);
    return true;
}

static int parse_codes(const struct doc_node *node, void *to, struct errmsg *err)
{
    struct http_codes codes = {{0}};
    const char *at = node->text;

    for (;;) {
        at += strspn(at, " ");
        size_t n = strcspn(at, ",");
        size_t n_item = n;

        while (n_item > 0 && at[n_item - 1] == ' ') {
            n_item--;
        }
        if (!parse_code_item(at, n_item, &codes)) {
            return errmsg_set(err, ERR_INVALID,
                              "must be codes, ranges or classes within 200..599 such as "
                              "\"200-299,302\" or \"2xx\", got \"%.*s\"",
                              (int)(n_item < 60 ? n_item : 60), at);
        }
        at += n;
        if (*at == '\0') {
            break;
        }
        at++;
    }
    *(struct http_codes *)to = codes;
    return 0;
}

/* A misspelt rule may have a figure behind it: "atleast 2", "Percent:82", "at-least=2". */
static int parse_column(const char *text, struct rule_column *ret_column, struct errmsg *err)
{
    static const char *const words[] = {"local", "any",      "majority", "zone-majority",
                                        "all",   "at-least", "percent",  "gwlb",
                                        "nlb",   "clb",      "r53"};
    char word[32];
    char meant[48];
    int rc = rule_column_parse(text, ret_column, err);
    size_t n = strcspn(text, " :=0123456789");

    if (rc == 0 || n >= sizeof word) {
        return rc;
    }
    snprintf(word, sizeof word, "%.*s", (int)(strncasecmp(text, "r5", 2) == 0 ? strlen(text) : n),
             text);
    const char *near = spec_nearest(word, words, sizeof words / sizeof words[0]);
    if (near == NULL) {
        return rc;
    }
    size_t n_figure = strspn(text + n + strspn(text + n, " :="), "0123456789");
    bool has_figure = strcmp(near, "at-least") == 0 || strcmp(near, "percent") == 0;
    snprintf(meant, sizeof meant, has_figure ? "%s %.*s" : "%s", near,
             (int)(n_figure < 3 ? n_figure : 3), text + n + strspn(text + n, " :="));
    if (has_figure && n_figure == 0) {
        snprintf(meant, sizeof meant, "%s %s", near, near[0] == 'a' ? "K" : "X");
    } else if (rule_column_parse(meant, &(struct rule_column){0}, NULL) != 0) {
        return rc; /* the figure is what is wrong */
    }
    return say_meant(err, meant, "");
}

static int parse_split_rule(const struct doc_node *node, struct verdict_rule *rule,
                            struct errmsg *err)
{
    static const char *const names[2] = {"down", "up"};
    struct rule_column columns[2];

    for (const struct doc_node *child = node->first; child != NULL; child = child->next) {
        if (strcmp(child->key, "down") != 0 && strcmp(child->key, "up") != 0) {
            return errmsg_set(err, ERR_INVALID, "knows down and up, got \"%.40s\"", child->key);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        const struct doc_node *child = doc_find(node, names[i]);

        if (child == NULL) {
            return errmsg_set(err, ERR_INVALID, "needs both down and up; %s is missing", names[i]);
        }
        if (child->kind != DOC_SCALAR) {
            return errmsg_set(err, ERR_INVALID, "%s must be a rule such as majority, got %s",
                              names[i], doc_kind_word(child));
        }
        int rc = parse_column(child->text, &columns[i], err);
        if (rc != 0) {
            errmsg_prefix(err, "%s", names[i]);
            return rc;
        }
    }
    rule->down = columns[0];
    rule->up = columns[1];
    rule->is_split = true;
    return 0;
}

/* The rule's own fields; below_quorum beside them is a document field of its own. */
static int parse_rule(const struct doc_node *node, void *to, struct errmsg *err)
{
    struct verdict_rule *rule = to;
    struct rule_column column;

    if (node->kind == DOC_MAP) {
        return parse_split_rule(node, rule, err);
    }
    if (node->kind != DOC_SCALAR) {
        return refuse_kind(node, "a rule such as majority, or {down: RULE, up: RULE}", err);
    }
    int rc = parse_column(node->text, &column, err);
    if (rc != 0) {
        return rc;
    }
    rule->down = column;
    rule->up = column;
    rule->is_split = false;
    return 0;
}

static int parse_public_key(const struct doc_node *node, void *to, struct errmsg *err)
{
    struct public_key key;

    if (!str_unhex(node->text, key.bytes, sizeof key.bytes)) {
        return errmsg_set(err, ERR_INVALID,
                          "must be a public key of 64 hex digits, got %zu characters",
                          strlen(node->text));
    }
    *(struct public_key *)to = key;
    return 0;
}

/* Text as it is, or "hex:" and pairs of digits, which may stand apart. */
static int parse_data(const struct spec_field *field, const struct doc_node *node, void *to,
                      struct errmsg *err)
{
    struct check_data data = {0};
    const char *text = node->text;
    const bool is_hex = strncmp(text, VALUE_HEX_PREFIX, strlen(VALUE_HEX_PREFIX)) == 0;
    size_t n_bytes = 0;

    for (text += is_hex ? strlen(VALUE_HEX_PREFIX) : 0; *text != '\0'; n_bytes++) {
        uint8_t *byte = &data.bytes[n_bytes < sizeof data.bytes ? n_bytes : 0];

        if (!is_hex) {
            *byte = (uint8_t)*text++;
            continue;
        }
        text += strspn(text, " ");
        if (!str_unhex((const char[]){text[0], text[0] == '\0' ? '\0' : text[1], '\0'}, byte, 1)) {
            return errmsg_set(err, ERR_INVALID,
                              "must be text, or \"hex:\" and pairs of hex digits, got \"%.60s\"",
                              node->text);
        }
        text += 2;
        text += strspn(text, " ");
    }
    if (n_bytes < field->min || n_bytes > field->max) {
        return errmsg_set(err, ERR_INVALID, "must have %" PRIu64 "..%" PRIu64 " bytes, got %zu",
                          field->min, field->max, n_bytes);
    }
    data.n_bytes = (uint16_t)n_bytes;
    assert(field->bytes <= sizeof data && field->max <= field->bytes - sizeof data.n_bytes);
    memcpy(to, &data, field->bytes); /* a check_line is its beginning */
    return 0;
}

static int parse_time(const struct doc_node *node, void *to, struct errmsg *err)
{
    int64_t wall_ms = 0;

    if (!rfc3339_parse_ms(node->text, &wall_ms) || wall_ms <= 0) {
        return errmsg_set(err, ERR_INVALID,
                          "must be a time in UTC such as 2027-01-31T00:00:00Z, got \"%.60s\"",
                          node->text);
    }
    *(int64_t *)to = wall_ms;
    return 0;
}

static int parse_pass(const struct doc_node *node, void *to, struct errmsg *err)
{
    struct rule_column column = {0};
    struct errmsg ignored;

    if (rule_column_parse(node->text, &column, &ignored) != 0 ||
        (column.kind != RULE_ALL && column.kind != RULE_ANY && column.kind != RULE_AT_LEAST)) {
        return errmsg_set(err, ERR_INVALID, "must be all, any or at-least N, got \"%.60s\"",
                          node->text);
    }
    *(struct rule_column *)to = column;
    return 0;
}

static int parse_scalar(const struct spec_field *field, const struct doc_node *node, void *to,
                        struct errmsg *err)
{
    switch ((enum spec_type)field->type) {
    case SPEC_TYPE_TEXT:
        return parse_text(field, node, to, err);
    case SPEC_TYPE_BOOL:
        return parse_bool(node, to, err);
    case SPEC_TYPE_UINT:
        return parse_uint(field, node, to, err);
    case SPEC_TYPE_DURATION:
        return parse_duration(field, node, to, err);
    case SPEC_TYPE_WORD:
        return parse_word(field, node, to, err);
    case SPEC_TYPE_ADDRESS:
        return parse_address(field, node, to, err);
    case SPEC_TYPE_ENDPOINT:
        return endpoint_parse(node->text, to, err);
    case SPEC_TYPE_CIDR:
        return cidr_parse(node->text, to, err);
    case SPEC_TYPE_CODES:
        return parse_codes(node, to, err);
    case SPEC_TYPE_PUBLIC_KEY:
        return parse_public_key(node, to, err);
    case SPEC_TYPE_DATA:
        return parse_data(field, node, to, err);
    case SPEC_TYPE_TIME:
        return parse_time(node, to, err);
    case SPEC_TYPE_PASS:
        return parse_pass(node, to, err);
    case SPEC_TYPE_RULE:
    case SPEC_TYPE_NONE:
    case SPEC_TYPE_LABELS:
    case SPEC_TYPE_OBJECT:
    case SPEC_TYPE_LIST:
        break;
    }
    assert(false);
    return ERR_INTERNAL;
}

int value_parse(const struct spec_field *field, const struct doc_node *node, void *to,
                struct errmsg *err)
{
    if (doc_is_null(node)) {
        return errmsg_set(err, ERR_INVALID, "has no value: write one or leave the field out");
    }
    if (field->type == SPEC_TYPE_RULE) {
        return parse_rule(node, to, err);
    }
    if (node->kind != DOC_SCALAR) {
        return refuse_kind(node, "a single value", err);
    }
    if (field->zero_word != NULL && strcmp(node->text, field->zero_word) == 0) {
        memset(to, 0, field->bytes);
        return 0;
    }
    int rc = parse_scalar(field, node, to, err);
    /* "All", "any": a field of figures that has a word for none of them. */
    if (rc != 0 && field->zero_word != NULL && field->type != SPEC_TYPE_WORD) {
        const char *words[] = {field->zero_word};

        return say_meant(err, spec_nearest(node->text, words, 1), "");
    }
    return rc;
}
