/* The turn: see turn.h. */
#include "session/turn.h"

#include <assert.h>
#include <stdatomic.h>

#include "common/num.h"
#include "os/pool.h"
#include "policy/policy.h"
#include "session/logprobs.h"
#include "session/overlap.h"
#include "session/tapped.h"
#include "session/verified_text.h"
#include "os/clock.h"
#include "state/cache.h"

int32_t turn_depth_left(const drey_session *s)
{
    int64_t tokens = s->text.options.n_predict - s->text.stats.generated_tokens;
    tokens -= s->n_unverified;
    int64_t room = s->engine->config.n_context - s->n_timeline;
    return (int32_t)max_i64(min_i64(tokens, room) - 1, 0);
}

/* Returns whether nothing of the tree stays: if the drafter's steps take no time, or if what
 * follows the new root was copied, because lookup knows more now. */
static bool begins_anew(const drey_session *s, const int32_t *moved)
{
    if (!s->drafter->class->steps)
        return true;
    for (int32_t i = 0; i < s->tree.n_nodes; i++)
        if (moved[i] == 0)
            return s->tree.nodes[i].copied && !s->tree.nodes[i].forced;
    return false;
}

/* The target's next token becomes the root; what was drafted below it stays. */
static void reroot(drey_session *s)
{
    const accepted *a = &s->accepted;
    int32_t moved[TREE_MAX_NODES];
    tree_moves(&s->tree, a->path, a->n_path, a->next, moved);
    if (s->drafter && begins_anew(s, moved))
        for (int32_t i = 0; i < s->tree.n_nodes; i++)
            moved[i] = -1;
    if (s->drafter) {
        overlap_finish(s, moved);
        drafting_trust_learn(&s->engine->trust, &s->tree, a->n_path);
        draft_observe(s->policy, &s->tree, a->path, a->n_path, a->next);
        s->drafter->class->reroot(s->drafter, &s->tree, a->path, a->n_path, a->next, moved);
    }
    tree_reroot(&s->tree, a->next, moved);
}

/* The first n of the root and the accepted nodes below it. */
static void commit(drey_session *s, const model_pass *pass, pass_group *group, int32_t n)
{
    int32_t rows[TREE_MAX_ROWS] = {s->row_of[0]};
    for (int32_t i = 0; i + 1 < n; i++)
        rows[1 + i] = s->row_of[s->accepted.path[i]];
    if (session_pass_stopped(s))
        pass_defer(pass, group, rows, n);
    cache_commit(&s->target_cache, rows, n);
}

/* Fills rows with the submitted nodes (at most TREE_MAX_ROWS, with the root) and returns how many,
 * for a cache without pending rows. row_of[node] becomes a node's row: its pending index and the
 * row of its logits; -1 for nodes that are not submitted, and for those that the tree does not have
 * yet. */
static int32_t rows_of(const token_tree *tree, int32_t row_of[TREE_MAX_NODES], pass_row *rows)
{
    assert(tree->nodes[0].submitted);
    int32_t n = 0;
    for (int32_t i = 0; i < TREE_MAX_NODES; i++) {
        row_of[i] = -1;
        if (i >= tree->n_nodes || !tree->nodes[i].submitted)
            continue;
        assert(n < TREE_MAX_ROWS);
        int32_t parent = tree->nodes[i].parent;
        rows[n] =
            (pass_row){.token = tree->nodes[i].token, .parent = parent < 0 ? -1 : row_of[parent]};
        row_of[i] = n++;
    }
    return n;
}

void turn_offer(drey_session *s, pass_row *rows, pass_group *group)
{
    *group = (pass_group){.cache = &s->target_cache,
                          .rows = rows,
                          .head = HEAD_ALL,
                          .deferred = s->observer ? &s->deferred : NULL};
    group->n = rows_of(&s->tree, s->row_of, rows);
    s->text.n_drafted = group->n - 1;
    tapped_offer(s, group);
    provisional_text_show(s, true);
}

void turn_choose(drey_session *s, const pass_group *group)
{
    const node_logits at = {group->logits, pass_logits_stride(&s->target), s->row_of};
    float rollback = s->policy ? s->policy->rollback : 0;
    s->text.speculation.differed +=
        accept_path(&s->accepted, &s->tree, &at, &s->sampler, s->n_timeline - 1, rollback);
}

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

/* A drafter may use what the target found likely after each row that it computed, also after
 * rejected ones. The logits are read once, by all threads. */
static void give_tops(drey_session *s, const pass_group *group)
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
        d->class->listener->take_target_top(d, &s->tree, t.nodes[i], t.top[i], t.n_top[i]);
}

/* The drafter gets the hidden state of the last row that stays, of the layer where the pass stopped
 * if it did; or other states of all that do. */
static void show(drey_session *s, const pass_group *group, int32_t root)
{
    const accepted *a = &s->accepted;
    int32_t row = s->row_of[a->n_path > 0 ? a->path[a->n_path - 1] : 0];
    const float *hidden = group->hidden ? group->hidden + row * pass_hidden_stride(&s->target)
                          : session_pass_stopped(s) ? s->observer->class->hidden(s, row)
                                                    : NULL;
    if (s->drafter && drafter_listens_to(s->drafter->class, take_hidden) && hidden)
        s->drafter->class->listener->take_hidden(s->drafter, root + a->n_path, hidden);
    for (int32_t i = 0; i <= a->n_path; i++)
        tapped_take(s, group, s->row_of[i ? a->path[i - 1] : 0], root + i,
                    i < a->n_path ? s->tree.nodes[a->path[i]].token : a->next);
}

void turn_take(drey_session *s, const model_pass *pass, pass_group *group)
{
    drey_statistics *t = &s->text.stats;
    pass_observer *observer = s->observer;
    bool stopped = session_pass_stopped(s);
    t->n_passes++;
    t->drafted += s->text.n_drafted;
    if (observer && !stopped && !observer->class->finish(s, group))
        return;
    int32_t root = s->n_timeline - 1;
    if (!stopped)
        turn_choose(s, group);
    if (s->text.forced)
        forced_take(s, group);
    t->accepted += s->accepted.n_path;
    int32_t n_written = stopped && observer->holds_back
                            ? verified_text_hold_back(s)
                            : verified_text_write(s, stopped ? NULL : group->logits);
    if (observer)
        observer->class->count(s, n_written);
    speculation_count(s, n_written);
    turn_log_add(&s->turns, &s->tree, &s->accepted, t->n_passes - 1, root, n_written, clock_ns());
    commit(s, pass, group, n_written);
    give_tops(s, group);
    show(s, group, root);
    reroot(s);
    provisional_text_show(s, true);
}
