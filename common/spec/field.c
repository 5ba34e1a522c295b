#include "common/spec/field.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "common/base/str.h"
#include "common/model/profile.h"
#include "common/spec/fields.h"

const struct spec_kind_info spec_kinds[SPEC_N_KINDS] = {
    {SPEC_GROUP, "Group", "server group", "group", &spec_group_metadata_table, &spec_group_table,
     sizeof(struct server_group),
     "Backends behind one service, how they are checked and what follows from it."},
    {SPEC_LISTENER, "Listener", "listener", "listener", &spec_listener_metadata_table,
     &spec_listener_table, sizeof(struct listener),
     "An address and port where clients connect, and the group that serves it."},
    {SPEC_CLUSTER_SETTINGS, "ClusterSettings", "cluster settings", "clustersettings", NULL,
     &spec_settings_table, sizeof(struct cluster_settings), "What holds for the whole cluster."},
    {SPEC_NODE, "Node", "node", "node", NULL, &spec_node_table, sizeof(struct member_node),
     "A member of the cluster."},
    {SPEC_KEY, "Key", "key", "key", &spec_key_metadata_table, &spec_key_table,
     sizeof(struct access_key), "Who may ask the cluster and what."},
};

static const char *const later_kinds[] = {"Instance"};

const struct spec_kind_info *spec_kind_info(enum spec_kind kind)
{
    assert(kind >= SPEC_GROUP && kind <= SPEC_KEY);
    return &spec_kinds[kind - SPEC_GROUP];
}

const struct spec_kind_info *spec_kind_find(const char *word)
{
    for (size_t i = 0; i < SPEC_N_KINDS; i++) {
        if (strcmp(spec_kinds[i].word, word) == 0) {
            return &spec_kinds[i];
        }
    }
    return NULL;
}

bool spec_kind_is_later(const char *word)
{
    for (size_t i = 0; i < sizeof later_kinds / sizeof later_kinds[0]; i++) {
        if (strcmp(later_kinds[i], word) == 0) {
            return true;
        }
    }
    return false;
}

const struct spec_field *spec_field_find(const struct spec_table *table, const char *name)
{
    for (size_t i = 0; i < table->n_fields; i++) {
        if (strcmp(table->fields[i].name, name) == 0) {
            return &table->fields[i];
        }
    }
    return NULL;
}

bool spec_field_applies(const struct spec_field *field, const void *base)
{
    const uint8_t *bytes = base;

    if (field->unless_offset != 0 &&
        *(const uint32_t *)(const void *)(bytes + field->unless_offset) != 0) {
        return false;
    }
    if (field->when != NULL) {
        return field->when(base);
    }
    return field->when_value == 0 || bytes[field->when_offset] == field->when_value;
}

void spec_defaults(enum spec_kind kind, enum profile profile, enum protocol protocol, void *ret)
{
    switch (kind) {
    case SPEC_GROUP:
        profile_group_defaults(profile, protocol, ret);
        return;
    case SPEC_LISTENER:
        ((struct listener *)ret)->protocol = PROTOCOL_TCP;
        return;
    case SPEC_CLUSTER_SETTINGS:
        cluster_settings_default(ret);
        return;
    case SPEC_NODE:
        ((struct member_node *)ret)->role = ROLE_VOTER;
        return;
    case SPEC_KEY:
    case SPEC_KIND_NONE:
        return;
    }
}

void spec_element_defaults(const struct spec_list *list, enum profile profile,
                           enum protocol protocol, enum check_type type, void *ret)
{
    if (strcmp(list->element_word, "backend") == 0) {
        profile_backend_defaults(profile, ret);
    } else if (strcmp(list->element_word, "check") == 0) {
        struct named_check *check = ret;

        check->check_class = CHECK_LOCAL;
        profile_check_defaults(profile, protocol, type, &check->check);
    }
}

/* Two neighbouring letters swapped: one mistake, though the distance is two. */
static bool is_swapped(const char *a, const char *b)
{
    size_t at = 0;

    while (a[at] != '\0' && a[at] == b[at]) {
        at++;
    }
    return a[at] != '\0' && b[at] != '\0' && a[at] == b[at + 1] && a[at + 1] == b[at] &&
           strcmp(a + at + 2, b + at + 2) == 0;
}

static const char *to_lower(const char *word, char text[65])
{
    size_t n = 0;

    for (; word[n] != '\0' && n < 64; n++) {
        text[n] = (char)tolower((unsigned char)word[n]);
    }
    text[n] = '\0';
    return text;
}

/* The one word that is a part of what was written, as 1.2 of TLSv1.2; NULL: none, or several. */
static const char *only_part(const char *low, const char *const words[], size_t n_words)
{
    const char *found = NULL;
    char part[65];

    for (size_t i = 0; i < n_words; i++) {
        if (strlen(words[i]) < 3 || strstr(low, to_lower(words[i], part)) == NULL) {
            continue;
        }
        if (found != NULL) {
            return NULL;
        }
        found = words[i];
    }
    return found;
}

const char *spec_nearest(const char *word, const char *const words[], size_t n_words)
{
    char low[65];
    char other[65];
    const char *best = NULL;
    size_t n_bytes = strlen(word);
    /* A third of the word may be wrong; more is no spelling mistake. */
    unsigned best_distance = n_bytes < 6 ? 2 : (unsigned)(n_bytes / 3) + 1;

    if (n_bytes > 64) {
        return NULL;
    }
    to_lower(word, low);
    for (size_t i = 0; i < n_words; i++) {
        to_lower(words[i], other);
        unsigned distance = is_swapped(low, other) ? 1 : str_distance(low, other);

        if (distance < best_distance && distance < strlen(words[i])) {
            best_distance = distance;
            best = words[i];
        }
    }
    return best != NULL ? best : only_part(low, words, n_words);
}
