/* The draft that goes with a model: see next_draft.h. */
#include "cli/models/next_draft.h"

#include "cli/files/cache_folder.h"
#include "cli/models/model_files.h"
#include "common/path.h"
#include "drey/tune.h"

#include <stdio.h>

static const int32_t default_context = 4096;

void next_draft_options(drey_engine_options *o, const drey_model *model)
{
    drey_model_info info;
    drey_model_describe(model, &info);
    drey_engine_options_init(o);
    o->target = model;
    o->n_context = info.n_context_train > 1 && info.n_context_train < default_context
                       ? info.n_context_train
                       : default_context;
}

void next_draft_name(const char *path, char out[NAME_MAX + 1])
{
    char place[PATH_MAX];
    drey_model *model = NULL;
    drey_engine_options o;
    drey_draft_choice choice = {.draft = NULL};
    drey_drafter_info drafter;
    *out = '\0';
    if (drey_model_open(&model, path, NULL) != DREY_OK)
        return;
    next_draft_options(&o, model);
    if (drey_choose_draft(&o, cache_folder(place), &choice, NULL) == DREY_OK) {
        if (choice.draft) {
            drey_model_info info;
            drey_model_describe(choice.draft, &info);
            const char *file = path_name(info.path);
            snprintf(out, NAME_MAX + 1, "%.*s", (int)model_name_length(file), file);
        } else if (drey_drafter_describe(o.drafter, &drafter) && drafter.file_ending) {
            snprintf(out, NAME_MAX + 1, "%s", drey_drafter_name(o.drafter));
        }
    }
    drey_draft_choice_close(&choice);
    drey_model_close(&model);
}
