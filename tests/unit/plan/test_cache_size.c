/* A cache takes the bytes that a plan has for it, in every architecture: keys and values of layers
 * that attend, states of others. */
#include "base/arena.h"
#include "gguf/gguf.h"
#include "model/arch.h"
#include "state/cache_room.h"
#include "support/logit_toys.h"
#include "support/scene.h"

static void check_toy(const char *name, const toy_options *o, kv_format format)
{
    enum { PENDING = 9 };
    gguf_writer w = {0};
    gguf *g = NULL;
    model_shape shape;
    toy_build(&w, o, 0);
    MUST(gguf_parse, &g, w.bytes, w.n, w.n);
    MUST(model_shape_read, &shape, g);
    const cache_spec spec = model_cache_spec(&shape, format);
    for (int32_t n_slots = 64; n_slots <= 256; n_slots *= 2) {
        arena memory = {0};
        text_cache cache;
        const size_t n_bytes = cache_bytes(&spec, n_slots, PENDING);
        MUST(arena_init, &memory, n_bytes + ARENA_ALIGN, false);
        cache_init(&cache, &spec, n_slots, PENDING, &memory);
        if (memory.short_bytes != 0 || memory.used_bytes != n_bytes)
            fail_msg("%s: a plan has %zu bytes for a cache, which takes %zu", name, n_bytes,
                     memory.used_bytes + memory.short_bytes);
        arena_free(&memory);
    }
    gguf_close(&g);
    writer_free(&w);
}

TEST(caches_take_what_is_planned)
{
    toy_options o;
    for (int i = 0; i < N_LOGIT_TOYS; i++) {
        const char *name = logit_toy(i, &o);
        check_toy(name, &o, KV_F16);
        check_toy(name, &o, KV_Q8_0);
    }
}

TEST_GROUP(NULL, NULL)
