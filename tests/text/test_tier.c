/* One tier computes whole texts: what it writes, with each drafter, in memory and streamed, is what
 * plain C writes. ctest runs this once with every tier that there is, emulated ones included
 * (kernel/emulated/forced_tier.c). */
#include <string.h>

#include "support/temp_dir.h"
#include "support/test.h"
#include "support/toy.h"
#include "support/writing.h"

enum { N_TEXT = 12 };

static const int32_t prompt[] = {72, 101, 108, 108, 111, 32, 116, 104, 101, 114, 101, 44, 32, 72};

static drey_model *open_toy(const char *name, const toy_options *toy)
{
    drey_model *m;
    drey_error err = {0};
    toy_write(temp_path(name), toy);
    if (drey_model_open(&m, temp_path(name), &err) != DREY_OK)
        fail_msg("%s", err.message);
    return m;
}

static void write_text(writing *w, const drey_engine_options *o, double share)
{
    writing_run(w, o, share, prompt, sizeof prompt / sizeof *prompt, N_TEXT, NULL);
    if (w->status != DREY_OK)
        fail_msg("%s", w->error.message);
    assert_int_equal(w->n_ids, N_TEXT);
}

static void check(const char *architecture, uint32_t type, drey_kv kv)
{
    static writing want, got;
    static const double shares[] = {-1, 0.5, 0};
    static const drey_drafter drafters[] = {DREY_DRAFTER_NONE, DREY_DRAFTER_LOOKUP,
                                            DREY_DRAFTER_MODEL};
    temp_dir();
    toy_options toy = toy_usual();
    toy.architecture = architecture;
    toy.type = type;
    toy.n_embd = 256;
    toy.n_ff = 512;
    toy.n_layers = 2;
    drey_model *target = open_toy("target.gguf", &toy);
    toy.noise = 0.01f;
    drey_model *draft = open_toy("draft.gguf", &toy);
    drey_engine_options o;
    drey_engine_options_init(&o);
    o.target = target;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_context = 64;
    o.n_threads = 1;
    o.kv = kv;
    o.cpu_tier = "ref";
    write_text(&want, &o, -1);
    o.cpu_tier = NULL;
    for (int i = 0; i < 9; i++) {
        o.drafter = drafters[i / 3];
        o.draft = o.drafter == DREY_DRAFTER_MODEL ? draft : NULL;
        o.policy = o.drafter == DREY_DRAFTER_NONE ? DREY_POLICY_NONE : DREY_POLICY_OPTIMAL;
        o.n_threads = 1 + i % 2;
        o.prompt_chunk = i % 4;
        write_text(&got, &o, shares[i % 3]);
        assert_memory_equal(got.ids, want.ids, sizeof *want.ids * N_TEXT);
    }
    drey_model_close(&target);
    drey_model_close(&draft);
    temp_dir_remove();
}

TEST(texts_are_those_of_plain_c)
{
    check("qwen2", TOY_TYPE_MIXED, DREY_KV_F16);
    check("llama", 2, DREY_KV_Q8_0); /* Q4_0 */
    check("llama", 12, DREY_KV_F16); /* Q4_K */
}
