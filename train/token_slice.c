/* Choosing: see token_slice.h. */
#include "train/token_slice.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"

size_t token_slice_bytes(int32_t n_vocab)
{
    size_t n = (size_t)n_vocab;
    return arena_size(n * sizeof(int64_t)) + arena_size(n * sizeof(bool)) +
           2 * arena_size(n * sizeof(int32_t));
}

void token_slice_init(token_slice *s, int32_t n_vocab, arena *a)
{
    size_t n = (size_t)n_vocab;
    *s = (token_slice){.n_vocab = n_vocab};
    s->learnt = arena_take(a, n * sizeof *s->learnt);
    s->there = arena_take(a, n * sizeof *s->there);
    s->place = arena_take(a, n * sizeof *s->place);
    s->id = arena_take(a, n * sizeof *s->id);
}

static int32_t more_often_than(const token_slice *s, int64_t count)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_vocab; i++)
        n += s->learnt[i] > count;
    return n;
}

static void enter(token_slice *s, int32_t id)
{
    s->place[id] = s->n_rows;
    s->id[s->n_rows++] = id;
}

void token_slice_choose(token_slice *s, int32_t n_ids)
{
    /* The least count with at most as many tokens above it as there is room for. */
    int64_t low = 0, high = 0;
    assert(n_ids >= 1 && n_ids <= s->n_vocab);
    for (int32_t i = 0; i < s->n_vocab; i++)
        high = max_i64(high, s->learnt[i]);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (more_often_than(s, middle) <= n_ids)
            high = middle;
        else
            low = middle + 1;
    }
    int32_t left = n_ids - more_often_than(s, low);
    s->n_ids = n_ids;
    s->n_rows = 0;
    memset(s->place, -1, (size_t)s->n_vocab * sizeof *s->place);
    for (int32_t i = 0; i < s->n_vocab; i++)
        if (s->learnt[i] > low || (s->learnt[i] == low && left-- > 0))
            enter(s, i);
    for (int32_t i = 0; i < s->n_vocab; i++)
        if (s->place[i] < 0 && s->there[i])
            enter(s, i);
}
