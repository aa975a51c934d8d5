/* See penalties.h. A place costs time for its window, however large the vocabulary is: counts are
 * only cleared and read for tokens of the window. */
#include "sample/penalties.h"

#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"

/* ---- Settings ---- */

static bool counts_tokens(const drey_penalties *p)
{
    bool repeat = p->repeat > 0 && (p->repeat < 1 || p->repeat > 1);
    bool other = p->frequency < 0 || p->frequency > 0 || p->presence < 0 || p->presence > 0;
    return p->last_n != 0 && (repeat || other);
}

static bool counts_repetitions(const drey_penalties *p)
{
    return p->dry_multiplier > 0 && p->dry_base >= 1 && p->dry_last_n != 0;
}

bool penalties_are_there(const drey_penalties *p)
{
    return p && (counts_tokens(p) || counts_repetitions(p));
}

static bool within(float x, float least, float most)
{
    return x >= least && x <= most;
}

drey_status penalties_check(const drey_penalties *p, drey_error *err)
{
    if (!within(p->repeat, 0, 100))
        FAIL(err, DREY_ERR_USAGE, "the repeat penalty is %g: give a factor up to 100 (1 is off)",
             (double)p->repeat);
    if (!within(p->frequency, -100, 100) || !within(p->presence, -100, 100))
        FAIL(err, DREY_ERR_USAGE,
             "the frequency penalty is %g and the presence penalty %g: give numbers from -100 to "
             "100 (0 is off)",
             (double)p->frequency, (double)p->presence);
    if (p->last_n < -1 || p->dry_last_n < -1)
        FAIL(err, DREY_ERR_USAGE,
             "penalties look at the last %d tokens, DRY at %d: give a number of tokens, or -1 for "
             "all of the text",
             p->last_n, p->dry_last_n);
    if (!within(p->dry_multiplier, 0, 100) || !within(p->dry_base, 0, 100))
        FAIL(err, DREY_ERR_USAGE,
             "DRY has the multiplier %g and the base %g: give numbers from 0 to 100",
             (double)p->dry_multiplier, (double)p->dry_base);
    if (p->dry_allowed_length < 0)
        FAIL(err, DREY_ERR_USAGE, "DRY allows a length of %d: give 0 or more tokens",
             p->dry_allowed_length);
    return DREY_OK;
}

void drey_penalties_init(drey_penalties *p)
{
    static const char *const breakers[] = {"\n", ":", "\"", "*"};
    *p = (drey_penalties){.repeat = 1,
                          .last_n = 64,
                          .dry_base = 1.75f,
                          .dry_allowed_length = 2,
                          .dry_last_n = -1,
                          .dry_breakers = breakers,
                          .n_dry_breakers = sizeof breakers / sizeof *breakers};
}

/* ---- Memory ---- */

static size_t mask_bytes(int32_t n_vocab)
{
    return ((size_t)n_vocab + 63) / 64 * sizeof(uint64_t);
}

size_t penalties_bytes(int32_t n_vocab, int32_t n_context)
{
    return arena_size(mask_bytes(n_vocab)) + arena_size((size_t)n_context * sizeof(int32_t)) +
           arena_size((size_t)n_context * sizeof(penalised));
}

void penalties_init(penalties *p, const drey_penalties *settings, const int32_t *timeline,
                    int32_t n_vocab, int32_t n_context, arena *a)
{
    *p = (penalties){.settings = *settings, .timeline = timeline, .n_context = n_context};
    p->settings.dry_breakers = NULL;
    p->breaks = arena_take(a, mask_bytes(n_vocab));
    p->same = arena_take(a, (size_t)n_context * sizeof *p->same);
    p->kept = arena_take(a, (size_t)n_context * sizeof *p->kept);
    memset(p->breaks, 0, mask_bytes(n_vocab));
}

/* ---- Counting ---- */

/* The token `back` places before the end: 0 is the last one. */
static int32_t token_back(const text_past *past, int32_t back)
{
    int64_t at = past->n - 1 - back, first_drafted = past->n - past->n_drafted;
    return at >= first_drafted ? past->drafted[at - first_drafted] : past->timeline[at];
}

static int32_t window(const penalties *p, const text_past *past, int32_t last_n)
{
    int32_t n = (int32_t)min_i64(past->n, p->n_context);
    return last_n < 0 ? n : min_i32(n, last_n);
}

/* Tokens after the last breaker: what a repetition can have at most. */
static int32_t unbroken(const penalties *p, const text_past *past, int32_t n)
{
    int32_t i = 0;
    for (; i < n; i++) {
        int32_t id = token_back(past, i);
        if (p->breaks[id / 64] >> (id % 64) & 1)
            break;
    }
    return i;
}

/* For each earlier place of the window, how many tokens before it are the same as those at the end:
 * Z values of the window read backwards. The token that came next there would continue that. */
static void count_repeats(penalties *p, const text_past *past, int32_t n, penalty_count *count)
{
    int32_t most = unbroken(p, past, n), left = 0, right = 0;
    if (most < p->settings.dry_allowed_length)
        return;
    for (int32_t i = 1; i < n; i++) {
        int32_t same = i < right ? min_i32(right - i, p->same[i - left]) : 0;
        while (i + same < n && token_back(past, same) == token_back(past, i + same))
            same++;
        p->same[i] = same;
        if (i + same > right) {
            left = i;
            right = i + same;
        }
        penalty_count *c = &count[token_back(past, i - 1)];
        c->repeats = max_i32(c->repeats, min_i32(same, most));
    }
}

/* ---- Logits ---- */

static float lower(const drey_penalties *p, float logit, const penalty_count *c)
{
    double x = (double)logit;
    if (c->n > 0 && counts_tokens(p)) {
        double repeat = p->repeat > 0 ? (double)p->repeat : 1;
        x = x > 0 ? x / repeat : x * repeat;
        x -= c->n * (double)p->frequency + (double)p->presence;
    }
    if (c->repeats > 0 && c->repeats >= p->dry_allowed_length) {
        double log_base = log_f64((double)p->dry_base);
        double n = (double)(c->repeats - p->dry_allowed_length);
        x -= (double)p->dry_multiplier * exp_f64(min_f64(n * log_base, 88));
    }
    return (float)x;
}

static void change(penalties *p, float *logits, int32_t place, const penalty_count *c)
{
    if ((c->n == 0 && c->repeats == 0) || p->n_kept == p->n_context)
        return;
    p->kept[p->n_kept++] = (penalised){place, logits[place]};
    logits[place] = lower(&p->settings, logits[place], c);
}

void penalties_apply(penalties *p, float *logits, const logit_ids *ids, const text_past *past,
                     penalty_count *count, int32_t n_vocab)
{
    const drey_penalties *set = &p->settings;
    int32_t n_counted = counts_tokens(set) ? window(p, past, set->last_n) : 0;
    int32_t n_dry = counts_repetitions(set) ? window(p, past, set->dry_last_n) : 0;
    int32_t n = max_i32(n_counted, n_dry);
    p->n_kept = 0;
    for (int32_t i = 0; i < n; i++)
        count[token_back(past, i)] = (penalty_count){0};
    for (int32_t i = 0; i < ids->n_more; i++)
        if (ids->more[i] >= 0 && ids->more[i] < n_vocab)
            count[ids->more[i]] = (penalty_count){0};
    for (int32_t i = 0; i < n_counted; i++)
        count[token_back(past, i)].n++;
    if (n_dry > 0)
        count_repeats(p, past, n_dry, count);
    for (int32_t i = 0; i < ids->n_more; i++)
        if (ids->more[i] >= 0 && ids->more[i] < n_vocab)
            change(p, logits, ids->n_first + i, &count[ids->more[i]]);
    for (int32_t i = 0; i < n; i++) {
        int32_t id = token_back(past, i);
        if (id < ids->n_first)
            change(p, logits, id, &count[id]);
        count[id] = (penalty_count){0};
    }
}

void penalties_take_back(penalties *p, float *logits)
{
    while (p->n_kept > 0) {
        const penalised *last = &p->kept[--p->n_kept];
        logits[last->place] = last->logit;
    }
}
