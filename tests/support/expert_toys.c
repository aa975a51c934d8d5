/* Toys of mixtures of experts: see logit_toys.h. */
#include "support/logit_toys.h"

static const toy_key scales[] = {{"attention.scale", GGUF_F32, 0.2, NULL},
                                 {"embedding_scale", GGUF_F32, 3, NULL},
                                 {"residual_scale", GGUF_F32, 0.5, NULL},
                                 {"logit_scale", GGUF_F32, 1.5, NULL},
                                 {0}};
static const toy_key sigmoid[] = {{"expert_gating_func", GGUF_U32, 2, NULL},
                                  {"expert_weights_norm", GGUF_BOOL, 1, NULL},
                                  {"expert_weights_scale", GGUF_F32, 2.5, NULL},
                                  {0}};
static const toy_key groups[] = {{"expert_gating_func", GGUF_U32, 2, NULL},
                                 {"expert_group_count", GGUF_U32, 4, NULL},
                                 {"expert_group_used_count", GGUF_U32, 2, NULL},
                                 {0}};
static const toy_key chosen[] = {
    {"expert_gating_func", GGUF_U32, 3, NULL}, {"expert_weights_scale", GGUF_F32, 1.5, NULL}, {0}};
static const toy_key window[] = {{"attention.sliding_window", GGUF_U32, 37, NULL}, {0}};
static const toy_key yarn[] = {{"attention.sliding_window", GGUF_U32, 37, NULL},
                               {"rope.scaling.type", GGUF_STRING, 0, "yarn"},
                               {"rope.scaling.factor", GGUF_F32, 8, NULL},
                               {"rope.scaling.original_context_length", GGUF_U32, 64, NULL},
                               {0}};
/* Seeds are such that each expert is used in each layer, and that no choice among the goldens' ids
 * is so close (nearer than 6e-5 in its weights) that rounding could turn it. "granitemoe-shared" is
 * the one whose shared expert has no gate, "qwen3moe" has heads wider than width / heads; in
 * "experts-chosen" weights are the softmax of the chosen alone, scaled. */
static const struct {
    const char *name, *architecture;
    const toy_key *keys;
    uint64_t seed;
    uint32_t type;
    int32_t head_dim;
    toy_experts experts;
} toys[] = {
    {"toy-mixtral", "llama", NULL, 200, TOY_TYPE_MIXED, 0, {.n = 8, .n_used = 2}},
    {"toy-granitemoe", "granitemoe", scales, 281, TYPE_F16, 0, {.n = 8, .n_used = 3}},
    {"toy-granitemoe-shared",
     "granitemoe",
     scales,
     212,
     TYPE_F32,
     0,
     {.n = 16, .n_used = 4, .n_ff = 64, .n_shared = 96}},
    {"toy-qwen2moe",
     "qwen2moe",
     NULL,
     323,
     TOY_TYPE_MIXED,
     0,
     {.n = 12, .n_used = 4, .n_ff = 256, .n_shared = 512}},
    {"toy-qwen3moe", "qwen3moe", NULL, 254, TYPE_BF16, 32, {.n = 24, .n_used = 4, .n_ff = 32}},
    {"toy-olmoe", "olmoe", NULL, 235, TYPE_F32, 0, {.n = 16, .n_used = 4, .n_ff = 32}},
    {"toy-experts-later",
     "qwen3moe",
     NULL,
     266,
     TYPE_F16,
     0,
     {.n = 8, .n_used = 2, .n_ff = 96, .n_dense = 1}},
    {"toy-experts-sigmoid",
     "llama",
     sigmoid,
     247,
     TYPE_F32,
     0,
     {.n = 8, .n_used = 2, .n_ff = 64, .choice_bias = true}},
    {"toy-experts-groups",
     "qwen3moe",
     groups,
     278,
     TYPE_F16,
     0,
     {.n = 16, .n_used = 3, .n_ff = 64, .choice_bias = true}},
    {"toy-experts-chosen", "olmoe", chosen, 349, TYPE_F32, 0, {.n = 8, .n_used = 3, .n_ff = 64}},
    {"toy-experts-fused",
     "qwen3moe",
     NULL,
     360,
     TYPE_F16,
     0,
     {.n = 8, .n_used = 2, .n_ff = 96, .fused = true}},
    {"toy-gpt-oss", "gpt-oss", window, 351, TYPE_F32, 0, {.n = 8, .n_used = 3, .n_ff = 64}},
    {"toy-gpt-oss-yarn", "gpt-oss", yarn, 362, TYPE_F32, 32, {.n = 16, .n_used = 4, .n_ff = 32}},
    {"toy-gpt-oss-mxfp4",
     "gpt-oss",
     window,
     353,
     TYPE_MXFP4,
     32,
     {.n = 8, .n_used = 4, .n_ff = 96}},
};

const char *expert_toy(int i, toy_options *o)
{
    *o = toy_default();
    o->architecture = toys[i].architecture;
    o->keys = toys[i].keys;
    o->seed = toys[i].seed;
    o->type = toys[i].type;
    if (o->type == TOY_TYPE_MIXED)
        o->n_embd = o->n_ff = 256;
    o->head_dim = toys[i].head_dim;
    o->experts = toys[i].experts;
    return toys[i].name;
}
