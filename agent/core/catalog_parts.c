#include "agent/core/catalog_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/catalog_codec.h"

void *catalog_alloc(size_t n, size_t size)
{
    void *memory = calloc(n > 0 ? n : 1, size);

    if (memory == NULL) {
        abort();
    }
    return memory;
}

void *catalog_realloc(void *old, size_t n, size_t size)
{
    if (n > SIZE_MAX / size) {
        abort();
    }
    void *memory = realloc(old, n * size);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

struct hash128 catalog_hash(const void *data, size_t n_bytes)
{
    static const struct hash_key key = {UINT64_C(0x6a75727920636174), UINT64_C(0x616c6f6720763100)};

    return hash_128(&key, data, n_bytes);
}

struct hash128 hash128_add(struct hash128 a, struct hash128 b)
{
    struct hash128 sum = {.low = a.low + b.low, .high = a.high + b.high};

    sum.high += sum.low < a.low;
    return sum;
}

struct hash128 hash128_subtract(struct hash128 a, struct hash128 b)
{
    struct hash128 difference = {.low = a.low - b.low, .high = a.high - b.high};

    difference.high -= a.low < b.low;
    return difference;
}

bool hash128_equal(struct hash128 a, struct hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

static void count_up(_Atomic uint32_t *refs)
{
    atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

/* True when that was the last reference; what others did before is then visible here. */
static bool count_down(_Atomic uint32_t *refs)
{
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

struct check_part *check_part_new(const struct health_check *check)
{
    struct check_part *part = catalog_alloc(1, sizeof *part);
    struct bytes_writer writer;

    atomic_init(&part->refs, 1);
    part->check = *check;
    part->check.port = 0;
    bytes_writer_init(&writer, LIMIT_CHUNK_BYTES);
    codec_write_check(&writer, &part->check);
    if (writer.failed) {
        abort(); /* no memory */
    }
    part->hash = catalog_hash(writer.data, writer.n_bytes);
    bytes_writer_close(&writer);
    return part;
}

struct check_part *check_part_ref(struct check_part *check)
{
    count_up(&check->refs);
    return check;
}

void check_part_unref(struct check_part *check)
{
    if (check != NULL && count_down(&check->refs)) {
        free(check);
    }
}

/* The check is the first member of its part; others see it as const. */
static struct check_part *part_of(const struct health_check *check)
{
    return (struct check_part *)(uintptr_t)check;
}

const struct health_check *catalog_check_ref(const struct health_check *check)
{
    return &check_part_ref(part_of(check))->check;
}

void catalog_check_unref(const struct health_check *check)
{
    check_part_unref(part_of(check));
}

const struct health_check *catalog_check_new(const struct health_check *check)
{
    return &check_part_new(check)->check;
}

/* Most backends have no texts, and neighbours are in one zone. */
static bool is_shared(const char *text, const char *before)
{
    return *text == '\0' || strcmp(text, before) == 0;
}

static const char *keep_text(char **at, const char *text, const char *before)
{
    if (*text == '\0') {
        return "";
    }
    if (strcmp(text, before) == 0) {
        return before;
    }
    size_t n_bytes = strlen(text) + 1;
    char *kept = memcpy(*at, text, n_bytes);
    *at += n_bytes;
    return kept;
}

void group_part_keep_texts(struct group_part *part)
{
    const char *zone = "", *description = "";
    size_t n_bytes = 0;

    for (uint32_t i = 0; i < part->group.n_backends; i++) {
        const struct catalog_backend_spec *spec = &part->backends[i].spec;

        n_bytes += is_shared(spec->zone, zone) ? 0 : strlen(spec->zone) + 1;
        n_bytes += is_shared(spec->description, description) ? 0 : strlen(spec->description) + 1;
        zone = spec->zone;
        description = spec->description;
    }
    char *at = part->texts = n_bytes == 0 ? NULL : catalog_alloc(n_bytes, 1);
    zone = description = "";
    for (uint32_t i = 0; i < part->group.n_backends; i++) {
        struct catalog_backend_spec *spec = &part->backends[i].spec;

        zone = spec->zone = keep_text(&at, spec->zone, zone);
        description = spec->description = keep_text(&at, spec->description, description);
    }
    assert(at == NULL || at == part->texts + n_bytes);
}

struct part *part_ref(struct part *part)
{
    count_up(&part->refs);
    return part;
}

static void free_object(struct part *part)
{
    switch ((enum part_kind)part->kind) {
    case PART_GROUP: {
        struct group_part *group = (struct group_part *)part;

        check_set_close(&group->checks);
        free(group->backends);
        free(group->targets);
        free(group->group.spec.checks);
        free(group->texts);
        break;
    }
    case PART_NODES: {
        struct nodes_part *nodes = (struct nodes_part *)part;

        free(nodes->nodes);
        free(nodes->retired_ids);
        break;
    }
    case PART_KEYS:
        free(((struct keys_part *)part)->keys);
        break;
    case PART_NONE:
    case PART_HEADER:
    case PART_SETTINGS:
    case PART_LISTENER:
    case PART_ANSWERS:
        break;
    }
}

void part_unref(struct part *part)
{
    if (part == NULL || !count_down(&part->refs)) {
        return;
    }
    for (uint32_t i = 0; i < part->n_chunks; i++) {
        free(part->chunks[i].data);
    }
    free(part->chunks);
    free_object(part);
    free(part);
}

static void page_unref(struct part_page *page)
{
    if (!count_down(&page->refs)) {
        return;
    }
    for (uint32_t i = 0; i < page->n_items; i++) {
        part_unref(page->items[i]);
    }
    free(page);
}

void part_list_close(struct part_list *list)
{
    for (uint32_t i = 0; i < list->n_pages; i++) {
        page_unref(list->pages[i].page);
    }
    free(list->pages);
    *list = (struct part_list){0};
}

void part_list_share(const struct part_list *from, struct part_list *ret_list)
{
    struct part_list list = *from;

    list.pages = catalog_alloc(from->n_pages, sizeof *list.pages);
    for (uint32_t i = 0; i < from->n_pages; i++) {
        list.pages[i] = from->pages[i];
        count_up(&list.pages[i].page->refs);
    }
    *ret_list = list;
}

struct part *part_list_at(const struct part_list *list, size_t index)
{
    uint32_t low = 0;
    uint32_t high = list->n_pages;

    assert(index < list->n_items);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (list->pages[middle].first_item <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return list->pages[low].page->items[index - list->pages[low].first_item];
}

const struct part_chunk *part_list_chunk(const struct part_list *list, size_t index)
{
    uint32_t low = 0;
    uint32_t high = list->n_pages;

    assert(index < list->n_chunks);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (list->pages[middle].first_chunk <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const struct part_page *page = list->pages[low].page;
    index -= list->pages[low].first_chunk;
    for (uint32_t i = 0; i < page->n_items; i++) {
        if (index < page->items[i]->n_chunks) {
            return &page->items[i]->chunks[index];
        }
        index -= page->items[i]->n_chunks;
    }
    abort(); /* a page's n_chunks is the sum over its items */
}

/* The page in which `name` is or would be: the last one that begins at or before it. */
static uint32_t find_page(const struct part_list *list, const char *name)
{
    uint32_t low = 0;
    uint32_t high = list->n_pages;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (strcmp(list->pages[middle].page->items[0]->name, name) <= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

struct part *part_list_find(const struct part_list *list, const char *name)
{
    if (list->n_pages == 0) {
        return NULL;
    }
    const struct part_page *page = list->pages[find_page(list, name)].page;
    uint32_t low = 0;
    uint32_t high = page->n_items;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(page->items[middle]->name, name);

        if (order == 0) {
            return page->items[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* --- editing --- */

/* Items in order, gathered into fresh pages between pages that are shared. */
struct page_builder {
    struct part_list list;
    uint32_t capacity;      /* of list.pages */
    struct part_page *open; /* the last page while it is being filled; NULL = none */
};

static void add_page(struct page_builder *builder, struct part_page *page)
{
    struct part_list *list = &builder->list;

    if (list->n_pages == builder->capacity) {
        builder->capacity = builder->capacity * 2 + 8;
        list->pages = catalog_realloc(list->pages, builder->capacity, sizeof *list->pages);
    }
    list->pages[list->n_pages++] = (struct part_place){
        .page = page, .first_item = list->n_items, .first_chunk = list->n_chunks};
    list->n_items += page->n_items;
    list->n_chunks += page->n_chunks;
}

static void close_page(struct page_builder *builder)
{
    if (builder->open != NULL) {
        add_page(builder, builder->open);
        builder->open = NULL;
    }
}

/* item: a reference is taken over. fill: items at which a page is closed. */
static void add_item(struct page_builder *builder, struct part *item, size_t fill)
{
    if (builder->open != NULL && builder->open->n_items >= fill) {
        close_page(builder);
    }
    if (builder->open == NULL) {
        builder->open = catalog_alloc(1, sizeof *builder->open);
        atomic_init(&builder->open->refs, 1);
    }
    builder->open->items[builder->open->n_items++] = item;
    builder->open->n_chunks += item->n_chunks;
}

/* The items of one old page (NULL = none) merged with the edits that fall into it, into as many
 * pages as are needed, about equally full. */
static void merge_page(struct page_builder *builder, const struct part_page *page,
                       const struct part_edit edits[], size_t n_edits)
{
    uint32_t at = 0;
    uint32_t n_old = page != NULL ? page->n_items : 0;
    size_t n_about = n_old + n_edits;
    size_t n_parts = (n_about + PART_PAGE_ITEMS - 1) / PART_PAGE_ITEMS;
    size_t fill = n_parts == 0 ? PART_PAGE_ITEMS : (n_about + n_parts - 1) / n_parts;

    for (size_t i = 0; i < n_edits || at < n_old;) {
        int order = i == n_edits  ? -1
                    : at == n_old ? 1
                                  : strcmp(page->items[at]->name, edits[i].name);

        if (order < 0) {
            add_item(builder, part_ref(page->items[at++]), fill);
            continue;
        }
        assert(order == 0 || edits[i].part != NULL);
        if (edits[i].part != NULL) {
            add_item(builder, edits[i].part, fill);
        }
        at += order == 0;
        i++;
    }
    close_page(builder);
}

/* Deletions leave pages thin; when most are, everything moves into full ones. */
static void pack_pages(struct part_list *list)
{
    struct page_builder builder = {0};

    if (list->n_pages <= 8 || list->n_pages <= list->n_items / (PART_PAGE_ITEMS / 4)) {
        return;
    }
    for (uint32_t i = 0; i < list->n_pages; i++) {
        for (uint32_t j = 0; j < list->pages[i].page->n_items; j++) {
            add_item(&builder, part_ref(list->pages[i].page->items[j]), PART_PAGE_ITEMS);
        }
    }
    close_page(&builder);
    part_list_close(list);
    *list = builder.list;
}

void part_list_edit(const struct part_list *from, const struct part_edit edits[], size_t n_edits,
                    struct part_list *ret_list)
{
    struct page_builder builder = {0};
    size_t done = 0;

    if (from->n_pages == 0) {
        merge_page(&builder, NULL, edits, n_edits);
    }
    for (uint32_t i = 0; i < from->n_pages; i++) {
        struct part_page *page = from->pages[i].page;
        const char *next = i + 1 < from->n_pages ? from->pages[i + 1].page->items[0]->name : NULL;
        size_t end = done;

        while (end < n_edits && (next == NULL || strcmp(edits[end].name, next) < 0)) {
            end++;
        }
        if (end == done) {
            count_up(&page->refs);
            add_page(&builder, page);
        } else {
            merge_page(&builder, page, edits + done, end - done);
        }
        done = end;
    }
    pack_pages(&builder.list);
    *ret_list = builder.list;
}

/* --- catalogs --- */

struct catalog *catalog_copy(const struct catalog *from)
{
    struct catalog *catalog = catalog_alloc(1, sizeof *catalog);

    atomic_init(&catalog->refs, 1);
    catalog->revision = from->revision;
    catalog->cluster_id = from->cluster_id;
    catalog->wall_ms = from->wall_ms;
    memcpy(catalog->actor, from->actor, sizeof catalog->actor);
    catalog->counters = from->counters;
    catalog->content = from->content;
    catalog->chain_before = from->chain_before;
    catalog->answers = from->answers;
    catalog->chain = from->chain;
    catalog->settings = (struct settings_part *)part_ref(&from->settings->head);
    catalog->nodes = (struct nodes_part *)part_ref(&from->nodes->head);
    catalog->keys = (struct keys_part *)part_ref(&from->keys->head);
    part_list_share(&from->groups, &catalog->groups);
    part_list_share(&from->listeners, &catalog->listeners);
    for (uint32_t i = 0; i < TARGET_PAGES; i++) {
        catalog->target_pages[i] = from->target_pages[i];
        if (catalog->target_pages[i] != NULL) {
            count_up(&catalog->target_pages[i]->refs);
        }
    }
    catalog->n_slots = from->n_slots;
    catalog->n_rows = from->n_rows;
    catalog->n_targets = from->n_targets;
    catalog->n_rows_used = from->n_rows_used;
    catalog->n_live_groups = from->n_live_groups;
    catalog->n_live_backends = from->n_live_backends;
    return catalog;
}

struct catalog *catalog_ref(struct catalog *catalog)
{
    count_up(&catalog->refs);
    return catalog;
}

void catalog_unref(struct catalog *catalog)
{
    if (catalog == NULL || !count_down(&catalog->refs)) {
        return;
    }
    for (uint32_t i = 0; i < TARGET_PAGES; i++) {
        catalog_target_page_unref(catalog->target_pages[i]);
    }
    part_list_close(&catalog->listeners);
    part_list_close(&catalog->groups);
    part_unref((struct part *)catalog->keys);
    part_unref((struct part *)catalog->nodes);
    part_unref((struct part *)catalog->settings);
    free(catalog->header.data);
    free(catalog);
}
