/* Finding, keeping and writing blocks: see prefix_store.h. */
#include "store/prefix_store.h"

#include <string.h>

#include "common/hash.h"
#include "common/num.h"
#include "drey/drey_engine.h"
#include "state/cache_room.h"
#include "state/kept_positions.h"

enum {
    VERSION = 1,
    LEAST = KV_GROUP, /* tokens of a text that is worth a file */
    AHEAD = 2         /* blocks that the disk reads while one is taken */
};
static const char magic[8] = {'d', 'r', 'e', 'y', 'p', 'r', 'e', 'f'};
_Static_assert(sizeof(prefix_header) == 64 && sizeof(prefix_origin) == 40, "no holes in a file");

/* ---- Sizes ---- */

prefix_sizes prefix_sizes_of(const cache_spec *spec, int32_t n_context)
{
    return (prefix_sizes){cache_positions_bytes(spec, PREFIX_POSITIONS), cache_state_bytes(spec),
                          n_context};
}

static size_t ids_bytes(const prefix_sizes *s)
{
    return (size_t)s->n_context * sizeof(int32_t);
}

size_t prefix_file_bytes(const prefix_sizes *s)
{
    return sizeof(prefix_header) + ids_bytes(s) + max_size(s->block, s->state);
}

static size_t slot_bytes(const prefix_sizes *s, size_t bytes)
{
    return arena_size(bytes) + arena_size(ids_bytes(s)) + sizeof(prefix_entry);
}

/* Files in the folder, at most. */
static int32_t most_files(const drey_prefix_options *o, const prefix_sizes *s)
{
    return o->folder ? (int32_t)min_u64(o->disk_bytes / s->block, 1 << 20) : 0;
}

static size_t table_bytes(const drey_prefix_options *o, const prefix_sizes *s)
{
    const size_t n_shelves = s->state ? 2 : 1;
    return kept_files_memory(most_files(o, s)) + n_shelves * ARENA_ALIGN;
}

/* Slots of that size that a share of the memory has room for. */
static int32_t n_slots_of(const drey_prefix_options *o, const prefix_sizes *s, size_t bytes)
{
    const size_t table = table_bytes(o, s);
    if (bytes == 0 || o->memory_bytes < table)
        return 0;
    return (int32_t)min_u64((o->memory_bytes - table) / (s->state ? 2 : 1) / slot_bytes(s, bytes),
                            1 << 20);
}

size_t prefix_memory(const drey_prefix_options *o, const prefix_sizes *s)
{
    const size_t n = (size_t)n_slots_of(o, s, s->block);
    const size_t n_states = (size_t)n_slots_of(o, s, s->state);
    if (n == 0 || (s->state && n_states == 0))
        return 0;
    return table_bytes(o, s) + n * slot_bytes(s, s->block) + n_states * slot_bytes(s, s->state);
}

static prefix_shelf take_shelf(const prefix_sizes *s, int32_t n, size_t bytes, arena *a)
{
    prefix_shelf shelf = {.n = n, .bytes = bytes};
    shelf.slot = arena_take(a, (size_t)n * sizeof *shelf.slot);
    for (int32_t i = 0; shelf.slot && i < n; i++) {
        shelf.slot[i].bytes = arena_take(a, bytes);
        shelf.slot[i].ids = arena_take(a, ids_bytes(s));
    }
    return shelf;
}

drey_status prefix_open(prefix_store *p, const drey_prefix_options *o, const saved_origin *origin,
                        const prefix_sizes *s, arena *a, drey_error *err)
{
    *p = (prefix_store){.sizes = *s, .files.fd = -1};
    p->origin.saved = *origin;
    const prefix_shelf blocks = take_shelf(s, n_slots_of(o, s, s->block), s->block, a);
    if (s->state)
        p->states = take_shelf(s, n_slots_of(o, s, s->state), s->state, a);
    TRY(arena_check(a, err));
    if (o->folder)
        TRY(kept_files_open(&p->files, o->folder, o->disk_bytes, most_files(o, s), a, err));
    p->blocks = blocks;
    return DREY_OK;
}

/* ---- Slots ---- */

static prefix_entry *find(const prefix_shelf *shelf, uint64_t key, const int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < shelf->n; i++) {
        prefix_entry *s = &shelf->slot[i];
        if (s->key == key && s->n_ids == n && memcmp(s->ids, ids, (size_t)n * sizeof *ids) == 0)
            return s;
    }
    return NULL;
}

static prefix_header header_of(const prefix_store *p, const prefix_shelf *shelf,
                               const prefix_entry *s)
{
    prefix_header h = {.origin = p->origin, .n_ids = s->n_ids, .version = VERSION};
    hash64 hash;
    memcpy(h.magic, magic, sizeof magic);
    hash64_init(&hash);
    hash64_add(&hash, s->ids, (size_t)s->n_ids * sizeof *s->ids);
    hash64_add(&hash, s->bytes, shelf->bytes);
    h.hash = hash64_get(&hash);
    return h;
}

static void write_slot(prefix_store *p, const prefix_shelf *shelf, prefix_entry *s)
{
    prefix_header h = header_of(p, shelf, s);
    const kept_part parts[] = {
        {&h, sizeof h}, {s->ids, (size_t)s->n_ids * sizeof *s->ids}, {s->bytes, shelf->bytes}};
    s->written = true;
    if (!p->disk_failed && kept_files_write(&p->files, s->group, s->key, parts, 3)) {
        p->count.written_blocks += shelf == &p->blocks;
        return;
    }
    p->disk_failed = true;
    p->count.lost_blocks++;
}

/* The least recently used slot, after what it has was written to the folder. */
static prefix_entry *make_room(prefix_store *p, prefix_shelf *shelf)
{
    prefix_entry *oldest = &shelf->slot[0];
    for (int32_t i = 1; i < shelf->n; i++)
        if (shelf->slot[i].used < oldest->used)
            oldest = &shelf->slot[i];
    if (oldest->n_ids && !oldest->written)
        write_slot(p, shelf, oldest);
    oldest->n_ids = 0;
    return oldest;
}

static void use(prefix_store *p, prefix_entry *s)
{
    s->used = ++p->now;
}

/* ---- Names of a text's blocks ---- */

typedef struct block_name {
    uint64_t group, key;
} block_name;

/* One after another. */
typedef struct names {
    hash64 hash;
    const int32_t *ids;
    int32_t n; /* ids that are in it */
    uint64_t last;
} names;

static names names_begin(const prefix_store *p, const int32_t *ids)
{
    names k = {.ids = ids};
    hash64_init(&k.hash);
    hash64_add(&k.hash, &p->origin, sizeof p->origin);
    k.last = hash64_get(&k.hash);
    return k;
}

/* Returns the name of the block that ends after n ids. */
static block_name names_next(names *k, int32_t n)
{
    const uint64_t group = k->last;
    hash64_add(&k->hash, k->ids + k->n, (size_t)(n - k->n) * sizeof *k->ids);
    k->n = n;
    k->last = hash64_get(&k->hash);
    return (block_name){group, k->last};
}

/* A slot with the block, or the state, of n ids from the folder; the first n_same are known to be
 * ids'. NULL: it is damaged, or another one. */
static prefix_entry *fetch(prefix_store *p, prefix_shelf *shelf, const block_name *name,
                           const int32_t *ids, int32_t n, int32_t n_same)
{
    uint64_t key = name->key;
    prefix_entry *s = make_room(p, shelf);
    prefix_header h;
    const kept_part parts[] = {
        {&h, sizeof h}, {s->ids, (size_t)n * sizeof *ids}, {s->bytes, shelf->bytes}};
    if (!kept_files_read(&p->files, key, parts, 3))
        return NULL;
    s->n_ids = n;
    prefix_header right = header_of(p, shelf, s);
    bool same =
        memcmp(&h, &right, sizeof h) == 0 && memcmp(s->ids, ids, (size_t)n_same * sizeof *ids) == 0;
    if (!same) {
        s->n_ids = 0;
        kept_files_drop(&p->files, key);
        return NULL;
    }
    s->key = key;
    s->group = name->group;
    s->written = true;
    p->count.read_blocks += shelf == &p->blocks;
    return s;
}

/* ---- Blocks of a text ---- */

static int32_t begin_of(int32_t n_ids)
{
    return (n_ids - 1) / PREFIX_POSITIONS * PREFIX_POSITIONS;
}

/* The first n of a block's positions. */
static void copy(const text_cache *cache, int32_t block, int32_t n, uint8_t *bytes, bool to_cache)
{
    for (int32_t i = 0; i < cache_n_pieces(cache); i++) {
        size_t each = cache_piece_bytes(cache, i, PREFIX_POSITIONS);
        size_t n_bytes = cache_piece_bytes(cache, i, n);
        uint8_t *piece = cache_piece(cache, i, block * PREFIX_POSITIONS);
        if (to_cache) {
            memcpy(piece, bytes, n_bytes);
        } else {
            memcpy(bytes, piece, n_bytes);
            memset(bytes + n_bytes, 0, each - n_bytes);
        }
        bytes += each;
    }
}

/* A cache to which positions come back. */
typedef struct restored {
    text_cache *cache;
    int32_t end; /* so many are there */
} restored;

/* Takes the first positions of the slot's block, so that n are there. */
static void take(prefix_store *p, prefix_entry *s, int32_t n, restored *to)
{
    int32_t from = begin_of(n);
    use(p, s);
    copy(to->cache, from / PREFIX_POSITIONS, n - from, s->bytes, true);
    to->end = n;
}

/* A file has changed: those after it are of no use without it, and may be damaged as well. */
static void drop_after(prefix_store *p, uint64_t key)
{
    uint64_t next;
    for (int32_t at = 0; kept_files_next(&p->files, key, &at, &next); at = 0) {
        kept_files_drop(&p->files, next);
        drop_after(p, next);
    }
}

static int32_t n_same_of(const int32_t *a, const int32_t *b, int32_t n)
{
    int32_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* A block that begins as the text's next one. */
typedef struct near_block {
    prefix_entry *slot; /* NULL: it is a file */
    block_name file;
    int32_t n_ids, n_same;
} near_block;

/* Looks in memory for the prefix with most of ids[0..n), if it has more than best. */
static void look_in_slots(prefix_store *p, uint64_t group, const int32_t *ids, int32_t n,
                          near_block *best)
{
    for (int32_t i = 0; i < p->blocks.n; i++) {
        prefix_entry *s = &p->blocks.slot[i];
        if (!s->n_ids || s->group != group || begin_of(s->n_ids) != begin_of(n))
            continue;
        int32_t same = n_same_of(s->ids, ids, min_i32(n, s->n_ids));
        if (same > best->n_same)
            *best = (near_block){.slot = s, .n_ids = s->n_ids, .n_same = same};
    }
}

/* The same of the folder. A file's ids are read into a slot that has room for them; all of it is
 * checked when it is fetched. */
static void look_in_files(prefix_store *p, uint64_t group, const int32_t *ids, int32_t n,
                          near_block *best)
{
    enum { MOST = 256 }; /* reads of a few kB each */
    block_name name = {.group = group};
    int32_t at = 0, begin = begin_of(n);
    prefix_entry *room = NULL;
    for (int32_t i = 0; i < MOST && kept_files_next(&p->files, group, &at, &name.key); i++) {
        prefix_header h;
        if (!room)
            room = make_room(p, &p->blocks);
        const kept_part head = {&h, sizeof h};
        if (!kept_files_peek(&p->files, name.key, &head, 1) || h.n_ids <= begin ||
            begin_of(h.n_ids) != begin || h.n_ids > p->sizes.n_context)
            continue;
        const kept_part parts[] = {head, {room->ids, (size_t)h.n_ids * sizeof *ids}};
        int32_t most = min_i32(n, h.n_ids);
        int32_t same =
            kept_files_peek(&p->files, name.key, parts, 2) ? n_same_of(room->ids, ids, most) : 0;
        if (same > best->n_same)
            *best = (near_block){.file = name, .n_ids = h.n_ids, .n_same = same};
    }
}

/* Positions of the block in which the text parts from all that is kept, or ends. Returns how many
 * came from the folder. */
static int32_t restore_part(prefix_store *p, uint64_t group, const int32_t *ids, int32_t n,
                            restored *to)
{
    for (;;) {
        int32_t from = to->end;
        near_block best = {.n_same = from};
        look_in_slots(p, group, ids, n, &best);
        if (best.slot)
            use(p, best.slot); /* so it is not the one that makes room for a file's */
        if (best.n_same < n && p->files.fd >= 0 && p->blocks.n > (best.slot != NULL))
            look_in_files(p, group, ids, n, &best);
        if (best.n_same == from)
            return 0;
        prefix_entry *s =
            best.slot ? best.slot : fetch(p, &p->blocks, &best.file, ids, best.n_ids, best.n_same);
        if (!s) {
            p->count.damaged_files++;
            continue;
        }
        take(p, s, best.n_same, to);
        return best.slot ? 0 : to->end - from;
    }
}

/* The disk reads blocks ahead that are certain to be taken: files of the text's own blocks. */
static void expect(prefix_store *p, names *ahead, int32_t n_taken, int32_t n, const int32_t *ids)
{
    int32_t end = min_i32(n, n_taken + AHEAD * PREFIX_POSITIONS);
    while (p->files.fd >= 0 && ahead->n + PREFIX_POSITIONS <= end) {
        block_name name = names_next(ahead, ahead->n + PREFIX_POSITIONS);
        if (ahead->n > n_taken && !find(&p->blocks, name.key, ids, ahead->n))
            kept_files_expect(&p->files, name.key);
    }
}

/* Positions of a text's beginning from its blocks, as far as there are some. Returns how many came
 * from the folder. */
static int32_t restore_blocks(prefix_store *p, const int32_t *ids, int32_t n, restored *to)
{
    int32_t n_read = 0;
    names k = names_begin(p, ids), ahead = k;
    while (k.n + PREFIX_POSITIONS <= n) {
        names here = k;
        block_name name = names_next(&k, k.n + PREFIX_POSITIONS);
        if (k.n <= to->end)
            continue;
        prefix_entry *s = find(&p->blocks, name.key, ids, k.n);
        bool in_folder = !s && kept_files_has(&p->files, name.key);
        if (in_folder)
            expect(p, &ahead, k.n, n, ids);
        if (in_folder)
            s = fetch(p, &p->blocks, &name, ids, k.n, k.n);
        if (!s && in_folder) {
            p->count.damaged_files++;
            drop_after(p, name.key);
        }
        if (!s) {
            k = here;
            break;
        }
        n_read += in_folder ? k.n - to->end : 0;
        take(p, s, k.n, to);
    }
    if (to->end >= k.n && to->end < n)
        n_read += restore_part(p, k.last, ids, min_i32(n, k.n + PREFIX_POSITIONS), to);
    return n_read;
}

/* ---- States ---- */

/* The name of a state, from that of its text. They are of no group. */
static block_name state_name(uint64_t key)
{
    return (block_name){0, key ^ UINT64_C(0x5354415445)};
}

/* The last position after `begun` and up to n at which a state is kept; 0: none. */
static int32_t last_state(const prefix_store *p, const int32_t *ids, int32_t begun, int32_t n,
                          block_name *name)
{
    int32_t last = 0;
    names k = names_begin(p, ids);
    while (k.n + STORE_BLOCK <= n) {
        const block_name here = state_name(names_next(&k, k.n + STORE_BLOCK).key);
        if (k.n <= begun ||
            (!find(&p->states, here.key, ids, k.n) && !kept_files_has(&p->files, here.key)))
            continue;
        last = k.n;
        *name = here;
    }
    return last;
}

/* Returns whether it was not damaged. */
static bool take_state(prefix_store *p, const block_name *name, const int32_t *ids, int32_t n,
                       text_cache *cache)
{
    prefix_entry *s = find(&p->states, name->key, ids, n);
    if (!s)
        s = fetch(p, &p->states, name, ids, n, n);
    if (!s)
        return false;
    use(p, s);
    const uint8_t *bytes = s->bytes;
    for (int32_t i = 0; i < cache_n_states(cache); bytes += cache_state_size(cache, i++))
        memcpy(cache_state(cache, i, -1), bytes, cache_state_size(cache, i));
    cache_restore(cache, n);
    return true;
}

/* Files of states up to n whose blocks are missing from `end` on are of no use, and may be damaged
 * as those were. */
static void drop_states(prefix_store *p, const int32_t *ids, int32_t end, int32_t n)
{
    names k = names_begin(p, ids);
    while (p->files.fd >= 0 && k.n + STORE_BLOCK <= n) {
        const block_name name = state_name(names_next(&k, k.n + STORE_BLOCK).key);
        if (k.n > end)
            kept_files_drop(&p->files, name.key);
    }
}

int32_t prefix_restore(prefix_store *p, const int32_t *ids, int32_t n, text_cache *cache)
{
    const int32_t begun = cache_end(cache);
    restored to = {cache, begun};
    block_name name = {0};
    const bool states = p->sizes.state > 0;
    if (p->blocks.n == 0)
        return 0;
    n = states ? last_state(p, ids, begun, n, &name) : n;
    int32_t n_read = n > begun ? restore_blocks(p, ids, n, &to) : 0;
    if (!states && to.end > begun)
        cache_restore(cache, to.end);
    if (states)
        drop_states(p, ids, to.end, n);
    for (int32_t at = to.end; states && (at = last_state(p, ids, begun, at, &name)) > 0;) {
        if (take_state(p, &name, ids, at, cache))
            break;
        p->count.damaged_files++;
    }
    p->count.restored_tokens += cache_end(cache) - begun;
    return max_i32(min_i32(n_read, cache_end(cache) - begun), 0);
}

static void keep_state(prefix_store *p, const int32_t *ids, const text_cache *cache, names *k,
                       int32_t n)
{
    const block_name name = state_name(names_next(k, n).key);
    prefix_entry *s = find(&p->states, name.key, ids, n);
    if (!s) {
        s = make_room(p, &p->states);
        uint8_t *bytes = s->bytes;
        for (int32_t i = 0; i < cache_n_states(cache); bytes += cache_state_size(cache, i++))
            memcpy(bytes, cache_state(cache, i, n), cache_state_size(cache, i));
        memcpy(s->ids, ids, (size_t)n * sizeof *ids);
        s->key = name.key;
        s->group = name.group;
        s->n_ids = n;
        s->written = p->files.fd < 0 || kept_files_has(&p->files, name.key);
    }
    use(p, s);
}

/* States that the cache has of ids[0..n), which is settled: of the last ones, as many as there is
 * room for. */
static void keep_states(prefix_store *p, const int32_t *ids, const text_cache *cache, int32_t n)
{
    names k = names_begin(p, ids);
    int32_t n_there = 0;
    for (int32_t at = STORE_BLOCK; at <= n; at += STORE_BLOCK)
        n_there += cache_whole(cache, at, 0) == at;
    for (int32_t at = STORE_BLOCK; at <= n; at += STORE_BLOCK)
        if (cache_whole(cache, at, 0) == at && n_there-- <= p->states.n)
            keep_state(p, ids, cache, &k, at);
}

/* The beginning of a block, which this one goes beyond, is of no more use. */
static prefix_entry *take_over(prefix_store *p, const block_name *name, const int32_t *ids,
                               int32_t n)
{
    for (int32_t i = 0; i < p->blocks.n; i++) {
        prefix_entry *s = &p->blocks.slot[i];
        if (s->group != name->group || s->n_ids <= begin_of(n) || s->n_ids >= n ||
            n_same_of(s->ids, ids, s->n_ids) < s->n_ids)
            continue;
        kept_files_drop(&p->files, s->key);
        return s;
    }
    return make_room(p, &p->blocks);
}

static void keep_block(prefix_store *p, const block_name *name, const int32_t *ids, int32_t n,
                       const text_cache *cache, int64_t used)
{
    prefix_entry *s = find(&p->blocks, name->key, ids, n);
    if (!s) {
        int32_t from = begin_of(n);
        s = take_over(p, name, ids, n);
        copy(cache, from / PREFIX_POSITIONS, n - from, s->bytes, false);
        memcpy(s->ids, ids, (size_t)n * sizeof *ids);
        s->key = name->key;
        s->group = name->group;
        s->n_ids = n;
        s->written = p->files.fd < 0 || kept_files_has(&p->files, name->key);
        p->count.kept_blocks++;
    }
    s->used = used;
}

/* The first blocks of a text are younger than those after them, which are of no use without the
 * first. Those that memory has no place for go to the folder at once. */
void prefix_keep(prefix_store *p, const int32_t *ids, const text_cache *cache, bool is_end)
{
    int32_t n = cache_end(cache), whole = n / PREFIX_POSITIONS, n_blocks;
    n_blocks = whole + (is_end && n > whole * PREFIX_POSITIONS && n >= LEAST);
    if (p->files.fd < 0 || p->disk_failed)
        n_blocks = min_i32(n_blocks, p->blocks.n);
    if (n_blocks == 0 || p->blocks.n == 0)
        return;
    p->now += n_blocks;
    names k = names_begin(p, ids);
    for (int32_t i = 0; i < n_blocks; i++) {
        block_name name = names_next(&k, min_i32(n, k.n + PREFIX_POSITIONS));
        if (i < p->blocks.n || !kept_files_has(&p->files, name.key))
            keep_block(p, &name, ids, k.n, cache, p->now - i);
    }
    if (p->sizes.state)
        keep_states(p, ids, cache, min_i32(n, k.n));
}

static prefix_entry *unwritten(const prefix_shelf *shelf)
{
    for (int32_t i = 0; i < shelf->n; i++)
        if (shelf->slot[i].n_ids && !shelf->slot[i].written)
            return &shelf->slot[i];
    return NULL;
}

bool prefix_write(prefix_store *p)
{
    prefix_shelf *const shelves[] = {&p->blocks, &p->states};
    for (int32_t i = 0; i < 2 && p->files.fd >= 0; i++) {
        prefix_entry *s = unwritten(shelves[i]);
        if (!s)
            continue;
        write_slot(p, shelves[i], s);
        return true;
    }
    return false;
}

int64_t prefix_unwritten(const prefix_store *p)
{
    const prefix_shelf *const shelves[] = {&p->blocks, &p->states};
    int64_t n = 0;
    for (int32_t i = 0; i < 2 && p->files.fd >= 0; i++)
        for (int32_t j = 0; j < shelves[i]->n; j++)
            n += shelves[i]->slot[j].n_ids && !shelves[i]->slot[j].written;
    return n;
}

void prefix_close(prefix_store *p)
{
    if (p->blocks.n)
        kept_files_close(&p->files);
    p->blocks.n = p->states.n = 0;
}

void prefix_count(const prefix_store *p, drey_prefixes *out)
{
    *out = p->count;
    out->disk_failed = p->disk_failed;
    out->disk_bytes = p->files.n_bytes;
    out->files = p->files.n;
    for (int32_t i = 0; i < p->blocks.n; i++)
        out->blocks += p->blocks.slot[i].n_ids > 0;
}
