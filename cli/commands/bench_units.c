/* drey bench units: what each way of dividing passes between units is worth. Passes are measured by
 * the library, all ways in turns; with prompts, texts are written too: sequential decoding on the
 * fastest unit, then with a draft on that unit alone, and with each division. */
#include "cli/commands/bench_texts.h"
#include "cli/commands/cmd_bench.h"
#include "cli/files/json_file.h"
#include "cli/commands/models.h"
#include "cli/files/prompts.h"
#include "cli/terminal/terminal.h"
#include "cli/files/units_file.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_PREDICT = 64, USUAL_ROUNDS = 3, SWEEP = 40, MOST_ROUNDS = 64 };

typedef enum side_kind { SEQUENTIAL, ONE_UNIT, DIVIDED } side_kind;

typedef struct side {
    const char *name;
    side_kind kind;
    drey_units_side division;
} side;

static const side sides[] = {
    {"sequential", SEQUENTIAL, DREY_UNITS_EVEN},
    {"one unit", ONE_UNIT, DREY_UNITS_EVEN},
    {NULL, DIVIDED, DREY_UNITS_EVEN},
    {NULL, DIVIDED, DREY_UNITS_ALONE_RATIO},
    {NULL, DIVIDED, DREY_UNITS_STATIC},
    {NULL, DIVIDED, DREY_UNITS_DYNAMIC_EVEN},
    {NULL, DIVIDED, DREY_UNITS_DYNAMIC},
};
enum { N_SIDES = sizeof sides / sizeof *sides };

typedef struct units {
    const cli_settings *s;
    models models;
    prompt_list prompts;
    units_measured measured;
    double tokens_per_s[N_SIDES], tokens_per_pass[N_SIDES];
    int n_other;
} units;

static const char *name_of(const side *w)
{
    return w->name ? w->name : drey_units_side_name(w->division);
}

/* ---- Texts ---- */

/* A width that was not measured has the shares of the next narrower one. Attention follows the
 * shares, but where they were searched: there the boundary is 0, and, with taking over, searched. */
static drey_unit_shares shares_of(const drey_units_report *r, const side *w)
{
    drey_unit_shares all = {.n_units = r->n_units};
    if (w->kind == DIVIDED && w->division == DREY_UNITS_STATIC)
        all.n_boundaries = 1;
    if (w->kind == DIVIDED && w->division == DREY_UNITS_DYNAMIC) {
        all.n_boundaries = r->shares.n_boundaries;
        memcpy(all.boundary, r->shares.boundary, sizeof all.boundary);
    }
    for (int i = 0; i < DREY_UNIT_WIDTHS; i++) {
        const drey_units_width *of = &r->widths[0];
        for (int32_t k = 0; k < r->n_widths && r->widths[k].rows <= 1 << i; k++)
            of = &r->widths[k];
        int32_t fastest = 0;
        for (int32_t u = 0; u < r->n_units; u++)
            fastest = r->widths[0].alone_s[u] < r->widths[0].alone_s[fastest] ? u : fastest;
        for (int32_t u = 0; u < r->n_units; u++)
            all.share[i][u] = w->kind == DIVIDED ? of->share[w->division][u] : u == fastest;
    }
    return all;
}

static drey_status write_text(const units *b, const side *w, const bench_prompt *p, bench_text *out,
                              drey_error *err)
{
    char text[600];
    bool takes_over = w->division == DREY_UNITS_DYNAMIC || w->division == DREY_UNITS_DYNAMIC_EVEN;
    int32_t n_predict = option_given(b->s, "predict") ? b->s->n_predict : USUAL_PREDICT;
    const drey_unit_shares shares = shares_of(&b->measured.products, w);
    drey_engine_options o = models_engine_options(&b->models, b->s, (int32_t)p->n_ids + n_predict);
    snprintf(text, sizeof text, "%s%s", b->s->units, takes_over ? "" : "+static");
    o.units = text;
    o.unit_shares = &shares;
    if (w->kind == SEQUENTIAL) {
        models_leave_draft(&o);
        o.tree_nodes = o.draft_tokens = 0;
        o.without = 0;
    }
    return bench_text_write(out, &o, p, n_predict, NULL, err);
}

/* A side's speed is the median, over rounds, of all prompts' tokens by all their seconds. */
static drey_status write_all(units *b, drey_error *err)
{
    double speed[N_SIDES][MOST_ROUNDS], passes[N_SIDES] = {0}, tokens[N_SIDES] = {0};
    int n_rounds = b->s->n_rounds ? b->s->n_rounds : USUAL_ROUNDS;
    n_rounds = n_rounds < MOST_ROUNDS ? n_rounds : MOST_ROUNDS;
    for (int round = 0; round < n_rounds; round++) {
        double seconds[N_SIDES] = {0}, written[N_SIDES] = {0};
        for (int i = 0; i < b->prompts.n; i++) {
            uint64_t first = 0;
            for (int w = 0; w < N_SIDES; w++) {
                bench_text text;
                const drey_statistics *t = &text.statistics;
                drey_status status = write_text(b, &sides[w], &b->prompts.prompts[i], &text, err);
                if (status != DREY_OK)
                    return status;
                first = w == 0 ? text.hash.value : first;
                b->n_other += text.hash.value != first;
                written[w] += (double)t->generated_tokens - 1; /* the first is the prompt's */
                seconds[w] += t->decode_s;
                passes[w] += (double)t->n_passes;
                tokens[w] += (double)t->generated_tokens;
            }
        }
        for (int w = 0; w < N_SIDES; w++)
            speed[w][round] = seconds[w] > 0 ? written[w] / seconds[w] : 0;
    }
    for (int w = 0; w < N_SIDES; w++) {
        b->tokens_per_s[w] = median_of(speed[w], (size_t)n_rounds);
        b->tokens_per_pass[w] = passes[w] > 0 ? tokens[w] / passes[w] : 0;
    }
    return DREY_OK;
}

/* ---- What is told ---- */

static void tell_texts_of(const units *b, FILE *out, cJSON *root)
{
    cJSON *list = cJSON_AddArrayToObject(root, "texts");
    fprintf(out, "\n| texts | tokens/s | tokens a pass | over sequential |\n|---|---|---|---|\n");
    for (int w = 0; w < N_SIDES; w++) {
        double times = b->tokens_per_s[0] > 0 ? b->tokens_per_s[w] / b->tokens_per_s[0] : 0;
        fprintf(out, "| %s | %.3g | %.2f | %.2f |\n", name_of(&sides[w]), b->tokens_per_s[w],
                b->tokens_per_pass[w], times);
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "side", name_of(&sides[w]));
        cJSON_AddNumberToObject(one, "tokens_per_s", b->tokens_per_s[w]);
        cJSON_AddNumberToObject(one, "tokens_per_pass", b->tokens_per_pass[w]);
        cJSON_AddNumberToObject(one, "over_sequential", times);
        cJSON_AddItemToArray(list, one);
    }
    fputc('\n', out);
}

static bool put_csv(FILE *file, void *user)
{
    const units *b = user;
    const drey_units_report *r = &b->measured.products;
    fprintf(file, "what,rows,side,seconds,tokens_per_s,shares\n");
    for (int32_t k = 0; k < r->n_widths; k++) {
        const drey_units_width *w = &r->widths[k];
        for (int32_t u = 0; u < r->n_units; u++)
            fprintf(file, "pass,%d,alone %d,%.6g,,\n", w->rows, u + 1, w->alone_s[u]);
        for (int i = 0; i < DREY_UNITS_SIDES && w->side_s[i] > 0; i++) {
            fprintf(file, "pass,%d,\"%s\",%.6g,,", w->rows,
                    drey_units_side_name((drey_units_side)i), w->side_s[i]);
            for (int32_t u = 0; u < r->n_units; u++)
                fprintf(file, "%s%.4f", u ? ":" : "", w->share[i][u]);
            fputc('\n', file);
        }
    }
    for (int32_t k = 0; k < b->measured.attention.n_contexts; k++)
        for (int i = 0; i < DREY_BOUNDARY_SIDES; i++) {
            const drey_boundary_context *c = &b->measured.attention.contexts[k];
            fprintf(file, "attention,%d,\"%s\",%.6g,,", c->n_positions,
                    drey_boundary_side_name((drey_boundary_side)i), c->side_s[i]);
            if (i != DREY_BOUNDARY_HEADS)
                fprintf(file, "%.4f", i == DREY_BOUNDARY_AFFINITY ? 0 : (double)c->boundary);
            fputc('\n', file);
        }
    for (int w = 0; w < N_SIDES && b->prompts.n; w++)
        fprintf(file, "text,,\"%s\",,%.6g,\n", name_of(&sides[w]), b->tokens_per_s[w]);
    return !ferror(file);
}

static void tell_stage(void *user, const char *what)
{
    (void)user;
    fprintf(stderr, "%s\n", what);
}

static drey_status measure(units *b, FILE *out, cJSON *root, drey_error *err)
{
    const cli_settings *s = b->s;
    drey_engine_options o = models_engine_options(&b->models, s, 1);
    const units_steps steps = {
        .stage = tell_stage, .n_sweep = s->every ? SWEEP : 0, .most_positions = s->n_context};
    drey_status status = units_measure(b->models.target, &o, &steps, &b->measured, err);
    if (status != DREY_OK)
        return status;
    units_table(out, &b->measured);
    fflush(out);
    cJSON_AddItemToObject(root, "cases", units_json(s, &b->measured));
    if (!s->prompts)
        return DREY_OK;
    status = write_all(b, err);
    if (status != DREY_OK)
        return status;
    tell_texts_of(b, out, root);
    return tell_texts(N_SIDES * b->prompts.n, b->n_other, 0, out, root, err);
}

drey_status bench_units(const cli_settings *s, FILE *out, cJSON *root, drey_error *err)
{
    units b = {.s = s};
    drey_status status = s->csv ? json_check_path(s->csv, err) : DREY_OK;
    if (status == DREY_OK && s->prompts)
        status = prompts_read(&b.prompts, s->prompts, s->memory_bytes, err);
    if (status == DREY_OK)
        status = models_open(&b.models, s, err);
    if (status == DREY_OK && s->prompts)
        status = prompts_tokenize(&b.prompts, b.models.target, err);
    if (status == DREY_OK)
        status = measure(&b, out, root, err);
    if (status == DREY_OK && s->csv)
        status = file_write(s->csv, put_csv, &b, err);
    prompts_free(&b.prompts);
    models_close(&b.models);
    return status;
}
