/* Finding, keeping and writing blocks: see prefix_store.h. */
#include "store/prefix_store.h"

#include <string.h>

#include "common/hash.h"
#include "common/num.h"

enum { VERSION = 1, GROUPS = PREFIX_POSITIONS / KV_GROUP };
static const char magic[8] = {'d', 'r', 'e', 'y', 'p', 'r', 'e', 'f'};
_Static_assert(sizeof(prefix_header) == 64 && sizeof(prefix_origin) == 40, "no holes in a file");

/* ---- Sizes ---- */

size_t prefix_block_bytes(const model_shape *s, kv_format format)
{
    return 2 * (size_t)s->n_layers * (size_t)s->n_heads_kv *
           kv_head_bytes(format, PREFIX_POSITIONS, s->head_dim);
}

size_t prefix_file_bytes(size_t block_bytes, int32_t n_context)
{
    return sizeof(prefix_header) + (size_t)n_context * sizeof(int32_t) + block_bytes;
}

static size_t slot_bytes(size_t block_bytes, int32_t n_context)
{
    return arena_size(block_bytes) + arena_size((size_t)n_context * sizeof(int32_t)) +
           sizeof(prefix_slot);
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

static prefix_slot *find(prefix_store *p, uint64_t key, const int32_t *ids, int32_t n)
{
    for (int32_t i = 0; i < p->n_slots; i++) {
        prefix_slot *s = &p->slot[i];
        if (s->key == key && s->n_ids == n && memcmp(s->ids, ids, (size_t)n * sizeof *ids) == 0)
            return s;
    }
    return NULL;
}

static prefix_header header_of(const prefix_store *p, const prefix_slot *s)
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

static void write_slot(prefix_store *p, prefix_slot *s)
{
    prefix_header h = header_of(p, s);
    const kept_part parts[] = {
        {&h, sizeof h}, {s->ids, (size_t)s->n_ids * sizeof *s->ids}, {s->bytes, p->block_bytes}};
    s->written = true;
    if (!p->disk_failed && kept_files_write(&p->files, s->key, parts, 3))
        p->count.written_blocks++;
    else
        p->disk_failed = true;
}

/* The least recently used slot, after its block was written to the folder. */
static prefix_slot *make_room(prefix_store *p)
{
    prefix_slot *oldest = &p->slot[0];
    for (int32_t i = 1; i < p->n_slots; i++)
        if (p->slot[i].used < oldest->used)
            oldest = &p->slot[i];
    if (oldest->n_ids && !oldest->written)
        write_slot(p, oldest);
    oldest->n_ids = 0;
    return oldest;
}

static void use(prefix_store *p, prefix_slot *s)
{
    s->used = ++p->now;
}

/* A slot with the block from the folder. NULL: it is not there, or is another one. */
static prefix_slot *fetch(prefix_store *p, uint64_t key, const int32_t *ids, int32_t n)
{
    prefix_slot *s = make_room(p);
    prefix_header h;
    const kept_part parts[] = {
        {&h, sizeof h}, {s->ids, (size_t)n * sizeof *ids}, {s->bytes, p->block_bytes}};
    if (!kept_files_read(&p->files, key, parts, 3))
        return NULL;
    s->n_ids = n;
    prefix_header right = header_of(p, s);
    bool same =
        memcmp(&h, &right, sizeof h) == 0 && memcmp(s->ids, ids, (size_t)n * sizeof *ids) == 0;
    if (!same) {
        s->n_ids = 0;
        kept_files_drop(&p->files, key);
        return NULL;
    }
    s->key = key;
    s->written = true;
    p->count.read_blocks++;
    return s;
}

/* ---- Blocks of a text ---- */

/* Keys of a text's blocks, one after another. */
typedef struct keys {
    hash64 hash;
    const int32_t *ids;
    int32_t n; /* ids that are in it */
} keys;

static keys keys_begin(const prefix_store *p, const int32_t *ids)
{
    keys k = {.ids = ids};
    hash64_init(&k.hash);
    hash64_add(&k.hash, &p->origin, sizeof p->origin);
    return k;
}

static uint64_t keys_next(keys *k)
{
    hash64_add(&k->hash, k->ids + k->n, PREFIX_POSITIONS * sizeof *k->ids);
    k->n += PREFIX_POSITIONS;
    return hash64_get(&k->hash);
}

static void copy(const kv_cache *kv, int32_t block, uint8_t *bytes, bool to_cache)
{
    size_t n = GROUPS * kv_group_bytes(kv);
    for (int32_t i = 0; i < kv_n_pieces(kv); i++, bytes += n) {
        uint8_t *piece = kv_piece(kv, i, block * GROUPS);
        if (to_cache)
            memcpy(piece, bytes, n);
        else
            memcpy(bytes, piece, n);
    }
}

/* A file has changed: those after it are of no use without it, and may be damaged as well. */
static void drop_after(prefix_store *p, keys k, int32_t n)
{
    while (k.n + PREFIX_POSITIONS <= n)
        kept_files_drop(&p->files, keys_next(&k));
}

void prefix_restore(prefix_store *p, const int32_t *ids, int32_t n, kv_cache *kv)
{
    int32_t from = kv->n_committed;
    if (p->n_slots == 0)
        return;
    keys k = keys_begin(p, ids);
    while (k.n + PREFIX_POSITIONS <= n) {
        int32_t block = k.n / PREFIX_POSITIONS;
        uint64_t key = keys_next(&k);
        if (k.n <= kv->n_committed)
            continue;
        prefix_slot *s = find(p, key, ids, k.n);
        bool in_folder = !s && kept_files_has(&p->files, key);
        if (in_folder)
            s = fetch(p, key, ids, k.n);
        if (!s && in_folder) {
            p->count.damaged_files++;
            drop_after(p, k, n);
        }
        if (!s)
            break;
        use(p, s);
        copy(kv, block, s->bytes, true);
        kv_restore(kv, k.n);
    }
    p->count.restored_tokens += kv->n_committed - from;
}

/* The first blocks of a text are younger than those after them, which are of no use without the
 * first. */
void prefix_keep(prefix_store *p, const int32_t *ids, const kv_cache *kv)
{
    int32_t n = min_i32(kv->n_committed / PREFIX_POSITIONS, p->n_slots);
    if (n == 0)
        return;
    p->now += n;
    keys k = keys_begin(p, ids);
    for (int32_t block = 0; block < n; block++) {
        uint64_t key = keys_next(&k);
        prefix_slot *s = find(p, key, ids, k.n);
        if (!s) {
            s = make_room(p);
            copy(kv, block, s->bytes, false);
            memcpy(s->ids, ids, (size_t)k.n * sizeof *ids);
            s->key = key;
            s->n_ids = k.n;
            s->written = p->files.fd < 0 || kept_files_has(&p->files, key);
            p->count.kept_blocks++;
        }
        s->used = p->now - block;
    }
}

void prefix_write(prefix_store *p)
{
    for (int32_t i = 0; i < p->n_slots; i++)
        if (p->slot[i].n_ids && !p->slot[i].written) {
            write_slot(p, &p->slot[i]);
            return;
        }
}

void prefix_close(prefix_store *p)
{
    for (int32_t i = 0; i < p->n_slots && p->files.fd >= 0; i++)
        if (p->slot[i].n_ids && !p->slot[i].written)
            write_slot(p, &p->slot[i]);
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
