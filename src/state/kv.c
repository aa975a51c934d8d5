/* Slots of keys and values: see kv.h. */
#include "state/kv.h"

#include <string.h>

#include "common/num.h"
#include "state/kv_file.h"

static kv_store *self_of(state_store *s)
{
    return (kv_store *)(void *)s;
}

static const kv_store *const_self(const state_store *s)
{
    return (const kv_store *)(const void *)s;
}

static size_t side_bytes(const store_shape *s, int32_t n_slots)
{
    return (size_t)s->n_layers * (size_t)s->n_heads *
           kv_head_bytes(s->format, n_slots, s->head_dim);
}

static size_t bytes(const store_class *class, const store_shape *s, const store_size *size)
{
    (void)class;
    return 2 * arena_size(side_bytes(s, size->n_slots));
}

static void init(state_store *s, arena *a)
{
    kv_store *kv = self_of(s);
    kv->head_bytes = kv_head_bytes(s->shape.format, s->size.n_slots, s->shape.head_dim);
    kv->keys = arena_take(a, side_bytes(&s->shape, s->size.n_slots));
    kv->values = arena_take(a, side_bytes(&s->shape, s->size.n_slots));
}

static void view(state_store *s, state_store *of, int32_t n_slots)
{
    of->size.n_slots -= n_slots;
    self_of(s)->view_slot = of->size.n_slots;
}

static bool has_room(const state_store *s, const text_cache *c, int32_t n)
{
    return kv_pending_slot(const_self(s), c) + cache_pending(c) + n <= s->size.n_slots;
}

static drey_status make_room(state_store *s, const text_cache *c, int32_t n, drey_error *err)
{
    kv_store *kv = self_of(s);
    return kv->file ? kv_file_make_room(kv, c, n, err) : DREY_OK;
}

static void move_row(kv_store *kv, int32_t layer, int32_t head, int32_t to, int32_t from)
{
    const store_shape *s = &kv->store.shape;
    size_t at = kv_at(kv, layer, head);
    kv_move_key(s->format, kv->keys + at, to, from, s->head_dim);
    kv_move_value(s->format, kv->values + at, to, from, s->head_dim);
}

static void move(state_store *s, const text_cache *c, int32_t to, const int32_t *from, int32_t n)
{
    kv_store *kv = self_of(s);
    int32_t first = kv_pending_slot(kv, c);
    for (int32_t layer = 0; layer < s->shape.n_layers; layer++)
        for (int32_t head = 0; head < s->shape.n_heads; head++)
            for (int32_t i = 0; i < n; i++)
                if (to + i != from[i])
                    move_row(kv, layer, head, first + to + i, first + from[i]);
}

static void cut(state_store *s, const text_cache *c, int32_t n)
{
    if (self_of(s)->file)
        kv_file_cut(self_of(s), c, n);
}

static void make_up(state_store *s, const text_cache *c, int32_t from, int32_t to)
{
    enum { SMALL = 0x2c }; /* as every byte: 0.065 as f16, 2.9 as q8_0, 2.4e-12 as float */
    const kv_store *kv = self_of(s);
    const store_shape *shape = &s->shape;
    size_t at = (size_t)((from - kv->n_away) / KV_GROUP) * kv_store_group(kv);
    size_t n = kv_head_bytes(shape->format, to - kv->n_away, shape->head_dim) - at;
    (void)c;
    for (int32_t layer = 0; layer < shape->n_layers; layer++)
        for (int32_t head = 0; head < shape->n_heads; head++) {
            memset(kv->keys + kv_at(kv, layer, head) + at, SMALL, n);
            memset(kv->values + kv_at(kv, layer, head) + at, SMALL, n);
        }
}

/* Of each layer the keys of all heads, then the values. */
static int32_t n_pieces(const state_store *s)
{
    return 2 * s->shape.n_layers * s->shape.n_heads;
}

static size_t piece_bytes(const state_store *s, int32_t n_positions)
{
    return kv_head_bytes(s->shape.format, n_positions, s->shape.head_dim);
}

static uint8_t *piece(const state_store *s, int32_t piece, int32_t group)
{
    const kv_store *kv = const_self(s);
    int32_t side = piece / s->shape.n_heads, head = piece % s->shape.n_heads;
    uint8_t *base = side % 2 ? kv->values : kv->keys;
    return base + kv_at(kv, side / 2, head) + (size_t)group * kv_store_group(kv);
}

static bool is_valid(const state_store *s, const text_cache *c)
{
    const kv_store *kv = const_self(s);
    bool valid = kv_pending_slot(kv, c) + cache_pending(c) <= s->size.n_slots && kv->n_away >= 0 &&
                 kv->n_away <= cache_end(c) &&
                 (kv->view_slot == 0 || cache_end(c) <= kv->view_slot);
    return valid && (kv->file ? kv->n_away % kv->chunk == 0 : kv->n_away == 0);
}

const store_class kv_class = {.name = "keys and values",
                              .struct_bytes = sizeof(kv_store),
                              .bytes = bytes,
                              .init = init,
                              .view = view,
                              .has_room = has_room,
                              .make_room = make_room,
                              .move = move,
                              .cut = cut,
                              .make_up = make_up,
                              .n_pieces = n_pieces,
                              .piece_bytes = piece_bytes,
                              .piece = piece,
                              .is_valid = is_valid};
