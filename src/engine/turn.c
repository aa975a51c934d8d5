/* The turn: see turn.h. */
#include "engine/turn.h"

#include "base/num.h"
#include "engine/idle.h"
#include "os/clock.h"
#include "verify/verify.h"

int32_t turn_depth_left(const drey_session *s)
{
    int64_t tokens = s->text.options.n_predict - s->text.stats.generated_tokens;
    int64_t room = s->engine->options.n_context - s->n_timeline;
    return (int32_t)max_i64(min_i64(tokens, room) - 1, 0);
}

/* Other sessions in the pass may leave less room than the policy would take. */
static drey_status grow(drey_session *s, int32_t max_rows, drey_error *err)
{
    int32_t n_before = s->tree.n_nodes, size = s->policy->size;
    int64_t start = clock_ns();
    s->policy->size = min_i32(size, max_rows - 1);
    drey_status status = draft_grow(s->drafter, s->policy, &s->tree, turn_depth_left(s), err);
    s->policy->size = size;
    trace_add(&s->engine->trace, 0, TRACE_DRAFT, start, clock_ns(), s->tree.n_nodes - n_before);
    return status;
}

/* The target's next token becomes the root; what was drafted below it stays. */
static void reroot(drey_session *s)
{
    const accepted *a = &s->accepted;
    int32_t moved[TREE_MAX_NODES];
    tree_moves(&s->tree, a->path, a->n_path, a->next, moved);
    if (s->drafter) {
        idle_settle(s, moved);
        draft_observe(s->policy, &s->tree, a->path, a->n_path, a->next);
        s->drafter->class->reroot(s->drafter, &s->tree, a->path, a->n_path, a->next, moved);
    }
    tree_reroot(&s->tree, a->next, moved);
}

/* Of the root and the accepted nodes below it, the first n. */
static void commit(drey_session *s, int32_t n)
{
    int32_t rows[TREE_MAX_ROWS] = {s->row_of[0]};
    for (int32_t i = 0; i + 1 < n; i++)
        rows[1 + i] = s->row_of[s->accepted.path[i]];
    kv_commit(&s->target_kv, rows, n);
}

drey_status turn_offer(drey_session *s, pass_row *rows, int32_t max_rows, pass_group *group,
                       drey_error *err)
{
    if (s->drafter)
        TRY(grow(s, max_rows, err));
    if (s->drafter)
        draft_submit(s->policy, &s->tree, max_rows - 1);
    else
        tree_submit(&s->tree, 0);
    *group = (pass_group){.kv = &s->target_kv, .rows = rows, .head = HEAD_ALL};
    group->n = verify_rows(&s->tree, s->row_of, rows);
    s->text.n_drafted = group->n - 1;
    return DREY_OK;
}

static void choose(drey_session *s, const pass_group *group, int32_t root)
{
    float rollback = s->policy ? s->policy->class->rollback : 0;
    int64_t ld = pass_logits_stride(&s->target);
    if (rollback > 0)
        s->text.speculation.differed += accept_near(&s->accepted, &s->tree, s->row_of, &s->sampler,
                                                    group->logits, ld, root, rollback);
    else
        accept_path(&s->accepted, &s->tree, s->row_of, &s->sampler, group->logits, ld, root);
}

void turn_take(drey_session *s, const pass_group *group)
{
    drey_statistics *t = &s->text.stats;
    int32_t root = s->n_timeline - 1;
    choose(s, group, root);
    t->n_passes++;
    t->drafted += s->text.n_drafted;
    t->accepted += s->accepted.n_path;
    int32_t n_written = text_emit(s);
    speculation_count(s, n_written);
    turn_log_add(&s->turns, &s->tree, &s->accepted, t->n_passes - 1, root, n_written, clock_ns());
    commit(s, n_written);
    reroot(s);
}
