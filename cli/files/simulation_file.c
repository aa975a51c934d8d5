/* Reading a simulated machine: see simulation_file.h. The file may be anybody's: every number is
 * checked where it is taken, and drey_simulate checks what they mean together. */
#include "cli/files/simulation_file.h"

#include "cli/files/json_read.h"
#include "cli/terminal/terminal.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { MOST_POSITIONS = 1 << 24 };

static drey_status odd(const char *key, const char *wanted, drey_error *err)
{
    return fail(err, DREY_ERR_FORMAT, "\"%s\" of the simulated machine should be %s", key, wanted);
}

/* A list of a number for each width. */
static drey_status read_widths_list(const simulation_file *s, const cJSON *in, const char *key,
                                    double *out, drey_error *err)
{
    if (json_numbers(in, key, out, DREY_SIM_MAX_WIDTHS) != s->machine.n_widths)
        return odd(key, "a list of a number for each width", err);
    return DREY_OK;
}

/* Ascending whole numbers from `least` on; their number or -1. */
static int read_counts(const cJSON *in, const char *key, int32_t least, int32_t *out, int most)
{
    double numbers[16];
    int n = json_numbers(in, key, numbers, most);
    for (int i = 0; i < n; i++) {
        if (numbers[i] != floor(numbers[i]) || numbers[i] < least || numbers[i] > MOST_POSITIONS)
            return -1;
        out[i] = (int32_t)numbers[i];
    }
    return n;
}

/* The index of a width, or -1. */
static int32_t width_index(const simulation_file *s, double width)
{
    for (int32_t w = 0; w < s->machine.n_widths; w++)
        if (s->machine.widths[w] == width)
            return w;
    return -1;
}

static drey_status read_units(simulation_file *s, drey_error *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(s->root, "units"), *from;
    drey_sim_machine *m = &s->machine;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > DREY_SIM_MAX_UNITS)
        return odd("units", "a list of 1 to 4 units", err);
    cJSON_ArrayForEach(from, list)
    {
        drey_sim_unit *u = &m->units[m->n_units];
        s->unit_names[m->n_units] = json_text(from, "name");
        if (!s->unit_names[m->n_units++])
            return odd("name", "a text in each unit", err);
        if (read_widths_list(s, from, "linear", u->linear_s, err) != DREY_OK ||
            read_widths_list(s, from, "dense", u->dense_s, err) != DREY_OK ||
            read_widths_list(s, from, "sparse", u->sparse_s, err) != DREY_OK)
            return DREY_ERR_FORMAT;
        u->contention = json_number(from, "contention");
    }
    m->sync_s = json_number(s->root, "sync");
    m->all_reduce_row_s = json_number(s->root, "all_reduce_row");
    return DREY_OK;
}

static drey_status read_sets(simulation_file *s, drey_error *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(s->root, "acceptance"), *from;
    cJSON_ArrayForEach(from, list)
    {
        simulation_set *set = &s->sets[s->n_sets];
        if (s->n_sets == SIMULATION_SETS)
            return odd("acceptance", "up to 8 lists", err);
        set->name = from->string ? from->string : "";
        if (read_widths_list(s, list, set->name, set->tokens, err) != DREY_OK)
            return DREY_ERR_FORMAT;
        for (int32_t w = 0; w < s->machine.n_widths; w++)
            if (set->tokens[w] < 1)
                return odd("acceptance", "lists of numbers from 1 on", err);
        s->n_sets++;
    }
    return s->n_sets ? DREY_OK : odd("acceptance", "lists of tokens by width", err);
}

static drey_status read_notes(simulation_file *s, drey_error *err)
{
    const cJSON *fitted = cJSON_GetObjectItemCaseSensitive(s->root, "fitted"), *from;
    cJSON_ArrayForEach(from, fitted)
    {
        simulation_fit fit = {json_text(from, "name"), json_text(from, "from"),
                              json_number(from, "value")};
        if (!fit.name || !fit.from || isnan(fit.value) || s->n_fits == SIMULATION_NOTES)
            return odd("fitted", "up to 16 of name, value and from", err);
        s->fits[s->n_fits++] = fit;
    }
    const cJSON *assumed = cJSON_GetObjectItemCaseSensitive(s->root, "assumed");
    cJSON_ArrayForEach(from, assumed)
    {
        if (!cJSON_IsString(from) || s->n_notes == SIMULATION_NOTES)
            return odd("assumed", "up to 16 texts", err);
        s->notes[s->n_notes++] = from->valuestring;
    }
    return DREY_OK;
}

/* ---- What was published ---- */

static bool find_strategy(const char *name, drey_sim_strategy *out)
{
    for (int i = 0; name && drey_sim_strategy_name((drey_sim_strategy)i); i++)
        if (strcmp(drey_sim_strategy_name((drey_sim_strategy)i), name) == 0) {
            *out = (drey_sim_strategy)i;
            return true;
        }
    return false;
}

static bool read_claim(simulation_file *s, const cJSON *from)
{
    simulation_claim *c = &s->claims[s->n_claims];
    const char *set = json_text(from, "set"), *against = json_text(from, "against");
    c->what = json_text(from, "what");
    c->value = json_number(from, "value");
    for (int i = 0; set && i < s->n_sets; i++)
        if (strcmp(s->sets[i].name, set) == 0)
            c->set = &s->sets[i];
    c->compares = find_strategy(against, &c->against);
    if (!c->what || !c->set || !(c->value > 0) ||
        !find_strategy(json_text(from, "strategy"), &c->strategy) || (against && !c->compares))
        return false;
    c->to = s->machine.n_widths - 1;
    if (c->compares) {
        c->from = width_index(s, json_number(from, "from_width"));
        c->to = width_index(s, json_number(from, "to_width"));
    }
    s->n_claims++;
    return c->from >= 0 && c->to >= c->from;
}

static drey_status read_claims(simulation_file *s, drey_error *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(s->root, "published"), *from;
    cJSON_ArrayForEach(from, list)
    {
        if (s->n_claims == SIMULATION_CLAIMS || !read_claim(s, from))
            return odd("published",
                       "a list of what, set, strategy and value, and where speeds are "
                       "compared against, from_width and to_width",
                       err);
    }
    return DREY_OK;
}

/* Texts go to a terminal, which no file may steer. */
static void clean_texts(cJSON *item)
{
    for (; item; item = item->next) {
        char *texts[] = {item->string, item->valuestring};
        for (int i = 0; i < 2; i++)
            for (char *c = texts[i]; c && *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                    *c = '?';
        clean_texts(item->child);
    }
}

/* They may be left out. Their number, or -1. */
static int read_contexts(simulation_file *s)
{
    return cJSON_GetObjectItemCaseSensitive(s->root, "contexts")
               ? read_counts(s->root, "contexts", 0, s->contexts, SIMULATION_CONTEXTS)
               : 0;
}

static drey_status read_all(simulation_file *s, drey_error *err)
{
    drey_sim_pass pass;
    int n_widths = read_counts(s->root, "widths", 1, s->machine.widths, DREY_SIM_MAX_WIDTHS);
    double context = json_number(s->root, "context");
    s->name = json_text(s->root, "name");
    if (!s->name)
        return odd("name", "a text", err);
    if (n_widths < 1)
        return odd("widths", "a list of up to 16 whole numbers", err);
    s->machine.n_widths = n_widths;
    if (!(context >= 0 && context <= MOST_POSITIONS))
        return odd("context", "a number of positions", err);
    s->context = (int32_t)context;
    s->n_contexts = read_contexts(s);
    if (s->n_contexts < 0)
        return odd("contexts", "a list of up to 12 whole numbers", err);
    s->attention_width = width_index(s, json_number(s->root, "attention_width"));
    if (s->n_contexts > 0 && s->attention_width < 0)
        return odd("attention_width", "one of the widths", err);
    drey_status status = read_units(s, err);
    if (status == DREY_OK)
        status = read_sets(s, err);
    if (status == DREY_OK)
        status = read_notes(s, err);
    if (status == DREY_OK)
        status = read_claims(s, err);
    return status == DREY_OK ? drey_simulate(&s->machine, DREY_SIM_SEQUENTIAL, 0, 0, &pass, err)
                             : status;
}

drey_status simulation_read(simulation_file *s, const char *path, drey_error *err)
{
    *s = (simulation_file){.n_sets = 0};
    drey_status status = json_read(&s->root, path, "the simulated machine", err);
    clean_texts(s->root);
    if (status == DREY_OK)
        status = read_all(s, err);
    if (status != DREY_OK)
        simulation_free(s);
    return status;
}

void simulation_free(simulation_file *s)
{
    cJSON_Delete(s->root);
    s->root = NULL;
}
