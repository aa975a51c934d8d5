/* The table of drafters: see drafter_kind.h. */
#include "draft/drafter.h"
#include "draft/drafter_kind.h"
#include "model/arch.h"

static const drafter_kind *const table[] = {[DREY_DRAFTER_NONE] = NULL,
                                            [DREY_DRAFTER_MODEL] = &drafter_model,
                                            [DREY_DRAFTER_LOOKUP] = &drafter_lookup,
                                            [DREY_DRAFTER_SELF] = &drafter_self,
                                            [DREY_DRAFTER_MEDUSA] = &drafter_medusa,
                                            [DREY_DRAFTER_EAGLE] = &drafter_eagle,
                                            [DREY_DRAFTER_MTP] = &drafter_mtp};

const drafter_kind *drafter_kind_of(drey_drafter which)
{
    return (unsigned)which < sizeof table / sizeof *table ? table[which] : NULL;
}

drey_drafter drafter_for(const model_shape *draft)
{
    return shape_is_mtp(draft)     ? DREY_DRAFTER_MTP
           : shape_is_eagle(draft) ? DREY_DRAFTER_EAGLE
                                   : DREY_DRAFTER_MODEL;
}

bool drey_drafter_describe(drey_drafter which, drey_drafter_info *info)
{
    const drafter_kind *k = drafter_kind_of(which);
    *info = (drey_drafter_info){.name = "none", .with = "no draft"};
    if (k)
        *info = (drey_drafter_info){.name = k->name,
                                    .with = k->with,
                                    .takes_model = k->side == DRAFT_SIDE_MODEL,
                                    .file_ending = k->file_ending,
                                    .looks_up = k->looks_up,
                                    .exits = !k->exit_conflict};
    return k || which == DREY_DRAFTER_NONE;
}

const char *drey_drafter_name(drey_drafter which)
{
    drey_drafter_info info;
    return drey_drafter_describe(which, &info) ? info.name : NULL;
}

drey_status drafter_start(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n, bool *done,
                          drey_error *err)
{
    *done = !d->class->steps;
    if (*done)
        return d->class->expand(d, tree, nodes, n, err);
    return d->class->steps->start(d, tree, nodes, n, err);
}
