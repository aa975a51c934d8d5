/* Families of models: what a folder calls an architecture (model/arch.h), in what the folder
 * differs from a file of it, and what of config.json becomes keys. Key names: gguf-py's constants;
 * names and meanings of config.json: the configuration classes of Hugging Face transformers. */
#pragma once

#include "convert/hub_folder.h"
#include "gguf/gguf.h"
#include "gguf/new_gguf.h"
#include "model/arch.h"

/* Ways to make names of tensors (tensor_names.c). */
typedef enum naming {
    NAMING_LLAMA,
    NAMING_GEMMA,
    NAMING_GPT2,
    NAMING_GPT_OSS,
    NAMING_T5, /* the encoder's names; the decoder's is the next one */
    NAMING_T5_DECODER,
    NAMING_BART,
    NAMING_BART_DECODER
} naming;

typedef enum windowing {
    WINDOW_NEVER,  /* refused where config.json asks for one */
    WINDOW_ALL,    /* all layers have it, where config.json has one */
    WINDOW_STATED, /* as WINDOW_ALL, and the key is always there */
    WINDOW_LISTED  /* config.json says which layers have it (layer_types) */
} windowing;

/* Ways in which a member of config.json counts. */
typedef enum rule_kind {
    RULE_COUNT,   /* a whole number from 0 on */
    RULE_NUMBER,  /* a number */
    RULE_NUMBERS, /* a number of each layer, null being 0 */
    RULE_IS,      /* no key: any other number, or true and false as 1 and 0, is refused */
    RULE_SAYS     /* no key: any other text than `to` is refused */
} rule_kind;

typedef struct family_rule {
    const char *from; /* "a|b": the first one that config.json has */
    const char *to;   /* the key, after "ARCH." */
    rule_kind kind;
    double number; /* RULE_IS: the one that drey computes */
} family_rule;

typedef struct role role; /* convert/tensor_names.h */
typedef struct fused_role fused_role;

typedef struct family {
    const char *name;      /* name in "architectures" of config.json */
    const char *arch_name; /* general.architecture */
    const arch *arch;      /* found by that name */
    naming naming;
    const char *feed_forward; /* T5's feed_forward_proj where it is missing */
    const char *pre;          /* the pre-tokenizer of vocab.json with merges.txt; NULL: unknown */
    windowing window;
    double rotated;    /* part of a head where config.json does not say; 0: all, and no other */
    double rope_base;  /* base where config.json does not say; 0: the key is left out */
    bool qkv_biases;   /* Q, K and V have biases, whatever config.json says */
    bool norms_from_1; /* the folder's norms have 1 less */
    bool no_blank;     /* a text begins without a blank in front (add_space_prefix) */
    bool plain_head;   /* logits are not scaled, whatever config.json says of the embedding */
    bool rows_stay;    /* rows of Q and K are those of rotated neighbours already */
    bool norms_chosen; /* weights of the chosen experts are normed where config.json does not say */
    bool from_tensors; /* heads of each layer, and the width of the feed-forward part, are the
                          tensors' */
    bool adds_ends;    /* BOS and EOS go around a text, whatever the tokenizer's files say */
    int32_t skipped_positions; /* rows before that of the first position */
    const char *dense_width;   /* feed-forward part; NULL: intermediate_size */
    const char *expert_width;  /* part of an expert; NULL: moe_intermediate_size */
    const role *own;           /* names of tensors, in place of those of most; or NULL */
    const fused_role *fused;   /* the same of experts in one tensor */
    const family_rule *rules;  /* further members of config.json; or NULL */
} family;

/* Names of config.json's members. */
#define CONFIG_EXPERTS   "num_local_experts|num_experts|n_routed_experts|moe_num_experts"
#define CONFIG_KEY_HEADS "num_key_value_heads|num_attention_groups"

/* Blocks for multi-token prediction that the folder has and the family's files as well. */
int64_t family_mtp_blocks(const family *a, const hub_folder *f);

/* The family of a folder. DREY_ERR_UNSUPPORTED: another architecture, a quantised folder. */
drey_status family_find(family *out, const hub_folder *f, drey_error *err);

/* Rows of Q and K change places: neighbours are rotated in GGUF, halves in the folder. */
static inline bool family_permutes(const family *a)
{
    return a->arch->rope == ROPE_NEIGHBOURS && !a->rows_stay;
}
/* The one function between the matrices of a feed-forward part, as config.json names it. */
const char *family_activation(const family *a);

/* Returns whether experts are in MXFP4 (quantization_config). */
bool folder_is_mxfp4(const hub_folder *f);

/* RoPE factors of a model, tensors of the file. */
typedef struct rope_factors {
    const char *name; /* name of the tensor; NULL: it has none */
    float *values;    /* [n], of plan_rope's memory */
    int32_t n;
} rope_factors;
enum { MOST_ROPE_FACTORS = 2 };

/* Writes the keys under "ARCH.", and finds the factors, whose values the caller frees. What the
 * folder asks for and drey's architecture does not compute is DREY_ERR_UNSUPPORTED. */
drey_status family_keys(const family *a, const hub_folder *f, new_gguf *g,
                        rope_factors factors[MOST_ROPE_FACTORS], drey_error *err);
