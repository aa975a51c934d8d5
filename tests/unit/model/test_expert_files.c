/* Files of mixtures of experts: what fits together is bound, what does not is refused with a
 * sentence that names the key or the tensor. */
#include "support/logit_toys.h"
#include "support/scene.h"

typedef struct heard {
    int n;
    char first[512];
} heard;

static void hear(void *user, const char *what)
{
    heard *h = user;
    if (h->n++ == 0)
        snprintf(h->first, sizeof h->first, "%s", what);
}

/* Returns the message about the file; the writer is freed. */
static heard said_of(gguf_writer *w)
{
    heard h = {0};
    assert_true(writer_save(w, temp_path("mixture.gguf")));
    writer_free(w);
    MUST(drey_missing, temp_path("mixture.gguf"), hear, &h);
    return h;
}

static void refused(gguf_writer *w, const char *says)
{
    heard h = said_of(w);
    if (h.n != 1 || !strstr(h.first, says) || !strstr(h.first, temp_path("mixture.gguf")))
        fail_msg("%d reasons, not \"%s\": %s", h.n, says, h.first);
}

/* A whole file: experts of 64 with a shared one. */
static toy_options mixture(void)
{
    toy_options o = toy_default();
    o.architecture = "qwen2moe";
    o.experts = (toy_experts){.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 96};
    return o;
}

/* Returns the offset after a name in the file. */
static size_t after_name(const gguf_writer *w, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i + n <= w->n; i++)
        if (memcmp(w->bytes + i, name, n) == 0)
            return i + n;
    fail_msg("no %s", name);
    return 0;
}

static void refused_value(const char *key, uint32_t value, const char *says)
{
    toy_options o = mixture();
    gguf_writer w = {0};
    toy_build(&w, &o, 0);
    writer_patch_u32(&w, after_name(&w, key) + 4, value); /* after its kind */
    refused(&w, says);
}

/* Its name is changed: of a key at the architecture, of a tensor at the end. */
static void refused_without(const char *name, const char *says)
{
    toy_options o = mixture();
    gguf_writer w = {0};
    toy_build(&w, &o, 0);
    w.bytes[after_name(&w, name) - (strstr(name, ".weight") ? 1 : strlen(name))] = '_';
    refused(&w, says);
}

static void refused_toy(const toy_options *o, const char *says)
{
    gguf_writer w = {0};
    toy_build(&w, o, 0);
    refused(&w, says);
}

static void refused_keys(const toy_key *keys, const char *says)
{
    toy_options o = mixture();
    o.keys = keys;
    refused_toy(&o, says);
}

TEST(whole_files_are_bound)
{
    for (int i = 0; i <= N_EXPERT_TOYS; i++) {
        toy_options o = mixture();
        gguf_writer w = {0};
        const char *name = i < N_EXPERT_TOYS ? expert_toy(i, &o) : "this test's";
        toy_build(&w, &o, 0);
        heard h = said_of(&w);
        if (h.n > 0)
            fail_msg("%s: %s", name, h.first);
    }
}

TEST(refuses_counts_that_do_not_fit)
{
    refused_value("qwen2moe.expert_used_count", 9,
                  "qwen2moe.expert_used_count says that a token uses 9 of 8 experts");
    refused_value("qwen2moe.expert_used_count", 0, "qwen2moe.expert_used_count");
    refused_value("qwen2moe.expert_used_count", 1000, "qwen2moe.expert_used_count");
    refused_value("qwen2moe.expert_count", 9,
                  "tensor blk.0.ffn_gate_exps.weight has shape [64, 64, 8] instead of [64, 64, 9]");
    refused_value("qwen2moe.expert_count", 4, "tensor blk.0.ffn_gate_exps.weight has shape");
    refused_value("qwen2moe.expert_count", 0x80000000u, "qwen2moe.expert_count is ");
    refused_value("qwen2moe.expert_feed_forward_length", 32,
                  "tensor blk.0.ffn_gate_exps.weight has shape [64, 64, 8] instead of [64, 32, 8]");
    refused_value("qwen2moe.expert_shared_feed_forward_length", 64,
                  "tensor blk.0.ffn_gate_shexp.weight has shape");
    refused_value("qwen2moe.expert_shared_feed_forward_length", 0, /* then it is the whole one's */
                  "tensor blk.0.ffn_gate_shexp.weight has shape");
}

TEST(refuses_what_is_missing)
{
    static const char *const tensors[] = {
        "blk.1.ffn_gate_inp.weight",  "blk.1.ffn_gate_exps.weight",  "blk.1.ffn_up_exps.weight",
        "blk.1.ffn_down_exps.weight", "blk.1.ffn_gate_shexp.weight", "blk.1.ffn_down_shexp.weight"};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        char says[96];
        snprintf(says, sizeof says, "tensor %s is missing", tensors[i]);
        refused_without(tensors[i], says);
    }
    refused_without("qwen2moe.expert_used_count", "qwen2moe.expert_used_count");
    refused_without("qwen2moe.expert_count", "qwen2moe.expert_used_count is 2");
}

static toy_options gpt_oss(void)
{
    toy_options o = toy_default();
    o.architecture = "gpt-oss";
    o.experts = (toy_experts){.n = 8, .n_used = 2, .n_ff = 64};
    return o;
}

/* Without them it would be another model's text. */
TEST(refuses_a_gpt_oss_without_sinks_or_biases)
{
    static const char *const tensors[] = {
        "blk.1.attn_sinks.weight", "blk.1.ffn_gate_inp.bias",  "blk.1.ffn_gate_exps.bias",
        "blk.1.ffn_up_exps.bias",  "blk.1.ffn_down_exps.bias", "blk.1.post_attention_norm.weight"};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        toy_options o = gpt_oss();
        gguf_writer w = {0};
        char says[96];
        toy_build(&w, &o, 0);
        w.bytes[after_name(&w, tensors[i]) - 1] = '_';
        snprintf(says, sizeof says, "tensor %s is missing", tensors[i]);
        refused(&w, says);
    }
}

/* Changes a tensor's first or second size, after its name and the number of them. */
static void refused_size(const char *tensor, int which, uint32_t size, const char *says)
{
    toy_options o = gpt_oss();
    gguf_writer w = {0};
    toy_build(&w, &o, 0);
    writer_patch_u32(&w, after_name(&w, tensor) + 4 + 8 * (size_t)which, size);
    refused(&w, says);
}

TEST(refuses_biases_of_another_shape)
{
    refused_size("blk.0.attn_sinks.weight", 0, 2,
                 "tensor blk.0.attn_sinks.weight has shape [2, 1] instead of [4, 1]");
    refused_size("blk.0.ffn_gate_inp.bias", 0, 4,
                 "tensor blk.0.ffn_gate_inp.bias has shape [4, 1] instead of [8, 1]");
    refused_size("blk.2.ffn_gate_exps.bias", 1, 4,
                 "tensor blk.2.ffn_gate_exps.bias has shape [64, 4] instead of [64, 8]");
    refused_size("blk.2.ffn_down_exps.bias", 0, 32,
                 "tensor blk.2.ffn_down_exps.bias has shape [32, 8] instead of [64, 8]");
}

TEST(refuses_gates_and_ups_that_are_not_twice_as_many)
{
    toy_options o = mixture();
    gguf_writer w = {0};
    o.experts.fused = true;
    toy_build(&w, &o, 0);
    writer_patch_u32(&w, after_name(&w, "blk.1.ffn_gate_up_exps.weight") + 4 + 8, 64);
    refused(&w, "tensor blk.1.ffn_gate_up_exps.weight has shape [64, 64, 8] instead of "
                "[64, 128, 8]");
}

TEST(refuses_widths_that_no_kernel_has)
{
    toy_options o = mixture();
    o.type = TYPE_F16;
    o.experts.n_ff = 48;
    refused_toy(&o, "tensor blk.0.ffn_gate_exps.weight has experts of 48 rows");
    o.experts.n_ff = 64;
    o.n_embd = 80; /* rows of what an expert adds */
    refused_toy(&o, "tensor blk.0.ffn_down_exps.weight has experts of 80 rows");
}

TEST(refuses_routers_that_cannot_choose)
{
    static const toy_key gate[] = {{"expert_gating_func", GGUF_U32, 5, NULL}, {0}};
    static const toy_key thirds[] = {{"expert_group_count", GGUF_U32, 3, NULL},
                                     {"expert_group_used_count", GGUF_U32, 1, NULL},
                                     {0}};
    static const toy_key single[] = {{"expert_group_count", GGUF_U32, 8, NULL},
                                     {"expert_group_used_count", GGUF_U32, 1, NULL},
                                     {0}};
    static const toy_key none[] = {{"expert_group_count", GGUF_U32, 2, NULL}, {0}};
    static const toy_key deep[] = {{"leading_dense_block_count", GGUF_U32, 4, NULL}, {0}};
    static const toy_key dense[] = {{"leading_dense_block_count", GGUF_U32, 1, NULL}, {0}};
    static const toy_key scale[] = {{"expert_weights_scale", GGUF_F32, -1, NULL}, {0}};
    refused_keys(gate, "qwen2moe.expert_gating_func is 5");
    refused_keys(thirds, "1 of 3 groups with 8 experts cannot give 2 experts");
    refused_keys(single, "1 of 8 groups with 8 experts cannot give 2 experts");
    refused_keys(none, "0 of 2 groups with 8 experts cannot give 2 experts");
    refused_keys(deep, "qwen2moe.leading_dense_block_count is 4");
    refused_keys(dense, "tensor blk.0.ffn_gate.weight is missing");
    refused_keys(scale, "qwen2moe.expert_weights_scale is -1");
}
