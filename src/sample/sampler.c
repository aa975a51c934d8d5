/* The choice of a token: see sampler.h for the rules. How it is made fast for 152,000 ids:
 *
 * Filters. All of them keep a prefix of the ids in order of logit (ties: lower id first). top-k
 * gathers its k with a heap. Without it ids are gathered in bands of falling logit, each band is
 * sorted, and gathering stops when the filters have seen enough: a few hundred ids with real
 * models, the whole vocabulary at worst. The result is that of a full stable sort.
 *
 * Noise. u = (2 j + 1) / 2^53, j the upper 52 bits of hash(seed, position, id); the noise is
 * -log(-log u). It costs two logarithms, but since -log u >= 1 - u it is at most -log(1 - u), and
 * the number of leading ones of the hash bounds that: 1 - u >= 2^-(ones + 1). Only ids whose score
 * could still win under this bound get their logarithms: a few dozen. The result is that of
 * evaluating all.
 *
 * The hash: key = mix(mix(seed) + position), hash = mix(key + (id + 1) * golden), mix the 64-bit
 * finaliser of SplitMix64 (Stafford's variant 13), golden = 2^64 / golden ratio; so the ids of one
 * position read a SplitMix64 sequence.
 *
 * Sums run in one fixed order on one thread. */
#include "sample/sampler.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "base/fmath.h"
#include "common/num.h"
#include "kernel/kernel.h"
#include "sample/penalties.h"

typedef struct sampler_entry {
    float logit;
    int32_t id;
} entry;
_Static_assert(sizeof(penalty_count) <= sizeof(entry), "penalties count in the sampler's work");

/* ---- Noise ---- */

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t noise_key(uint64_t seed, int64_t position)
{
    return mix(mix(seed + GOLDEN) + (uint64_t)position);
}

static uint64_t noise_hash(uint64_t key, int32_t id)
{
    return mix(key + (uint64_t)(id + 1) * GOLDEN);
}

static double gumbel(uint64_t hash)
{
    double u = ((double)(hash >> 12) + 0.5) * 0x1p-52;
    return -log_f64(-log_f64(u));
}

/* Never below gumbel(hash); a little above, so that rounding in log_f64 cannot make it wrong. */
static double gumbel_bound(uint64_t hash)
{
    int ones = __builtin_clzll(~hash | 1);
    return (double)(ones + 1) * 0.69314718056 + 1e-9;
}

/* ---- Order: ids by falling logit, ties by rising id ---- */

static bool stands_before(entry a, entry b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Moves e down from index i of a heap whose front is the last in order. */
static void sink(entry *heap, int32_t n, int32_t i, entry e)
{
    for (int32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && stands_before(heap[child], heap[child + 1]))
            child++;
        if (!stands_before(e, heap[child]))
            break;
        heap[i] = heap[child];
    }
    heap[i] = e;
}

static void make_heap(entry *e, int32_t n)
{
    for (int32_t i = n / 2; i-- > 0;)
        sink(e, n, i, e[i]);
}

/* Heap sort: in index, without recursion or a bad case, and no malloc as in qsort. */
static void sort_heap(entry *e, int32_t n)
{
    while (n > 1) {
        entry last = e[--n];
        e[n] = e[0];
        sink(e, n, 0, last);
    }
}

/* The ids in order, gathered as far as needed. Ids of probability zero (logit -inf or NaN) are
 * never among them. */
typedef struct ranking {
    entry *entries; /* [n_ids], the first n in order */
    const float *logits;
    int32_t n_ids, n;
    float floor; /* all ids with logit >= floor are there; INFINITY at the start */
    float width; /* width of the next band */
} ranking;

static bool gather_band(ranking *r, float best)
{
    if (r->floor < -FLT_MAX)
        return false;
    float ceiling = r->floor;
    r->floor = r->width < 64 ? best - r->width : -INFINITY;
    r->width *= 2;
    int32_t n = r->n;
    for (int32_t id = 0; id < r->n_ids; id++) {
        float logit = r->logits[id];
        if (logit >= r->floor && logit < ceiling && logit >= -FLT_MAX)
            r->entries[n++] = (entry){.logit = logit, .id = id};
    }
    make_heap(r->entries + r->n, n - r->n);
    sort_heap(r->entries + r->n, n - r->n);
    r->n = n;
    return true;
}

/* The first k in order and no more: a heap keeps the best seen so far, the last of them in front.
 */
static void gather_top(ranking *r, int32_t k)
{
    int32_t n = 0;
    for (int32_t id = 0; id < r->n_ids; id++) {
        entry e = {.logit = r->logits[id], .id = id};
        if (!(e.logit >= -FLT_MAX))
            continue;
        if (n < k) {
            r->entries[n++] = e;
            if (n == k)
                make_heap(r->entries, n);
        } else if (stands_before(e, r->entries[0])) {
            sink(r->entries, n, 0, e);
        }
    }
    if (n < k)
        make_heap(r->entries, n);
    sort_heap(r->entries, n);
    r->n = n;
    r->floor = -INFINITY;
}

/* ---- Filters ---- */

/* exp(logit - best) in order of the ids; those without probability count nothing. */
static double weight_of_all(const sampler *s, const float *logits, int32_t n_ids, float best)
{
    float sum = s->kernels->sum_exp(logits, n_ids, best, 1);
    if (sum == sum)
        return (double)sum;
    double exact = 0; /* some logit is NaN */
    for (int32_t id = 0; id < n_ids; id++) {
        if (logits[id] >= -FLT_MAX)
            exact += exp_f64((double)logits[id] - (double)best);
    }
    return exact;
}

static double weight_of_entries(const entry *e, int32_t n, float best)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += exp_f64((double)e[i].logit - (double)best);
    return sum;
}

static bool filters(const drey_sampling *set, int32_t n_ids)
{
    return (set->top_k > 0 && set->top_k < n_ids) || set->top_p < 1 || set->min_p > 0;
}

/* Gathers the ids that top-k, top-p and min-p keep into s->work, in order; returns how many. */
static int32_t filter(sampler *s, const float *logits, int32_t n_ids, float best)
{
    const drey_sampling *set = &s->settings;
    ranking r = {
        .entries = s->work, .logits = logits, .n_ids = n_ids, .floor = INFINITY, .width = 1};
    bool top_k = set->top_k > 0 && set->top_k < n_ids;
    bool top_p = set->top_p < 1;
    double enough = INFINITY; /* of probability, in units of the best id's */
    if (top_k) {
        gather_top(&r, set->top_k);
        if (top_p)
            enough = (double)set->top_p * weight_of_entries(r.entries, r.n, best);
    } else if (top_p) {
        enough = (double)set->top_p * weight_of_all(s, logits, n_ids, best);
    }
    double lowest = set->min_p > 0 ? (double)best + log_f64((double)set->min_p) : -INFINITY;
    double sum = 0;
    for (int32_t i = 0;; i++) {
        if (i > 0 && sum >= enough)
            return i;
        while (i == r.n) {
            if (!gather_band(&r, best))
                return i;
        }
        double logit = (double)r.entries[i].logit;
        if (i > 0 && logit < lowest)
            return i;
        if (top_p)
            sum += exp_f64(logit - (double)best);
    }
}

/* ---- The contest: the best scores of those ids that take part ---- */

enum { MAX_GUESSES = 8 };

/* A guess's confidence counts the scores within this much of the best: the others matter little,
 * and their noise need not be computed. */
static const double near_best = 7;

typedef struct contest {
    double score[MAX_GUESSES];  /* falling; ties by index */
    int32_t index[MAX_GUESSES]; /* index of the logit; the id, but for logit_ids */
    int32_t n, max;
    double range;  /* scores this far under the best still count in weight */
    double weight; /* sum of exp(score - best score) over all that entered */
} contest;

/* Scores under it need not enter. */
static double contest_floor(const contest *c)
{
    if (c->n == 0 || c->n < c->max)
        return -INFINITY;
    double last = c->score[c->n - 1], near = c->score[0] - c->range;
    return min_f64(last, near);
}

static void contest_enter(contest *c, double score, int32_t index)
{
    if (c->n > 0 && score > c->score[0])
        c->weight = c->weight * exp_f64(c->score[0] - score) + 1;
    else
        c->weight += c->n > 0 ? exp_f64(score - c->score[0]) : 1;

    int32_t at = c->n < c->max ? c->n++ : c->max;
    for (; at > 0; at--) {
        bool stays =
            c->score[at - 1] > score || (c->score[at - 1] == score && c->index[at - 1] < index);
        if (stays)
            break;
        if (at < c->max) {
            c->score[at] = c->score[at - 1];
            c->index[at] = c->index[at - 1];
        }
    }
    if (at < c->max) {
        c->score[at] = score;
        c->index[at] = index;
    }
}

static int32_t id_at(const logit_ids *ids, int32_t index)
{
    return index < ids->n_first ? index : ids->more[index - ids->n_first];
}

/* The noisy scores log p + noise, up to a constant: (logit - best) / temperature + noise. */
static void contest_noisy(contest *c, sampler *s, const float *logits, const logit_ids *ids,
                          int32_t best_index, int64_t position)
{
    double best = (double)logits[best_index];
    int32_t n_candidates = ids->n_first + ids->n_more;
    double inverse = 1 / (double)s->settings.temperature;
    uint64_t key = noise_key(s->settings.seed, position);
    /* First, so that few others need their noise computed. */
    contest_enter(c, gumbel(noise_hash(key, id_at(ids, best_index))), best_index);
    bool filtered = filters(&s->settings, n_candidates);
    int32_t n = filtered ? filter(s, logits, n_candidates, logits[best_index]) : n_candidates;
    double floor = contest_floor(c);
    for (int32_t i = 0; i < n; i++) {
        int32_t index = filtered ? s->work[i].id : i;
        double logp = ((double)logits[index] - best) * inverse;
        uint64_t hash = noise_hash(key, id_at(ids, index));
        bool possible = logp >= -DBL_MAX && logp + gumbel_bound(hash) >= floor;
        if (!possible || index == best_index)
            continue;
        contest_enter(c, logp + gumbel(hash), index);
        floor = contest_floor(c);
    }
}

/* Enters those of logits[from, to) that are better than what has entered. */
static void contest_range(contest *c, const float *logits, int32_t from, int32_t to)
{
    double floor = contest_floor(c);
    for (int32_t index = from; index < to; index++) {
        bool possible = logits[index] >= -FLT_MAX && (double)logits[index] > floor;
        if (!possible)
            continue;
        contest_enter(c, (double)logits[index], index);
        floor = contest_floor(c);
    }
}

/* The logits themselves; confidence is the softmax over all of them. Most ranges have no id that
 * could enter: comparing their largest logit, which a vector instruction finds, is enough. */
static void contest_logits(contest *c, const sampler *s, const float *logits, int32_t n_ids)
{
    enum { RANGE = 512 };
    for (int32_t from = 0; from < n_ids; from += RANGE) {
        int32_t to = min_i32(from + RANGE, n_ids);
        int32_t best = from + (int32_t)s->kernels->arg_max(logits + from, to - from);
        if ((double)logits[best] > contest_floor(c))
            contest_range(c, logits, from, to);
    }
}

/* ---- The public part ---- */

drey_status sampler_init(sampler *s, const drey_sampling *settings, int32_t n_vocab,
                         const kernel_table *kernels, arena *a, drey_error *err)
{
    assert(n_vocab > 0);
    const drey_sampling *set = settings;
    if (!(set->temperature >= 0 && set->temperature <= FLT_MAX))
        FAIL(err, DREY_ERR_USAGE,
             "temperature is %g: give 0 (always the most likely token) or more",
             (double)set->temperature);
    if (set->top_k < 0)
        FAIL(err, DREY_ERR_USAGE, "top-k is %d: give 0 (off) or the number of tokens to keep",
             set->top_k);
    if (!(set->top_p >= 0 && set->top_p <= 1))
        FAIL(err, DREY_ERR_USAGE, "top-p is %g: give a share between 0 and 1 (1 is off)",
             (double)set->top_p);
    if (!(set->min_p >= 0 && set->min_p <= 1))
        FAIL(err, DREY_ERR_USAGE, "min-p is %g: give a share between 0 (off) and 1",
             (double)set->min_p);
    *s = (sampler){.settings = *settings, .kernels = kernels, .n_vocab = n_vocab};
    s->work = arena_take(a, (size_t)n_vocab * sizeof(entry));
    return DREY_OK;
}

size_t sampler_bytes(int32_t n_vocab)
{
    return arena_size((size_t)n_vocab * sizeof(entry));
}

/* Logits are in a pass's workspace, and nothing else reads them meanwhile: adding in index needs no
 * memory of the vocabulary's size. Logits that are not among the first are left unchanged. */
static void add_biases(const sampler *s, const float *logits, const logit_ids *ids)
{
    float *mine = (float *)logits;
    for (int32_t i = 0; i < s->n_biases; i++) {
        int32_t id = s->biases[i].id;
        if (id < ids->n_first) {
            s->unbiased[i] = mine[id];
            mine[id] += s->biases[i].bias;
        }
    }
}

/* Backwards: an id may be in the list twice. */
static void take_biases(const sampler *s, const float *logits, const logit_ids *ids)
{
    float *mine = (float *)logits;
    for (int32_t i = s->n_biases; i-- > 0;)
        if (s->biases[i].id < ids->n_first)
            mine[s->biases[i].id] = s->unbiased[i];
}

static int32_t choose(sampler *s, const float *logits, const logit_ids *ids, int64_t position)
{
    int32_t best = (int32_t)s->kernels->arg_max(logits, s->n_vocab);
    if (!(logits[best] >= -FLT_MAX))
        return 0; /* no token is possible */
    if (s->settings.temperature == 0 || logits[best] > FLT_MAX)
        return best;
    contest c = {.max = 1};
    contest_noisy(&c, s, logits, ids, best, position);
    return c.index[0];
}

int32_t sampler_top(const sampler *s, const float *logits, int32_t *out, int32_t max)
{
    contest c = {.max = min_i32(max, MAX_GUESSES)};
    contest_logits(&c, s, logits, s->n_vocab);
    for (int32_t i = 0; i < c.n; i++)
        out[i] = c.index[i];
    return c.n;
}

static int32_t guess(sampler *s, const float *logits, int64_t position, const logit_ids *ids,
                     candidate *out, int32_t max)
{
    int32_t n_candidates = ids->n_first + ids->n_more;
    assert(n_candidates > 0 && n_candidates <= s->n_vocab && max > 0);
    int32_t best = (int32_t)s->kernels->arg_max(logits, n_candidates);
    if (!(logits[best] >= -FLT_MAX && logits[best] <= FLT_MAX)) {
        int32_t token = logits[best] > 0 ? id_at(ids, best) : 0;
        out[0] = (candidate){.token = token, .confidence = 1};
        return 1;
    }
    contest c = {.max = max < MAX_GUESSES ? max : MAX_GUESSES};
    if (s->settings.temperature == 0) {
        contest_logits(&c, s, logits, n_candidates);
        c.weight = weight_of_all(s, logits, n_candidates, logits[best]);
    } else {
        c.range = near_best;
        contest_noisy(&c, s, logits, ids, best, position);
    }
    for (int32_t i = 0; i < c.n; i++)
        out[i] = (candidate){.token = id_at(ids, c.index[i]),
                             .confidence = (float)(exp_f64(c.score[i] - c.score[0]) / c.weight)};
    return c.n;
}

/* ---- Under a grammar ---- */

static bool is_set(const uint64_t *mask, int32_t id)
{
    return mask[id / 64] >> (id % 64) & 1;
}

/* The logits of allowed ids; -inf for the others. Borrowed from the grammar. */
static const float *allowed_logits(const float *logits, const logit_ids *ids, grammar_cursor at,
                                   const uint64_t *mask)
{
    float *out = grammar_scratch(at.grammar);
    for (int32_t i = 0; i < ids->n_first + ids->n_more; i++) {
        int32_t id = id_at(ids, i);
        out[i] = id >= 0 && is_set(mask, id) ? logits[i] : -INFINITY;
    }
    return out;
}

static bool is_filtered(const sampler *s)
{
    return s->settings.temperature > 0 && filters(&s->settings, s->n_vocab);
}

bool sampler_prepare_at(sampler *s, grammar_cursor at)
{
    return at.grammar && is_filtered(s) && grammar_prepare(at.grammar, at.state);
}

/* The best of all, if it is allowed, is the best of those that are; but filters look at more than
 * the best. */
static int32_t choose_allowed(sampler *s, const float *logits, const sampler_context *context)
{
    const logit_ids all = {.n_first = s->n_vocab};
    grammar_cursor at = context->at;
    bool filtered = is_filtered(s);
    int32_t token = at.grammar && filtered ? -1 : choose(s, logits, &all, context->position);
    if (!at.grammar || (token >= 0 && grammar_allows(at.grammar, at.state, token)))
        return token;
    const uint64_t *mask = grammar_mask(at.grammar, at.state);
    token = choose(s, allowed_logits(logits, &all, at, mask), &all, context->position);
    for (int32_t id = 0; !is_set(mask, token) && id < s->n_vocab; id++)
        if (is_set(mask, id)) /* none has a logit */
            token = id;
    return token;
}

static int32_t guess_allowed(sampler *s, const float *logits, const sampler_context *context,
                             const logit_ids *ids, candidate *out, int32_t max)
{
    grammar_cursor at = context->at;
    int32_t n = guess(s, logits, context->position, ids, out, at.grammar ? MAX_GUESSES : max);
    int32_t kept = 0;
    float rest = 1;
    if (!at.grammar)
        return n;
    for (int32_t i = 0; i < n; i++) {
        if (grammar_allows(at.grammar, at.state, out[i].token))
            out[kept++] = out[i];
        else
            rest -= out[i].confidence;
    }
    for (int32_t i = 0; i < kept; i++)
        out[i].confidence = min_f32(out[i].confidence / max_f32(rest, 1e-6f), 1);
    if (kept > 0)
        return min_i32(kept, max);
    logits = allowed_logits(logits, ids, at, grammar_mask(at.grammar, at.state));
    int32_t best = (int32_t)s->kernels->arg_max(logits, ids->n_first + ids->n_more);
    return logits[best] >= -FLT_MAX ? guess(s, logits, context->position, ids, out, max) : 0;
}

/* ---- What changes logits before all of that ---- */

static void adjust(sampler *s, const float *logits, const logit_ids *ids,
                   const sampler_context *context)
{
    add_biases(s, logits, ids);
    if (!s->penalties)
        return;
    const text_past past = {.timeline = s->penalties->timeline,
                            .n = context->position,
                            .drafted = context->drafted,
                            .n_drafted = context->n_drafted};
    penalties_apply(s->penalties, (float *)logits, ids, &past, (penalty_count *)(void *)s->work,
                    s->n_vocab);
}

static void take_back(sampler *s, const float *logits, const logit_ids *ids)
{
    if (s->penalties)
        penalties_take_back(s->penalties, (float *)logits);
    take_biases(s, logits, ids);
}

int32_t sampler_choose_at(sampler *s, const float *logits, const sampler_context *context)
{
    const logit_ids all = {.n_first = s->n_vocab};
    adjust(s, logits, &all, context);
    int32_t token = choose_allowed(s, logits, context);
    take_back(s, logits, &all);
    return token;
}

/* At temperature 0 the best one is all that there is. */
static int32_t shares(sampler *s, const float *logits, drey_logprob *written, drey_logprob *top,
                      int32_t max)
{
    int32_t best = (int32_t)s->kernels->arg_max(logits, s->n_vocab);
    bool all = s->settings.temperature > 0 && fabsf(logits[best]) <= FLT_MAX;
    int32_t n = all ? filter(s, logits, s->n_vocab, logits[best]) : 1;
    double inverse = all ? 1 / (double)s->settings.temperature : 1, sum = 0;
    if (!all)
        s->work[0] = (entry){.logit = logits[best], .id = best};
    for (int32_t i = 0; i < n; i++)
        sum += all ? exp_f64(((double)s->work[i].logit - (double)logits[best]) * inverse) : 1;
    written->logprob = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        double above = all ? (double)s->work[i].logit - (double)logits[best] : 0;
        float share = (float)(above * inverse - log_f64(sum));
        if (s->work[i].id == written->id)
            written->logprob = share;
        if (i < max)
            top[i] = (drey_logprob){.id = s->work[i].id, .logprob = share};
    }
    return min_i32(n, max);
}

int32_t sampler_shares_at(sampler *s, const float *logits, const sampler_context *context,
                          drey_logprob *written, drey_logprob *top, int32_t max)
{
    const logit_ids all = {.n_first = s->n_vocab};
    grammar_cursor at = context->at;
    adjust(s, logits, &all, context);
    const float *left =
        at.grammar ? allowed_logits(logits, &all, at, grammar_mask(at.grammar, at.state)) : logits;
    int32_t n = shares(s, left, written, top, max);
    take_back(s, logits, &all);
    return n;
}

int32_t sampler_choose(sampler *s, const float *logits, int64_t position)
{
    return sampler_choose_at(s, logits, &(sampler_context){.position = position});
}

int32_t sampler_guess_at(sampler *s, const float *logits, const sampler_context *context,
                         const logit_ids *ids, candidate *out, int32_t max)
{
    adjust(s, logits, ids, context);
    int32_t n = guess_allowed(s, logits, context, ids, out, max);
    take_back(s, logits, ids);
    return n;
}

int32_t sampler_guess(sampler *s, const float *logits, int64_t position, const logit_ids *ids,
                      candidate *out, int32_t max)
{
    return sampler_guess_at(s, logits, &(sampler_context){.position = position}, ids, out, max);
}
