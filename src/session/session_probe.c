/* Access to a session for measuring and training: see session_probe.h. */
#include "session/session_probe.h"

#include "session/session.h"
#include "session/tapped.h"

drey_engine *probe_engine(const drey_session *s)
{
    return s->engine;
}

runner *probe_target(drey_session *s)
{
    return &s->target;
}

drey_status probe_settings(drey_session *s, const drey_sampling *settings, drey_error *err)
{
    return session_set_sampling(s, settings, err);
}

sampler *probe_sampler(drey_session *s)
{
    return &s->sampler;
}

drafter *probe_drafter(const drey_session *s)
{
    return s->drafter;
}

void probe_offer_taps(drey_session *s, pass_group *group)
{
    tapped_offer(s, group);
}

void probe_take_taps(drey_session *s, const pass_group *group, int32_t row, int32_t position,
                     int32_t next)
{
    tapped_take(s, group, row, position, next);
}

drey_status probe_redraft(drey_session *s, drey_error *err)
{
    tree_reset(&s->tree, s->timeline[s->n_timeline - 1]);
    return s->drafter->class->begin(s->drafter, s->timeline, s->n_timeline, err);
}

bool probe_decodes(const drey_session *s)
{
    return s->state == SESSION_DECODE;
}

void probe_watch(drey_session *s, turn_watch *watch)
{
    s->turns.watch = watch;
}
