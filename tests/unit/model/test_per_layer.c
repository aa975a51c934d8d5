/* Models whose layers share keys and values, or have embeddings by layer: what a cache holds, what
 * stays on the disk, and files that contradict themselves. */
#include "engine/engine.h"
#include "state/cache_room.h"
#include "support/logit_toys.h"
#include "support/scene.h"

/* The toy with embeddings by layer. */
static toy_options embeddings_toy(void)
{
    toy_options toy;
    for (int i = 0; strcmp(family_toy(i, &toy), "toy-gemma4-embeddings") != 0; i++)
        assert_true(i < N_FAMILY_TOYS);
    return toy;
}

/* Layers that read what another one has stored have no room of their own. */
TEST(layers_that_share)
{
    const toy_options toy = embeddings_toy();
    drey_model *m = toy_open("m.gguf", &toy);
    const cache_spec spec = model_cache_spec(&m->shape, KV_F16);
    int32_t n = 0;
    for (int32_t i = 0; i < spec.n_stores; i++)
        n += spec.store[i].shape.n_layers;
    assert_int_equal(n, toy.n_layers - toy.kinds.n_shared);
    assert_int_equal(m->shape.layer[3].kv_before, 2);
    assert_int_equal(m->shape.layer[4].kv_before, 3);
    assert_int_equal(m->shape.layer[5].kv_before, 3);
    drey_model_close(&m);
}

/* A plan has no room for the table: neither pinned nor in what a pass reads. */
TEST(a_table_on_the_disk)
{
    toy_options toy = embeddings_toy();
    toy.n_padded = 30000;
    drey_model *m = toy_open("m.gguf", &toy);
    const drey_engine_options o = plain_options(m, 64, 1);
    const gguf_tensor *t = gguf_find_tensor(m->file, "per_layer_token_embd.weight");
    drey_plan plan;
    MUST(drey_plan_make, &o, NULL, &plan);
    assert_true(plan.pinned_bytes > 0 && plan.pinned_bytes < t->n_bytes);
    assert_int_equal(plan.streamed_bytes_per_pass, 0);
    drey_model_close(&m);
}

static void refused(const toy_options *toy, drey_status status, const char *says)
{
    char path[2048];
    drey_model *m = NULL;
    snprintf(path, sizeof path, "%s/r.gguf", temp_dir());
    toy_write(path, toy);
    REFUSED(status, says, drey_model_open, &m, path);
}

TEST(files_that_contradict_themselves)
{
    toy_options toy = embeddings_toy();
    toy.kinds.n_shared = 4; /* nobody stores for the layers that see all */
    refused(&toy, DREY_ERR_FORMAT, "layer 2 has to read keys and values of an earlier layer");
    toy = embeddings_toy();
    toy.kinds.n_shared = toy.n_layers;
    refused(&toy, DREY_ERR_FORMAT, "attention.shared_kv_layers is 6; the file is broken");
}
