/* Toys of families that differ from others in numbers and names: see logit_toys.h. Those whose
 * layers have other forms are in family_toys.c. */
#include "support/logit_toys.h"

static const toy_key images[] = {{"rope.dimension_sections", GGUF_ARRAY, 0, "u32 6 5 5 0"},
                                 {"n_deepstack_layers", GGUF_U32, 1, NULL},
                                 {0}};
static const toy_key mistral3[] = {{"rope.scaling.yarn_log_multiplier", GGUF_F32, 0.5, NULL},
                                   {"attention.temperature_scale", GGUF_F32, 0.5, NULL},
                                   {0}};
static const toy_key scaled[] = {{"expert_weights_norm", GGUF_BOOL, 1, NULL},
                                 {"expert_weights_scale", GGUF_F32, 1.5, NULL},
                                 {0}};
static const toy_key counted[] = {
    {"expert_weights_norm", GGUF_BOOL, 1, NULL}, {"expert_shared_count", GGUF_U32, 1, NULL}, {0}};
static const toy_key groups[] = {{"expert_gating_func", GGUF_U32, 2, NULL},
                                 {"expert_weights_norm", GGUF_BOOL, 1, NULL},
                                 {"expert_group_count", GGUF_U32, 4, NULL},
                                 {"expert_group_used_count", GGUF_U32, 2, NULL},
                                 {0}};
static const toy_key windows[] = {
    {"attention.sliding_window", GGUF_U32, 24, NULL},
    {"attention.sliding_window_pattern", GGUF_ARRAY, 0, "bool 1 1 0 1"},
    {"expert_weights_norm", GGUF_BOOL, 1, NULL},
    {0}};
static const toy_key l_cache[] = {
    {"shortconv.l_cache", GGUF_U32, 3, NULL}, {"expert_gating_func", GGUF_U32, 2, NULL}, {0}};
static const toy_key softplus[] = {
    {"expert_gating_func", GGUF_U32, 4, NULL}, {"expert_weights_scale", GGUF_F32, 1.5, NULL}, {0}};
/* Seeds are such as in expert_toys.c. */
static const struct {
    const char *name;
    toy_options o; /* with what differs from the usual */
} toys[] = {
    {"toy-qwen2vl",
     {.architecture = "qwen2vl", .form = TOY_QKV_BIASES, .seed = 500, .keys = images}},
    {"toy-qwen3vl",
     {.architecture = "qwen3vl", .form = TOY_HEAD_NORMS, .seed = 501, .keys = images}},
    {"toy-qwen3vlmoe",
     {.architecture = "qwen3vlmoe",
      .form = TOY_HEAD_NORMS,
      .seed = 502,
      .keys = images,
      .experts = {.n = 8, .n_used = 2, .n_ff = 64}}},
    {"toy-mistral3",
     {.architecture = "mistral3",
      .seed = 503,
      .keys = mistral3,
      .rope_scaling = "yarn",
      .rope_factor = 8,
      .rope_original_context = 48,
      .head_dim = 32}},
    {"toy-internlm2", {.architecture = "internlm2", .seed = 504}},
    {"toy-smollm3", {.architecture = "smollm3", .seed = 505, .n_layers = 5}},
    {"toy-seed-oss",
     {.architecture = "seed_oss", .form = TOY_QKV_BIASES | TOY_POST_IS_FFN_NORM, .seed = 506}},
    {"toy-ernie", {.architecture = "ernie4_5", .seed = 507}},
    {"toy-ernie-moe",
     {.architecture = "ernie4_5-moe",
      .seed = 518,
      .n_layers = 4,
      .experts = {.n = 8, .n_used = 3, .n_ff = 64, .n_dense = 1, .step = 2, .choice_bias = true}}},
    {"toy-glm4moe",
     {.architecture = "glm4moe",
      .form = TOY_QKV_BIASES | TOY_POST_IS_FFN_NORM,
      .seed = 529,
      .keys = counted,
      .n_rot = 8,
      .n_nextn = 1,
      .experts =
          {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 64, .n_dense = 1, .choice_bias = true}}},
    {"toy-glm4moe-norms",
     {.architecture = "glm4moe",
      .form = TOY_QKV_BIASES | TOY_HEAD_NORMS | TOY_POST_IS_FFN_NORM,
      .seed = 510,
      .keys = scaled,
      .n_rot = 8,
      .experts = {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 96, .choice_bias = true}}},
    {"toy-hy-v3",
     {.architecture = "hy_v3",
      .form = TOY_HEAD_NORMS,
      .seed = 511,
      .keys = scaled,
      .head_dim = 32,
      .n_nextn = 1,
      .experts =
          {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 32, .n_dense = 1, .old_bias = true}}},
    {"toy-minimax",
     {.architecture = "minimax-m2",
      .form = TOY_WIDE_NORMS,
      .seed = 512,
      .n_rot = 8,
      .experts = {.n = 16, .n_used = 3, .n_ff = 64, .choice_bias = true}}},
    {"toy-dots1",
     {.architecture = "dots1",
      .form = TOY_HEAD_NORMS,
      .seed = 513,
      .keys = scaled,
      .experts =
          {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 128, .n_dense = 1, .choice_bias = true}}},
    {"toy-exaone-moe",
     {.architecture = "exaone-moe",
      .form = TOY_HEAD_NORMS,
      .seed = 514,
      .keys = windows,
      .n_layers = 4,
      .experts =
          {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 64, .n_dense = 1, .choice_bias = true}}},
    {"toy-bailingmoe2",
     {.architecture = "bailingmoe2",
      .form = TOY_FUSED_QKV | TOY_HEAD_NORMS,
      .seed = 515,
      .keys = groups,
      .n_rot = 8,
      .experts =
          {.n = 16, .n_used = 3, .n_ff = 64, .n_shared = 64, .n_dense = 1, .choice_bias = true}}},
    {"toy-hunyuan",
     {.architecture = "hunyuan-dense", .form = TOY_HEAD_NORMS, .seed = 519, .head_dim = 32}},
    {"toy-hunyuan-moe",
     {.architecture = "hunyuan-moe",
      .form = TOY_HEAD_NORMS,
      .seed = 520,
      .experts = {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 64}}},
    {"toy-uneven", {.architecture = "qwen3", .seed = 516, .uneven = true}},
    {"toy-softplus",
     {.architecture = "qwen3moe",
      .seed = 517,
      .keys = softplus,
      .experts = {.n = 8, .n_used = 2, .n_ff = 64, .choice_bias = true}}},
    {"toy-lfm2moe",
     {.architecture = "lfm2moe",
      .form = TOY_SHORT_CONV | TOY_HEAD_NORMS,
      .seed = 521,
      .tied = true,
      .keys = l_cache,
      .experts = {.n = 8, .n_used = 2, .n_ff = 64, .n_dense = 1, .choice_bias = true}}},
};

_Static_assert(sizeof toys / sizeof *toys == N_NUMBER_TOYS, "logit_toys.h says how many");

const char *number_toy(int i, toy_options *o)
{
    const toy_options usual = toy_default();
    *o = toys[i].o;
    o->n_layers = o->n_layers ? o->n_layers : usual.n_layers;
    o->n_embd = usual.n_embd;
    o->n_heads = usual.n_heads;
    o->n_heads_kv = usual.n_heads_kv;
    o->n_ff = usual.n_ff;
    o->n_context = usual.n_context;
    o->type = i % 2 ? TYPE_F32 : TYPE_F16;
    o->pre = usual.pre;
    o->chat_template = usual.chat_template;
    o->logit_gain = usual.logit_gain;
    o->n_parts = usual.n_parts;
    return toys[i].name;
}
