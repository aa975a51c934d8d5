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
    WINDOW_NEVER, /* refused where config.json asks for one */
    WINDOW_ALL,   /* all layers have it, where config.json has one */
    WINDOW_STATED /* as WINDOW_ALL, and the key is always there */
} windowing;

typedef struct family {
    const char *name;      /* name in "architectures" of config.json */
    const char *arch_name; /* general.architecture */
    const arch *arch;      /* found by that name */
    naming naming;
    const char *feed_forward; /* T5's feed_forward_proj where it is missing */
    const char *pre;          /* the pre-tokenizer of vocab.json with merges.txt; NULL: unknown */
    windowing window;
    double rope_base;  /* base where config.json does not say; 0: the key is left out */
    bool qkv_biases;   /* Q, K and V have biases, whatever config.json says */
    bool norms_from_1; /* the folder's norms have 1 less */
    bool no_blank;     /* a text begins without a blank in front (add_space_prefix) */
    bool plain_head;   /* logits are not scaled, whatever config.json says of the embedding */
    bool adds_ends;    /* BOS and EOS go around a text, whatever the tokenizer's files say */
    int32_t skipped_positions; /* rows before that of the first position */
} family;

/* The family of a folder. DREY_ERR_UNSUPPORTED: another architecture, a quantised folder. */
drey_status family_find(family *out, const hub_folder *f, drey_error *err);

/* Rows of Q and K change places: neighbours are rotated in GGUF, halves in the folder. */
static inline bool family_permutes(const family *a)
{
    return a->arch->rope == ROPE_NEIGHBOURS;
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
