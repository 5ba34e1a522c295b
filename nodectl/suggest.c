#include "nodectl/suggest.h"

#include "common/spec/field.h"
#include "jury/v1/group.pb-c.h"
#include "nodectl/connect.h"

void suggest_group(struct ctl *ctl, const char *name)
{
    Jury__V1__ListGroupsRequest request;
    struct ctl_failure kept = ctl->failure;
    struct ctl_list list = {0};
    const char *words[1000];
    size_t n_words = 0;

    jury__v1__list_groups_request__init(&request);
    ctl->failure = (struct ctl_failure){0};
    if (ctl_call_list(ctl, "jury.v1.GroupService/ListGroups", &request.base, &list) == 0) {
        const Jury__V1__ListGroupsResponse *groups =
            (const Jury__V1__ListGroupsResponse *)(const void *)list.whole;

        for (size_t i = 0; i < groups->n_groups && n_words < 1000; i++) {
            if (!groups->groups[i]->is_deleted) {
                words[n_words++] = groups->groups[i]->name;
            }
        }
    }
    json_decref(ctl->failure.metadata);
    ctl->failure = kept;
    const char *near = spec_nearest(name, words, n_words);
    if (near != NULL) {
        ctl_hint(ctl, "did you mean \"%s\"? see: nodectl group list", near);
    } else {
        ctl_hint(ctl, "see: nodectl group list");
    }
    ctl_list_close(&list);
}
