/* Moving rows of the cache: see kv.h. */
#include "model/kv.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"
#include "model/kv_file.h"

static size_t side_bytes(const model_shape *s, int32_t n_slots, kv_format format)
{
    return (size_t)s->n_layers * (size_t)s->n_heads_kv *
           kv_head_bytes(format, n_slots, s->head_dim);
}

size_t kv_bytes(const model_shape *s, int32_t n_slots, int32_t max_pending, kv_format format)
{
    return 2 * arena_size(side_bytes(s, n_slots, format)) +
           2 * arena_size((size_t)max_pending * sizeof(int32_t));
}

void kv_init(kv_cache *kv, const model_shape *s, int32_t n_slots, int32_t max_pending,
             kv_format format, arena *a)
{
    *kv = (kv_cache){.n_layers = s->n_layers,
                     .n_heads_kv = s->n_heads_kv,
                     .head_dim = s->head_dim,
                     .n_slots = n_slots,
                     .max_pending = max_pending,
                     .format = format,
                     .head_bytes = kv_head_bytes(format, n_slots, s->head_dim)};
    kv->keys = arena_take(a, side_bytes(s, n_slots, format));
    kv->values = arena_take(a, side_bytes(s, n_slots, format));
    kv->parent = arena_take(a, (size_t)max_pending * sizeof(int32_t));
    kv->depth = arena_take(a, (size_t)max_pending * sizeof(int32_t));
}

static void move_row(kv_cache *kv, int32_t layer, int32_t head, int32_t to, int32_t from)
{
    size_t at = kv_at(kv, layer, head);
    kv_move_key(kv->format, kv->keys + at, to, from, kv->head_dim);
    kv_move_value(kv->format, kv->values + at, to, from, kv->head_dim);
}

bool kv_is_valid(const kv_cache *kv)
{
    bool valid = kv->n_committed >= 0 && kv->n_pending >= 0 && kv->n_pending <= kv->max_pending &&
                 kv_pending_slot(kv) + kv->n_pending <= kv->n_slots &&
                 (kv->view_slot == 0 || kv->n_committed <= kv->view_slot) && kv->n_away >= 0 &&
                 kv->n_away <= kv->n_committed;
    valid = valid && (kv->file ? kv->n_away % kv->chunk == 0 : kv->n_away == 0);
    for (int32_t i = 0; valid && i < kv->n_pending; i++) {
        int32_t parent = kv->parent[i];
        valid =
            parent >= -1 && parent < i && kv->depth[i] == (parent < 0 ? 0 : kv->depth[parent] + 1);
    }
    return valid;
}

/* The pending rows from[0..n) move to the slots to, to + 1, ...: from ascends and from[i] >= i, so
 * that a row never overwrites one that is still to be moved. */
static void move_rows(kv_cache *kv, int32_t to, const int32_t *from, int32_t n)
{
    for (int32_t layer = 0; layer < kv->n_layers; layer++)
        for (int32_t head = 0; head < kv->n_heads_kv; head++)
            for (int32_t i = 0; i < n; i++)
                if (to + i != kv_pending_slot(kv) + from[i])
                    move_row(kv, layer, head, to + i, kv_pending_slot(kv) + from[i]);
}

/* Where a row of before will be among those that are kept; -1: it becomes the committed end. */
static int32_t place_of(int32_t row, const int32_t *keep, int32_t n_keep, int32_t last)
{
    for (int32_t i = 0; i < n_keep && keep[i] <= row; i++)
        if (keep[i] == row)
            return i;
    assert(row == last);
    (void)last;
    return -1;
}

void kv_view_init(kv_cache *view, kv_cache *of, int32_t n_slots, int32_t max_pending, arena *a)
{
    *view = *of;
    of->n_slots -= n_slots;
    view->view_slot = of->n_slots;
    view->max_pending = max_pending;
    view->parent = arena_take(a, (size_t)max_pending * sizeof(int32_t));
    view->depth = arena_take(a, (size_t)max_pending * sizeof(int32_t));
}

size_t kv_view_bytes(int32_t max_pending)
{
    return 2 * arena_size((size_t)max_pending * sizeof(int32_t));
}

void kv_view_keep(kv_cache *view, int32_t n_committed, const int32_t *keep, int32_t n_keep)
{
    int32_t n_more = n_committed - view->n_committed;
    assert(view->view_slot && kv_is_valid(view) && n_more >= 0);
    move_rows(view, view->view_slot, keep, n_keep);
    for (int32_t i = 0; i < n_keep; i++) {
        int32_t parent = view->parent[keep[i]];
        assert(i == 0 || keep[i] > keep[i - 1]);
        view->depth[i] = view->depth[keep[i]] - n_more;
        view->parent[i] = view->depth[i] > 0 ? place_of(parent, keep, i, -1) : -1;
    }
    view->n_committed = n_committed;
    view->n_pending = n_keep;
    assert(kv_is_valid(view));
}

/* path NULL: the first n. */
static void note(kv_trail *t, const int32_t *path, int32_t n)
{
    if (!t)
        return;
    assert(n <= t->max);
    t->n = n;
    for (int32_t i = 0; i < n; i++)
        t->path[i] = path ? path[i] : i;
}

void kv_reroot(kv_cache *kv, const int32_t *path, int32_t n_path, const int32_t *keep,
               int32_t n_keep)
{
    assert(kv_is_valid(kv) && !kv->view_slot);
    for (int32_t i = 0; i < n_path; i++)
        assert(path[i] < kv->n_pending && kv->parent[path[i]] == (i ? path[i - 1] : -1));
    int32_t last = n_path ? path[n_path - 1] : -1;
    note(kv->trail, path, n_path);
    move_rows(kv, kv_pending_slot(kv), path, n_path);
    /* Rows below the path's last one come after it: the moves before have not touched them. */
    move_rows(kv, kv_pending_slot(kv) + n_path, keep, n_keep);
    for (int32_t i = 0; i < n_keep; i++) {
        assert(keep[i] > last && keep[i] < kv->n_pending && (i == 0 || keep[i] > keep[i - 1]));
        kv->depth[i] = kv->depth[keep[i]] - n_path; /* keep[i] >= i: not overwritten yet */
        kv->parent[i] = place_of(kv->parent[keep[i]], keep, i, last);
    }
    kv->n_committed += n_path;
    kv->n_pending = n_keep;
    assert(kv_is_valid(kv));
}

void kv_commit(kv_cache *kv, const int32_t *path, int32_t n)
{
    if (path) {
        kv_reroot(kv, path, n, NULL, 0);
        return;
    }
    assert(n <= kv->n_pending && (n == 0 || kv->depth[n - 1] == n - 1));
    note(kv->trail, NULL, n);
    kv->n_committed += n;
    kv->n_pending = 0;
    assert(kv_is_valid(kv));
}

/* Makes up the slots of positions [n_committed, n). */
static void make_up(kv_cache *kv, int32_t n)
{
    enum { SMALL = 0x2c }; /* as every byte: 0.065 as f16, 2.9 as q8_0, 2.4e-12 as float */
    size_t from = (size_t)(kv_pending_slot(kv) / KV_GROUP) * kv_group_bytes(kv);
    size_t bytes = kv_head_bytes(kv->format, n - kv->n_away, kv->head_dim) - from;
    for (int32_t layer = 0; layer < kv->n_layers; layer++)
        for (int32_t head = 0; head < kv->n_heads_kv; head++) {
            memset(kv->keys + kv_at(kv, layer, head) + from, SMALL, bytes);
            memset(kv->values + kv_at(kv, layer, head) + from, SMALL, bytes);
        }
    kv->n_committed = n;
}

drey_status kv_make_up(kv_cache *kv, int32_t n, drey_error *err)
{
    kv->n_committed = kv->n_pending = kv->n_away = kv->n_back = 0;
    while (kv->n_committed < n) {
        int32_t more = n - kv->n_committed;
        if (kv->file)
            more = min_i32(more, kv->max_pending);
        TRY(kv_make_room(kv, more, err));
        assert(kv_pending_slot(kv) + more <= kv->n_slots);
        make_up(kv, kv->n_committed + more);
    }
    return DREY_OK;
}

void kv_restore(kv_cache *kv, int32_t n)
{
    assert(n >= 0 && n <= kv->n_slots && !kv->view_slot && kv->n_away == 0);
    kv->n_committed = n;
    kv->n_pending = 0;
}

/* From the first group that is not whole up to n. */
void kv_copy(kv_cache *to, const kv_cache *from, int32_t n)
{
    int32_t first = to->n_committed / KV_GROUP, last = ceil_div_i32(n, KV_GROUP);
    size_t n_bytes = (size_t)(last - first) * kv_group_bytes(to);
    assert(n >= to->n_committed && n <= from->n_committed);
    for (int32_t i = 0; i < kv_n_pieces(to); i++)
        memcpy(kv_piece(to, i, first), kv_piece(from, i, first), n_bytes);
    kv_restore(to, n);
}

void kv_truncate(kv_cache *kv, int32_t n_committed)
{
    assert(n_committed >= 0 && n_committed <= kv->n_committed);
    if (kv->file)
        kv_file_cut(kv, n_committed);
    kv->n_committed = n_committed;
    kv->n_pending = 0;
}
