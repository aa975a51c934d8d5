/* What the rows of drey bench edge say, side by side: see edge_rows.h. */
#include "cli/commands/bench_texts.h"
#include "cli/files/edge_rows.h"
#include "cli/terminal/terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_draft(const edge_row *row)
{
    return strcmp(row->draft, "none") != 0;
}

static bool same_setting(const edge_case *c, const edge_row *row)
{
    return c->budget_mib == row->budget_mib && strcmp(c->target, row->target) == 0;
}

static bool belongs(const edge_case *c, const edge_row *row)
{
    return same_setting(c, row) && (!has_draft(row) || strcmp(c->draft, row->draft) == 0);
}

/* ---- Which cases, sides and groups there are ---- */

static edge_case *find_case(edge_case *cases, int n, const edge_row *row)
{
    for (int i = 0; i < n; i++)
        if (same_setting(&cases[i], row) && strcmp(cases[i].draft, row->draft) == 0)
            return &cases[i];
    return NULL;
}

/* A case for each draft; one of its own for rows without only where no draft was measured there. */
static int list_cases(const csv_rows *r, edge_case *cases)
{
    int n = 0;
    for (int with = 1; with >= 0; with--)
        for (size_t i = 0; i < r->n; i++) {
            const edge_row *row = edge_row_at(r, i);
            bool covered = false;
            for (int k = 0; k < n && !with; k++)
                covered = covered || same_setting(&cases[k], row);
            if (has_draft(row) != with || covered || find_case(cases, n, row) ||
                n == EDGE_MAX_CASES)
                continue;
            edge_case *c = &cases[n++];
            c->budget_mib = row->budget_mib;
            memcpy(c->target, row->target, sizeof c->target);
            memcpy(c->draft, row->draft, sizeof c->draft);
        }
    return n;
}

static void add_side(edge_case *c, const edge_row *row)
{
    for (int i = 0; i < c->n_sides; i++)
        if (strcmp(c->side[i].name, row->side) == 0)
            return;
    if (c->n_sides == EDGE_MAX_SIDES)
        return;
    edge_side *s = &c->side[c->n_sides++];
    memcpy(s->name, row->side, sizeof s->name);
    s->lossy = row->lossy;
}

static void add_group(edge_case *c, const edge_row *row)
{
    for (int i = 0; i < c->n_groups; i++)
        if (strcmp(c->group[i], row->group) == 0)
            return;
    if (c->n_groups < EDGE_MAX_GROUPS)
        memcpy(c->group[c->n_groups++], row->group, sizeof c->group[0]);
}

/* ---- Figures ---- */

typedef struct selection {
    const csv_rows *rows;
    const edge_case *c;
    double *value; /* [rows->n]: scratch */
} selection;

/* The median over the rounds of one prompt; 0: the side has none. */
static double of_prompt(const selection *s, const char *side, const char *prompt, size_t offset)
{
    size_t n = 0;
    for (size_t i = 0; i < s->rows->n; i++) {
        const edge_row *row = edge_row_at(s->rows, i);
        if (belongs(s->c, row) && strcmp(row->side, side) == 0 && strcmp(row->prompt, prompt) == 0)
            s->value[n++] = *(const double *)(const void *)((const char *)row + offset);
    }
    return median_of(s->value, n);
}

static bool seen_before(const selection *s, const char *side, size_t at)
{
    const edge_row *row = edge_row_at(s->rows, at);
    for (size_t i = 0; i < at; i++)
        if (belongs(s->c, edge_row_at(s->rows, i)) &&
            strcmp(edge_row_at(s->rows, i)->side, side) == 0 &&
            strcmp(edge_row_at(s->rows, i)->prompt, row->prompt) == 0)
            return true;
    return false;
}

/* values: [3][rows->n] scratch. */
static void count_group(const selection *s, const char *side, edge_group *g, double *values)
{
    size_t most = s->rows->n, n = 0, n_ratios = 0;
    for (size_t i = 0; i < s->rows->n; i++) {
        const edge_row *row = edge_row_at(s->rows, i);
        if (!belongs(s->c, row) || strcmp(row->side, side) != 0 ||
            strcmp(row->group, g->name) != 0 || seen_before(s, side, i))
            continue;
        double speed = of_prompt(s, side, row->prompt, offsetof(edge_row, tokens_per_s));
        double optimal = of_prompt(s, "optimal", row->prompt, offsetof(edge_row, tokens_per_s));
        values[n] = speed;
        values[most + n++] = of_prompt(s, side, row->prompt, offsetof(edge_row, tokens_per_pass));
        if (optimal > 0)
            values[2 * most + n_ratios++] = speed / optimal;
    }
    g->n = (int)n;
    g->tokens_per_s = median_of(values, n);
    g->tokens_per_pass = median_of(values + most, n);
    g->of_optimal = median_of(values + 2 * most, n_ratios);
}

static void fill_case(edge_case *c, const csv_rows *r, double *scratch)
{
    for (size_t i = 0; i < r->n; i++)
        if (belongs(c, edge_row_at(r, i))) {
            add_side(c, edge_row_at(r, i));
            add_group(c, edge_row_at(r, i));
        }
    const selection s = {r, c, scratch};
    for (int i = 0; i < c->n_sides; i++)
        for (int g = 0; g < c->n_groups; g++) {
            memcpy(c->side[i].group[g].name, c->group[g], sizeof c->group[g]);
            count_group(&s, c->side[i].name, &c->side[i].group[g], scratch + r->n);
        }
}

drey_status edge_cases(const csv_rows *r, edge_case **cases, int *n, drey_error *err)
{
    *cases = calloc(EDGE_MAX_CASES, sizeof **cases);
    double *scratch = calloc(4 * r->n + 1, sizeof *scratch);
    *n = 0;
    if (!*cases || !scratch) {
        free(scratch);
        free(*cases);
        *cases = NULL;
        return fail(err, DREY_ERR_MEMORY, "out of memory for a table of %zu results", r->n);
    }
    *n = list_cases(r, *cases);
    for (int i = 0; i < *n; i++)
        fill_case(&(*cases)[i], r, scratch);
    free(scratch);
    return DREY_OK;
}

/* ---- The same text ---- */

static bool contradicts(const edge_row *a, const edge_row *b)
{
    if (a->lossy || b->lossy || strcmp(a->target, b->target) != 0 ||
        strcmp(a->prompt, b->prompt) != 0)
        return false;
    if (a->head[0] && b->head[0] && strcmp(a->head, b->head) != 0)
        return true;
    return a->text[0] && b->text[0] && a->tokens == b->tokens && strcmp(a->text, b->text) != 0;
}

int edge_texts_differ(const csv_rows *r, FILE *out, int *n_texts)
{
    int n = *n_texts = 0;
    for (size_t i = 0; i < r->n; i++) {
        *n_texts += !edge_row_at(r, i)->lossy && edge_row_at(r, i)->text[0];
        for (size_t k = 0; k < i; k++)
            if (contradicts(edge_row_at(r, i), edge_row_at(r, k))) {
                fprintf(out, "%s: %s (%g MiB) wrote another text than %s (%g MiB)\n",
                        edge_row_at(r, i)->prompt, edge_row_at(r, i)->side,
                        edge_row_at(r, i)->budget_mib, edge_row_at(r, k)->side,
                        edge_row_at(r, k)->budget_mib);
                n++;
                break;
            }
    }
    return n;
}

/* ---- Tables ---- */

static void print_cell(FILE *out, double value, const char *format)
{
    if (value > 0)
        fprintf(out, format, value);
    else
        fputs(" - |", out);
}

static void print_case(const edge_case *c, FILE *out)
{
    char budget[32] = "in memory";
    if (c->budget_mib > 0)
        snprintf(budget, sizeof budget, "%.0f MiB", c->budget_mib);
    fprintf(out, "\n%s, %s, draft %s\n\n| side |", c->target, budget, c->draft);
    for (int g = 0; g < c->n_groups; g++)
        fprintf(out, " %s: tokens/s | of optimal | tokens/pass |", c->group[g]);
    fputs("\n|---|", out);
    for (int g = 0; g < c->n_groups; g++)
        fputs("---|---|---|", out);
    fputc('\n', out);
    for (int i = 0; i < c->n_sides; i++) {
        const edge_side *s = &c->side[i];
        fprintf(out, "| %s%s |", s->name, s->lossy ? " (lossy)" : "");
        for (int g = 0; g < c->n_groups; g++) {
            print_cell(out, s->group[g].tokens_per_s, " %.3g |");
            print_cell(out, s->group[g].of_optimal, " %.2f |");
            print_cell(out, s->group[g].tokens_per_pass, " %.1f |");
        }
        fputc('\n', out);
    }
}

void edge_print(const edge_case *cases, int n, FILE *out)
{
    for (int i = 0; i < n; i++)
        print_case(&cases[i], out);
}

static cJSON *side_json(const edge_case *c, const edge_side *s)
{
    cJSON *side = cJSON_CreateObject(), *groups = cJSON_CreateObject();
    cJSON_AddStringToObject(side, "side", s->name);
    cJSON_AddBoolToObject(side, "lossy", s->lossy);
    for (int g = 0; g < c->n_groups; g++) {
        const edge_group *from = &s->group[g];
        cJSON *group = cJSON_CreateObject();
        cJSON_AddNumberToObject(group, "prompts", from->n);
        cJSON_AddNumberToObject(group, "tokens_per_s", from->tokens_per_s);
        cJSON_AddNumberToObject(group, "of_optimal", from->of_optimal);
        cJSON_AddNumberToObject(group, "tokens_per_pass", from->tokens_per_pass);
        cJSON_AddItemToObject(groups, c->group[g], group);
    }
    cJSON_AddItemToObject(side, "groups", groups);
    return side;
}

cJSON *edge_json(const edge_case *cases, int n)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < n; i++) {
        const edge_case *c = &cases[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "target", c->target);
        cJSON_AddStringToObject(one, "draft", c->draft);
        cJSON_AddNumberToObject(one, "budget_mib", c->budget_mib);
        cJSON *sides = cJSON_AddArrayToObject(one, "sides");
        for (int k = 0; k < c->n_sides; k++)
            cJSON_AddItemToArray(sides, side_json(c, &c->side[k]));
        cJSON_AddItemToArray(list, one);
    }
    return list;
}
