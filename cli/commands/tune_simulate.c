/* drey tune --simulate: what each way of dividing the work would make of a machine that is
 * not here, beside what was published about it. Speeds are in tokens of plain decoding on the
 * first unit. */
#include "cli/commands/cmd_tune.h"

#include "cli/files/json_file.h"
#include "cli/files/simulation_file.h"
#include "cli/terminal/terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STRATEGIES = DREY_SIM_DYNAMIC + 1 };

typedef struct simulation {
    simulation_file file;
    drey_sim_pass pass[STRATEGIES][DREY_SIM_MAX_WIDTHS]; /* [strategy][w], at the file's context */
} simulation;

static drey_status simulate_all(simulation *s, drey_error *err)
{
    drey_status status = DREY_OK;
    for (int i = 0; i < STRATEGIES; i++)
        for (int32_t w = 0; w < s->file.machine.n_widths && status == DREY_OK; w++)
            status = drey_simulate(&s->file.machine, (drey_sim_strategy)i, w, s->file.context,
                                   &s->pass[i][w], err);
    return status;
}

/* Against a token a pass on the first unit. */
static double speed(const simulation *s, const simulation_set *set, int strategy, int32_t w)
{
    double tokens = strategy == DREY_SIM_SEQUENTIAL ? 1 : set->tokens[w];
    return tokens * s->pass[DREY_SIM_SEQUENTIAL][0].seconds / s->pass[strategy][w].seconds;
}

/* The index of the width with most tokens a second. */
static int32_t best_width(const simulation *s, const simulation_set *set, int strategy)
{
    int32_t best = 0;
    for (int32_t w = 1; w < s->file.machine.n_widths; w++)
        if (speed(s, set, strategy, w) > speed(s, set, strategy, best))
            best = w;
    return best;
}

static double simulated(const simulation *s, const simulation_claim *c)
{
    double sum = 0;
    if (!c->compares)
        return s->file.machine.widths[best_width(s, c->set, (int)c->strategy)];
    for (int32_t w = c->from; w <= c->to; w++)
        sum += speed(s, c->set, (int)c->strategy, w) / speed(s, c->set, (int)c->against, w);
    return sum / (c->to - c->from + 1);
}

/* ---- Tables ---- */

static void show_notes(FILE *out, const simulation_file *f)
{
    fprintf(out, "%s\n", f->name);
    for (int i = 0; i < f->n_fits; i++)
        fprintf(out, "fitted     %s = %g, from %s\n", f->fits[i].name, f->fits[i].value,
                f->fits[i].from);
    for (int i = 0; i < f->n_notes; i++)
        fprintf(out, "assumed    %s\n", f->notes[i]);
}

static void show_set(FILE *out, const simulation *s, const simulation_set *set)
{
    const drey_sim_machine *m = &s->file.machine;
    fprintf(out, "%s, behind %d positions: speed, plain decoding on %s being 1\n  %-12s", set->name,
            s->file.context, s->file.unit_names[0], "rows");
    for (int32_t w = 0; w < m->n_widths; w++)
        fprintf(out, " %6d", m->widths[w]);
    fprintf(out, "   best\n  %-12s", "tokens");
    for (int32_t w = 0; w < m->n_widths; w++)
        fprintf(out, " %6.2f", set->tokens[w]);
    fprintf(out, "\n");
    for (int i = DREY_SIM_ONE_UNIT; i < STRATEGIES; i++) {
        fprintf(out, "  %-12s", drey_sim_strategy_name((drey_sim_strategy)i));
        for (int32_t w = 0; w < m->n_widths; w++)
            fprintf(out, " %6.2f", speed(s, set, i, w));
        fprintf(out, " %6d\n", m->widths[best_width(s, set, i)]);
    }
}

static void show_ratios(FILE *out, const simulation *s)
{
    const drey_sim_machine *m = &s->file.machine;
    fprintf(out, "share of the matrices, searched under contention\n");
    for (int32_t u = 0; u < m->n_units; u++) {
        fprintf(out, "  %-12.12s", s->file.unit_names[u]);
        for (int32_t w = 0; w < m->n_widths; w++)
            fprintf(out, " %5.1f%%", 100 * s->pass[DREY_SIM_DYNAMIC][w].share[u]);
        fprintf(out, "\n");
    }
}

static drey_status show_attention(FILE *out, cJSON *root, const simulation *s, drey_error *err)
{
    const simulation_file *f = &s->file;
    cJSON *list = cJSON_AddArrayToObject(root, "attention");
    if (f->n_contexts > 0)
        fprintf(out,
                "attention of %d rows, static against dynamic\n"
                "  positions     static    dynamic   gain  boundary\n",
                f->machine.widths[f->attention_width]);
    for (int i = 0; i < f->n_contexts; i++) {
        drey_sim_pass fixed, moved;
        drey_status status = drey_simulate(&f->machine, DREY_SIM_STATIC, f->attention_width,
                                           f->contexts[i], &fixed, err);
        if (status == DREY_OK)
            status = drey_simulate(&f->machine, DREY_SIM_DYNAMIC, f->attention_width,
                                   f->contexts[i], &moved, err);
        if (status != DREY_OK)
            return status;
        fprintf(out, "  %9d %10.5f %10.5f %6.2f %9.2f\n", f->contexts[i], fixed.attention_s,
                moved.attention_s, fixed.attention_s / moved.attention_s, moved.boundary);
        cJSON *one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "context", f->contexts[i]);
        cJSON_AddNumberToObject(one, "static_s", fixed.attention_s);
        cJSON_AddNumberToObject(one, "dynamic_s", moved.attention_s);
        cJSON_AddNumberToObject(one, "boundary", moved.boundary);
        cJSON_AddItemToArray(list, one);
    }
    return DREY_OK;
}

static void show_claims(FILE *out, cJSON *root, const simulation *s)
{
    cJSON *list = cJSON_AddArrayToObject(root, "published");
    if (s->file.n_claims)
        fprintf(out, "published, beside the simulation\n");
    for (int i = 0; i < s->file.n_claims; i++) {
        const simulation_claim *c = &s->file.claims[i];
        double here = simulated(s, c);
        fprintf(out, "  %-58s %6.4g %6.3g %+5.1f %%\n", c->what, c->value, here,
                100 * (here / c->value - 1));
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "what", c->what);
        cJSON_AddNumberToObject(one, "published", c->value);
        cJSON_AddNumberToObject(one, "simulated", here);
        cJSON_AddItemToArray(list, one);
    }
}

static void add_sets(cJSON *root, const simulation *s)
{
    cJSON *sets = cJSON_AddObjectToObject(root, "speed");
    for (int k = 0; k < s->file.n_sets; k++) {
        cJSON *set = cJSON_AddObjectToObject(sets, s->file.sets[k].name);
        for (int i = 0; i < STRATEGIES; i++) {
            cJSON *list = cJSON_AddArrayToObject(set, drey_sim_strategy_name((drey_sim_strategy)i));
            for (int32_t w = 0; w < s->file.machine.n_widths; w++)
                cJSON_AddItemToArray(list, cJSON_CreateNumber(speed(s, &s->file.sets[k], i, w)));
        }
    }
}

static drey_status show_all(FILE *out, cJSON *root, const simulation *s, drey_error *err)
{
    cJSON *widths = cJSON_AddArrayToObject(root, "widths");
    for (int32_t w = 0; w < s->file.machine.n_widths; w++)
        cJSON_AddItemToArray(widths, cJSON_CreateNumber(s->file.machine.widths[w]));
    add_sets(root, s);
    show_notes(out, &s->file);
    for (int k = 0; k < s->file.n_sets; k++)
        show_set(out, s, &s->file.sets[k]);
    show_ratios(out, s);
    drey_status status = show_attention(out, root, s, err);
    show_claims(out, root, s);
    return status;
}

drey_status tune_simulate(const cli_settings *settings, drey_error *err)
{
    simulation s = {.file.root = NULL};
    FILE *out = settings->json && strcmp(settings->json, "-") == 0 ? stderr : stdout;
    drey_status status = settings->json ? json_check_path(settings->json, err) : DREY_OK;
    if (status == DREY_OK)
        status = simulation_read(&s.file, settings->simulate, err);
    if (status == DREY_OK)
        status = simulate_all(&s, err);
    cJSON *root = cJSON_CreateObject();
    if (status == DREY_OK)
        status = show_all(out, root, &s, err);
    if (status == DREY_OK && settings->json)
        status = json_write(settings->json, root, err);
    cJSON_Delete(root);
    simulation_free(&s.file);
    return status;
}
