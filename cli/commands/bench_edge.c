/* drey bench edge: every policy, and policies with a part left out, write the same prompts in
 * turns. For each prompt and budget the sides follow each other, so that a machine that drifts
 * slows all of them; each text is written by an engine of its own, and its result kept at once. */
#include "cli/commands/cmd_bench.h"

#include "cli/commands/bench_texts.h"
#include "cli/files/drawing.h"
#include "cli/files/edge_rows.h"
#include "cli/files/json_file.h"
#include "cli/commands/models.h"
#include "cli/files/profile_file.h"
#include "cli/files/prompts.h"
#include "cli/terminal/terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_PREDICT = 128, USUAL_PLAIN = 24, MOST_SIDES = 64 };

typedef struct side {
    char name[48];
    drey_policy policy;
    uint64_t without;
} side;

typedef struct edge {
    const cli_settings *s;
    models models;
    drey_pair_report known; /* what drey tune -m measured, where models.profile is not NULL */
    prompt_list prompts;
    csv_rows rows;
    side sides[MOST_SIDES];
    int n_sides, n_failed;
} edge;

/* ---- Sides ---- */

static bool is_plain(drey_policy policy)
{
    return policy == DREY_POLICY_NONE || policy == DREY_POLICY_STD;
}

/* Heads have lookup beside them by themselves, others where it is asked for. */
static bool can_blend(const edge *e)
{
    drey_drafter d = e->models.drafter;
    return d == DREY_DRAFTER_MEDUSA || (e->s->with && d != DREY_DRAFTER_LOOKUP);
}

/* Parts that make a difference to the policy. All but the draft alone draft several nodes in a step
 * while a pass waits. */
static bool has_part(const edge *e, drey_policy policy, drey_part part)
{
    bool follows = policy == DREY_POLICY_LLMCAD || policy == DREY_POLICY_EDGELLM;
    switch (part) {
    case DREY_PART_TREE:
        return follows || policy == DREY_POLICY_SPECINFER || policy == DREY_POLICY_OPTIMAL;
    case DREY_PART_FALLBACK:
        return follows;
    case DREY_PART_BATCHING:
    case DREY_PART_PROVISIONAL:
        return !is_plain(policy) && policy != DREY_POLICY_DRAFT;
    case DREY_PART_SLICE:
        return !is_plain(policy) && e->models.drafter == DREY_DRAFTER_MODEL;
    case DREY_PART_LOOKUP:
        return can_blend(e) && !is_plain(policy) && policy != DREY_POLICY_DRAFT &&
               (e->s->with || policy == DREY_POLICY_OPTIMAL);
    default: /* of early exits, which are off here */
        return false;
    }
}

static bool can_draft(const edge *e, drey_policy policy)
{
    return is_plain(policy) || e->models.drafter == DREY_DRAFTER_MODEL ||
           (policy != DREY_POLICY_DRAFT && e->models.drafter != DREY_DRAFTER_NONE);
}

static void add_side(edge *e, drey_policy policy, uint64_t without, const char *part)
{
    if (!can_draft(e, policy) || e->n_sides == MOST_SIDES)
        return;
    side *s = &e->sides[e->n_sides++];
    *s = (side){.policy = policy, .without = without};
    const char *name = policy == DREY_POLICY_NONE ? "spl" : drey_policy_name(policy);
    snprintf(s->name, sizeof s->name, "%s%s%s", name, part ? " without " : "", part ? part : "");
}

/* --policies LIST; without it all there are. */
static drey_status add_policies(edge *e, drey_error *err)
{
    static const drey_policy all[] = {
        DREY_POLICY_STD,    DREY_POLICY_NONE,      DREY_POLICY_DRAFT,  DREY_POLICY_SEQUENCE,
        DREY_POLICY_BLD,    DREY_POLICY_SPECINFER, DREY_POLICY_LLMCAD, DREY_POLICY_EDGELLM,
        DREY_POLICY_STATIC, DREY_POLICY_OPTIMAL};
    if (!e->s->policies) {
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            add_side(e, all[i], 0, NULL);
        return DREY_OK;
    }
    for (const char *at = e->s->policies;; at++) {
        char name[32];
        drey_policy policy;
        size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (n >= sizeof name || !drey_policy_parse(name, &policy) || policy == DREY_POLICY_AUTO)
            return fail(err, DREY_ERR_USAGE,
                        "--policies takes policies with commas between, not \"%.40s\"",
                        e->s->policies);
        if (!can_draft(e, policy))
            return fail(err, DREY_ERR_USAGE, "the policy %s needs a draft: add -d %s", name,
                        policy == DREY_POLICY_DRAFT ? "DRAFT.gguf" : "DRAFT.gguf or -d lookup");
        add_side(e, policy, 0, NULL);
        at += n;
        if (!*at)
            return DREY_OK;
    }
}

/* Where nothing is asked for: what of it is ours, and what is theirs alone. */
static bool is_usual(const edge *e, drey_policy policy, drey_part part)
{
    return !e->s->policies && (part == DREY_PART_FALLBACK || policy == DREY_POLICY_OPTIMAL);
}

/* --without LIST: what is left out, one at a time, of each policy that is measured. */
static drey_status add_ablations(edge *e, drey_error *err)
{
    bool given = option_given(e->s, "without");
    int n_policies = e->n_sides;
    for (int i = 0; drey_part_name((drey_part)i); i++) {
        drey_part part = (drey_part)i;
        int n_before = e->n_sides;
        if (given && !(e->s->without & DREY_WITHOUT(part)))
            continue;
        for (int k = 0; k < n_policies; k++) {
            drey_policy policy = e->sides[k].policy;
            if (has_part(e, policy, part) && (given || is_usual(e, policy, part)))
                add_side(e, policy, DREY_WITHOUT(part), drey_part_name(part));
        }
        if (given && e->n_sides == n_before)
            return fail(err, DREY_ERR_USAGE,
                        "--without %s makes no difference to any of these policies with this draft",
                        drey_part_name(part));
    }
    return DREY_OK;
}

/* ---- A text ---- */

static void fill_row(edge_row *row, const bench_text *text)
{
    const drey_statistics *t = &text->statistics;
    const drey_speculation *c = &text->speculation;
    const text_hash *w = &text->hash;
    row->tokens = w->n;
    row->tokens_per_s = t->tokens_per_s;
    row->tokens_per_pass = t->tokens_per_pass;
    row->passes = (double)t->n_passes;
    row->drafted = (double)t->drafted;
    row->accepted = (double)t->accepted;
    row->decode_s = t->decode_s;
    row->first_token_s = t->first_token_s;
    row->stall_share = t->stall_share;
    row->verify_share = t->verify_share;
    row->draft_share = t->draft_share;
    row->hidden_share = c->hidden_share;
    row->differed = (double)c->differed;
    row->lossy = c->lossy;
    memcpy(row->head, w->head, sizeof row->head);
    text_hash_put(w, row->text, sizeof row->text);
}

static drey_engine_options options_of(const edge *e, const side *s, const bench_prompt *p,
                                      const edge_row *row)
{
    drey_engine_options o =
        models_engine_options(&e->models, e->s, (int32_t)p->n_ids + row->n_predict);
    o.policy = s->policy;
    o.without = s->without;
    o.with &= ~s->without;
    if (is_plain(s->policy))
        models_leave_draft(&o);
    bool chain = s->policy == DREY_POLICY_SEQUENCE || s->policy == DREY_POLICY_BLD;
    o.draft_tokens = chain ? o.draft_tokens : 0;
    o.memory_bytes = bytes_of_mib(row->budget_mib);
    return o;
}

static drey_status write_text(const edge *e, const side *s, const bench_prompt *p, edge_row *row,
                              drey_error *err)
{
    bench_text text;
    drey_engine_options o = options_of(e, s, p, row);
    drey_status status = bench_text_write(&text, &o, p, row->n_predict, &e->s->sampling, err);
    if (status == DREY_OK)
        fill_row(row, &text);
    return status;
}

/* ---- All of them ---- */

static edge_row row_of(const edge *e, const side *s, const bench_prompt *p, uint64_t budget,
                       int round)
{
    const cli_settings *c = e->s;
    edge_row row = {.round = round};
    csv_put_text(row.target, sizeof row.target, drawing_file_name(c->model));
    csv_put_text(row.draft, sizeof row.draft,
                 is_plain(s->policy)                ? "none"
                 : c->drafter == DREY_DRAFTER_MODEL ? drawing_file_name(c->draft_path)
                                                    : drey_drafter_name(c->drafter));
    memcpy(row.side, s->name, sizeof row.side);
    memcpy(row.prompt, p->id, sizeof row.prompt);
    memcpy(row.group, p->group, sizeof row.group);
    row.budget_mib = kept_mib(budget);
    row.n_predict = option_given(c, "predict") ? c->n_predict : USUAL_PREDICT;
    int32_t plain = c->n_plain ? c->n_plain : USUAL_PLAIN;
    if (is_plain(s->policy) && plain < row.n_predict)
        row.n_predict = plain;
    return row;
}

/* A side that cannot run is told and passed over: the others are worth having. */
static drey_status measure(edge *e, const side *s, const bench_prompt *p, edge_row *row,
                           drey_error *err)
{
    drey_error why = {0};
    if (csv_find(&e->rows, row))
        return DREY_OK;
    drey_status status = write_text(e, s, p, row, &why);
    char budget[32];
    budget_words(budget, row->budget_mib);
    if (status != DREY_OK) {
        complain("%s, %s, %s: %s", p->id, s->name, budget, why.message);
        e->n_failed++;
        return DREY_OK;
    }
    if (!e->s->quiet)
        fprintf(stderr, "%s, %s, %s: %.3g tokens/s, %.3g a pass\n", p->id, s->name, budget,
                row->tokens_per_s, row->tokens_per_pass);
    return csv_add(&e->rows, row, err);
}

static drey_status measure_all(edge *e, drey_error *err)
{
    drey_status status = DREY_OK;
    int n = text_count(e->s, e->prompts.n, e->n_sides);
    for (int i = 0; i < n && status == DREY_OK; i++) {
        text_place at = text_place_of(e->s, e->prompts.n, e->n_sides, i);
        const side *s = &e->sides[at.side];
        const bench_prompt *p = &e->prompts.prompts[at.prompt];
        edge_row row = row_of(e, s, p, e->s->budgets[at.budget], at.round);
        status = measure(e, s, p, &row, err);
    }
    return status;
}

static drey_status tell(edge *e, FILE *out, cJSON *root, drey_error *err)
{
    edge_case *cases;
    int n;
    drey_status status = edge_cases(&e->rows, &cases, &n, err);
    if (status != DREY_OK)
        return status;
    edge_print(cases, n, out);
    cJSON_AddItemToObject(root, "cases", edge_json(cases, n));
    fputc('\n', out);
    int n_texts, n_other = edge_texts_differ(&e->rows, out, &n_texts);
    if (e->s->svg)
        status = edge_svg(e->s->svg, cases, n, err);
    free(cases);
    return status == DREY_OK ? tell_texts(n_texts, n_other, e->n_failed, out, root, err) : status;
}

drey_status bench_edge(const cli_settings *s, FILE *out, cJSON *root, drey_error *err)
{
    edge e = {.s = s};
    drey_status status = prompts_read(&e.prompts, s->prompts, s->memory_bytes, err);
    if (status == DREY_OK)
        status = csv_open(&e.rows, &edge_format, s->csv, err); /* scripts/bench asks for its head */
    if (status == DREY_OK)
        status = models_open(&e.models, s, err);
    if (status == DREY_OK)
        status = add_policies(&e, err);
    if (status == DREY_OK)
        status = add_ablations(&e, err);
    if (status == DREY_OK) {
        profile_use(&e.models, s, &e.known);
        status = prompts_tokenize(&e.prompts, e.models.target, err);
    }
    if (status == DREY_OK)
        status = measure_all(&e, err);
    if (status == DREY_OK)
        status = tell(&e, out, root, err);
    prompts_free(&e.prompts);
    models_close(&e.models);
    csv_close(&e.rows);
    return status;
}
