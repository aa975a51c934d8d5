/* Toys with golden logits: see logit_toys.h. */
#include "support/logit_toys.h"

static void mixed(toy_options *o) /* every type; grouped heads; an output matrix */
{
    o->n_embd = 256;
    o->n_ff = 512;
    o->type = TOY_TYPE_MIXED;
}

const char *logit_toy(int i, toy_options *o)
{
    toy_options_init(o);
    o->seed = 100 + (uint64_t)i;
    switch (i) {
    case 0:
        mixed(o);
        return "toy-llama";
    case 1:
        mixed(o);
        o->architecture = "qwen2";
        o->tied = true;
        return "toy-qwen2";
    case 2: /* heads wider than width / heads, as Llama 3.2's rope_freqs */
        o->head_dim = 32;
        o->rope_freqs = true;
        o->type = TYPE_F16;
        return "toy-freqs";
    case 3:
        o->rope_scaling = "yarn";
        o->rope_factor = 4;
        o->rope_original_context = 32;
        o->type = TYPE_BF16;
        return "toy-yarn";
    case 4:
        o->architecture = "qwen2";
        o->rope_scaling = "linear";
        o->rope_factor = 3;
        o->rope_original_context = 64;
        o->type = TYPE_F32;
        return "toy-linear";
    case 5:
        o->biases = true;
        o->type = TYPE_F16;
        return "toy-biases";
    default:
        o->architecture = "qwen2";
        o->biases = true;
        o->tied = true;
        o->type = TYPE_F32;
        return "toy-qwen2-biases";
    }
}
