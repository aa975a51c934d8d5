/* What the rows of drey bench exit say, side by side: see exit_rows.h. */
#include "cli/commands/bench_texts.h"
#include "cli/files/exit_rows.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>
#include <string.h>

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static bool belongs(const exit_case *c, const exit_row *row)
{
    return c->budget_mib == row->budget_mib && strcmp(c->target, row->target) == 0 &&
           strcmp(c->draft, row->draft) == 0 && strcmp(c->group, row->group) == 0;
}

static bool is_of(const exit_case *c, const exit_row *row, const char *side)
{
    return belongs(c, row) && strcmp(row->side, side) == 0;
}

/* ---- Figures ---- */

typedef struct sums {
    double counted, left, layers, compared, agreed, refused, look_s, head_s, decode_s;
    double skipped, vain;
} sums;

static void add(sums *s, const exit_row *row)
{
    s->counted += row->counted;
    s->left += row->left;
    s->layers += row->layers;
    s->compared += row->compared;
    s->agreed += row->agreed;
    s->refused += row->refused;
    s->look_s += row->look_s;
    s->head_s += row->head_s;
    s->decode_s += row->decode_s;
    s->skipped += row->skipped_bytes;
    s->vain += row->vain_bytes;
}

/* The median over the rounds of one prompt; 0: the side has none. */
static double speed_of(const csv_rows *r, const exit_case *c, const char *side, const char *prompt,
                       double *scratch)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const exit_row *row = exit_row_at(r, i);
        if (is_of(c, row, side) && strcmp(row->prompt, prompt) == 0)
            scratch[n++] = row->tokens_per_s;
    }
    return median_of(scratch, n);
}

static bool seen_before(const csv_rows *r, const exit_case *c, const char *side, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_of(c, exit_row_at(r, i), side) &&
            strcmp(exit_row_at(r, i)->prompt, exit_row_at(r, at)->prompt) == 0)
            return true;
    return false;
}

/* values: [3][r->n] scratch. */
static void fill_speeds(exit_figures *f, const csv_rows *r, const exit_case *c, double *values)
{
    double *speeds = values + r->n, *ratios = speeds + r->n;
    size_t n = 0, n_ratios = 0;
    for (size_t i = 0; i < r->n; i++) {
        const exit_row *row = exit_row_at(r, i);
        if (!is_of(c, row, f->side) || seen_before(r, c, f->side, i))
            continue;
        double off = speed_of(r, c, "off", row->prompt, values);
        speeds[n++] = speed_of(r, c, f->side, row->prompt, values);
        if (off > 0)
            ratios[n_ratios++] = speeds[n - 1] / off;
    }
    f->n = (int)n;
    f->tokens_per_s = median_of(speeds, n);
    f->over_off = median_of(ratios, n_ratios);
}

static void fill_figures(exit_figures *f, const csv_rows *r, const exit_case *c, double *values)
{
    sums s = {0};
    for (size_t i = 0; i < r->n; i++)
        if (is_of(c, exit_row_at(r, i), f->side)) {
            add(&s, exit_row_at(r, i));
            exit_row_add_layers(exit_row_at(r, i), f->at_layer);
        }
    for (int i = 0; i < EXIT_ROW_LAYERS; i++)
        f->at_layer[i] = ratio(f->at_layer[i], s.counted);
    fill_speeds(f, r, c, values);
    f->layers = ratio(s.layers, s.counted);
    f->left = ratio(s.left, s.counted);
    f->agreement = s.compared > 0 ? 1 - ratio(s.compared - s.agreed, s.counted) : 0;
    f->refused = ratio(s.refused, s.counted);
    f->look_share = ratio(s.look_s, s.decode_s);
    f->head_share = ratio(s.head_s, s.decode_s);
    f->unread = s.skipped > s.vain ? 1 - ratio(s.vain, s.skipped) : 0;
}

static void compare_with_oracle(exit_case *c)
{
    double oracle = 0;
    for (int i = 0; i < c->n_sides; i++)
        if (strcmp(c->side[i].side, "oracle") == 0)
            oracle = c->side[i].layers;
    for (int i = 0; i < c->n_sides; i++) {
        exit_figures *f = &c->side[i];
        if (oracle > 0 && f->layers > 0)
            f->of_oracle = ratio(c->n_layers - f->layers, c->n_layers - oracle);
    }
}

/* ---- Which cases and sides there are ---- */

static exit_case *case_of(exit_case *cases, int *n, const exit_row *row)
{
    for (int i = 0; i < *n; i++)
        if (belongs(&cases[i], row))
            return &cases[i];
    if (*n == EXIT_MAX_CASES)
        return NULL;
    exit_case *c = &cases[(*n)++];
    memcpy(c->target, row->target, sizeof c->target);
    memcpy(c->draft, row->draft, sizeof c->draft);
    memcpy(c->group, row->group, sizeof c->group);
    c->budget_mib = row->budget_mib;
    return c;
}

static void add_side(exit_case *c, const exit_row *row)
{
    for (int i = 0; i < c->n_sides; i++)
        if (strcmp(c->side[i].side, row->side) == 0)
            return;
    if (c->n_sides == EXIT_MAX_SIDES)
        return;
    exit_figures *f = &c->side[c->n_sides++];
    memcpy(f->side, row->side, sizeof f->side);
    f->lossy = row->lossy;
}

drey_status exit_cases(const csv_rows *r, exit_case **cases, int *n, drey_error *err)
{
    *cases = calloc(EXIT_MAX_CASES, sizeof **cases);
    double *values = calloc(3 * r->n + 1, sizeof *values);
    *n = 0;
    if (!*cases || !values) {
        free(values);
        free(*cases);
        *cases = NULL;
        return fail(err, DREY_ERR_MEMORY, "out of memory for a table of %zu results", r->n);
    }
    for (size_t i = 0; i < r->n; i++) {
        const exit_row *row = exit_row_at(r, i);
        exit_case *c = case_of(*cases, n, row);
        if (!c)
            continue;
        add_side(c, row);
        c->n_layers = row->n_layers > c->n_layers ? row->n_layers : c->n_layers;
    }
    for (int i = 0; i < *n; i++) {
        exit_case *c = &(*cases)[i];
        for (int k = 0; k < c->n_sides; k++)
            fill_figures(&c->side[k], r, c, values);
        compare_with_oracle(c);
    }
    free(values);
    return DREY_OK;
}

/* ---- The same text ---- */

int exit_texts_differ(const csv_rows *r, FILE *out, int *n_texts)
{
    int n = *n_texts = 0;
    for (size_t i = 0; i < r->n; i++) {
        *n_texts += !exit_row_at(r, i)->lossy && exit_row_at(r, i)->text[0];
        for (size_t k = 0; k < i; k++) {
            const exit_row *a = exit_row_at(r, i), *b = exit_row_at(r, k);
            if (a->lossy || b->lossy || !a->text[0] || !b->text[0] || a->tokens != b->tokens ||
                strcmp(a->target, b->target) != 0 || strcmp(a->prompt, b->prompt) != 0 ||
                strcmp(a->text, b->text) == 0)
                continue;
            fprintf(out, "%s: %s (%g MiB) wrote another text than %s (%g MiB)\n", a->prompt,
                    a->side, a->budget_mib, b->side, b->budget_mib);
            n++;
            break;
        }
    }
    return n;
}

/* ---- Tables ---- */

static void put(FILE *out, const char *format, double value)
{
    if (value > 0)
        fprintf(out, format, value);
    else
        fputs(" - |", out);
}

static void print_side(const exit_figures *f, FILE *out)
{
    fprintf(out, "| %s%s |", f->side, f->lossy ? " (lossy)" : "");
    put(out, " %.3g |", f->tokens_per_s);
    put(out, " %.2f |", f->over_off);
    put(out, " %.2f |", f->layers);
    put(out, " %.2f |", f->of_oracle);
    put(out, " %.0f %% |", 100 * f->left);
    put(out, " %.1f %% |", 100 * f->agreement);
    put(out, " %.2f |", f->refused);
    put(out, " %.1f %% |", 100 * f->look_share);
    put(out, " %.1f %% |", 100 * f->head_share);
    put(out, " %.0f %% |", 100 * f->unread);
    fputc('\n', out);
}

void exit_print(const exit_case *cases, int n, FILE *out)
{
    for (int i = 0; i < n; i++) {
        const exit_case *c = &cases[i];
        char budget[32] = "in memory";
        if (c->budget_mib > 0)
            snprintf(budget, sizeof budget, "%.0f MiB", c->budget_mib);
        char layers[32] = ""; /* not known where only sides without exits were measured */
        if (c->n_layers > 0)
            snprintf(layers, sizeof layers, " of %d layers", c->n_layers);
        fprintf(out, "\n%s%s, %s, draft %s, %s\n\n", c->target, layers, budget, c->draft, c->group);
        fputs(
            "| side | tokens/s | of off | layers a token | of the oracle | left | agree | heads "
            "in vain | looking | heads | unread |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
            out);
        for (int k = 0; k < c->n_sides; k++)
            print_side(&c->side[k], out);
    }
}

static cJSON *side_json(const exit_figures *f, int32_t n_layers)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "side", f->side);
    cJSON_AddBoolToObject(o, "lossy", f->lossy);
    cJSON_AddNumberToObject(o, "prompts", f->n);
    cJSON_AddNumberToObject(o, "tokens_per_s", f->tokens_per_s);
    cJSON_AddNumberToObject(o, "of_off", f->over_off);
    cJSON_AddNumberToObject(o, "layers_per_token", f->layers);
    cJSON_AddNumberToObject(o, "of_oracle", f->of_oracle);
    cJSON_AddNumberToObject(o, "left", f->left);
    cJSON_AddNumberToObject(o, "agreement", f->agreement);
    cJSON_AddNumberToObject(o, "heads_in_vain", f->refused);
    cJSON_AddNumberToObject(o, "look_share", f->look_share);
    cJSON_AddNumberToObject(o, "head_share", f->head_share);
    cJSON_AddNumberToObject(o, "unread", f->unread);
    if (n_layers <= EXIT_ROW_LAYERS)
        cJSON_AddItemToObject(o, "at_layer", cJSON_CreateDoubleArray(f->at_layer, n_layers));
    return o;
}

cJSON *exit_json(const exit_case *cases, int n)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < n; i++) {
        const exit_case *c = &cases[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "target", c->target);
        cJSON_AddStringToObject(one, "draft", c->draft);
        cJSON_AddStringToObject(one, "group", c->group);
        cJSON_AddNumberToObject(one, "budget_mib", c->budget_mib);
        if (c->n_layers > 0)
            cJSON_AddNumberToObject(one, "layers", c->n_layers);
        cJSON *sides = cJSON_AddArrayToObject(one, "sides");
        for (int k = 0; k < c->n_sides; k++)
            cJSON_AddItemToArray(sides, side_json(&c->side[k], c->n_layers));
        cJSON_AddItemToArray(list, one);
    }
    return list;
}
