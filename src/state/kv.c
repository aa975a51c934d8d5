/* Slots of keys and values: see kv.h. */
#include "state/kv.h"

#include <string.h>

#include "state/kv_file.h"

static kv_store *self_of(state_store *s)
{
    return (kv_store *)(void *)s;
}

static const kv_store *const_self(const state_store *s)
{
    return (const kv_store *)(const void *)s;
}

/* Bytes of a side, in all layers. */
static size_t side_bytes(const store_shape *s, int32_t side, int32_t n_slots)
{
    return (size_t)s->n_layers * (size_t)s->n_heads * kv_bytes(s, side, n_slots);
}

static size_t bytes(const store_class *class, const store_shape *s, const store_size *size)
{
    size_t total = 0;
    (void)class;
    for (int32_t side = 0; side < kv_n_sides(s); side++)
        total += arena_size(side_bytes(s, side, size->n_slots));
    return total;
}

static void init(state_store *s, arena *a)
{
    const store_shape *shape = &s->shape;
    for (int32_t side = 0; side < kv_n_sides(shape); side++)
        self_of(s)->side[side] =
            (kv_side){.numbers = arena_take(a, side_bytes(shape, side, s->size.n_slots)),
                      .head_bytes = kv_bytes(shape, side, s->size.n_slots)};
}

static void view(state_store *s, state_store *of, int32_t n_slots)
{
    of->size.n_slots -= n_slots;
    self_of(s)->view_slot = of->size.n_slots;
}

static bool has_room(const state_store *s, const text_cache *c, int32_t n, bool whole)
{
    (void)whole;
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
    kv_move_key(s->format, kv_at(kv, KV_KEYS, layer, head), to, from, s->k_dim);
    if (!s->latent)
        kv_move_value(s->format, kv_at(kv, KV_VALUES, layer, head), to, from, s->v_dim);
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
    const int32_t first = (from - kv->n_disk) / KV_GROUP * KV_GROUP, last = to - kv->n_disk;
    (void)c;
    for (int32_t side = 0; side < kv_n_sides(shape); side++) {
        size_t at = kv_bytes(shape, side, first), n = kv_bytes(shape, side, last) - at;
        for (int32_t layer = 0; layer < shape->n_layers; layer++)
            for (int32_t head = 0; head < shape->n_heads; head++)
                memset(kv_at(kv, side, layer, head) + at, SMALL, n);
    }
}

/* Counts pieces: for each layer the keys of all heads, then the values. */
static int32_t n_pieces(const state_store *s)
{
    return kv_n_sides(&s->shape) * s->shape.n_layers * s->shape.n_heads;
}

static int32_t side_of(const state_store *s, int32_t piece)
{
    return piece / s->shape.n_heads % kv_n_sides(&s->shape);
}

static size_t piece_bytes(const state_store *s, int32_t piece, int32_t n_positions)
{
    return kv_bytes(&s->shape, side_of(s, piece), n_positions);
}

static uint8_t *piece(const state_store *s, int32_t piece, int32_t group)
{
    const int32_t side = side_of(s, piece), n_heads = s->shape.n_heads;
    uint8_t *head =
        kv_at(const_self(s), side, piece / n_heads / kv_n_sides(&s->shape), piece % n_heads);
    return head + kv_bytes(&s->shape, side, group * KV_GROUP);
}

static bool is_valid(const state_store *s, const text_cache *c)
{
    const kv_store *kv = const_self(s);
    bool valid = kv_pending_slot(kv, c) + cache_pending(c) <= s->size.n_slots && kv->n_disk >= 0 &&
                 kv->n_disk <= cache_end(c) &&
                 (kv->view_slot == 0 || cache_end(c) <= kv->view_slot);
    return valid && (kv->file ? kv->n_disk % kv->chunk == 0 : kv->n_disk == 0);
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
