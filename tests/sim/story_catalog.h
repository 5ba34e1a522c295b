/* What the files of a story share about its catalog. */
#ifndef JURY_TESTS_SIM_STORY_CATALOG_H
#define JURY_TESTS_SIM_STORY_CATALOG_H

#include "tests/sim/story.h"

#define STORY_WINDOW_MS_MAX 4000 /* of velocity, in the calm */

/* --- story_values.c --- */

void story_draw_rule(struct sim *sim, struct verdict_rule *rule);
void story_draw_check(struct sim *sim, struct health_check *check);
/* Now and then, in place of the one check; else the group has none afterwards. */
void story_draw_list(struct sim *sim, struct server_group *group);
void story_drop_list(struct server_group *group);
void story_draw_guard(struct sim *sim, struct server_group *group);
uint32_t story_short_window_ms(struct sim *sim);
/* What was drawn may contradict the rule or the scheduler, and would be refused. */
void story_fit_probers(struct server_group *spec);
void story_fit_weighing(struct server_group *spec);

/* --- story_catalog.c --- */

/* At the newest revision; NULL: there is none. */
const struct catalog_group *story_find_group(struct sim *sim, const char *name);
void story_change_group(struct sim *sim, const char *name);
void story_change_admin(struct sim *sim, const char *name, enum admin_state state);
void story_change_hold(struct sim *sim);
/* What a leader would do with the engines' proposals. */
void story_purge(struct sim *sim);

#endif
