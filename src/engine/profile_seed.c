/* Profiles that a caller brings: checked, and copied. */
#include <math.h>

#include "engine/engine.h"

void drey_profile_init(drey_profile *profile)
{
    *profile = (drey_profile){.reserved = {0}};
}

/* 0: not measured. Quotients of others are taken, which have to stay finite. */
static bool is_time(double seconds)
{
    const double least = 1e-9;
    return seconds == 0 || (isfinite(seconds) && seconds >= least);
}

static bool is_sound(const drey_profile *p)
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
    return sound;
}

drey_status engine_take_profile(drey_engine *e, drey_error *err)
{
    drey_engine_options *o = &e->options;
    if (!o->profile)
        return DREY_OK;
    if (!is_sound(o->profile))
        FAIL(err, DREY_ERR_USAGE,
             "the profile has a time that is none, or more right guesses than guesses");
    e->profile = *o->profile;
    o->profile = &e->profile; /* the caller's may go */
    return DREY_OK;
}
