/* Property: any bytes in the file of a kept block are taken exactly when they are that block, of
 * these tokens and this model, and whole; otherwise nothing is restored, and the file is gone.
 *
 * With an odd first byte the file gets the head and the hash that belong to what follows. */
#include "model/arch.h"
#include "state/cache.h"
#include "state/cache_room.h"
#include "state/kept_positions.h"
#include "store/prefix_store.h"
#include "store/kv_origin.h"
#include "fuzz/fuzz.h"
#include "support/bytes_file.h"
#include "support/temp_dir.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "drey/drey_engine.h"

enum { N_IDS = 2 * PREFIX_POSITIONS + 3, N_CONTEXT = 160, IDS_BYTES = PREFIX_POSITIONS * 4 };

static const model_shape shape = {
    .n_layers = 1, .attention = {{.n_heads_kv = 1, .head_dim = 4, .v_dim = 4}}, .n_attentions = 1};
static const saved_origin origin = {.model = 11, .arithmetic = 1, .n_layers = 1, .n_heads_kv = 1};
static int32_t ids[N_IDS];
static text_cache cache;
static arena cache_memory;
static drey_prefix_options options;
static size_t block_bytes;
static prefix_sizes sizes;
static char path[4096]; /* path of the first block's file */

static uint64_t hash_of(const void *bytes, size_t n, const void *more, size_t n_more)
{
    hash64 hash;
    hash64_init(&hash);
    hash64_add(&hash, bytes, n);
    hash64_add(&hash, more, n_more);
    return hash64_get(&hash);
}

static prefix_header head_of(const uint8_t *body)
{
    prefix_header h = {.magic = "dreypref", .n_ids = PREFIX_POSITIONS, .version = 1};
    h.origin.saved = origin;
    h.hash = hash_of(body, IDS_BYTES, body + IDS_BYTES, block_bytes);
    return h;
}

static void make(void)
{
    uint64_t padded[5] = {0};
    drey_error err = {0};
    const cache_spec spec = model_cache_spec(&shape, KV_F16);
    sizes = prefix_sizes_of(&spec, N_CONTEXT);
    block_bytes = sizes.block;
    options = (drey_prefix_options){
        .memory_bytes = 1 << 16, .folder = strdup(temp_path("kept")), .disk_bytes = 1 << 16};
    FUZZ_CHECK(options.folder);
    size_t n_bytes = cache_bytes(&spec, N_CONTEXT, 1);
    FUZZ_CHECK(arena_init(&cache_memory, n_bytes, false, &err) == DREY_OK);
    cache_init(&cache, &spec, N_CONTEXT, 1, &cache_memory);
    for (int32_t i = 0; i < N_IDS; i++)
        ids[i] = 3 * i + 1;
    memcpy(padded, &origin, sizeof origin);
    snprintf(path, sizeof path, "%s/%016llx-%016llx.kept", options.folder,
             (unsigned long long)hash_of(padded, sizeof padded, NULL, 0),
             (unsigned long long)hash_of(padded, sizeof padded, ids, IDS_BYTES));
}

static bool is_right(const uint8_t *kept, size_t n)
{
    if (n != sizeof(prefix_header) + IDS_BYTES + block_bytes)
        return false;
    prefix_header right = head_of(kept + sizeof right);
    return memcmp(kept, &right, sizeof right) == 0 &&
           memcmp(kept + sizeof right, ids, IDS_BYTES) == 0;
}

static void check_restored(const uint8_t *block)
{
    size_t n = cache_piece_bytes(&cache, 0, PREFIX_POSITIONS);
    FUZZ_CHECK(n * (size_t)cache_n_pieces(&cache) == block_bytes);
    for (int32_t i = 0; i < cache_n_pieces(&cache); i++)
        FUZZ_CHECK(memcmp(cache_piece(&cache, i, 0), block + (size_t)i * n, n) == 0);
}

static void try_file(const uint8_t *kept, size_t n)
{
    prefix_store store;
    drey_error err = {0};
    arena memory;
    size_t n_bytes = prefix_memory(&options, &sizes);
    FUZZ_CHECK(arena_init(&memory, n_bytes, false, &err) == DREY_OK);
    cache_clear(&cache);
    bytes_file_write(path, kept, n);
    FUZZ_CHECK(prefix_open(&store, &options, &origin, &sizes, &memory, &err) == DREY_OK);
    prefix_restore(&store, ids, N_IDS, &cache);
    bool right = is_right(kept, n);
    FUZZ_CHECK(cache_end(&cache) == (right ? PREFIX_POSITIONS : 0));
    FUZZ_CHECK((access(path, F_OK) == 0) == right);
    if (right)
        check_restored(kept + sizeof(prefix_header) + IDS_BYTES);
    prefix_close(&store);
    arena_free(&memory);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (!block_bytes) {
        temp_dir();
        atexit(temp_dir_remove);
        make();
    }
    if (n_bytes == 0)
        return 0;
    size_t n = n_bytes - 1;
    uint8_t *kept = fuzz_copy(bytes + 1, n);
    if (bytes[0] % 2 && n >= sizeof(prefix_header) + IDS_BYTES + block_bytes) {
        prefix_header right = head_of(kept + sizeof right);
        memcpy(kept, &right, sizeof right);
    }
    try_file(kept, n);
    free(kept);
    return 0;
}
