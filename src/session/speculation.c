/* What came of drafting: by depth in the tree, by rank of the guess, by tokens that a
 * pass wrote. */
#include "common/num.h"
#include "session/session.h"

static const int32_t deepest = DREY_SPECULATION_DEPTHS - 1, no_rank = DREY_SPECULATION_RANKS;

/* Which of a node's guesses a token is; no_rank: none. */
static int32_t rank_of(const tree_node *node, int32_t token)
{
    for (int32_t i = 0; i < node->n_guesses; i++)
        if (node->guess[i].token == token)
            return min_i32(i, no_rank);
    return no_rank;
}

static void count_submitted(drey_speculation *c, const token_tree *tree)
{
    for (int32_t i = 1; i < tree->n_nodes; i++) {
        const tree_node *node = &tree->nodes[i];
        if (!node->submitted)
            continue;
        c->depth_submitted[min_i32(node->depth - 1, deepest)]++;
        c->rank_submitted[rank_of(&tree->nodes[node->parent], node->token)]++;
    }
}

static void count_source(drey_speculation *c, const tree_node *from, int32_t token)
{
    for (int32_t i = 0; i < from->n_guesses; i++)
        if (from->guess[i].token == token) {
            c->accepted_of_draft += from->source[i] == SOURCE_DRAFT;
            c->accepted_of_text += from->source[i] == SOURCE_TEXT;
            c->accepted_of_both += from->source[i] == (SOURCE_DRAFT | SOURCE_TEXT);
        }
}

static void count_chosen(drey_speculation *c, const token_tree *tree, const accepted *a)
{
    for (int32_t i = 0; i <= a->n_path; i++) {
        const tree_node *from = &tree->nodes[i ? a->path[i - 1] : 0];
        bool in_tree = i < a->n_path;
        int32_t rank = rank_of(from, in_tree ? tree->nodes[a->path[i]].token : a->next);
        if (from->n_guesses)
            c->rank_chosen[rank]++;
        if (!in_tree)
            continue;
        count_source(c, from, tree->nodes[a->path[i]].token);
        c->depth_accepted[min_i32(i, deepest)]++;
        c->rank_accepted[rank]++;
    }
}

void speculation_count(drey_session *s, int32_t n_written)
{
    drey_speculation *c = &s->text.speculation;
    count_submitted(c, &s->tree);
    count_chosen(c, &s->tree, &s->accepted);
    if (s->watch)
        s->watch->turn(s->watch, &s->tree, &s->accepted);
    if (n_written > 0)
        c->passes_writing[min_i32(n_written, DREY_SPECULATION_WRITTEN) - 1]++;
}

void speculation_end(drey_session *s, const statistics_mark *end)
{
    drey_speculation *c = &s->text.speculation;
    const int64_t *before = s->text.decode.sums.ns, *after = end->sums.ns;
    int64_t beside = after[TRACE_DRAFT] - before[TRACE_DRAFT];
    int64_t during = after[TRACE_PROVISIONAL] - before[TRACE_PROVISIONAL];
    c->draft_s = (double)(beside + during) * 1e-9;
    c->hidden_share = during > 0 ? (double)during / (double)(beside + during) : 0;
    c->draft_steps = s->drafter ? s->drafter->n_steps - s->text.steps_before : 0;
    c->alpha = s->policy ? (double)s->policy->alpha : 0;
    c->lossy = drey_policy_is_lossy(s->engine->options.policy);
    if (s->engine->options.policy == DREY_POLICY_DRAFT)
        c->differed = -1;
}

void drey_session_speculation(const drey_session *session, drey_speculation *out)
{
    *out = session->text.speculation;
}
