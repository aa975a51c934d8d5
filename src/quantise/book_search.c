/* Lists of the entries that can be nearest: see book_search.h.
 *
 * A combination of levels, a point, is a number whose digits are the levels, and has two halves. An
 * entry's error is the sum of its halves' errors, which are computed once for all entries: so each
 * costs two look-ups. */
#include "quantise/book_search.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/code_books.h"
#include "quantise/level_fit.h"

enum {
    MOST_LEVELS = 8,
    MOST_GROUP = 8,
    MOST_HALF = 81, /* 3^4, and 8^2 are less */
    MOST_POINTS = MOST_HALF * MOST_HALF,
    MOST_ENTRIES = 1024,
    MOST_STEPS = 32
};

/* The halves of an entry's point. */
typedef struct candidate {
    uint8_t high, low;
} candidate;

struct book_search {
    const void *entries; /* [n_entries][group] bytes */
    int32_t n_entries, group, n_levels;
    int32_t half;             /* numbers that half a point can be */
    float level[MOST_LEVELS]; /* rising */
    float unit;               /* an entry's bytes are levels times this */
    candidate *candidates;    /* room for n_candidates, the length of all lists */
    uint32_t n_candidates;
    uint32_t first[MOST_POINTS + 1]; /* a point's list: from first[p] on, up to first[p + 1] */
    int16_t number[MOST_POINTS];     /* entry at a point; -1: there is none */
    atomic_bool made;
};

#define IQ2     .group = 8, .n_levels = 3, .half = 81, .level = {1, 3.125f, 5.375f}, .unit = 8
#define IQ3     .group = 4, .n_levels = 8, .half = 64
#define IQ3_XXS IQ3, .level = {1, 3, 5, 7, 9, 11, 13, 15.5f}, .unit = 4
#define IQ3_S   IQ3, .level = {1, 3, 5, 7, 9, 11, 13, 15}, .unit = 1
#define BOOK(name, n, ...)                                                                         \
    static candidate candidates_##name[n];                                                         \
    static book_search name = {.entries = books.name,                                              \
                               .n_entries = sizeof books.name / sizeof *books.name,                \
                               .candidates = candidates_##name,                                    \
                               .n_candidates = (n),                                                \
                               __VA_ARGS__}
BOOK(iq2_xxs, 246776, IQ2);
BOOK(iq2_xs, 284744, IQ2);
BOOK(iq2_s, 250190, IQ2);
BOOK(iq3_xxs, 89059, IQ3_XXS);
BOOK(iq3_s, 72476, IQ3_S);
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* ---- The lists ---- */

static int32_t point_of(const book_search *b, const uint8_t *levels)
{
    int32_t point = 0;
    for (int32_t i = 0; i < b->group; i++)
        point = point * b->n_levels + levels[i];
    return point;
}

static void levels_of_point(const book_search *b, uint8_t *levels, int32_t point)
{
    for (int32_t i = b->group - 1; i >= 0; i--, point /= b->n_levels)
        levels[i] = (uint8_t)(point % b->n_levels);
}

static void levels_of_entry(const book_search *b, uint8_t *levels, int32_t entry)
{
    const uint8_t *bytes = (const uint8_t *)b->entries + entry * b->group;
    for (int32_t i = 0; i < b->group; i++)
        for (levels[i] = 0; b->level[levels[i]] * b->unit != (float)bytes[i];)
            levels[i]++;
}

/* Each level as so many ones, in bits for each magnitude. Bits that differ between two combinations
 * are the steps from one to the other: what lies between the two has some of these steps. */
static uint32_t steps_of(const book_search *b, const uint8_t *levels)
{
    uint32_t steps = 0;
    for (int32_t i = 0; i < b->group; i++)
        steps = steps << (b->n_levels - 1) | ((1u << levels[i]) - 1);
    return steps;
}

static uint32_t count_ones(uint32_t x)
{
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0fu;
    return x * 0x01010101u >> 24;
}

typedef struct all_entries {
    uint32_t steps[MOST_ENTRIES]; /* from the lowest levels */
    int32_t point[MOST_ENTRIES];
    int32_t order[MOST_ENTRIES]; /* by the number of steps from a point */
} all_entries;

static void sort_by_distance(const book_search *b, all_entries *e, uint32_t from)
{
    uint8_t far[MOST_ENTRIES];
    int32_t at[MOST_STEPS + 1] = {0};
    for (int32_t i = 0; i < b->n_entries; i++)
        far[i] = (uint8_t)count_ones(e->steps[i] ^ from);
    for (int32_t i = 0; i < b->n_entries; i++)
        at[far[i] + 1]++;
    for (int32_t s = 1; s < MOST_STEPS; s++)
        at[s] += at[s - 1];
    for (int32_t i = 0; i < b->n_entries; i++)
        e->order[at[far[i]]++] = i;
}

/* Appends the list of a point, nearest first, to n candidates; returns how many there are then.
 * An entry's steps that include all of another's have that one in between. */
static uint32_t make_list(book_search *b, all_entries *e, uint32_t from, uint32_t n)
{
    uint32_t kept[MOST_ENTRIES];
    int32_t n_kept = 0;
    sort_by_distance(b, e, from);
    for (int32_t i = 0; i < b->n_entries; i++) {
        const int32_t entry = e->order[i];
        const uint32_t steps = e->steps[entry] ^ from;
        int32_t k = 0;
        while (k < n_kept && (kept[k] & ~steps) != 0)
            k++;
        if (k < n_kept)
            continue;
        kept[n_kept++] = steps;
        assert(n < b->n_candidates);
        b->candidates[n++] =
            (candidate){(uint8_t)(e->point[entry] / b->half), (uint8_t)(e->point[entry] % b->half)};
    }
    return n;
}

static void make_lists(book_search *b)
{
    all_entries e;
    uint8_t levels[MOST_GROUP];
    uint32_t n = 0;
    memset(b->number, -1, sizeof b->number);
    for (int32_t i = 0; i < b->n_entries; i++) {
        levels_of_entry(b, levels, i);
        e.steps[i] = steps_of(b, levels);
        e.point[i] = point_of(b, levels);
        b->number[e.point[i]] = (int16_t)i;
    }
    for (int32_t p = 0; p < b->half * b->half; p++) {
        levels_of_point(b, levels, p);
        if (b->number[p] < 0)
            n = make_list(b, &e, steps_of(b, levels), n);
        b->first[p + 1] = n;
    }
    assert(n == b->n_candidates);
}

const book_search *book_search_of(tensor_type type)
{
    book_search *b = type == TYPE_IQ2_XXS   ? &iq2_xxs
                     : type == TYPE_IQ2_XS  ? &iq2_xs
                     : type == TYPE_IQ2_S   ? &iq2_s
                     : type == TYPE_IQ3_XXS ? &iq3_xxs
                                            : &iq3_s;
    if (atomic_load(&b->made))
        return b;
    code_books_make();
    pthread_mutex_lock(&making);
    if (!atomic_load(&b->made))
        make_lists(b);
    atomic_store(&b->made, true);
    pthread_mutex_unlock(&making);
    return b;
}

float book_search_most(const book_search *b)
{
    return b->level[b->n_levels - 1];
}

/* ---- The search ---- */

/* out: [na][nb] */
static inline void add_all(float *out, const float *a, int na, const float *b, int nb)
{
    for (int i = 0; i < na; i++)
        for (int j = 0; j < nb; j++)
            out[i * nb + j] = a[i] + b[j];
}

/* Errors of all combinations of each half. cost: [8][3] or [4][8], errors of each number. */
static inline void half_costs(float half[2][MOST_HALF], const float *cost, int group)
{
    for (int h = 0; h < 2; h++)
        if (group == 4) {
            add_all(half[h], cost + 16 * h, 8, cost + 16 * h + 8, 8);
        } else {
            float a[9], b[9];
            add_all(a, cost + 12 * h, 3, cost + 12 * h + 3, 3);
            add_all(b, cost + 12 * h + 6, 3, cost + 12 * h + 9, 3);
            add_all(half[h], a, 9, b, 9);
        }
}

/* Returns the point of the entry that is nearest to x, which rounds to the point `at`. */
static inline int32_t nearest_entry(const book_search *b, int32_t at, const float *x,
                                    const float *w, int group)
{
    const int n_levels = group == 4 ? 8 : 3, n_half = group == 4 ? 64 : 81;
    float cost[32], half[2][MOST_HALF];
    for (int i = 0; i < group; i++)
        for (int l = 0; l < n_levels; l++) {
            const float off = x[i] - b->level[l];
            cost[i * n_levels + l] = w[i] * off * off;
        }
    half_costs(half, cost, group);
    const candidate *c = b->candidates + b->first[at], *end = b->candidates + b->first[at + 1];
    const candidate *best = c;
    float least = half[0][c->high] + half[1][c->low];
    while (++c < end) {
        const float error = half[0][c->high] + half[1][c->low];
        if (error < least) {
            least = error;
            best = c;
        }
    }
    return best->high * n_half + best->low;
}

static inline void round_groups(const book_search *b, float *q, const float *x, const float *w,
                                int32_t n, float inverse, int group)
{
    const int n_levels = group == 4 ? 8 : 3;
    float scaled[FIT_MOST];
    int32_t level[FIT_MOST] = {0};
    for (int32_t i = 0; i < n; i++)
        scaled[i] = x[i] * inverse;
    for (int l = 1; l < n_levels; l++) {
        const float middle = 0.5f * (b->level[l - 1] + b->level[l]);
        for (int32_t i = 0; i < n; i++)
            level[i] += scaled[i] > middle;
    }
    for (int32_t g = 0; g < n; g += group) {
        int32_t point = 0;
        for (int i = 0; i < group; i++)
            point = point * n_levels + level[g + i];
        if (b->number[point] >= 0)
            continue;
        point = nearest_entry(b, point, scaled + g, w + g, group);
        for (int i = group - 1; i >= 0; i--, point /= n_levels)
            level[g + i] = point % n_levels;
    }
    for (int32_t i = 0; i < n; i++)
        q[i] = b->level[level[i]];
}

void book_search_round(const book_search *b, float *q, const float *x, const float *w, int32_t n,
                       float inverse)
{
    if (b->group == 4) /* each with loops of a known length */
        round_groups(b, q, x, w, n, inverse, 4);
    else
        round_groups(b, q, x, w, n, inverse, 8);
}

uint32_t book_search_number(const book_search *b, const float *q)
{
    uint8_t levels[MOST_GROUP];
    for (int32_t i = 0; i < b->group; i++)
        for (levels[i] = 0; b->level[levels[i]] != q[i];)
            levels[i]++;
    return (uint32_t)b->number[point_of(b, levels)];
}
