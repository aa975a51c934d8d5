/* See tapped.h. */
#include "session/tapped.h"

void tapped_offer(drey_session *s, pass_group *group)
{
    const tap_shape *t = s->engine->source.out.taps;
    if (!t || !session_guesses(s))
        return;
    for (int32_t i = 0; i < t->n; i++)
        s->taps[i] = (pass_tap){.layer = t->layer[i], .n = group->n};
    group->taps = s->taps;
    group->n_taps = t->n;
}

void tapped_take(drey_session *s, const pass_group *group, int32_t row, int32_t position,
                 int32_t next)
{
    const float *taps[MODEL_MAX_TAPS];
    for (int32_t i = 0; i < group->n_taps; i++)
        taps[i] = group->taps[i].out + row * pass_hidden_stride(&s->target);
    if (group->n_taps > 0)
        s->drafter->class->listener->take_taps(s->drafter, position, next, taps);
}
