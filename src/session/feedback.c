/* A drafter may want to know what the target thought of each row it computed, also of those that
 * the text did not take: the likeliest tokens behind it. The logits are looked through once, on
 * all threads. */
#include <stdatomic.h>

#include "session/turn.h"

enum { HEARD = TREE_MAX_GUESSES };

typedef struct hearing {
    const drey_session *session;
    const float *logits[TREE_MAX_ROWS];
    int32_t nodes[TREE_MAX_ROWS], n_nodes;
    int32_t top[TREE_MAX_ROWS][HEARD], n_top[TREE_MAX_ROWS];
    _Atomic int32_t next;
} hearing;

static void hear_rows(void *arg, int32_t thread, int32_t n_threads)
{
    (void)thread;
    (void)n_threads;
    hearing *h = arg;
    const drey_session *s = h->session;
    for (int32_t i; (i = atomic_fetch_add(&h->next, 1)) < h->n_nodes;)
        h->n_top[i] = sampler_top(&s->sampler, h->logits[i], h->top[i], HEARD);
}

void turn_hear(drey_session *s, const pass_group *group)
{
    drafter *d = s->drafter;
    if (!d || !d->listens)
        return;
    hearing h = {.session = s};
    int64_t ld = pass_logits_stride(&s->target);
    for (int32_t i = 0; i < s->tree.n_nodes; i++) {
        int32_t row = s->row_of[i];
        if (row < 0)
            continue;
        const float *logits =
            group->logits ? group->logits + row * ld : s->observer->class->logits(s, row);
        if (!logits)
            continue; /* the pass was stopped, and asked for other rows' */
        h.nodes[h.n_nodes] = i;
        h.logits[h.n_nodes++] = logits;
    }
    if (h.n_nodes == 1) /* waking the others would take longer */
        hear_rows(&h, 0, 1);
    else
        pool_run(s->engine->pool, hear_rows, &h);
    for (int32_t i = 0; i < h.n_nodes; i++)
        d->class->hear(d, &s->tree, h.nodes[i], h.top[i], h.n_top[i]);
}
