#include "agent/core/catalog_diff.h"

#include <assert.h>
#include <string.h>

#include "agent/core/catalog_parts.h"

/* One place in a list of groups, page by page. */
struct walk {
    const struct part_list *list; /* NULL = empty */
    uint32_t page;
    uint32_t item;
};

static const struct part_page *walk_page(const struct walk *walk)
{
    if (walk->list == NULL || walk->page == walk->list->n_pages) {
        return NULL;
    }
    return walk->list->pages[walk->page].page;
}

static const struct part *walk_item(const struct walk *walk)
{
    const struct part_page *page = walk_page(walk);

    return page != NULL ? page->items[walk->item] : NULL;
}

static void walk_on(struct walk *walk)
{
    const struct part_page *page = walk_page(walk);

    assert(page != NULL);
    if (++walk->item == page->n_items) {
        walk->item = 0;
        walk->page++;
    }
}

/* A page that both share holds nothing new. */
static bool skip_page(struct walk *before, struct walk *after)
{
    const struct part_page *page = walk_page(before);

    if (page == NULL || before->item != 0 || after->item != 0 || page != walk_page(after)) {
        return false;
    }
    before->page++;
    after->page++;
    return true;
}

static const struct catalog_group *group_of(const struct part *part)
{
    return part != NULL ? &((const struct group_part *)part)->group : NULL;
}

static void diff_groups(const struct catalog *before, const struct catalog *after,
                        const struct catalog_diff_hooks *hooks)
{
    struct walk old = {.list = before != NULL ? &before->groups : NULL};
    struct walk new = {.list = &after->groups};

    for (;;) {
        if (skip_page(&old, &new)) {
            continue;
        }
        const struct part *a = walk_item(&old);
        const struct part *b = walk_item(&new);
        if (a == NULL && b == NULL) {
            return;
        }
        int order = a == NULL ? 1 : b == NULL ? -1 : strcmp(a->name, b->name);
        if (order <= 0) {
            walk_on(&old);
        }
        if (order >= 0) {
            walk_on(&new);
        }
        if (a != b) {
            hooks->group(hooks->user, order <= 0 ? group_of(a) : NULL,
                         order >= 0 ? group_of(b) : NULL);
        }
    }
}

static const struct catalog_target *target_in(const struct target_page *page, uint32_t i)
{
    return page != NULL && page->targets[i].check != NULL ? &page->targets[i] : NULL;
}

static void diff_target_page(const struct target_page *before, const struct target_page *after,
                             const struct catalog_diff_hooks *hooks)
{
    for (uint32_t i = 0; i < TARGET_PAGE_SLOTS; i++) {
        const struct catalog_target *a = target_in(before, i);
        const struct catalog_target *b = target_in(after, i);

        if ((a == NULL) != (b == NULL) || (a != NULL && a->id.birth != b->id.birth)) {
            hooks->target(hooks->user, a, b);
        }
    }
}

void catalog_diff(const struct catalog *before, const struct catalog *after,
                  const struct catalog_diff_hooks *hooks)
{
    if (hooks->group != NULL) {
        diff_groups(before, after, hooks);
    }
    for (uint32_t i = 0; hooks->target != NULL && i < TARGET_PAGES; i++) {
        const struct target_page *page = before != NULL ? before->target_pages[i] : NULL;

        if (page != after->target_pages[i]) {
            diff_target_page(page, after->target_pages[i], hooks);
        }
    }
}
