/* Positions and pending rows: see cache.h. */
#include "state/cache.h"
#include "state/cache_room.h"
#include "state/kept_positions.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"

/* ---- Opening ---- */

static size_t tree_bytes(int32_t max_pending)
{
    return 2 * arena_size((size_t)max_pending * sizeof(int32_t));
}

/* Older states. */
static int32_t n_kept(const cache_spec *spec, int32_t n_slots)
{
    const int32_t n_regular = spec->stride ? n_slots / spec->stride : 0;
    return spec->in_blocks ? CACHE_MARKS + n_regular : 0;
}

/* After a pass that went to its end a layer lacks the states of what that pass has carried on and
 * of what it has added, then of what has been deferred since; and the next rows are pending. */
static store_size size_of(const cache_spec *spec, int32_t n_slots, int32_t max_pending)
{
    const int32_t max_tree = spec->max_tree ? spec->max_tree : max_pending;
    return (store_size){.n_slots = n_slots,
                        .n_recent = STORE_BLOCK - 1 + 2 * (spec->max_deferred + max_tree),
                        .n_kept = n_kept(spec, n_slots)};
}

size_t cache_bytes(const cache_spec *spec, int32_t n_slots, int32_t max_pending)
{
    const store_size size = size_of(spec, n_slots, max_pending);
    size_t total = tree_bytes(max_pending) + arena_size((size_t)size.n_kept * sizeof(int32_t));
    for (int32_t i = 0; i < spec->n_stores; i++) {
        const store_class *class = spec->store[i].class;
        total +=
            arena_size(class->struct_bytes) + class->bytes(class, &spec->store[i].shape, &size);
    }
    return total;
}

size_t cache_states_bytes(const cache_spec *spec, int32_t n_slots, int32_t max_pending)
{
    const store_size size = size_of(spec, n_slots, max_pending);
    size_t total = 0;
    for (int32_t i = 0; i < spec->n_stores; i++)
        if (spec->store[i].class->in_blocks)
            total +=
                spec->store[i].class->bytes(spec->store[i].class, &spec->store[i].shape, &size);
    return total;
}

static void take_tree(text_cache *c, int32_t max_pending, arena *a)
{
    c->max_pending = max_pending;
    c->parent = arena_take(a, (size_t)max_pending * sizeof(int32_t));
    c->depth = arena_take(a, (size_t)max_pending * sizeof(int32_t));
}

void cache_init(text_cache *c, const cache_spec *spec, int32_t n_slots, int32_t max_pending,
                arena *a)
{
    *c = (text_cache){.n_stores = spec->n_stores, .in_blocks = spec->in_blocks};
    take_tree(c, max_pending, a);
    c->states.stride = spec->stride;
    c->states.n_kept = n_kept(spec, n_slots);
    c->states.kept = arena_take(a, (size_t)c->states.n_kept * sizeof(int32_t));
    for (int32_t i = 0; i < spec->n_stores; i++) {
        const store_class *class = spec->store[i].class;
        state_store *s = c->store[i] = arena_take(a, class->struct_bytes);
        if (!s)
            return;
        memset(s, 0, class->struct_bytes);
        *s = (state_store){.class = class,
                           .shape = spec->store[i].shape,
                           .size = size_of(spec, n_slots, max_pending)};
        class->init(s, a);
    }
}

void cache_view_init(text_cache *view, text_cache *of, int32_t n_slots, int32_t max_pending,
                     arena *a)
{
    *view = (text_cache){.n_committed = of->n_committed,
                         .is_view = true,
                         .cross = of->cross,
                         .n_stores = of->n_stores};
    take_tree(view, max_pending, a);
    for (int32_t i = 0; i < of->n_stores; i++) {
        const store_class *class = of->store[i]->class;
        state_store *s = view->store[i] = arena_take(a, class->struct_bytes);
        if (!s)
            return;
        memcpy(s, of->store[i], class->struct_bytes);
        assert(class->view);
        class->view(s, of->store[i], n_slots);
    }
}

size_t cache_view_bytes(const cache_spec *spec, int32_t max_pending)
{
    size_t total = tree_bytes(max_pending);
    for (int32_t i = 0; i < spec->n_stores; i++)
        total += arena_size(spec->store[i].class->struct_bytes);
    return total;
}

void cache_set_cross(text_cache *c, const text_cache *cross)
{
    c->cross = cross;
}

void cache_set_trail(text_cache *c, cache_trail *trail)
{
    c->trail = trail;
}

bool cache_is_in_file(const text_cache *c)
{
    bool any = false;
    for (int32_t i = 0; i < c->n_stores; i++)
        any = any || c->store[i]->in_file;
    return any;
}

bool cache_is_valid(const text_cache *c)
{
    bool valid = c->n_committed >= 0 && c->n_pending >= 0 && c->n_pending <= c->max_pending &&
                 (c->is_view || c->states.n_certain <= c->n_committed);
    for (int32_t i = 0; valid && i < c->states.n_kept; i++)
        valid = c->states.kept[i] <= c->states.n_certain;
    for (int32_t i = 0; valid && i < c->n_pending; i++) {
        int32_t parent = c->parent[i];
        valid =
            parent >= -1 && parent < i && c->depth[i] == (parent < 0 ? 0 : c->depth[parent] + 1);
    }
    for (int32_t i = 0; valid && i < c->n_stores; i++)
        valid = c->store[i]->class->is_valid(c->store[i], c);
    return valid;
}

/* ---- Rows of a pass ---- */

static int32_t whole_blocks(int32_t n)
{
    return n / STORE_BLOCK * STORE_BLOCK;
}

/* States will be at `end`, a multiple of STORE_BLOCK, before a row after it is computed. */
static void make_certain(text_cache *c, int32_t end)
{
    cache_states *s = &c->states;
    if (end <= s->n_certain)
        return;
    for (int32_t p = s->n_certain + STORE_BLOCK; p <= end; p += STORE_BLOCK) {
        const int32_t slot = cache_regular_slot(c, p);
        if (slot >= 0)
            s->kept[slot] = p;
    }
    s->n_certain = end;
    s->has_previous = true;
}

/* Keeps a state of the prompt that has ended, in place of the oldest mark. */
static void mark(text_cache *c)
{
    cache_states *s = &c->states;
    const int32_t position = s->n_certain - (s->has_previous ? STORE_BLOCK : 0);
    int32_t slot = 0;
    for (int32_t i = 1; i < CACHE_MARKS; i++)
        if (s->kept[i] < s->kept[slot])
            slot = i;
    if (position == 0 || cache_kept_at(c, position) >= 0)
        return;
    for (int32_t i = 0; i < c->n_stores; i++)
        if (c->store[i]->class->keep)
            c->store[i]->class->keep(c->store[i], c, slot, s->has_previous);
    s->kept[slot] = position;
}

void cache_pass_begins(text_cache *c, int32_t n_deferred, int32_t n_whole)
{
    cache_states *s = &c->states;
    assert(n_whole == 0 || (n_deferred == 0 && c->n_pending == 0));
    make_certain(c, whole_blocks(c->n_committed - n_deferred));
    if (!c->in_blocks)
        return;
    if (n_whole == 0 && s->after_prompt)
        mark(c);
    s->after_prompt = s->after_prompt && n_whole > 0;
    s->n_whole = n_whole;
    /* The place of the state before the newest is needed. */
    if (whole_blocks(c->n_committed + n_whole) - s->n_certain > STORE_BLOCK)
        s->has_previous = false;
}

static bool has_room(const text_cache *c, int32_t n, bool whole)
{
    bool has = c->n_pending + n <= c->max_pending;
    for (int32_t i = 0; has && i < c->n_stores; i++)
        has = c->store[i]->class->has_room(c->store[i], c, n, whole);
    return has;
}

bool cache_has_room(const text_cache *c, int32_t n)
{
    return has_room(c, n, false);
}

bool cache_has_room_whole(const text_cache *c, int32_t n)
{
    return has_room(c, n, true);
}

drey_status cache_make_room(text_cache *c, int32_t n, drey_error *err)
{
    for (int32_t i = 0; i < c->n_stores; i++)
        if (c->store[i]->class->make_room)
            TRY(c->store[i]->class->make_room(c->store[i], c, n, err));
    return DREY_OK;
}

int32_t cache_place_row(text_cache *c, int32_t row, int32_t parent)
{
    assert(parent >= -1 && parent < row);
    c->parent[row] = parent;
    c->depth[row] = parent < 0 ? 0 : c->depth[parent] + 1;
    return c->depth[row];
}

void cache_path(const text_cache *c, int32_t row, int32_t *path, int32_t n)
{
    for (; n > 0; row = c->parent[row])
        path[--n] = row;
}

void cache_add(text_cache *c, int32_t n)
{
    c->n_pending += n;
}

bool cache_is_path(const text_cache *c, const int32_t *path, int32_t n)
{
    bool is = n <= c->n_pending;
    for (int32_t i = 0; is && i < n; i++)
        is = path[i] >= 0 && path[i] < c->n_pending && c->parent[path[i]] == (i ? path[i - 1] : -1);
    return is;
}

/* ---- What becomes of pending rows ---- */

static void move_rows(text_cache *c, int32_t to, const int32_t *from, int32_t n)
{
    for (int32_t i = 0; i < c->n_stores && n > 0; i++)
        c->store[i]->class->move(c->store[i], c, to, from, n);
}

/* Returns the index among kept rows of an earlier row; -1: it becomes the committed end. */
static int32_t place_of(int32_t row, const int32_t *keep, int32_t n_keep, int32_t last)
{
    for (int32_t i = 0; i < n_keep && keep[i] <= row; i++)
        if (keep[i] == row)
            return i;
    assert(row == last);
    (void)last;
    return -1;
}

/* path NULL: the first n. */
static void note(cache_trail *t, const int32_t *path, int32_t n)
{
    if (!t)
        return;
    assert(n <= t->max);
    t->n = n;
    for (int32_t i = 0; i < n; i++)
        t->path[i] = path ? path[i] : i;
}

/* Commits n of a prompt's rows: all that are pending, or none. Returns whether they are a prompt's
 * and stay. */
static bool end_whole(text_cache *c, int32_t n)
{
    const bool stay = c->states.n_whole > 0 && n > 0;
    if (stay) {
        assert(n == c->n_pending && n == c->states.n_whole);
        for (int32_t i = 0; i < c->n_stores; i++)
            if (c->store[i]->class->whole)
                c->store[i]->class->whole(c->store[i], c, n);
        c->n_committed += n;
        c->n_pending = 0;
        make_certain(c, whole_blocks(c->n_committed));
        c->states.after_prompt = true;
    }
    c->states.n_whole = 0;
    assert(!stay || cache_is_valid(c));
    return stay;
}

void cache_reroot(text_cache *c, const int32_t *path, int32_t n_path, const int32_t *keep,
                  int32_t n_keep)
{
    assert(cache_is_valid(c) && !c->is_view && cache_is_path(c, path, n_path));
    int32_t last = n_path ? path[n_path - 1] : -1;
    note(c->trail, path, n_path);
    if (end_whole(c, n_path))
        return;
    move_rows(c, 0, path, n_path);
    /* Rows below the path's last one come after it: the moves before have not touched them. */
    move_rows(c, n_path, keep, n_keep);
    for (int32_t i = 0; i < n_keep; i++) {
        assert(keep[i] > last && keep[i] < c->n_pending && (i == 0 || keep[i] > keep[i - 1]));
        c->depth[i] = c->depth[keep[i]] - n_path; /* keep[i] >= i: not overwritten yet */
        c->parent[i] = place_of(c->parent[keep[i]], keep, i, last);
    }
    c->n_committed += n_path;
    c->n_pending = n_keep;
    assert(cache_is_valid(c));
}

void cache_commit(text_cache *c, const int32_t *path, int32_t n)
{
    if (path) {
        cache_reroot(c, path, n, NULL, 0);
        return;
    }
    assert(n <= c->n_pending && (n == 0 || c->depth[n - 1] == n - 1));
    note(c->trail, NULL, n);
    if (end_whole(c, n))
        return;
    c->n_committed += n;
    c->n_pending = 0;
    assert(cache_is_valid(c));
}

void cache_drop(text_cache *c)
{
    c->n_pending = 0;
    c->states.n_whole = 0;
}

/* The last position up to n, which is before n_certain, at which there is a state. */
static int32_t state_before(const text_cache *c, int32_t n)
{
    const cache_states *s = &c->states;
    int32_t best =
        s->has_previous && s->n_certain - STORE_BLOCK <= n ? s->n_certain - STORE_BLOCK : 0;
    for (int32_t i = 0; i < s->n_kept; i++)
        if (s->kept[i] <= n)
            best = max_i32(best, s->kept[i]);
    return best;
}

/* States are at n at most. */
static void forget_states(text_cache *c, int32_t n)
{
    cache_states *s = &c->states;
    for (int32_t i = 0; i < s->n_kept; i++)
        s->kept[i] = s->kept[i] <= n ? s->kept[i] : 0;
    if (n <= s->n_certain)
        s->has_previous = false;
    s->n_certain = min_i32(s->n_certain, whole_blocks(n));
    s->n_whole = 0;
    s->after_prompt = false;
}

int32_t cache_cut(text_cache *c, int32_t n)
{
    assert(n >= 0 && n <= c->n_committed);
    c->states.n_whole = 0;
    if (c->in_blocks && n < c->states.n_certain)
        n = state_before(c, n);
    for (int32_t i = 0; i < c->n_stores; i++)
        if (c->store[i]->class->cut)
            c->store[i]->class->cut(c->store[i], c, n);
    c->n_committed = n;
    c->n_pending = 0;
    forget_states(c, n);
    return n;
}

void cache_clear(text_cache *c)
{
    int32_t none = cache_cut(c, 0);
    (void)none;
}

void cache_view_keep(text_cache *view, int32_t end, const int32_t *keep, int32_t n_keep)
{
    int32_t n_more = end - view->n_committed;
    assert(view->is_view && cache_is_valid(view) && n_more >= 0);
    move_rows(view, 0, keep, n_keep);
    for (int32_t i = 0; i < n_keep; i++) {
        int32_t parent = view->parent[keep[i]];
        assert(i == 0 || keep[i] > keep[i - 1]);
        view->depth[i] = view->depth[keep[i]] - n_more;
        view->parent[i] = view->depth[i] > 0 ? place_of(parent, keep, i, -1) : -1;
    }
    view->n_committed = end;
    view->n_pending = n_keep;
    assert(cache_is_valid(view));
}

void cache_view_sync(text_cache *view, int32_t end)
{
    assert(view->is_view);
    view->n_committed = end;
    view->n_pending = 0;
}

/* ---- Positions that come from elsewhere ---- */

drey_status cache_make_up(text_cache *c, int32_t n, drey_error *err)
{
    cache_clear(c);
    while (c->n_committed < n) {
        int32_t more = n - c->n_committed;
        if (cache_is_in_file(c))
            more = min_i32(more, c->max_pending);
        TRY(cache_make_room(c, more, err));
        for (int32_t i = 0; i < c->n_stores; i++)
            c->store[i]->class->make_up(c->store[i], c, c->n_committed, c->n_committed + more);
        c->n_committed += more;
        c->states.n_certain = whole_blocks(c->n_committed);
    }
    return DREY_OK;
}

int32_t cache_whole(const text_cache *c, int32_t n, int32_t n_deferred)
{
    const int32_t settled = max_i32(c->states.n_certain, whole_blocks(c->n_committed - n_deferred));
    if (!c->in_blocks)
        return n;
    if (n >= settled)
        return settled;
    if (settled > c->states.n_certain && n >= settled - STORE_BLOCK)
        return settled - STORE_BLOCK;
    return n >= c->states.n_certain ? c->states.n_certain : state_before(c, n);
}

void cache_settle(text_cache *c, int32_t n_deferred)
{
    make_certain(c, whole_blocks(c->n_committed - n_deferred));
    for (int32_t i = 0; i < c->n_stores; i++)
        if (c->store[i]->class->settle)
            c->store[i]->class->settle(c->store[i], c, c->states.n_certain);
}

void cache_restore(text_cache *c, int32_t n)
{
    assert(n >= 0 && !c->is_view && !cache_is_in_file(c) &&
           (!c->in_blocks || n == whole_blocks(n)));
    c->n_committed = n;
    c->n_pending = 0;
    forget_states(c, n);
    c->states.n_certain = whole_blocks(n);
    c->states.has_previous = false;
    for (int32_t i = 0; i < c->n_stores; i++)
        if (c->store[i]->class->restored)
            c->store[i]->class->restored(c->store[i], c, c->n_committed);
    assert(cache_is_valid(c));
}

/* Copies from the first block that is not whole up to n. */
void cache_copy(text_cache *to, text_cache *from, int32_t n)
{
    int32_t first = whole_blocks(to->n_committed);
    assert(n >= to->n_committed && n <= from->n_committed);
    cache_settle(from, from->n_committed - n);
    for (int32_t i = 0; i < cache_n_pieces(to); i++)
        memcpy(cache_piece(to, i, first), cache_piece(from, i, first),
               cache_piece_bytes(to, i, n - first));
    for (int32_t i = 0; i < cache_n_states(to) && n > 0; i++)
        memcpy(cache_state(to, i, -1), cache_state(from, i, n), cache_state_size(to, i));
    cache_restore(to, n);
}

int32_t cache_n_states(const text_cache *c)
{
    int32_t n = 0;
    for (int32_t i = 0; i < c->n_stores; i++)
        n += c->store[i]->class->state ? c->store[i]->shape.n_layers : 0;
    return n;
}

/* The store that has a state, of whose layer *i it is. */
static const state_store *state_store_of(const text_cache *c, int32_t *i)
{
    int32_t at = 0;
    for (;; at++) {
        const int32_t n = c->store[at]->class->state ? c->store[at]->shape.n_layers : 0;
        if (*i < n)
            return c->store[at];
        *i -= n;
    }
}

size_t cache_state_size(const text_cache *c, int32_t i)
{
    const state_store *s = state_store_of(c, &i);
    return s->class->state_bytes(s->class, &s->shape);
}

uint8_t *cache_state(const text_cache *c, int32_t i, int32_t position)
{
    const state_store *s = state_store_of(c, &i);
    return s->class->state(s, c, i, position);
}

size_t cache_state_bytes(const cache_spec *spec)
{
    size_t total = 0;
    for (int32_t i = 0; i < spec->n_stores; i++) {
        const store_class *class = spec->store[i].class;
        if (class->state)
            total += (size_t)spec->store[i].shape.n_layers *
                     class->state_bytes(class, &spec->store[i].shape);
    }
    return total;
}

int32_t cache_n_pieces(const text_cache *c)
{
    int32_t n = 0;
    for (int32_t i = 0; i < c->n_stores; i++)
        n += c->store[i]->class->n_pieces(c->store[i]);
    return n;
}

/* The store that has a piece, whose number there is *piece. */
static const state_store *store_of(const text_cache *c, int32_t *piece)
{
    int32_t i = 0;
    for (int32_t n; *piece >= (n = c->store[i]->class->n_pieces(c->store[i])); i++)
        *piece -= n;
    return c->store[i];
}

size_t cache_piece_bytes(const text_cache *c, int32_t piece, int32_t n_positions)
{
    const state_store *s = store_of(c, &piece);
    return s->class->piece_bytes(s, piece, n_positions);
}

uint8_t *cache_piece(const text_cache *c, int32_t piece, int32_t position)
{
    const state_store *s = store_of(c, &piece);
    return s->class->piece(s, piece, position / STORE_BLOCK);
}

size_t cache_positions_bytes(const cache_spec *spec, int32_t n_positions)
{
    size_t total = 0;
    for (int32_t i = 0; i < spec->n_stores; i++) {
        const state_store s = {.class = spec->store[i].class, .shape = spec->store[i].shape};
        for (int32_t piece = 0; piece < s.class->n_pieces(&s); piece++)
            total += s.class->piece_bytes(&s, piece, n_positions);
    }
    return total;
}
