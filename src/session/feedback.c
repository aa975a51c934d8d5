/* A drafter may use what the target found likely after each row that it computed, also after
 * rejected ones. The logits are read once, by all threads. */
#include "session/feedback.h"

#include <stdatomic.h>

#include "session/session.h"

typedef struct target_tops {
    const drey_session *session;
    const float *logits[TREE_MAX_ROWS];
    int32_t nodes[TREE_MAX_ROWS], n_nodes;
    int32_t top[TREE_MAX_ROWS][TREE_MAX_GUESSES], n_top[TREE_MAX_ROWS];
    _Atomic int32_t next;
} target_tops;

static void find_tops(void *arg, int32_t thread, int32_t n_threads)
{
    (void)thread;
    (void)n_threads;
    target_tops *t = arg;
    const drey_session *s = t->session;
    for (int32_t i; (i = atomic_fetch_add(&t->next, 1)) < t->n_nodes;)
        t->n_top[i] = sampler_top(&s->sampler, t->logits[i], t->top[i], TREE_MAX_GUESSES);
}

void feedback_give(drey_session *s, const pass_group *group)
{
    drafter *d = s->drafter;
    if (!d || !d->wants_target_top)
        return;
    target_tops t = {.session = s};
    int64_t ld = pass_logits_stride(&s->target);
    for (int32_t i = 0; i < s->tree.n_nodes; i++) {
        int32_t row = s->row_of[i];
        if (row < 0)
            continue;
        const float *logits =
            group->logits ? group->logits + row * ld : s->observer->class->logits(s, row);
        if (!logits)
            continue; /* the pass was stopped, and computed other logits */
        t.nodes[t.n_nodes] = i;
        t.logits[t.n_nodes++] = logits;
    }
    if (t.n_nodes == 1) /* waking the others would take longer */
        find_tops(&t, 0, 1);
    else
        pool_run(s->engine->pool, find_tops, &t);
    for (int32_t i = 0; i < t.n_nodes; i++)
        d->class->take_target_top(d, &s->tree, t.nodes[i], t.top[i], t.n_top[i]);
}
