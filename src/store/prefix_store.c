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

size_t prefix_block_bytes(const cache_spec *spec)
{
    return cache_positions_bytes(spec, PREFIX_POSITIONS);
}

size_t prefix_file_bytes(size_t block_bytes, int32_t n_context)
{
    return sizeof(prefix_header) + (size_t)n_context * sizeof(int32_t) + block_bytes;
}

static size_t slot_bytes(size_t block_bytes, int32_t n_context)
{
    return arena_size(block_bytes) + arena_size((size_t)n_context * sizeof(int32_t)) +
           sizeof(prefix_entry);
}

/* Files in the folder, at most. */
static int32_t most_files(const drey_prefix_options *o, size_t block_bytes)
{
    return o->folder ? (int32_t)min_u64(o->disk_bytes / block_bytes, 1 << 20) : 0;
}

static size_t table_bytes(const drey_prefix_options *o, size_t block_bytes)
{
    return kept_files_memory(most_files(o, block_bytes)) + ARENA_ALIGN;
}

static int32_t n_slots_of(const drey_prefix_options *o, size_t block_bytes, int32_t n_context)
{
    size_t table = table_bytes(o, block_bytes);
    if (o->memory_bytes < table)
        return 0;
    return (int32_t)min_u64((o->memory_bytes - table) / slot_bytes(block_bytes, n_context),
                            1 << 20);
}

size_t prefix_memory(const drey_prefix_options *o, size_t block_bytes, int32_t n_context)
{
    size_t n = (size_t)n_slots_of(o, block_bytes, n_context);
    return n ? table_bytes(o, block_bytes) + n * slot_bytes(block_bytes, n_context) : 0;
}

drey_status prefix_open(prefix_store *p, const drey_prefix_options *o, const saved_origin *origin,
                        size_t block_bytes, int32_t n_context, arena *a, drey_error *err)
{
    int32_t n = n_slots_of(o, block_bytes, n_context);
    *p = (prefix_store){.n_context = n_context, .block_bytes = block_bytes, .files.fd = -1};
    p->origin.saved = *origin;
    p->slot = arena_take(a, (size_t)n * sizeof *p->slot);
    for (int32_t i = 0; i < n; i++) {
        p->slot[i].bytes = arena_take(a, block_bytes);
        p->slot[i].ids = arena_take(a, (size_t)n_context * sizeof(int32_t));
    }
    TRY(arena_check(a, err));
    if (o->folder)
        TRY(kept_files_open(&p->files, o->folder, o->disk_bytes, most_files(o, block_bytes), a,
                            err));
    p->n_slots = n;
    return DREY_OK;
}

/* ---- Slots ---- */

static prefix_entry *find(prefix_store *p, uint64_t key, const int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < p->n_slots; i++) {
        prefix_entry *s = &p->slot[i];
        if (s->key == key && s->n_ids == n && memcmp(s->ids, ids, (size_t)n * sizeof *ids) == 0)
            return s;
    }
    return NULL;
}

static prefix_header header_of(const prefix_store *p, const prefix_entry *s)
{
    prefix_header h = {.origin = p->origin, .n_ids = s->n_ids, .version = VERSION};
    hash64 hash;
    memcpy(h.magic, magic, sizeof magic);
    hash64_init(&hash);
    hash64_add(&hash, s->ids, (size_t)s->n_ids * sizeof *s->ids);
    hash64_add(&hash, s->bytes, p->block_bytes);
    h.hash = hash64_get(&hash);
    return h;
}

static void write_slot(prefix_store *p, prefix_entry *s)
{
    prefix_header h = header_of(p, s);
    const kept_part parts[] = {
        {&h, sizeof h}, {s->ids, (size_t)s->n_ids * sizeof *s->ids}, {s->bytes, p->block_bytes}};
    s->written = true;
    if (!p->disk_failed && kept_files_write(&p->files, s->group, s->key, parts, 3)) {
        p->count.written_blocks++;
        return;
    }
    p->disk_failed = true;
    p->count.lost_blocks++;
}

/* The least recently used slot, after its block was written to the folder. */
static prefix_entry *make_room(prefix_store *p)
{
    prefix_entry *oldest = &p->slot[0];
    for (int32_t i = 1; i < p->n_slots; i++)
        if (p->slot[i].used < oldest->used)
            oldest = &p->slot[i];
    if (oldest->n_ids && !oldest->written)
        write_slot(p, oldest);
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

/* A slot with the block of n ids from the folder; the first n_same are known to be ids'. NULL: it
 * is damaged, or another one. */
static prefix_entry *fetch(prefix_store *p, const block_name *name, const int32_t *ids, int32_t n,
                           int32_t n_same)
{
    uint64_t key = name->key;
    prefix_entry *s = make_room(p);
    prefix_header h;
    const kept_part parts[] = {
        {&h, sizeof h}, {s->ids, (size_t)n * sizeof *ids}, {s->bytes, p->block_bytes}};
    if (!kept_files_read(&p->files, key, parts, 3))
        return NULL;
    s->n_ids = n;
    prefix_header right = header_of(p, s);
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
    p->count.read_blocks++;
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

/* Commits the first positions of the slot's block, so that n are committed. */
static void take(prefix_store *p, prefix_entry *s, int32_t n, text_cache *cache)
{
    int32_t from = begin_of(n);
    use(p, s);
    copy(cache, from / PREFIX_POSITIONS, n - from, s->bytes, true);
    cache_restore(cache, n);
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
    for (int32_t i = 0; i < p->n_slots; i++) {
        prefix_entry *s = &p->slot[i];
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
            room = make_room(p);
        const kept_part head = {&h, sizeof h};
        if (!kept_files_peek(&p->files, name.key, &head, 1) || h.n_ids <= begin ||
            begin_of(h.n_ids) != begin || h.n_ids > p->n_context)
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
                            text_cache *cache)
{
    for (;;) {
        int32_t from = cache_end(cache);
        near_block best = {.n_same = from};
        look_in_slots(p, group, ids, n, &best);
        if (best.slot)
            use(p, best.slot); /* so it is not the one that makes room for a file's */
        if (best.n_same < n && p->files.fd >= 0 && p->n_slots > (best.slot != NULL))
            look_in_files(p, group, ids, n, &best);
        if (best.n_same == from)
            return 0;
        prefix_entry *s =
            best.slot ? best.slot : fetch(p, &best.file, ids, best.n_ids, best.n_same);
        if (!s) {
            p->count.damaged_files++;
            continue;
        }
        take(p, s, best.n_same, cache);
        return best.slot ? 0 : cache_end(cache) - from;
    }
}

/* The disk reads blocks ahead that are certain to be taken: files of the text's own blocks. */
static void expect(prefix_store *p, names *ahead, int32_t n_taken, int32_t n, const int32_t *ids)
{
    int32_t end = min_i32(n, n_taken + AHEAD * PREFIX_POSITIONS);
    while (p->files.fd >= 0 && ahead->n + PREFIX_POSITIONS <= end) {
        block_name name = names_next(ahead, ahead->n + PREFIX_POSITIONS);
        if (ahead->n > n_taken && !find(p, name.key, ids, ahead->n))
            kept_files_expect(&p->files, name.key);
    }
}

int32_t prefix_restore(prefix_store *p, const int32_t *ids, int32_t n, text_cache *cache)
{
    int32_t begun = cache_end(cache), n_read = 0;
    if (p->n_slots == 0)
        return 0;
    cache_settle(cache, 0);
    names k = names_begin(p, ids), ahead = k;
    while (k.n + PREFIX_POSITIONS <= n) {
        names here = k;
        block_name name = names_next(&k, k.n + PREFIX_POSITIONS);
        if (k.n <= cache_end(cache))
            continue;
        prefix_entry *s = find(p, name.key, ids, k.n);
        bool in_folder = !s && kept_files_has(&p->files, name.key);
        if (in_folder)
            expect(p, &ahead, k.n, n, ids);
        if (in_folder)
            s = fetch(p, &name, ids, k.n, k.n);
        if (!s && in_folder) {
            p->count.damaged_files++;
            drop_after(p, name.key);
        }
        if (!s) {
            k = here;
            break;
        }
        n_read += in_folder ? k.n - cache_end(cache) : 0;
        take(p, s, k.n, cache);
    }
    if (cache_end(cache) >= k.n && cache_end(cache) < n)
        n_read += restore_part(p, k.last, ids, min_i32(n, k.n + PREFIX_POSITIONS), cache);
    p->count.restored_tokens += cache_end(cache) - begun;
    return n_read;
}

/* The beginning of a block, which this one goes beyond, is of no more use. */
static prefix_entry *take_over(prefix_store *p, const block_name *name, const int32_t *ids,
                               int32_t n)
{
    for (int32_t i = 0; i < p->n_slots; i++) {
        prefix_entry *s = &p->slot[i];
        if (s->group != name->group || s->n_ids <= begin_of(n) || s->n_ids >= n ||
            n_same_of(s->ids, ids, s->n_ids) < s->n_ids)
            continue;
        kept_files_drop(&p->files, s->key);
        return s;
    }
    return make_room(p);
}

static void keep_block(prefix_store *p, const block_name *name, const int32_t *ids, int32_t n,
                       const text_cache *cache, int64_t used)
{
    prefix_entry *s = find(p, name->key, ids, n);
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
        n_blocks = min_i32(n_blocks, p->n_slots);
    if (n_blocks == 0 || p->n_slots == 0)
        return;
    p->now += n_blocks;
    names k = names_begin(p, ids);
    for (int32_t i = 0; i < n_blocks; i++) {
        block_name name = names_next(&k, min_i32(n, k.n + PREFIX_POSITIONS));
        if (i < p->n_slots || !kept_files_has(&p->files, name.key))
            keep_block(p, &name, ids, k.n, cache, p->now - i);
    }
}

bool prefix_write(prefix_store *p)
{
    for (int32_t i = 0; i < p->n_slots && p->files.fd >= 0; i++)
        if (p->slot[i].n_ids && !p->slot[i].written) {
            write_slot(p, &p->slot[i]);
            return true;
        }
    return false;
}

int64_t prefix_unwritten(const prefix_store *p)
{
    int64_t n = 0;
    for (int32_t i = 0; i < p->n_slots && p->files.fd >= 0; i++)
        n += p->slot[i].n_ids && !p->slot[i].written;
    return n;
}

void prefix_close(prefix_store *p)
{
    if (p->n_slots)
        kept_files_close(&p->files);
    p->n_slots = 0;
}

void prefix_count(const prefix_store *p, drey_prefixes *out)
{
    *out = p->count;
    out->disk_failed = p->disk_failed;
    out->disk_bytes = p->files.n_bytes;
    out->files = p->files.n;
    for (int32_t i = 0; i < p->n_slots; i++)
        out->blocks += p->slot[i].n_ids > 0;
}
