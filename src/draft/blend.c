/* Two sources of guesses for one tree: see blend.h.
 *
 * A model guesses what is likely, lookup what occurred before. Where both guess, the union of their
 * tokens is weighed as a mixture: a token's value is w times what the model's guess is worth plus 1
 * - w times what lookup's is worth. Each is calibrated separately (calibration.h;
 * lookup_drafter.h's kinds). w is learnt for how sure both are: at each position of the text the
 * model's part is its part of the right token's value, and w is the mean of those parts: a step of
 * expectation maximisation for mixtures. Before anything is known the surer source counts more.
 *
 *        model   the 0.6, a 0.2          w = 2/3      the 0.40 + 0.03, a 0.13, next 0.10
 *        lookup  next 0.3, the 0.1                    neither 0.33
 *
 * Agreement says more than each source does: a token of both counts three times, and all values,
 * with the rest that neither guesses, are scaled to a sum of 1. Measured at 700 positions of code,
 * chat and copies with guesses of heads and lookup: of tokens with the value 0.35 by the mixture
 * alone, 0.62 were right if both had guessed them, and 0.31 if only the heads had.
 *
 * Where lookup is nearly certain the model is not asked, so copying takes no steps of the model.
 * Nodes after such a node have guesses of lookup only, because the model has no row of it, until
 * the text reaches them: the model then computes the copied tokens as a chain, in one pass. Nodes
 * deeper than heads reach have guesses of lookup only as well, and so do all while the model has
 * not read the prompt. All of these are expanded without a step, before any steps.
 *
 * A node's guesses get the confidence that a model would have for such a value. So policies treat
 * them like a model's, and correct the remaining error.
 *
 * With `aside` trees are the inner drafter's alone, and lookup is there to be asked for nodes that
 * were not expanded (peek). */
#include "draft/blend.h"
#include "base/usual.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"
#include "draft/lookup_drafter.h"

/* Confidence of lookup's best guess. The 0.5B agrees with the 1.5B at 0.84 of all positions, and at
 * more of them in copied text: below this, asking the model is worth its step. */
static const float certain = USUAL_LOOKUP_CERTAIN;

/* ---- Two opinions ---- */

static int32_t class_of(float best)
{
    static const float ends[BLEND_CLASSES - 1] = USUAL_BLEND_CLASSES;
    int32_t class = 0;
    while (class < BLEND_CLASSES - 1 && best >= ends[class])
        class ++;
    return class;
}

/* The weight of the inner drafter's guesses, and the class where it is learnt. */
static float weight_of(const blend_trust *t, const blend_guesses *g, int32_t at[2])
{
    const float first_places = USUAL_BLEND_FIRST_POSITIONS;
    float inner = 0, text = 0;
    for (int32_t i = 0; i < g->n; i++) {
        inner = max_f32(inner, g->guess[i].inner);
        text = max_f32(text, g->guess[i].text);
    }
    at[0] = class_of(inner);
    at[1] = class_of(text);
    if (inner <= 0 || text <= 0)
        return inner > 0 ? 1 : 0;
    float first = inner / (inner + text);
    return (t->inner[at[0]][at[1]] + first_places * first) /
           (t->places[at[0]][at[1]] + first_places);
}

void blend_weigh(const blend_trust *t, blend_guesses *g)
{
    const float agreement = USUAL_AGREEMENT;
    int32_t at[2];
    float w = weight_of(t, g, at), rest = 1, sum = 0;
    for (int32_t i = 0; i < g->n; i++) {
        blend_guess *x = &g->guess[i];
        float mixed = w * x->inner + (1 - w) * x->text;
        x->value = x->inner > 0 && x->text > 0 ? agreement * mixed : mixed;
        rest -= mixed;
        sum += x->value;
    }
    sum += max_f32(rest, 0);
    for (int32_t i = 0; i < g->n; i++) {
        blend_guess x = g->guess[i];
        int32_t place = i;
        x.value /= sum;
        for (; place > 0 && x.value > g->guess[place - 1].value; place--)
            g->guess[place] = g->guess[place - 1];
        g->guess[place] = x;
    }
}

void blend_learn(blend_trust *t, const blend_guesses *g, int32_t token)
{
    int32_t at[2];
    float w = weight_of(t, g, at);
    if (w <= 0 || w >= 1)
        return;
    float *places = &t->places[at[0]][at[1]], *inner = &t->inner[at[0]][at[1]];
    for (int32_t i = 0; i < g->n; i++)
        if (g->guess[i].token == token) {
            const blend_guess *x = &g->guess[i];
            *places += 1;
            *inner += w * x->inner / (w * x->inner + (1 - w) * x->text);
        }
    if (*places >= USUAL_BLEND_MOST_POSITIONS) {
        *places /= 2;
        *inner /= 2;
    }
}

/* ---- The guesses of a node ---- */

static blend_drafter *self_of(drafter *d)
{
    return (blend_drafter *)d;
}

static bool is_sampled(const blend_drafter *b)
{
    return b->sampler->settings.temperature > 0;
}

static calibration *worth_of(blend_drafter *b)
{
    return &b->worth[is_sampled(b)];
}

static void hear_inner(blend_drafter *b, const tree_node *node, blend_guesses *g)
{
    const calibration *c = worth_of(b);
    float sum = 0;
    for (int32_t i = 0; i < node->n_guesses; i++) {
        float said = node->guess[i].confidence, worth = calibration_value(c, i, said);
        g->guess[g->n++] = (blend_guess){
            .token = node->guess[i].token, .inner = worth, .rank = (uint8_t)i, .said = said};
        sum += worth;
    }
    for (int32_t i = 0; i < g->n && sum > 1; i++)
        g->guess[i].inner /= sum;
}

static void hear_text(const lookup_guess *guess, int32_t n, blend_guesses *g)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t at = 0;
        while (at < g->n && g->guess[at].token != guess[i].token)
            at++;
        if (at == g->n)
            g->guess[g->n++] = (blend_guess){.token = guess[i].token};
        g->guess[at].text = guess[i].confidence;
        g->guess[at].kind = guess[i].kind;
    }
}

static void merge(blend_drafter *b, token_tree *tree, int32_t i)
{
    tree_node *node = &tree->nodes[i];
    lookup_guess guess[TREE_MAX_GUESSES];
    blend_guesses *g = &b->of[i];
    g->n = 0;
    node->expanded = true;
    if (b->aside)
        return;
    hear_inner(b, node, g);
    hear_text(guess, lookup_find(b->lookup, tree, i, guess), g);
    blend_weigh(&b->trust, g);
    node->n_guesses = (uint8_t)min_i32(g->n, TREE_MAX_GUESSES);
    for (int32_t k = 0; k < node->n_guesses; k++) {
        const blend_guess *x = &g->guess[k];
        node->guess[k] = (candidate){x->token, calibration_said(is_sampled(b), k, x->value)};
        node->source[k] = (x->inner > 0 ? SOURCE_DRAFT : 0) | (x->text > 0 ? SOURCE_TEXT : 0);
    }
}

/* The token that came after a node whose guesses are known. */
static void judge(blend_drafter *b, const blend_guesses *g, int32_t token)
{
    bool guessed = false;
    for (int32_t i = 0; i < g->n; i++) {
        const blend_guess *x = &g->guess[i];
        if (x->text > 0)
            lookup_judge(b->lookup, x->kind, x->token == token);
        if (x->inner > 0)
            calibration_note(worth_of(b), x->rank, x->said, x->token == token);
        guessed = guessed || x->inner > 0;
    }
    if (guessed)
        calibration_end_place(worth_of(b));
    blend_learn(&b->trust, g, token);
}

/* ---- A step ---- */

static bool inner_can_guess(const blend_drafter *b, const token_tree *tree, int32_t node)
{
    const drafter_class *c = b->inner->class;
    return !b->base.lags && (!c->can_guess || c->can_guess(b->inner, tree, node));
}

static void take_nodes(blend_drafter *b, const token_tree *tree, const int32_t *nodes, int32_t n)
{
    assert(b->n_nodes == 0 && n >= 1 && n <= DRAFT_MAX_BATCH);
    b->n_nodes = n;
    b->n_computed = 0;
    for (int32_t i = 0; i < n; i++) {
        b->nodes[i] = nodes[i];
        if (inner_can_guess(b, tree, nodes[i]))
            b->computed[b->n_computed++] = nodes[i];
    }
}

static void drop_nodes(blend_drafter *b)
{
    b->n_nodes = b->n_computed = 0;
}

/* The inner drafter has expanded its nodes, or had none. */
static drey_status finish(blend_drafter *b, token_tree *tree, drey_status status)
{
    for (int32_t i = 0; i < b->n_nodes && status == DREY_OK; i++)
        merge(b, tree, b->nodes[i]);
    drop_nodes(b);
    return status;
}

static drey_status blend_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                drey_error *err)
{
    blend_drafter *b = self_of(base);
    take_nodes(b, tree, nodes, n);
    drey_status status = DREY_OK;
    if (b->n_computed > 0)
        status = b->inner->class->expand(b->inner, tree, b->computed, b->n_computed, err);
    return finish(b, tree, status);
}

static drey_status blend_expand_all(const draft_step *steps, int32_t n, drey_error *err)
{
    draft_step inner[DRAFT_MAX_BATCH];
    int32_t n_inner = 0;
    assert(n <= DRAFT_MAX_BATCH);
    for (int32_t i = 0; i < n; i++) {
        blend_drafter *b = self_of(steps[i].drafter);
        take_nodes(b, steps[i].tree, steps[i].nodes, steps[i].n);
        if (b->n_computed > 0)
            inner[n_inner++] = (draft_step){b->inner, steps[i].tree, b->computed, b->n_computed};
    }
    drey_status status = DREY_OK;
    if (n_inner > 0)
        status = inner[0].drafter->class->expand_all(inner, n_inner, err);
    for (int32_t i = 0; i < n; i++)
        finish(self_of(steps[i].drafter), steps[i].tree, status);
    return status;
}

static drey_status blend_start(drafter *base, const token_tree *tree, const int32_t *nodes,
                               int32_t n, drey_error *err)
{
    blend_drafter *b = self_of(base);
    take_nodes(b, tree, nodes, n);
    drey_status status = DREY_OK;
    if (b->n_computed > 0)
        status = b->inner->class->steps->start(b->inner, tree, b->computed, b->n_computed, err);
    if (status != DREY_OK)
        drop_nodes(b);
    return status;
}

static drey_status blend_advance(drafter *base, token_tree *tree, int64_t until_ns, bool *done,
                                 drey_error *err)
{
    blend_drafter *b = self_of(base);
    drey_status status = DREY_OK;
    *done = true;
    if (b->n_computed > 0)
        status = b->inner->class->steps->advance(b->inner, tree, until_ns, done, err);
    return *done || status != DREY_OK ? finish(b, tree, status) : DREY_OK;
}

static void blend_give_up(drafter *base)
{
    blend_drafter *b = self_of(base);
    b->inner->class->steps->give_up(b->inner);
    drop_nodes(b);
}

static bool blend_expand_free(drafter *base, token_tree *tree, int32_t node)
{
    blend_drafter *b = self_of(base);
    lookup_guess guess[TREE_MAX_GUESSES];
    if (b->aside)
        return false;
    if (inner_can_guess(b, tree, node) &&
        (lookup_find(b->lookup, tree, node, guess) == 0 || guess[0].confidence < certain))
        return false;
    merge(b, tree, node);
    tree->nodes[node].copied = true;
    return true;
}

/* Gives the guesses of lookup alone. */
static int32_t blend_peek(const drafter *base, const token_tree *tree, int32_t node, candidate *out)
{
    const blend_drafter *b = (const blend_drafter *)base;
    lookup_guess guess[TREE_MAX_GUESSES];
    int32_t n = lookup_find(b->lookup, tree, node, guess);
    for (int32_t i = 0; i < n; i++)
        out[i] =
            (candidate){guess[i].token, calibration_said(is_sampled(b), i, guess[i].confidence)};
    return n;
}

/* ---- What both are given ---- */

static drey_status blend_begin(drafter *base, const int32_t *tokens, int32_t n, drey_error *err)
{
    blend_drafter *b = self_of(base);
    TRY(b->lookup->base.class->begin(&b->lookup->base, tokens, n, err));
    return b->inner->class->begin(b->inner, tokens, n, err);
}

static void blend_take_input(drafter *base, const int32_t *ids, int32_t n)
{
    blend_drafter *b = self_of(base);
    b->lookup->base.class->listener->take_input(&b->lookup->base, ids, n);
}

static bool blend_unread(const drafter *base)
{
    const blend_drafter *b = (const blend_drafter *)base;
    return b->inner->class->reader->unread(b->inner);
}

static drey_status blend_read(drafter *base, int64_t until_ns, draft_reading *state,
                              drey_error *err)
{
    blend_drafter *b = self_of(base);
    return b->inner->class->reader->read(b->inner, until_ns, state, err);
}

static void blend_take_target_top(drafter *base, const token_tree *tree, int32_t node,
                                  const int32_t *tokens, int32_t n)
{
    blend_drafter *b = self_of(base);
    b->lookup->base.class->listener->take_target_top(&b->lookup->base, tree, node, tokens, n);
    if (b->inner->wants_target_top)
        b->inner->class->listener->take_target_top(b->inner, tree, node, tokens, n);
}

static bool blend_is_valid(const drafter *base, const int32_t *tokens, int32_t n)
{
    const blend_drafter *b = (const blend_drafter *)base;
    return b->inner->class->is_valid(b->inner, tokens, n);
}

static void blend_take_hidden(drafter *base, int32_t position, const float *hidden)
{
    blend_drafter *b = self_of(base);
    b->inner->class->listener->take_hidden(b->inner, position, hidden);
}

static void blend_take_taps(drafter *base, int32_t position, int32_t next, const float *const *taps)
{
    blend_drafter *b = self_of(base);
    b->inner->class->listener->take_taps(b->inner, position, next, taps);
}

static void blend_reroot(drafter *base, const token_tree *tree, const int32_t *path, int32_t n_path,
                         int32_t next, const int32_t *moved)
{
    blend_drafter *b = self_of(base);
    for (int32_t i = 0; i <= n_path; i++) {
        int32_t node = i ? path[i - 1] : 0;
        if (tree->nodes[node].expanded && !tree->nodes[node].forced)
            judge(b, &b->of[node], i < n_path ? tree->nodes[path[i]].token : next);
    }
    for (int32_t i = 0; i < tree->n_nodes; i++)
        if (moved[i] >= 0 && moved[i] != i) /* never after i */
            b->of[moved[i]] = b->of[i];
    lookup_follow(b->lookup, tree, path, n_path, next);
    b->inner->class->reroot(b->inner, tree, path, n_path, next, moved);
    base->n_unguessable = b->inner->n_unguessable;
}

/* ---- */

size_t blend_bytes(int32_t capacity)
{
    return arena_size(sizeof(blend_drafter)) + drafter_lookup_bytes(capacity);
}

static const drafter_steps steps = {blend_start, blend_advance, blend_give_up};
static const drafter_reader reader = {blend_unread, blend_read};

drafter *blend_init(void *memory, int32_t capacity, drafter *inner, const sampler *s,
                    const drey_profile *known, const float *right, bool aside)
{
    const drafter_class *c = inner->class;
    blend_drafter *b = memory;
    *b = (blend_drafter){
        .base = {.class = &b->class, .wants_target_top = true},
        .class = {.begin = blend_begin,
                  .expand = blend_expand,
                  .reroot = blend_reroot,
                  .steps = c->steps ? &steps : NULL,
                  .reader = c->reader ? &reader : NULL,
                  .listener = &b->listener,
                  .expand_all = c->expand_all ? blend_expand_all : NULL,
                  .skips_forced_root = c->skips_forced_root,
                  .guesses_unread = !aside,
                  .expand_free = blend_expand_free,
                  .peek = blend_peek,
                  .is_valid = c->is_valid ? blend_is_valid : NULL},
        .listener = {.take_input = blend_take_input,
                     .take_target_top = blend_take_target_top,
                     .take_hidden = drafter_listens_to(c, take_hidden) ? blend_take_hidden : NULL,
                     .take_taps = drafter_listens_to(c, take_taps) ? blend_take_taps : NULL},
        .aside = aside,
        .inner = inner,
        .sampler = s,
        .worth = {{.sampled = false}, {.sampled = true}}};
    if (known)
        calibration_seed(&b->worth[0], known);
    for (int i = 0; i < 2 && right; i++)
        calibration_expect(&b->worth[i], right, CALIBRATION_RANKS);
    uint8_t *rest = (uint8_t *)memory + arena_size(sizeof *b);
    b->lookup = (lookup_drafter *)drafter_lookup_init(rest, capacity);
    return &b->base;
}
