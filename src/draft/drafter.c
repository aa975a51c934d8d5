/* The drafters by their names: see drafter.h. */
#include "draft/drafter.h"

const char *drey_drafter_name(drey_drafter which)
{
    static const char *const names[] = {[DREY_DRAFTER_NONE] = "none",
                                        [DREY_DRAFTER_MODEL] = "model",
                                        [DREY_DRAFTER_LOOKUP] = "lookup",
                                        [DREY_DRAFTER_SELF] = "self",
                                        [DREY_DRAFTER_MEDUSA] = "medusa"};
    return (unsigned)which < sizeof names / sizeof *names ? names[which] : NULL;
}

const drafter_class *drafter_class_of(drey_drafter which)
{
    static const drafter_class *const classes[] = {
        [DREY_DRAFTER_MODEL] = &drafter_model_class,
        [DREY_DRAFTER_LOOKUP] = &drafter_lookup_class,
        [DREY_DRAFTER_MEDUSA] = &drafter_medusa_class,
        [DREY_DRAFTER_SELF] = &drafter_model_class}; /* over views: model_drafter.h */
    return (unsigned)which < sizeof classes / sizeof *classes ? classes[which] : NULL;
}

drey_status drafter_start(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n, bool *done,
                          drey_error *err)
{
    *done = !d->class->start;
    if (*done)
        return d->class->expand(d, tree, nodes, n, err);
    return d->class->start(d, tree, nodes, n, err);
}
