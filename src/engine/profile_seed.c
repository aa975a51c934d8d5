/* Checks of profiles that a caller supplies. */
#include <math.h>

#include "common/num.h"
#include "tree/static_tree.h"

void drey_profile_init(drey_profile *profile)
{
    *profile = (drey_profile){.reserved = {0}};
}

/* 0: not measured. The others are divided by each other, and the quotients must stay finite. */
static bool is_time(double seconds)
{
    const double least = 1e-9;
    return seconds == 0 || (isfinite(seconds) && seconds >= least);
}

static bool are_sound(const drey_static_trees *t)
{
    static_tree shape;
    bool sound = t->n_trees >= 0 && t->n_trees <= DREY_STATIC_TREES && t->best >= 0 &&
                 t->best < max_i32(t->n_trees, 1);
    for (int d = 0; sound && d < DREY_STATIC_DEPTHS; d++)
        for (int rank = 0; rank < DREY_STATIC_RANKS; rank++)
            sound = sound && t->share[d][rank] >= 0 && t->share[d][rank] <= 1;
    for (int32_t i = 0; sound && i < t->n_trees; i++) {
        const drey_static_tree *tree = &t->tree[i];
        sound = static_tree_take(&shape, tree) && tree->n <= tree->width &&
                tree->measured_tokens >= 1 && tree->measured_tokens <= tree->width;
    }
    return sound;
}

bool drey_profile_is_sound(const drey_profile *p)
{
    bool sound = true;
    for (int i = 0; i < DREY_PROFILE_ROWS; i++)
        sound = sound && is_time(p->pass_s[i]);
    for (int i = 0; i < DREY_PROFILE_NODES; i++)
        sound = sound && is_time(p->step_s[i]);
    for (int r = 0; r < DREY_PROFILE_RANKS; r++)
        for (int bin = 0; bin < DREY_PROFILE_BINS; bin++)
            sound = sound && isfinite(p->guessed[r][bin]) && p->right[r][bin] >= 0 &&
                    p->right[r][bin] <= p->guessed[r][bin];
    return sound && (!p->trees || are_sound(p->trees));
}
