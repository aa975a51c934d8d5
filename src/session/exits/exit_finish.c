/* Verifies and counts the tokens that left a pass early: see exits.h. */
#include "common/num.h"
#include "session/exits/exits.h"
#include "session/logprobs.h"
#include "session/overlap.h"
#include "session/verified_text.h"

/* Streamed bytes from this layer on: what an exit skips. */
static uint64_t bytes_from(const drey_engine *e, int32_t layer)
{
    const weights *w = &e->target.weights;
    uint64_t n_bytes = 0;
    for (int64_t i = e->target.layout.layer[layer].first->reads.cycle_seq; i < w->reading.n_cycle;
         i++)
        n_bytes += w->reading.cycle[i].n_bytes;
    return n_bytes;
}

void exits_count(drey_session *s, int32_t n)
{
    session_exits *w = exits_of(s);
    drey_exits *c = &w->count;
    stream_counters reads;
    weights_count(&s->engine->target.weights, &reads);
    c->vain_bytes = reads.vain_bytes - w->vain_before;
    int32_t layer = w->base.stopped ? w->base.stopped : s->engine->target.layout.shape.n_layers;
    c->tokens += n;
    c->at_layer[min_i32(layer, DREY_EXITS_LAYERS) - 1] += n;
    w->n_layers_run += (int64_t)n * layer;
    c->layers_per_token = (double)w->n_layers_run / (double)max_i64(c->tokens, 1);
    if (w->base.stopped) {
        c->left += n;
        c->skipped_bytes += bytes_from(s->engine, layer);
    }
    for (int32_t i = 0; i < n && !s->engine->hooks.exit_here; i++)
        exit_schedule_note(&w->schedule, layer);
}

/* The text ends at this position, whose token is the root: removes later tokens. hidden: of the
 * position before it. */
static void go_back(drey_session *s, int32_t position, const float *hidden)
{
    overlap_give_up(s);
    if (s->drafter && drafter_listens_to(s->drafter->class, take_hidden))
        s->drafter->class->listener->take_hidden(s->drafter, position - 1, hidden);
    s->n_timeline = position + 1;
    turn_log_cut(&s->turns, s->n_timeline, s->timeline[position]);
    session_forget(s, position);
    if (!s->text.done) /* nothing of the prompt is left to read: the draft gets the timeline */
        s->state = SESSION_PROMPT;
}

bool exits_finish(drey_session *s, const pass_group *group)
{
    session_exits *w = exits_of(s);
    if (group->n_deferred == 0)
        return true;
    int64_t ld = pass_logits_stride(&s->target);
    int32_t n = group->n_deferred, first = s->n_timeline - n;
    w->count.n_full++;
    s->n_unverified = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t *left = &s->timeline[first + i];
        int32_t token = sampler_choose(&s->sampler, group->deferred_logits + i * ld, first + i);
        const forced_text *forced = s->text.forced;
        bool agrees = token == (forced ? forced->score[first + i - 1].early_top : *left);
        w->count.compared++;
        w->count.agreed += agrees;
        if (!w->base.holds_back)
            continue;
        *left = token;
        verified_text_write_at(s, first + i);
        w->count.taken_back += agrees ? 0 : n - i;
        if (!agrees || s->text.done) {
            go_back(s, first + i, group->deferred_hidden + i * pass_hidden_stride(&s->target));
            return false;
        }
    }
    return true;
}

void drey_session_exits(const drey_session *session, drey_exits *out)
{
    const session_exits *w = (const session_exits *)session->observer;
    *out = w ? w->count : (drey_exits){.mode = DREY_EXIT_OFF};
}
