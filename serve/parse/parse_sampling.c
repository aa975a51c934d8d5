/* Choice of the next token: temperature, filters, penalties, and their order. Names are those of
 * OpenAI's API and of llama.cpp's server; where two name the same thing, the last that is read here
 * counts. */
#include "serve/parse/parse_fields.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

static bool get_seed(const parsing *a, request *t, bool *given)
{
    const json_value *v = json_member(a->body, "seed");
    if (!v)
        return true;
    if (v->type != JSON_NUMBER || !v->is_integer)
        return BAD(a, "Field 'seed' takes a whole number of up to 18 digits.");
    *given = v->integer >= 0; /* -1: any */
    t->sampling.filters.seed = (uint64_t)v->integer;
    return true;
}

static bool get_filters(const parsing *a, request *t)
{
    drey_sampling *s = &t->sampling.filters;
    int32_t top_k = s->top_k;
    bool has_seed = false, sample = true;
    if (!parse_real(a, "temperature", 0, 100, &s->temperature) ||
        !parse_real(a, "top_p", 0, 1, &s->top_p) || !parse_real(a, "min_p", 0, 1, &s->min_p) ||
        !parse_count(a, "top_k", -1, INT32_MAX, &top_k) || !get_seed(a, t, &has_seed) ||
        !parse_bool(a, "do_sample", &sample))
        return false;
    if (!sample)
        s->temperature = 0;
    s->top_k = top_k > 0 ? top_k : 0;
    if (!has_seed && s->temperature > 0 && a->options->sampling.seed == 0) {
        uint32_t any = 0;
        if (getrandom(&any, sizeof any, 0) != (ssize_t)sizeof any)
            any = (uint32_t)time(NULL);
        s->seed = any;
    } else if (!has_seed) {
        s->seed = a->options->sampling.seed;
    }
    return true;
}

/* ---- Penalties ---- */

static bool get_breakers(const parsing *a, request *t)
{
    text_list breakers = TEXT_LIST(t->sampling.text, t->sampling.breakers);
    if (!json_member(a->body, "dry_sequence_breakers") || t->sampling.penalties.dry_multiplier <= 0)
        return true;
    bool good = parse_texts(a, "dry_sequence_breakers", &breakers);
    t->sampling.penalties.dry_breakers = t->sampling.breakers;
    t->sampling.penalties.n_dry_breakers = breakers.n;
    return good;
}

static bool get_penalties(const parsing *a, request *t)
{
    drey_penalties *p = &t->sampling.penalties;
    return parse_real(a, "rep_pen", 0, 100, &p->repeat) &&
           parse_real(a, "repetition_penalty", 0, 100, &p->repeat) &&
           parse_real(a, "repeat_penalty", 0, 100, &p->repeat) &&
           parse_count(a, "penalty_last_n", -1, INT32_MAX, &p->last_n) &&
           parse_count(a, "repeat_last_n", -1, INT32_MAX, &p->last_n) &&
           parse_real(a, "presence_penalty", -100, 100, &p->presence) &&
           parse_real(a, "frequency_penalty", -100, 100, &p->frequency) &&
           parse_real(a, "dry_multiplier", 0, 100, &p->dry_multiplier) &&
           parse_real(a, "dry_base", 0, 100, &p->dry_base) &&
           parse_count(a, "dry_allowed_length", 0, INT32_MAX, &p->dry_allowed_length) &&
           parse_count(a, "dry_penalty_last_n", -1, INT32_MAX, &p->dry_last_n) &&
           get_breakers(a, t);
}

/* ---- Their order ---- */

/* Samplers in the order in which they are computed here. */
enum { PENALTIES, DRY, TOP_K, TOP_P, MIN_P, TEMPERATURE, N_SAMPLERS };
static const char *const samplers[N_SAMPLERS] = {"penalties", "dry",   "top_k",
                                                 "top_p",     "min_p", "temperature"};

/* Returns whether it would change anything. */
static bool works(const request *t, int which)
{
    const drey_sampling *s = &t->sampling.filters;
    const drey_penalties *p = &t->sampling.penalties;
    bool counts = p->repeat < 1 || p->repeat > 1 || p->presence < 0 || p->presence > 0 ||
                  p->frequency < 0 || p->frequency > 0;
    const bool used[N_SAMPLERS] = {
        [PENALTIES] = counts && p->last_n != 0,       [DRY] = p->dry_multiplier > 0,
        [TOP_K] = s->top_k > 0 && s->temperature > 0, [TOP_P] = s->top_p < 1 && s->temperature > 0,
        [MIN_P] = s->min_p > 0 && s->temperature > 0, [TEMPERATURE] = s->temperature > 0};
    return used[which];
}

/* Switches off the samplers that a list does not name. */
static void leave_out(request *t, const bool *named)
{
    if (!named[PENALTIES])
        t->sampling.penalties.last_n = 0;
    if (!named[DRY])
        t->sampling.penalties.dry_multiplier = 0;
    if (!named[TOP_K])
        t->sampling.filters.top_k = 0;
    if (!named[TOP_P])
        t->sampling.filters.top_p = 1;
    if (!named[MIN_P])
        t->sampling.filters.min_p = 0;
    if (!named[TEMPERATURE])
        t->sampling.filters.temperature = 1;
}

/* The sampler that a list names, by its name or its letter; N_SAMPLERS: one that is not computed
 * here, which its fields have refused, or which changes nothing. */
static int which_sampler(const char *name, size_t n)
{
    static const char letters[N_SAMPLERS + 1] = "edkpmt";
    int which = 0;
    while (which < N_SAMPLERS &&
           !(n == 1 ? *name == letters[which] : strcmp(name, samplers[which]) == 0))
        which++;
    return which;
}

typedef struct sampler_order {
    bool named[N_SAMPLERS];
    int last; /* the last of those that change something; -1: none yet */
} sampler_order;

static bool add_sampler(const parsing *a, const request *t, int which, sampler_order *order)
{
    if (which == N_SAMPLERS)
        return true;
    order->named[which] = true;
    if (!works(t, which))
        return true;
    if (which < order->last)
        return BAD(a,
                   "Field 'samplers' names '%s' after '%s'; this server's order is penalties, "
                   "dry, top_k, top_p, min_p, temperature. Leave the field out.",
                   samplers[which], samplers[order->last]);
    order->last = which;
    return true;
}

/* An array of names, or a text with a letter for each. */
static bool get_order(const parsing *a, request *t)
{
    const json_value *v = json_member(a->body, "samplers");
    sampler_order order = {.last = -1};
    if (!v || ((v->type == JSON_ARRAY || v->type == JSON_STRING) && v->n == 0))
        return true;
    if (v->type != JSON_ARRAY && v->type != JSON_STRING)
        return BAD(a, "Field 'samplers' takes an array of names.");
    for (size_t i = 0; v->type == JSON_STRING && i < v->n; i++)
        if (!add_sampler(a, t, which_sampler(v->text + i, 1), &order))
            return false;
    for (const json_value *one = v->type == JSON_ARRAY ? v->first : NULL; one; one = one->next) {
        if (one->type != JSON_STRING)
            return BAD(a, "Field 'samplers' takes an array of names.");
        if (!add_sampler(a, t, which_sampler(one->text, one->n > 1 ? one->n : 2), &order))
            return false;
    }
    leave_out(t, order.named);
    return true;
}

bool parse_sampling(const parsing *a, request *t)
{
    t->sampling.filters = a->options->sampling;
    t->sampling.penalties = a->options->penalties;
    t->sampling.filters.penalties = &t->sampling.penalties;
    return get_filters(a, t) && get_penalties(a, t) && get_order(a, t);
}
