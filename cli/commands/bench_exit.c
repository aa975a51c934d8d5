/* drey bench exit: early exits, the baselines that they are compared with, and the oracle, over the
 * same prompts in turns. Sides without "tree" write a token a pass, so that an exit ends the pass
 * of its token alone; those with "tree" draft as drey run does. Each text is written by an engine
 * of its own, and its result kept at once. */
#include "cli/commands/cmd_bench.h"

#include "cli/commands/bench_texts.h"
#include "cli/files/drawing.h"
#include "cli/files/exit_rows.h"
#include "cli/files/json_file.h"
#include "cli/commands/models.h"
#include "cli/files/prompts.h"
#include "cli/terminal/terminal.h"
#include "drey/train.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_PREDICT = 128 };

/* T1, T2 and T3 are SpecEE's names: predictors that speculation feeds, the schedule over layers,
 * and exits of whole trees. */
typedef enum side_kind {
    SIDE_WRITES,
    SIDE_GUESSES,    /* a draft is asked, and nobody uses what it says */
    SIDE_WATCHED,    /* predictors are asked, and nobody leaves: no score is above this */
    SIDE_CONFIDENCE, /* by predictors of another file */
    SIDE_ORACLE
} side_kind;

typedef struct side {
    const char *name;
    side_kind kind;
    bool tree;
    drey_exit exit;
    uint64_t without;
} side;

static const side sides[] = {
    {"off", SIDE_WRITES, false, DREY_EXIT_OFF, 0},
    {"off-draft", SIDE_GUESSES, false, DREY_EXIT_OFF, 0},
    {"watched", SIDE_WATCHED, false, DREY_EXIT_FAST, 0},
    {"fast-every-layer", SIDE_WRITES, false, DREY_EXIT_FAST, DREY_WITHOUT(DREY_PART_SCHEDULE)},
    {"fast", SIDE_WRITES, false, DREY_EXIT_FAST, 0},
    {"exact", SIDE_WRITES, false, DREY_EXIT_EXACT, 0},
    {"fast-confidence", SIDE_CONFIDENCE, false, DREY_EXIT_FAST, 0},
    {"fast-random", SIDE_WRITES, false, DREY_EXIT_FAST, DREY_WITHOUT(DREY_PART_PREDICTORS)},
    {"tree", SIDE_WRITES, true, DREY_EXIT_OFF, 0},
    {"tree-fast", SIDE_WRITES, true, DREY_EXIT_FAST, 0},
    {"tree-exact", SIDE_WRITES, true, DREY_EXIT_EXACT, 0},
    {"oracle", SIDE_ORACLE, false, DREY_EXIT_OFF, 0},
};
enum { N_SIDES = sizeof sides / sizeof *sides };

typedef struct exits {
    const cli_settings *s;
    models models;
    prompt_list prompts;
    csv_rows rows;
    const side *side[N_SIDES];
    int n_sides, n_failed;
} exits;

/* ---- Sides ---- */

static bool lacks_draft(const exits *e, const side *s)
{
    return (s->tree || s->kind == SIDE_GUESSES) && e->s->drafter == DREY_DRAFTER_NONE;
}

static bool lacks_predictors(const exits *e, const side *s)
{
    return s->kind == SIDE_CONFIDENCE && !e->s->confidence_file;
}

static drey_status add_side(exits *e, const char *name, size_t n, drey_error *err)
{
    const side *s = NULL;
    for (int i = 0; i < N_SIDES; i++)
        if (strlen(sides[i].name) == n && strncmp(sides[i].name, name, n) == 0)
            s = &sides[i];
    if (!s)
        return fail(err, DREY_ERR_USAGE, "--sides takes names with commas between, not \"%.40s\"",
                    e->s->sides);
    if (lacks_draft(e, s))
        return fail(err, DREY_ERR_USAGE,
                    "the side %s needs a draft: add -d DRAFT.gguf or -d lookup", s->name);
    if (lacks_predictors(e, s))
        return fail(err, DREY_ERR_USAGE, "the side %s needs predictors: add --confidence-file FILE",
                    s->name);
    for (int k = 0; k < e->n_sides; k++)
        if (e->side[k] == s)
            return DREY_OK;
    e->side[e->n_sides++] = s;
    return DREY_OK;
}

/* --sides LIST; without it all that can be. */
static drey_status choose_sides(exits *e, drey_error *err)
{
    if (!e->s->sides) {
        for (int i = 0; i < N_SIDES; i++)
            if (!lacks_draft(e, &sides[i]) && !lacks_predictors(e, &sides[i]))
                e->side[e->n_sides++] = &sides[i];
        return DREY_OK;
    }
    for (const char *at = e->s->sides;; at++) {
        size_t n = strcspn(at, ",");
        drey_status status = add_side(e, at, n, err);
        if (status != DREY_OK || !*(at += n))
            return status;
    }
}

/* ---- A text ---- */

static drey_engine_options options_of(const exits *e, const side *s, const bench_prompt *p,
                                      const exit_row *row)
{
    const float nobody = 0.99999994f; /* the last number below 1 */
    drey_engine_options o =
        models_engine_options(&e->models, e->s, (int32_t)p->n_ids + row->n_predict);
    o.exit = s->exit;
    o.without = s->without;
    o.memory_bytes = bytes_of_mib(row->budget_mib);
    o.policy = s->tree                          ? DREY_POLICY_OPTIMAL
               : o.drafter != DREY_DRAFTER_NONE ? DREY_POLICY_SINGLE
                                                : DREY_POLICY_NONE;
    if (s->kind == SIDE_WATCHED)
        o.exit_threshold = nobody;
    if (s->kind == SIDE_CONFIDENCE)
        o.exit_file = e->s->confidence_file;
    if (s->exit == DREY_EXIT_OFF && !s->tree && s->kind != SIDE_GUESSES) {
        o.policy = DREY_POLICY_NONE;
        models_leave_draft(&o);
    }
    if (s->exit == DREY_EXIT_OFF)
        o.exit_threshold = 0;
    return o;
}

static void fill_row(exit_row *row, const bench_text *text)
{
    const drey_statistics *t = &text->statistics;
    const drey_exits *c = &text->exits;
    const text_hash *w = &text->hash;
    row->tokens = w->n;
    row->tokens_per_s = t->tokens_per_s;
    row->tokens_per_pass = t->tokens_per_pass;
    row->decode_s = t->decode_s;
    text_hash_put(w, row->text, sizeof row->text);
    if (c->mode == DREY_EXIT_OFF)
        return;
    row->n_layers = c->n_layers;
    exit_row_put_layers(row, c->at_layer,
                        c->n_layers < DREY_EXITS_LAYERS ? c->n_layers : DREY_EXITS_LAYERS);
    row->left = (double)c->left;
    row->compared = (double)c->compared;
    row->agreed = (double)c->agreed;
    row->taken_back = (double)c->taken_back;
    row->looks = (double)c->looks;
    row->candidates = (double)c->candidates;
    row->refused = (double)c->refused;
    row->look_s = c->look_s;
    row->head_s = c->head_s;
    row->skipped_bytes = (double)c->skipped_bytes;
    row->vain_bytes = (double)c->vain_bytes;
}

static drey_status write_text(const drey_engine_options *o, const bench_prompt *p, exit_row *row,
                              drey_error *err)
{
    bench_text text;
    drey_status status = bench_text_write(&text, o, p, row->n_predict, NULL, err);
    if (status == DREY_OK)
        fill_row(row, &text);
    return status;
}

static drey_status look_at_text(const drey_engine_options *o, const bench_prompt *p, exit_row *row,
                                drey_error *err)
{
    const drey_train_prompt prompt = {p->ids, p->n_ids};
    drey_exit_oracle oracle;
    drey_status status = drey_exit_oracle_of(o, &prompt, row->n_predict, &oracle, err);
    if (status != DREY_OK)
        return status;
    row->tokens = (int32_t)oracle.n_tokens;
    row->n_layers = oracle.n_layers;
    exit_row_put_layers(row, oracle.at_layer, oracle.n_layers);
    return DREY_OK;
}

/* ---- All of them ---- */

static exit_row row_of(const exits *e, const side *s, const bench_prompt *p, uint64_t budget,
                       int round)
{
    const cli_settings *c = e->s;
    exit_row row = {.round = round, .lossy = s->exit == DREY_EXIT_FAST && s->kind != SIDE_WATCHED};
    csv_put_text(row.target, sizeof row.target, drawing_file_name(c->model));
    csv_put_text(row.draft, sizeof row.draft,
                 c->drafter == DREY_DRAFTER_MODEL ? drawing_file_name(c->draft_path)
                                                  : drey_drafter_name(c->drafter));
    snprintf(row.side, sizeof row.side, "%s", s->name);
    memcpy(row.prompt, p->id, sizeof row.prompt);
    memcpy(row.group, p->group, sizeof row.group);
    row.budget_mib = kept_mib(budget);
    row.n_predict = option_given(c, "predict") ? c->n_predict : USUAL_PREDICT;
    return row;
}

/* A side that cannot run is told and passed over: the others are worth having. */
static drey_status measure(exits *e, const side *s, const bench_prompt *p, exit_row *row,
                           drey_error *err)
{
    drey_error why = {0};
    char budget[32];
    if (csv_find(&e->rows, row))
        return DREY_OK;
    drey_engine_options o = options_of(e, s, p, row);
    drey_status status =
        s->kind == SIDE_ORACLE ? look_at_text(&o, p, row, &why) : write_text(&o, p, row, &why);
    budget_words(budget, row->budget_mib);
    if (status != DREY_OK) {
        complain("%s, %s, %s: %s%s", p->id, s->name, budget, why.message, hint_words(why.hint));
        e->n_failed++;
        return DREY_OK;
    }
    if (!e->s->quiet) {
        fprintf(stderr, "%s, %s, %s:", p->id, s->name, budget);
        if (row->tokens_per_s > 0)
            fprintf(stderr, " %.3g tokens/s", row->tokens_per_s);
        if (row->counted > 0)
            fprintf(stderr, " %.2f of %d layers", row->layers / row->counted, row->n_layers);
        fputc('\n', stderr);
    }
    return csv_add(&e->rows, row, err);
}

static drey_status measure_all(exits *e, drey_error *err)
{
    drey_status status = DREY_OK;
    int n = text_count(e->s, e->prompts.n, e->n_sides);
    for (int i = 0; i < n && status == DREY_OK; i++) {
        text_place at = text_place_of(e->s, e->prompts.n, e->n_sides, i);
        const side *s = e->side[at.side];
        const bench_prompt *p = &e->prompts.prompts[at.prompt];
        exit_row row = row_of(e, s, p, e->s->budgets[at.budget], at.round);
        status = measure(e, s, p, &row, err);
    }
    return status;
}

static drey_status tell(exits *e, FILE *out, cJSON *root, drey_error *err)
{
    exit_case *cases;
    int n;
    drey_status status = exit_cases(&e->rows, &cases, &n, err);
    if (status != DREY_OK)
        return status;
    exit_print(cases, n, out);
    cJSON_AddItemToObject(root, "cases", exit_json(cases, n));
    fputc('\n', out);
    int n_texts, n_other = exit_texts_differ(&e->rows, out, &n_texts);
    if (e->s->svg)
        status = exit_svg(e->s->svg, cases, n, err);
    free(cases);
    return status == DREY_OK ? tell_texts(n_texts, n_other, e->n_failed, out, root, err) : status;
}

drey_status bench_exit(const cli_settings *s, FILE *out, cJSON *root, drey_error *err)
{
    exits e = {.s = s};
    drey_status status = prompts_read(&e.prompts, s->prompts, s->memory_bytes, err);
    if (status == DREY_OK)
        status = choose_sides(&e, err);
    if (status == DREY_OK)
        status = csv_open(&e.rows, &exit_format, s->csv, err);
    if (status == DREY_OK)
        status = models_open(&e.models, s, err);
    if (status == DREY_OK)
        status = prompts_tokenize(&e.prompts, e.models.target, err);
    if (status == DREY_OK)
        status = measure_all(&e, err);
    if (status == DREY_OK)
        status = tell(&e, out, root, err);
    prompts_free(&e.prompts);
    models_close(&e.models);
    csv_close(&e.rows);
    return status;
}
