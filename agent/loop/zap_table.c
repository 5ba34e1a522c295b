/* The key table and the identities of zap.h; the thread is in zap.c. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/loop/zap.h"
#include "common/base/str.h"

struct zap_table {
    _Atomic uint32_t n_refs;
    size_t n_keys;
    struct zap_key keys[];
};

static const char *const role_words[] = {
    [ZAP_ROLE_NODE] = "node",
    [ZAP_ROLE_ADMIN] = "admin",
    [ZAP_ROLE_OPERATOR] = "operator",
    [ZAP_ROLE_VIEWER] = "viewer",
};

bool zap_identity_parse(const char *user_id, struct zap_identity *ret_identity)
{
    const char *colon = strchr(user_id, ':');

    *ret_identity = (struct zap_identity){.role = ZAP_ROLE_NONE};
    if (colon == NULL || !str_copy(ret_identity->name, sizeof ret_identity->name, colon + 1)) {
        return false;
    }
    for (int role = ZAP_ROLE_NODE; role <= ZAP_ROLE_VIEWER; role++) {
        size_t n_bytes = strlen(role_words[role]);

        if ((size_t)(colon - user_id) != n_bytes ||
            memcmp(user_id, role_words[role], n_bytes) != 0) {
            continue;
        }
        if (role == ZAP_ROLE_NODE &&
            (!str_parse_u64(colon + 1, UINT64_MAX, &ret_identity->node_id) ||
             ret_identity->node_id == 0)) {
            return false;
        }
        ret_identity->role = (enum zap_role)role;
        return true;
    }
    return false;
}

char *zap_user_id(enum zap_role role, const char *name, char user_id[ZAP_USER_ID_BYTES])
{
    snprintf(user_id, ZAP_USER_ID_BYTES, "%s:%s", role_words[role], name);
    return user_id;
}

char *zap_node_user_id(uint64_t node_id, char user_id[ZAP_USER_ID_BYTES])
{
    snprintf(user_id, ZAP_USER_ID_BYTES, "node:%llu", (unsigned long long)node_id);
    return user_id;
}

static int compare_keys(const void *a, const void *b)
{
    const struct zap_key *left = a;
    const struct zap_key *right = b;

    return memcmp(left->public_key, right->public_key, CURVE_KEY_BYTES);
}

static bool holds(const struct zap_table *table, const uint8_t public_key[CURVE_KEY_BYTES])
{
    for (size_t i = 0; i < table->n_keys; i++) {
        if (memcmp(table->keys[i].public_key, public_key, CURVE_KEY_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

struct zap_table *zap_table_new(const struct zap_key keys[], size_t n_keys)
{
    struct zap_table *table = malloc(sizeof *table + n_keys * sizeof table->keys[0]);

    if (table == NULL) {
        return NULL;
    }
    atomic_init(&table->n_refs, 1);
    table->n_keys = 0;
    for (size_t i = 0; i < n_keys; i++) {
        if (!holds(table, keys[i].public_key)) {
            table->keys[table->n_keys++] = keys[i];
        }
    }
    qsort(table->keys, table->n_keys, sizeof table->keys[0], compare_keys);
    return table;
}

struct zap_table *zap_table_ref(struct zap_table *table)
{
    atomic_fetch_add_explicit(&table->n_refs, 1, memory_order_relaxed);
    return table;
}

void zap_table_unref(void *value)
{
    struct zap_table *table = value;

    if (table != NULL && atomic_fetch_sub_explicit(&table->n_refs, 1, memory_order_acq_rel) == 1) {
        free(table);
    }
}

const struct zap_key *zap_table_find(const struct zap_table *table,
                                     const uint8_t public_key[CURVE_KEY_BYTES])
{
    size_t low = 0, high = table->n_keys;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(table->keys[middle].public_key, public_key, CURVE_KEY_BYTES);

        if (order == 0) {
            return &table->keys[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

bool zap_table_admits(const struct zap_table *table, const uint8_t public_key[CURVE_KEY_BYTES],
                      const char *user_id)
{
    const struct zap_key *key = zap_table_find(table, public_key);

    return key != NULL && !key->is_revoked && strcmp(key->user_id, user_id) == 0;
}

const char *zap_refusal_word(enum zap_refusal_reason reason)
{
    static const char *const words[] = {[ZAP_REFUSED_NONE] = "none",
#define ZAP_WORD(name, word) [name] = word,
                                        ZAP_REFUSALS(ZAP_WORD)
#undef ZAP_WORD
    };
    return reason < ZAP_REFUSED_COUNT ? words[reason] : "unknown";
}
