/* States, records and their order: see recurrent.h. */
#include "state/recurrent.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"

static recurrent_store *self_of(state_store *s)
{
    return (recurrent_store *)(void *)s;
}

static const recurrent_store *const_self(const state_store *s)
{
    return (const recurrent_store *)(const void *)s;
}

static const recurrent_class *class_of(const store_class *class)
{
    return (const recurrent_class *)(const void *)class;
}

static size_t n_blocks(int32_t n_slots)
{
    return (size_t)(n_slots / RECURRENT_BLOCK) + 1;
}

/* ---- Memory ---- */

typedef struct sizes {
    size_t states, records, branch, base, at;
} sizes;

static sizes sizes_of(const store_class *class, const store_shape *s, const store_size *size)
{
    const recurrent_class *kind = class_of(class);
    const size_t n_layers = (size_t)s->n_layers, n_recent = (size_t)size->n_recent;
    const size_t state = (size_t)kind->state_numbers(s) * sizeof(float);
    const size_t record = (size_t)kind->record_numbers(s) * sizeof(float);
    return (sizes){.states = n_layers * n_blocks(size->n_slots) * state,
                   .records = n_layers * n_recent * record,
                   .branch = state,
                   .base = n_layers * sizeof(int32_t),
                   .at = n_recent * sizeof(int32_t)};
}

size_t recurrent_bytes(const store_class *class, const store_shape *s, const store_size *size)
{
    const sizes n = sizes_of(class, s, size);
    return arena_size(n.states) + arena_size(n.records) + arena_size(n.branch) +
           arena_size(n.base) + arena_size(n.at);
}

void recurrent_init(state_store *s, arena *a)
{
    recurrent_store *r = self_of(s);
    const recurrent_class *kind = class_of(s->class);
    const sizes n = sizes_of(s->class, &s->shape, &s->size);
    r->n_record = kind->record_numbers(&s->shape);
    r->n_state = kind->state_numbers(&s->shape);
    r->states = arena_take(a, n.states);
    r->records = arena_take(a, n.records);
    r->branch = arena_take(a, n.branch);
    r->base = arena_take(a, n.base);
    r->at = arena_take(a, n.at);
    for (int32_t i = 0; r->at && i < s->size.n_recent; i++)
        r->at[i] = i;
}

static float *state_at(const recurrent_store *r, int32_t layer, int32_t position)
{
    const size_t block = (size_t)(position / RECURRENT_BLOCK);
    return r->states +
           ((size_t)layer * n_blocks(r->store.size.n_slots) + block) * (size_t)r->n_state;
}

static int32_t record_of(const recurrent_store *r, int32_t position)
{
    return r->at[position % r->store.size.n_recent];
}

static float *record_at(const recurrent_store *r, int32_t layer, int32_t record)
{
    const size_t row = (size_t)layer * (size_t)r->store.size.n_recent + (size_t)record;
    return r->records + row * (size_t)r->n_record;
}

float *recurrent_record(const recurrent_store *r, int32_t layer, int32_t position)
{
    return record_at(r, layer, record_of(r, position));
}

static int32_t least_base(const recurrent_store *r)
{
    int32_t least = r->base[0];
    for (int32_t i = 1; i < r->store.shape.n_layers; i++)
        least = min_i32(least, r->base[i]);
    return least;
}

/* ---- What becomes of rows ---- */

bool recurrent_has_room(const state_store *s, const text_cache *c, int32_t n)
{
    const int32_t end = cache_end(c) + cache_pending(c) + n;
    return end - least_base(const_self(s)) <= s->size.n_recent;
}

/* Exchanges their numbers, not their records. */
void recurrent_move(state_store *s, const text_cache *c, int32_t to, const int32_t *from, int32_t n)
{
    recurrent_store *r = self_of(s);
    for (int32_t i = 0; i < n; i++) {
        int32_t *a = &r->at[(cache_end(c) + to + i) % s->size.n_recent];
        int32_t *b = &r->at[(cache_end(c) + from[i]) % s->size.n_recent];
        int32_t moved = *b;
        *b = *a;
        *a = moved;
    }
}

void recurrent_cut(state_store *s, const text_cache *c, int32_t n)
{
    recurrent_store *r = self_of(s);
    (void)c;
    for (int32_t i = 0; i < s->shape.n_layers; i++) {
        assert(r->base[i] <= n || n % RECURRENT_BLOCK == 0);
        r->base[i] = min_i32(r->base[i], n);
    }
}

void recurrent_restored(state_store *s, const text_cache *c, int32_t n)
{
    (void)c;
    assert(n % RECURRENT_BLOCK == 0);
    for (int32_t i = 0; i < s->shape.n_layers; i++)
        self_of(s)->base[i] = n;
}

void recurrent_make_up(state_store *s, const text_cache *c, int32_t from, int32_t to)
{
    recurrent_store *r = self_of(s);
    const int32_t end = to / RECURRENT_BLOCK * RECURRENT_BLOCK;
    (void)c;
    (void)from;
    for (int32_t i = 0; i < s->shape.n_layers; i++) {
        memset(state_at(r, i, end), 0, (size_t)r->n_state * sizeof(float));
        r->base[i] = end;
        for (int32_t p = end; p < to; p++)
            memset(recurrent_record(r, i, p), 0, (size_t)r->n_record * sizeof(float));
    }
}

/* ---- States ---- */

/* state += the block that begins at `begin`, whose positions are committed. */
static void add_block(const recurrent_store *r, int32_t layer, int32_t begin, float *state)
{
    const float *records[RECURRENT_BLOCK];
    for (int32_t i = 0; i < RECURRENT_BLOCK; i++)
        records[i] = recurrent_record(r, layer, begin + i);
    class_of(r->store.class)->add(&r->store.shape, state, records, RECURRENT_BLOCK);
}

static void advance_to(recurrent_store *r, int32_t layer, int32_t end)
{
    const size_t n_bytes = (size_t)r->n_state * sizeof(float);
    for (int32_t *base = &r->base[layer]; *base < end; *base += RECURRENT_BLOCK) {
        float *next = state_at(r, layer, *base + RECURRENT_BLOCK);
        memcpy(next, state_at(r, layer, *base), n_bytes);
        add_block(r, layer, *base, next);
    }
}

void recurrent_advance(recurrent_store *r, const text_cache *c, int32_t layer)
{
    advance_to(r, layer, cache_certain(c));
}

void recurrent_settle(state_store *s, const text_cache *c, int32_t end)
{
    (void)c;
    for (int32_t i = 0; i < s->shape.n_layers; i++)
        advance_to(self_of(s), i, end);
}

/* ---- Rows ---- */

/* The position before a row's: its parent's, as recurrent_record names it. */
static int32_t before(const text_cache *c, int32_t position)
{
    const int32_t row = position - cache_end(c);
    if (row < 0)
        return position - 1;
    const int32_t parent = cache_parent(c, row);
    return cache_end(c) + (parent < 0 ? -1 : parent);
}

/* Distance from the text's beginning. */
static int32_t depth_of(const text_cache *c, int32_t position)
{
    const int32_t row = position - cache_end(c);
    return row < 0 ? position : cache_end(c) + cache_depth(c, row);
}

/* The records of the path that ends with a row, back to the beginning of its block. Returns their
 * number; *position becomes that of the row before them. */
static int32_t path_records(const recurrent_store *r, const text_cache *c, int32_t layer,
                            int32_t *position, const float *records[RECURRENT_BLOCK])
{
    const int32_t n = depth_of(c, *position) % RECURRENT_BLOCK + 1;
    for (int32_t i = n - 1; i >= 0; i--, *position = before(c, *position))
        records[i] = recurrent_record(r, layer, *position);
    return n;
}

/* Makes r->branch the state after the block that ends with `last`, which is beyond the layer's
 * base: from what is there if that is an earlier block of the same path. */
static void make_branch(recurrent_store *r, const text_cache *c, int32_t layer, int32_t last,
                        recurrent_branch *branch)
{
    const int32_t end = depth_of(c, last) + 1;
    if (branch->begin == end && branch->last == record_of(r, last))
        return;
    const float *records[RECURRENT_BLOCK];
    int32_t previous = last, n = path_records(r, c, layer, &previous, records);
    assert(n == RECURRENT_BLOCK);
    if (end - n > r->base[layer])
        make_branch(r, c, layer, previous, branch);
    else
        memcpy(r->branch, state_at(r, layer, end - n), (size_t)r->n_state * sizeof(float));
    class_of(r->store.class)->add(&r->store.shape, r->branch, records, n);
    *branch = (recurrent_branch){end, record_of(r, last)};
}

void recurrent_read(recurrent_store *r, const text_cache *c, int32_t layer, int32_t position,
                    recurrent_branch *branch, float *out)
{
    const float *records[RECURRENT_BLOCK];
    const int32_t begin = depth_of(c, position) / RECURRENT_BLOCK * RECURRENT_BLOCK;
    int32_t last = position, n = path_records(r, c, layer, &last, records);
    const float *state = state_at(r, layer, begin);
    assert(begin >= r->base[layer]);
    if (begin > r->base[layer]) {
        make_branch(r, c, layer, last, branch);
        state = r->branch;
    }
    class_of(r->store.class)->read(&r->store.shape, state, records, n, out);
}

/* ---- Elsewhere ---- */

/* A layer's states, each as the piece of the positions that lead to it. */
int32_t recurrent_n_pieces(const state_store *s)
{
    return s->shape.n_layers;
}

size_t recurrent_piece_bytes(const state_store *s, int32_t piece, int32_t n_positions)
{
    (void)piece;
    const size_t n_state = (size_t)class_of(s->class)->state_numbers(&s->shape);
    return (size_t)(n_positions / RECURRENT_BLOCK) * n_state * sizeof(float);
}

uint8_t *recurrent_piece(const state_store *s, int32_t piece, int32_t group)
{
    return (uint8_t *)state_at(const_self(s), piece, (group + 1) * RECURRENT_BLOCK);
}

bool recurrent_is_valid(const state_store *s, const text_cache *c)
{
    const recurrent_store *r = const_self(s);
    bool valid = cache_end(c) + cache_pending(c) - least_base(r) <= s->size.n_recent;
    for (int32_t i = 0; valid && i < s->shape.n_layers; i++)
        valid = r->base[i] >= 0 && r->base[i] % RECURRENT_BLOCK == 0 &&
                r->base[i] <= max_i32(cache_certain(c), 0);
    return valid;
}

recurrent_store *recurrent_of(const text_cache *c)
{
    for (int32_t i = 0; i < cache_n_stores(c); i++)
        if (cache_store(c, i)->class->in_blocks)
            return self_of(cache_store(c, i));
    return NULL;
}
