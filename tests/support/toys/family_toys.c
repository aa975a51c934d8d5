/* Toys of families: see family_toys.h. */
#include "support/toys/family_toys.h"

static const toy_key logit_scale[] = {{"logit_scale", GGUF_F32, 0.3, NULL}, {0}};

/* Files have what softplus makes the factors of. */
static const toy_key xielu[] = {{"/xielu.alpha_p", GGUF_ARRAY, 0, "f32 0.4 -0.3 1.1"},
                                {"/xielu.alpha_n", GGUF_ARRAY, 0, "f32 -0.6 0.9 0.2"},
                                {"/xielu.beta", GGUF_ARRAY, 0, "f32 0.5 0.4 0.6"},
                                {"/xielu.eps", GGUF_ARRAY, 0, "f32 -1e-6 -1e-6 -1e-6"},
                                {0}};

/* A text's positions are one number each. */
static const toy_key sections[] = {{"rope.dimension_sections", GGUF_ARRAY, 0, "u32 2 1 1 0"}, {0}};

#define GATED_DELTA (TOY_HEAD_NORMS | TOY_POST_IS_FFN_NORM | TOY_GATES_IN_Q)
#define LAYER_NORMS (TOY_LAYER_NORMS | TOY_NORM_BIASES)

static const family_row rows[] = {
    {.name = "toy-glm4",
     .architecture = "glm4",
     .form = TOY_POST_NORMS | TOY_GATE_IN_UP | TOY_QKV_BIASES,
     .seed = 400,
     .type = TYPE_F16,
     .head_dim = 32,
     .n_rot = 16},
    {.name = "toy-olmo2",
     .architecture = "olmo2",
     .form = TOY_NORMS_AFTER | TOY_POST_NORMS | TOY_WIDE_NORMS,
     .seed = 401,
     .type = TYPE_F32},
    {.name = "toy-exaone4",
     .architecture = "exaone4",
     .form = TOY_NORMS_AFTER | TOY_POST_NORMS | TOY_HEAD_NORMS,
     .seed = 402,
     .type = TYPE_F16},
    {.name = "toy-arcee",
     .architecture = "arcee",
     .form = TOY_NO_GATE,
     .seed = 403,
     .type = TYPE_F32},
    {.name = "toy-apertus",
     .architecture = "apertus",
     .form = TOY_NO_GATE | TOY_HEAD_NORMS,
     .keys = xielu,
     .seed = 404,
     .type = TYPE_F16},
    {.name = "toy-starcoder2",
     .architecture = "starcoder2",
     .form = LAYER_NORMS | TOY_NO_GATE | TOY_QKV_BIASES | TOY_O_BIAS | TOY_FFN_BIASES,
     .seed = 405,
     .type = TYPE_F32},
    {.name = "toy-nemotron",
     .architecture = "nemotron",
     .form = LAYER_NORMS | TOY_NO_GATE,
     .seed = 406,
     .type = TYPE_F16,
     .n_rot = 8},
    {.name = "toy-stablelm",
     .architecture = "stablelm",
     .form = LAYER_NORMS | TOY_QKV_BIASES,
     .seed = 407,
     .type = TYPE_F32,
     .n_rot = 4},
    {.name = "toy-stablelm-parallel",
     .architecture = "stablelm",
     .form = LAYER_NORMS | TOY_PARALLEL | TOY_OWN_NORMS,
     .seed = 408,
     .type = TYPE_F16,
     .n_rot = 4},
    {.name = "toy-phi2",
     .architecture = "phi2",
     .form = LAYER_NORMS | TOY_PARALLEL | TOY_NO_GATE | TOY_QKV_BIASES | TOY_O_BIAS |
             TOY_FFN_BIASES | TOY_HEAD_BIAS,
     .seed = 409,
     .type = TYPE_F32,
     .n_heads_kv = 4,
     .n_rot = 8},
    {.name = "toy-command-r",
     .architecture = "command-r",
     .form = TOY_LAYER_NORMS | TOY_PARALLEL,
     .keys = logit_scale,
     .seed = 410,
     .type = TYPE_F16,
     .tied = true},
    {.name = "toy-command-r-plus",
     .architecture = "command-r",
     .form = TOY_LAYER_NORMS | TOY_PARALLEL | TOY_OWN_NORMS,
     .keys = logit_scale,
     .seed = 411,
     .type = TYPE_F32,
     .tied = true},
    {.name = "toy-qwen35",
     .architecture = "qwen35",
     .form = GATED_DELTA,
     .keys = sections,
     .seed = 412,
     .type = TYPE_F32,
     .n_layers = 4,
     .head_dim = 32,
     .n_rot = 8,
     .delta = {2, 4, 16, 2, 0.3f, false, false}},
    {.name = "toy-qwen35-forgetting", /* log decays of -80 and more */
     .architecture = "qwen35",
     .form = GATED_DELTA,
     .keys = sections,
     .seed = 413,
     .type = TYPE_F16,
     .n_layers = 4,
     .head_dim = 32,
     .n_rot = 8,
     .delta = {2, 2, 32, 4, 80, false, false}},
    {.name = "toy-qwen35moe",
     .architecture = "qwen35moe",
     .form = GATED_DELTA,
     .keys = sections,
     .seed = 414,
     .type = TYPE_F16,
     .n_layers = 3,
     .head_dim = 32,
     .n_rot = 8,
     .experts = {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 64, .fused = true},
     .delta = {2, 4, 32, 3, 0.05f, false, false}},
    {.name = "toy-qwen3next",
     .architecture = "qwen3next",
     .form = GATED_DELTA,
     .seed = 415,
     .type = TYPE_F16,
     .n_layers = 3,
     .head_dim = 32,
     .n_rot = 8,
     .experts = {.n = 8, .n_used = 3, .n_ff = 64, .n_shared = 64},
     .delta = {2, 6, 16, 3, 0.3f, true, false}},
    {.name = "toy-qwen3next-old",
     .architecture = "qwen3next",
     .form = GATED_DELTA,
     .seed = 416,
     .type = TYPE_F32,
     .n_layers = 2,
     .head_dim = 32,
     .n_rot = 8,
     .experts = {.n = 8, .n_used = 2, .n_ff = 64, .n_shared = 64},
     .delta = {2, 4, 32, 2, 1, true, true}},
};

_Static_assert(sizeof rows / sizeof *rows == N_FAMILY_TOYS, "the count of family_toys.h");

const char *family_toy(int i, toy_options *o)
{
    const family_row *r = &rows[i];
    *o = toy_default();
    o->architecture = r->architecture;
    o->form = r->form;
    o->keys = r->keys;
    o->seed = r->seed;
    o->type = r->type;
    o->n_layers = r->n_layers ? r->n_layers : o->n_layers;
    o->n_heads_kv = r->n_heads_kv ? r->n_heads_kv : o->n_heads_kv;
    o->head_dim = r->head_dim;
    o->n_rot = r->n_rot;
    o->tied = r->tied;
    o->experts = r->experts;
    o->delta = r->delta;
    return r->name;
}
