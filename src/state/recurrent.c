/* States, records and their order: see recurrent.h. */
#include "state/recurrent.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"
#include "state/cache.h"

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

/* ---- Memory ---- */

typedef struct sizes {
    size_t states, kept, records, buffer, base, at;
} sizes;

/* Numbers of a layer's state. */
static int64_t state_numbers(const store_class *class, const store_shape *s)
{
    const recurrent_class *kind = class_of(class);
    return kind->n_units(s) * kind->state_numbers(s);
}

size_t recurrent_state_bytes(const store_class *class, const store_shape *s)
{
    return (size_t)state_numbers(class, s) * sizeof(float);
}

static sizes sizes_of(const store_class *class, const store_shape *s, const store_size *size)
{
    const size_t n_layers = (size_t)s->n_layers, state = recurrent_state_bytes(class, s);
    const size_t n_records = (size_t)size->n_recent + RECURRENT_BLOCK;
    return (sizes){.states = n_layers * RECURRENT_STATES * state,
                   .kept = (size_t)size->n_kept * n_layers * state,
                   .records = n_layers * n_records * class_of(class)->record_bytes(s),
                   .buffer = n_layers * RECURRENT_STATES * sizeof(int32_t),
                   .base = n_layers * sizeof(int32_t),
                   .at = n_records * sizeof(int32_t)};
}

size_t recurrent_bytes(const store_class *class, const store_shape *s, const store_size *size)
{
    const sizes n = sizes_of(class, s, size);
    return arena_size(n.states) + arena_size(n.kept) + arena_size(n.records) +
           arena_size(n.buffer) + arena_size(n.base) + arena_size(n.at);
}

void recurrent_init(state_store *s, arena *a)
{
    recurrent_store *r = self_of(s);
    const recurrent_class *kind = class_of(s->class);
    const sizes n = sizes_of(s->class, &s->shape, &s->size);
    r->record_bytes = kind->record_bytes(&s->shape);
    r->n_state = state_numbers(s->class, &s->shape);
    r->n_units = kind->n_units(&s->shape);
    r->states = arena_take(a, n.states);
    r->kept = arena_take(a, n.kept);
    r->records = arena_take(a, n.records);
    r->buffer = arena_take(a, n.buffer);
    r->base = arena_take(a, n.base);
    r->at = arena_take(a, n.at);
    if (!r->buffer || !r->at)
        return;
    r->of_prompt = r->at + s->size.n_recent;
    for (int32_t i = 0; i < s->shape.n_layers * RECURRENT_STATES; i++)
        r->buffer[i] = i % RECURRENT_STATES;
    for (int32_t i = 0; i < s->size.n_recent + RECURRENT_BLOCK; i++)
        r->at[i] = i;
}

static float *buffer_of(const recurrent_store *r, int32_t layer, int32_t buffer)
{
    return r->states + (layer * RECURRENT_STATES + buffer) * r->n_state;
}

static float *kept_at(const recurrent_store *r, int32_t slot, int32_t layer)
{
    return r->kept + ((int64_t)slot * r->store.shape.n_layers + layer) * r->n_state;
}

/* The buffers of a layer by their roles: [RECURRENT_STATES]. */
static int32_t *roles_of(const recurrent_store *r, int32_t layer)
{
    return r->buffer + layer * RECURRENT_STATES;
}

static float *state_in(const recurrent_store *r, int32_t layer, int32_t role)
{
    return buffer_of(r, layer, roles_of(r, layer)[role]);
}

static size_t layer_bytes(const recurrent_store *r)
{
    return (size_t)r->n_state * sizeof(float);
}

/* A prompt's rows are pending, or will be. */
static bool is_of_prompt(const text_cache *c, int32_t position)
{
    return cache_n_whole(c) > 0 && position >= cache_end(c);
}

static int32_t record_of(const recurrent_store *r, const text_cache *c, int32_t position)
{
    return is_of_prompt(c, position) ? r->of_prompt[position % RECURRENT_BLOCK]
                                     : r->at[position % r->store.size.n_recent];
}

static uint8_t *record_at(const recurrent_store *r, int32_t layer, int32_t record)
{
    const size_t n_records = (size_t)r->store.size.n_recent + RECURRENT_BLOCK;
    return r->records + ((size_t)layer * n_records + (size_t)record) * r->record_bytes;
}

static int32_t least_base(const recurrent_store *r)
{
    int32_t least = r->base[0];
    for (int32_t i = 1; i < r->store.shape.n_layers; i++)
        least = min_i32(least, r->base[i]);
    return least;
}

/* ---- What becomes of rows ---- */

bool recurrent_has_room(const state_store *s, const text_cache *c, int32_t n, bool whole)
{
    const int32_t end = cache_end(c) + cache_pending(c) + n;
    return whole || end - least_base(const_self(s)) <= s->size.n_recent;
}

static void exchange(int32_t *a, int32_t *b)
{
    const int32_t moved = *b;
    *b = *a;
    *a = moved;
}

/* Exchanges their numbers, not their records. */
void recurrent_move(state_store *s, const text_cache *c, int32_t to, const int32_t *from, int32_t n)
{
    recurrent_store *r = self_of(s);
    for (int32_t i = 0; i < n; i++)
        exchange(&r->at[(cache_end(c) + to + i) % s->size.n_recent],
                 &r->at[(cache_end(c) + from[i]) % s->size.n_recent]);
}

static void cut_layer(recurrent_store *r, const text_cache *c, int32_t layer, int32_t n)
{
    int32_t *roles = roles_of(r, layer);
    const int32_t slot = cache_kept_at(c, n);
    if (r->base[layer] <= n)
        return;
    if (cache_has_previous(c) && n == cache_certain(c) - RECURRENT_BLOCK)
        exchange(&roles[RECURRENT_BASE], &roles[RECURRENT_PREVIOUS]);
    else if (slot >= 0)
        memcpy(state_in(r, layer, RECURRENT_BASE), kept_at(r, slot, layer), layer_bytes(r));
    else
        memset(state_in(r, layer, RECURRENT_BASE), 0, layer_bytes(r));
    assert(slot >= 0 || n == 0 || n == cache_certain(c) - RECURRENT_BLOCK);
    r->base[layer] = n;
}

void recurrent_cut(state_store *s, const text_cache *c, int32_t n)
{
    for (int32_t i = 0; i < s->shape.n_layers; i++)
        cut_layer(self_of(s), c, i, n);
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
    (void)from;
    for (int32_t i = 0; i < s->shape.n_layers; i++) {
        memset(state_in(r, i, RECURRENT_BASE), 0, layer_bytes(r));
        r->base[i] = end;
        for (int32_t p = end; p < to; p++)
            memset(record_at(r, i, record_of(r, c, p)), 0, r->record_bytes);
    }
}

/* Blocks that end among the n rows after the committed ones. */
static int32_t n_ended(const text_cache *c, int32_t n)
{
    return (cache_end(c) + n) / RECURRENT_BLOCK - cache_end(c) / RECURRENT_BLOCK;
}

/* The buffer's role that the i-th state of a prompt has. */
static int32_t role_of_prompt(int32_t i)
{
    return i % 2 ? RECURRENT_PREVIOUS : RECURRENT_SPARE;
}

/* The last state of a prompt becomes base, that before it previous; records of the open block come
 * to their places. */
void recurrent_whole(state_store *s, const text_cache *c, int32_t n)
{
    recurrent_store *r = self_of(s);
    const int32_t ended = n_ended(c, n), end = cache_end(c) + n;
    const int32_t open = end / RECURRENT_BLOCK * RECURRENT_BLOCK;
    for (int32_t p = max_i32(open, cache_end(c)); p < end; p++)
        exchange(&r->at[p % s->size.n_recent], &r->of_prompt[p % RECURRENT_BLOCK]);
    for (int32_t i = 0; i < s->shape.n_layers && ended > 0; i++) {
        int32_t *roles = roles_of(r, i), last = role_of_prompt(ended - 1);
        exchange(&roles[RECURRENT_BASE], &roles[last]);
        if (last == RECURRENT_PREVIOUS || ended == 1) /* what is in its place is the older one */
            exchange(&roles[RECURRENT_PREVIOUS], &roles[RECURRENT_SPARE]);
        r->base[i] = open;
    }
}

void recurrent_keep(state_store *s, const text_cache *c, int32_t slot, bool previous)
{
    const recurrent_store *r = const_self(s);
    (void)c;
    for (int32_t i = 0; i < s->shape.n_layers; i++)
        memcpy(kept_at(r, slot, i), state_in(r, i, previous ? RECURRENT_PREVIOUS : RECURRENT_BASE),
               layer_bytes(r));
}

/* ---- A unit's walk ---- */

static int64_t unit_numbers(const recurrent_walk *w)
{
    return w->store->n_state / w->store->n_units;
}

/* The unit's part of the state in a role. */
static float *part_of(const recurrent_walk *w, int32_t role)
{
    return buffer_of(w->store, w->layer, w->buffer[role]) + w->unit * unit_numbers(w);
}

static void end_block(const recurrent_walk *w, float *to, const float *from,
                      uint8_t *const records[RECURRENT_BLOCK])
{
    const recurrent_store *r = w->store;
    class_of(r->store.class)->end(&r->store.shape, r->kernels, w->unit, to, from, records);
}

/* Keeps the state at a position where the cache keeps states. */
static void keep_regular(const recurrent_walk *w, int32_t position, const float *state)
{
    const int32_t slot = cache_regular_slot(w->cache, position);
    if (slot >= 0)
        memcpy(kept_at(w->store, slot, w->layer) + w->unit * unit_numbers(w), state,
               (size_t)unit_numbers(w) * sizeof *state);
}

/* Base takes turns with previous. */
static void advance(recurrent_walk *w, int32_t end)
{
    uint8_t *records[RECURRENT_BLOCK];
    for (; w->base < end; w->base += RECURRENT_BLOCK) {
        for (int32_t i = 0; i < RECURRENT_BLOCK; i++)
            records[i] = record_at(w->store, w->layer, record_of(w->store, w->cache, w->base + i));
        end_block(w, part_of(w, RECURRENT_PREVIOUS), part_of(w, RECURRENT_BASE), records);
        exchange(&w->buffer[RECURRENT_PREVIOUS], &w->buffer[RECURRENT_BASE]);
        keep_regular(w, w->base + RECURRENT_BLOCK, part_of(w, RECURRENT_BASE));
    }
}

static void walk_from(recurrent_walk *w)
{
    memcpy(w->buffer, roles_of(w->store, w->layer), sizeof w->buffer);
    w->base = w->store->base[w->layer];
    w->made = w->made_by = -1;
    w->n = 0;
}

void recurrent_walk_begin(recurrent_walk *w, recurrent_rows_fn *compute, void *user)
{
    w->compute = compute;
    w->user = user;
    walk_from(w);
    advance(w, cache_certain(w->cache));
}

void recurrent_walk_end(recurrent_walk *w)
{
    if (w->n > 0)
        w->compute(w->user, w->thread, w->unit, w->state, w->row, w->n);
    w->n = 0;
}

void recurrent_advanced(recurrent_store *r, const text_cache *c, int32_t layer)
{
    int32_t *roles = roles_of(r, layer);
    if ((cache_certain(c) - r->base[layer]) / RECURRENT_BLOCK % 2)
        exchange(&roles[RECURRENT_PREVIOUS], &roles[RECURRENT_BASE]);
    r->base[layer] = max_i32(r->base[layer], cache_certain(c));
}

/* All layers, in one thread. */
void recurrent_settle(state_store *s, const text_cache *c, int32_t end)
{
    recurrent_store *r = self_of(s);
    assert(end == cache_certain(c));
    (void)end;
    for (int32_t i = 0; i < s->shape.n_layers; i++) {
        for (int32_t unit = 0; unit < r->n_units && r->base[i] < end; unit++) {
            recurrent_walk w = {.store = r, .cache = c, .layer = i, .unit = unit};
            recurrent_walk_begin(&w, NULL, NULL);
        }
        recurrent_advanced(r, c, i);
    }
}

/* ---- Rows ---- */

int32_t recurrent_before(const text_cache *c, int32_t position)
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
static int32_t path_records(const recurrent_walk *w, int32_t *position,
                            uint8_t *records[RECURRENT_BLOCK])
{
    const int32_t n = depth_of(w->cache, *position) % RECURRENT_BLOCK + 1;
    for (int32_t i = n - 1; i >= 0; i--, *position = recurrent_before(w->cache, *position))
        records[i] = record_at(w->store, w->layer, record_of(w->store, w->cache, *position));
    return n;
}

/* Makes the spare buffer the state after the block that ends with `last`, which is beyond base:
 * from what is there if that is an earlier block of the same path. */
static const float *make_branch(recurrent_walk *w, int32_t last)
{
    const int32_t end = depth_of(w->cache, last) + 1, by = record_of(w->store, w->cache, last);
    float *state = part_of(w, RECURRENT_SPARE);
    const float *from = part_of(w, RECURRENT_BASE);
    if (w->made == end && w->made_by == by)
        return state;
    uint8_t *records[RECURRENT_BLOCK];
    int32_t previous = last, n = path_records(w, &previous, records);
    assert(n == RECURRENT_BLOCK);
    if (end - n > w->base)
        from = make_branch(w, previous);
    end_block(w, state, from, records);
    w->made = end;
    w->made_by = by;
    return state;
}

/* The same of a prompt, whose rows follow each other. Rows before it were walked over. */
static const float *next_of_prompt(recurrent_walk *w, int32_t last)
{
    const int32_t end = last + 1, i = end / RECURRENT_BLOCK - w->base / RECURRENT_BLOCK - 1;
    float *state = part_of(w, role_of_prompt(i));
    uint8_t *records[RECURRENT_BLOCK];
    if (w->made == end)
        return state;
    path_records(w, &last, records);
    end_block(w, state, i ? part_of(w, role_of_prompt(i - 1)) : part_of(w, RECURRENT_BASE),
              records);
    keep_regular(w, end, state);
    w->made = end;
    return state;
}

void recurrent_walk_row(recurrent_walk *w, int32_t position, int32_t row)
{
    recurrent_row new = {.row = row};
    const int32_t begin = depth_of(w->cache, position) / RECURRENT_BLOCK * RECURRENT_BLOCK;
    int32_t last = position;
    new.n = path_records(w, &last, new.records);
    assert(begin >= w->base);
    const float *state = part_of(w, RECURRENT_BASE);
    const bool of_prompt = is_of_prompt(w->cache, position), is_beyond = begin > w->base;
    const bool changes = is_beyond && !of_prompt &&
                         !(w->made == begin && w->made_by == record_of(w->store, w->cache, last));
    if (changes || w->n == RECURRENT_ROWS)
        recurrent_walk_end(w);
    if (is_beyond)
        state = of_prompt ? next_of_prompt(w, last) : make_branch(w, last);
    if (w->n > 0 && w->state != state)
        recurrent_walk_end(w);
    w->state = state;
    w->row[w->n++] = new;
    /* A prompt's block ends with its last row, since its records are used again. */
    if (of_prompt && (position + 1) % RECURRENT_BLOCK == 0) {
        recurrent_walk_end(w);
        next_of_prompt(w, position);
    }
}

const uint8_t *recurrent_record(const recurrent_store *r, const text_cache *c, int32_t layer,
                                int32_t position, const float **base, int32_t *n)
{
    *base = state_in(r, layer, RECURRENT_BASE);
    *n = r->base[layer];
    return position < *n ? NULL : record_at(r, layer, record_of(r, c, position));
}

/* ---- Elsewhere ---- */

/* States have no positions: recurrent_state has them. */
int32_t recurrent_n_pieces(const state_store *s)
{
    (void)s;
    return 0;
}

uint8_t *recurrent_state(const state_store *s, const text_cache *c, int32_t layer, int32_t position)
{
    const recurrent_store *r = const_self(s);
    const int32_t slot = cache_kept_at(c, position);
    const bool previous = cache_has_previous(c) && position == cache_certain(c) - RECURRENT_BLOCK;
    if (position < 0 || position == r->base[layer])
        return (uint8_t *)state_in(r, layer, RECURRENT_BASE);
    if (previous && r->base[layer] == cache_certain(c))
        return (uint8_t *)state_in(r, layer, RECURRENT_PREVIOUS);
    assert(slot >= 0);
    return (uint8_t *)kept_at(r, slot, layer);
}

bool recurrent_is_valid(const state_store *s, const text_cache *c)
{
    const recurrent_store *r = const_self(s);
    bool valid =
        cache_n_whole(c) > 0 || cache_end(c) + cache_pending(c) - least_base(r) <= s->size.n_recent;
    for (int32_t i = 0; valid && i < s->shape.n_layers; i++)
        valid = r->base[i] >= 0 && r->base[i] % RECURRENT_BLOCK == 0 &&
                r->base[i] <= max_i32(cache_certain(c), 0);
    return valid;
}

recurrent_store *recurrent_of(const text_cache *c, int32_t i)
{
    assert(cache_store(c, i)->class->in_blocks);
    return self_of(cache_store(c, i));
}
