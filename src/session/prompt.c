/* Reading a prompt: the target in chunks, then the draft. */
#include "session/prompt.h"

#include "common/num.h"
#include "session/session.h"
#include "session/tapped.h"
#include "session/turn.h"
#include "session/verified_text.h"

void prompt_report(void *user, uint64_t done)
{
    const progress_line *p = user;
    const config_progress *to = &p->engine->config.progress;
    if (to->report)
        to->report(to->user, p->what, min_u64(done, p->total), p->total);
}

drey_status prompt_begin(drey_session *s, drey_error *err)
{
    generation *g = &s->text;
    if (s->drafter && !g->draft_knows_prompt)
        TRY(s->drafter->class->begin(s->drafter, s->timeline, s->n_timeline, err));
    g->draft_knows_prompt = true;
    return DREY_OK;
}

void drey_session_prompt(const drey_session *s, int64_t *done, int64_t *total)
{
    const generation *g = &s->text;
    *total = s->state == SESSION_IDLE ? 0 : g->prompt_end - g->prompt_from;
    *done = min_i64(s->target_kv.n_committed - g->prompt_from, *total);
}

bool prompt_left(const drey_session *s)
{
    const generation *g = &s->text;
    return s->target_kv.n_committed < g->prompt_end &&
           (g->prompt_end - g->prompt_from > 1 || !weights_loaded(&s->engine->target.weights));
}

void prompt_offer(drey_session *s, pass_row *rows, int32_t max_rows, pass_group *group)
{
    int32_t from = s->target_kv.n_committed, left = prompt_rows_left(s);
    int32_t n = min_i32(min_i32(left, max_rows), s->engine->plan.chunk);
    for (int32_t i = 0; i < n; i++)
        rows[i] = (pass_row){.token = s->timeline[from + i], .parent = i - 1};
    *group = (pass_group){
        .kv = &s->target_kv, .rows = rows, .n = n, .head = n == left ? HEAD_LAST : HEAD_NONE};
    tapped_offer(s, group);
}

/* Of the last row only what the target has chosen follows. */
static void take_tapped(drey_session *s, const pass_group *group)
{
    int32_t from = s->target_kv.n_committed - group->n;
    for (int32_t i = 0; i < group->n; i++) {
        int32_t next = from + i + 1;
        tapped_take(s, group, i, from + i,
                    next < s->n_timeline ? s->timeline[next] : s->accepted.next);
    }
}

void prompt_take(drey_session *s, const pass_group *group)
{
    generation *g = &s->text;
    kv_commit(&s->target_kv, NULL, group->n);
    progress_line line = {s->engine, DREY_PROGRESS_PROMPT,
                          (uint64_t)(g->prompt_end - g->prompt_from)};
    if (!session_reads_input(s)) /* the input has been reported */
        prompt_report(&line, (uint64_t)(s->target_kv.n_committed - g->prompt_from));
    if (group->head == HEAD_NONE) {
        take_tapped(s, group);
        return;
    }
    prefix_keep(&s->engine->prefixes, s->timeline, &s->target_kv);
    if (s->drafter && s->drafter->class->take_hidden)
        s->drafter->class->take_hidden(s->drafter, s->n_timeline - 1, group->hidden);
    /* What follows the prompt's last row needs no turn. */
    s->row_of[0] = 0;
    tree_begin(&s->tree, s->timeline[s->n_timeline - 1], s->text.options.grammar);
    turn_choose(s, group);
    take_tapped(s, group);
    verified_text_write(s, group->logits);
}

bool prompt_unread(const drey_session *s)
{
    bool reads = s->state == SESSION_PROMPT || s->text.draft_lags;
    return reads && session_guesses(s) && s->drafter->class->unread &&
           s->drafter->class->unread(s->drafter);
}

int32_t prompt_rows_left(const drey_session *s)
{
    return s->n_timeline - s->target_kv.n_committed;
}

drey_status prompt_end(drey_session *s, bool shared, drey_error *err)
{
    tree_begin(&s->tree, s->timeline[s->n_timeline - 1], s->text.options.grammar);
    drafter *d = s->drafter;
    if (d)
        TRY(d->class->begin(d, s->timeline, s->n_timeline, err));
    draft_reading state;
    while (!shared && prompt_unread(s))
        TRY(d->class->read(d, 0, &state, err));
    s->text.draft_lags = prompt_unread(s);
    statistics_decode(s);
    s->state = SESSION_DECODE;
    return DREY_OK;
}
