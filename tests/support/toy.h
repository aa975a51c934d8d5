/* Toy models: small, seeded GGUF files of any architecture and of every tensor type.
 *
 * A toy's weights are random blocks whose scales give activations of about 1 and logits that spread
 * widely (toy_options.logit_gain), so that greedy text wanders instead of repeating a token. Every
 * tensor has its own random numbers, from the seed and its name: two toys of one seed and width
 * share the tensors that both have. Layers weigh less with depth, therefore a toy with fewer
 * layers, or one with a little noise (0.005), often agrees with the full one: that is how tests get
 * drafts that are right much of the time.
 *
 * Vocabulary: the 256 bytes (so any text can be written), some hundred words with the merges or
 * scores that lead to them, and special tokens. Same options, same bytes, on every machine. */
#pragma once

#include "gguf/types.h"
#include "support/gguf_writer.h"

/* Each matrix another type, in turn: of those with kernels of their own, or of the coded ones and
 * Q4_K. */
enum { TOY_TYPE_MIXED = 1000, TOY_TYPE_CODED };

/* Tensors that layers have besides llama's, or lack. */
enum {
    TOY_LAYER_NORMS = 1,  /* norms take the mean off: the key of their epsilon says it */
    TOY_NORM_BIASES = 2,  /* and have biases */
    TOY_NORMS_AFTER = 4,  /* no norms before products */
    TOY_POST_NORMS = 8,   /* norms of what is added */
    TOY_HEAD_NORMS = 16,  /* one for all heads of Q, one for those of K */
    TOY_WIDE_NORMS = 32,  /* norms of all heads together */
    TOY_OWN_NORMS = 64,   /* each head has its own */
    TOY_QKV_BIASES = 128, /* biases of Q, K, V; */
    TOY_O_BIAS = 256,     /* bias of attention's output, */
    TOY_FFN_BIASES = 512, /* biases of the feed-forward part (and its gate) */
    TOY_HEAD_BIAS = 1024, /* bias of the logits */
    TOY_FUSED_QKV = 2048,
    TOY_NO_GATE = 4096,
    TOY_GATE_IN_UP = 8192,
    TOY_PARALLEL = 1 << 14,     /* no norm of the feed-forward part */
    TOY_GATED = 1 << 15,        /* gates of each number that attention gives; */
    TOY_GATED_HEADS = 1 << 16,  /* gates of each head */
    TOY_SINKS = 1 << 17,        /* in every layer; */
    TOY_WINDOW_SINKS = 1 << 18, /* in all but each fourth one */
    TOY_POST_IS_FFN_NORM = 1 << 19,
    TOY_SHORT_CONV = 1 << 20, /* convolutions in every other layer, the first one among them */
    TOY_GATES_IN_Q = 1 << 21, /* each head's gates after its queries */
    TOY_ONE_BLOCK = 1 << 22,  /* each layer is one block, with one norm */
    TOY_BESIDE = 1 << 23      /* state spaces next to attention */
};

/* A further key under the architecture's prefix; "/NAME": of that name. */
typedef struct toy_key {
    const char *suffix; /* "rope.scaling.factor"; NULL ends a list */
    gguf_kind kind;     /* U32, F32, BOOL, STRING, or ARRAY: two U32, or what `text` lists */
    double number;
    const char *text; /* text of a STRING; items of an ARRAY: "u32 2 4", "f32 0.5 1", "bool 1 0" */
} toy_key;

/* A mixture of experts: its layers have a router and n experts in place of one feed-forward part.
 * Routers choose each expert for some tokens and others for the next, and the chosen matter. */
typedef struct toy_experts {
    int32_t n;        /* 0: there are none */
    int32_t n_used;   /* by a token */
    int32_t n_ff;     /* width of one; 0: n_ff of the others, and no key in the file */
    int32_t n_shared; /* rows of the expert that all tokens use; 0: none */
    int32_t n_dense;  /* the first layers, which have none; 0: no key in the file */
    int32_t step;     /* one of so many layers has them; 0: all, and no key in the file */
    bool choice_bias; /* with exp_probs_b.bias */
    bool old_bias;    /* with exp_probs_b, and without a key for n_dense */
    bool fused;       /* gates and ups in one tensor */
    int32_t n_latent; /* width of what they read and make; 0: that of rows */
    uint32_t type;    /* type of their matrices; 0: that of the others */
} toy_experts;

/* Gated delta nets in place of attention, in all layers but one of so many. */
typedef struct toy_delta {
    int32_t n_key_heads; /* 0: there are none */
    int32_t n_value_heads, dim, period;
    float decay;     /* log decays are about so much */
    bool by_heads;   /* beta and alpha in one matrix, */
    bool all_inputs; /* and q, k, v and z */
} toy_delta;

/* A residual stream of n parts, with hyper connections in place of norms; attention chooses
 * positions where there are more than so many. */
typedef struct toy_streams {
    int32_t n; /* 0: it is one */
    int32_t rank;
    int32_t n_chosen; /* positions, in blocks of 4 */
    bool ngrams;      /* with a table of n-grams, in front of the second layer */
} toy_streams;

/* Layers of two kinds, local ones and others, as Gemma 4's are. */
typedef struct toy_kinds {
    int32_t period;            /* the last of so many layers sees all; 0: there are no kinds */
    int32_t local_dim;         /* numbers of a head in local layers */
    int32_t n_heads_kv_global; /* 0: as in the others */
    int32_t n_shared;          /* last layers that read other ones' keys and values */
    int32_t width;             /* embeddings by layer; 0: none */
    bool wide;                 /* layers that share have twice n_ff, and keys that nobody uses */
    bool no_values;            /* layers that see all have no attn_v */
} toy_kinds;
/* State spaces (Mamba 2). */
typedef struct toy_mamba {
    const char *kinds; /* a letter for each layer: M a state space, A attention, F neither */
    int32_t n_heads, n_groups, dim, state_dim; /* n_heads 0: there are none */
    float decay;                               /* log decays are about so much times dt */
    bool without_norm;
} toy_mamba;
/* Latent attention in all layers: each head has n_plain numbers of queries besides those that are
 * rotated (n_rot), and v_dim of values. */
typedef struct toy_latent {
    int32_t kv_rank; /* 0: there is none */
    int32_t q_rank;  /* 0: queries are made of the row */
    int32_t n_plain, v_dim;
    bool whole;   /* the matrices of heads in one tensor, as in old files */
    bool indexer; /* with what chooses among more than 2048 positions */
} toy_latent;

typedef struct toy_options {
    const char *architecture; /* with the tensors that llama does not have */
    uint32_t form;            /* TOY_...: of architectures that come without a word in toy.c */
    int32_t n_layers, n_embd, n_heads, n_heads_kv, n_ff; /* "t5", "bart": n_heads_kv is n_heads */
    int32_t head_dim;  /* 0: n_embd / n_heads, and no key in the file */
    int32_t v_dim;     /* width of values, where head_dim is given; 0: that */
    int32_t n_rot;     /* rotated numbers of a head; 0: all */
    bool longrope;     /* with rope_factors tensors, n_rot / 2 each */
    int32_t n_context; /* as the file says */
    uint32_t type;     /* type of matrices: a runnable tensor_type, or TOY_TYPE_... */
    /* layers of the decoder of "t5" and "bart"; 0: n_layers. Its key: where they differ */
    int32_t n_decoder_layers;
    bool gated;               /* "t5" with gates */
    bool tied;                /* no output matrix: the embedding serves */
    bool biases;              /* with every bias that a layer may have */
    bool scales;              /* with scales of Q, of the feed-forward part's output, of experts */
    bool uneven;              /* odd layers have twice the heads, and half of n_ff */
    int32_t n_nextn;          /* blocks after the layers, which have no part in a text */
    bool mtp;                 /* the first of them is a whole layer, which can draft */
    bool mtp_alone;           /* and no layer is in front of it */
    bool rope_freqs;          /* with a rope_freqs tensor */
    int32_t rope_freqs_rows;  /* more than 1: of a shape that no model has */
    const char *rope_scaling; /* NULL: none; "linear" or "yarn" with the two numbers below */
    float rope_factor;
    int32_t rope_original_context;
    toy_experts experts;
    toy_delta delta;
    toy_streams streams;
    toy_kinds kinds;
    toy_mamba mamba;
    toy_latent latent;
    const toy_key *keys;     /* NULL: none */
    const char *more_tensor; /* NULL, or the name of a further tensor: n_embd F32 numbers */

    /* "qwen2", "smollm", "gpt-2", "llama-bpe"; "t5": unigram SentencePiece; NULL: SentencePiece */
    const char *pre;
    int32_t n_vocab;  /* 0: as many as there are; otherwise cut or filled up, at least 300 */
    int32_t n_padded; /* unused tokens after n_vocab: [PAD0], [PAD1], ... */
    const char *chat_template; /* NULL: none */

    uint64_t seed;
    float logit_gain; /* standard deviation of logits, about */
    float layer_gain; /* factor of what layers add; 0: 1 */
    float noise;      /* share of blocks in matrices that differ, from noise_seed; 0: none */
    uint64_t noise_seed;

    int32_t n_parts; /* files of a split model, 1 and up */
} toy_options;

/* llama, 3 layers of width 64 with 4 heads (2 for keys), n_ff 128, Q8_0, an output matrix,
 * vocabulary "qwen2", ChatML, one part. */
toy_options toy_default(void);
/* The same; a mixture of experts where the environment has DREY_TEST_EXPERTS, with running states
 * (sum_block.h) where it has DREY_TEST_STATES, those of a delta net where that is "delta". */
toy_options toy_asked(void);
/* Number of positions that can be copied, saved and kept, of n that a text of such a model has in
 * common with another. */
int32_t toy_kept(int32_t n);
/* Returns whether its states are too large to be kept at each block, so that a text may have none
 * before the place where another one parts from it. */
bool toy_states_are_rare(void);

/* Writes the model. With n_parts > 1, path is the first part's and ends in -00001-of-0000N.gguf,
 * and the others are next to it. Aborts when the options contradict each other (a width that is
 * no multiple of the type's blocks) or the file cannot be written. */
void toy_write(const char *path, const toy_options *options);

/* One part as bytes in memory; the caller frees the writer. */
void toy_build(gguf_writer *w, const toy_options *options, int32_t part);

extern const char toy_chatml[]; /* a ChatML template as Qwen2 files carry it */

/* ---- The pieces, for tests that build other files ---- */

/* splitmix64: the next number of a stream, all 64 bits random. */
uint64_t toy_random(uint64_t *state);

/* n_blocks random blocks of a runnable type whose values have about the given standard deviation,
 * mean near 0: [n_blocks][block_bytes]. Every code, scale and sign occurs. */
void toy_blocks(uint8_t *out, uint32_t type, int64_t n_blocks, float deviation, uint64_t seed);

/* Writes the tokenizer's keys and returns how many; *n_tokens is the vocabulary with padding. */
uint64_t toy_vocabulary(gguf_writer *w, const toy_options *options, int64_t *n_tokens);
