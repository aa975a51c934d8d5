/* Architectures as data: what distinguishes one model from another, and the shapes that a file
 * states. Adding an architecture is an entry in arch.c's table (CONTRIBUTING.md says
 * how); what a layer of it computes is written once, in block/. */
#pragma once

#include "drey/drey_model.h"
#include "kernel/kernel.h"
#include "model/router.h"

typedef struct cache_spec cache_spec;
typedef struct gguf gguf;

/* Ways in which positions enter a model. */
typedef enum rope_kind {
    ROPE_NEIGHBOURS, /* rotates pairs (2 i, 2 i + 1) of a head */
    ROPE_HALVES,     /* rotates pairs (i, i + n / 2) */
    ROPE_NONE,       /* learned: position_embd has a row for each */
    ROPE_BUCKETS     /* not at all; scores have a bias by head and distance */
} rope_kind;

typedef enum ffn_kind {
    FFN_SWIGLU,       /* silu(gate) * up */
    FFN_SWIGLU_CUT,   /* g * sigmoid(1.702 g) * (u + 1), where g is at most 7, u within +-7 */
    FFN_GEGLU,        /* gelu(gate) * up */
    FFN_GELU,         /* gelu(up), GELU in its tanh form */
    FFN_ERF,          /* gelu(up), GELU by erf */
    FFN_RELU,         /* relu(up), or where the file has gates gelu(gate) * up */
    FFN_RELU_SQUARED, /* relu(up)^2 */
    FFN_XIELU         /* xIELU(up), with numbers of each layer (layout.h) */
} ffn_kind;

/* Forms of a layer that some architectures have. What a tensor shows is no form: biases, for
 * example, are added where the file has them. */
enum {
    FORM_NORMS_AFTER = 1,    /* nothing is normed before products, but what they add (post_norms) */
    FORM_PARALLEL = 2,       /* layers without ffn_norm: attention's norm is the feed-forward part's
                                   as well */
    FORM_NORMS_UNBIASED = 4, /* norms that take the mean off have no bias */
    FORM_ROTATED_NORMS = 8,  /* heads are normed after their rotation */
    FORM_UNIT_NORMS = 16,    /* the same without weights, in layers that rotate */
    FORM_OWN_NORMS = 32,     /* each head has its own norm, if the file has any */
    FORM_GATED = 64,         /* attention's result is multiplied with the sigmoid of another
                                   product (attn_gate): a number for each of its own, or a head */
    FORM_GATED_SOFTPLUS = 128,   /* with softplus in its place */
    FORM_GATED_IN_Q = 256,       /* attn_q has each head's gates after its queries */
    FORM_HEAD_BIAS = 512,        /* logits have a bias where the file has one */
    FORM_OPTIONAL_NORMS = 1024,  /* norms of heads are there where the file has them */
    FORM_CHUNKED = 2048,         /* local layers see chunks of so many positions */
    FORM_WEIGHED_INPUTS = 4096,  /* weights multiply the inputs of experts, not their results */
    FORM_MEAN_SHARED = 8192,     /* half of the sum of a shared expert and of the others counts */
    FORM_DENSE_ROTATED = 16384,  /* layers in front of a mixture's are rotated in any case */
    FORM_MTP_UNNORMED = 32768,   /* MTP blocks read the residual stream without the final norm */
    FORM_ONE_BLOCK = 1 << 22,    /* each layer is one block, with one norm */
    FORM_BESIDE = 1 << 23,       /* a state next to attention: both read its norm's rows */
    FORM_UNSCALED = 1 << 24,     /* scores are as queries and keys give them */
    FORM_UNIT_VALUES = 1 << 25,  /* heads of values are normed, without weights */
    FORM_DENSE_BESIDE = 1 << 26, /* a mixture's layers have their feed-forward part besides, and
                                       each of the two, and the router, its own norms */
    FORM_DELTA_SIGMOID = 1 << 28 /* delta nets' results are multiplied with sigmoid(z), not silu */
};

/* Optional keys that an architecture has; where it has them not, they must be neutral. */
enum {
    KEYS_SCALES = 1,     /* embedding_scale, residual_scale, attention.scale; logit_scale divides */
    KEYS_WINDOW = 2,     /* attention.sliding_window and its pattern, rope.freq_base_swa */
    KEYS_CAPS = 4,       /* attn_logit_softcapping, final_logit_softcapping */
    KEYS_TAPS = 8,       /* extract_layers, target_hidden_size, norm_before_residual */
    KEYS_ENCODER = 16,   /* decoder_block_count, decoder_start_token_id, forced_bos_token_id */
    KEYS_BUCKETS = 32,   /* attention.relative_buckets_count */
    KEYS_EXPERTS = 64,   /* expert_..., leading_dense_block_count, interleave_moe_layer_step */
    KEYS_IMAGES = 128,   /* keys of models that also see images, without a part in a text */
    KEYS_YARN_LOG = 256, /* rope.scaling.yarn_log_multiplier */
    KEYS_TEMPERATURE = 512,    /* attention.temperature_scale, temperature_length */
    KEYS_NEXTN = 1024,         /* block_count has nextn_predict_layers more than there are layers */
    KEYS_LOGIT_SCALE = 2048,   /* logit_scale, which multiplies */
    KEYS_VALUE_SCALE = 4096,   /* attention.value_scale */
    KEYS_CLAMPS = 8192,        /* swiglu_clamp_exp, swiglu_clamp_shexp */
    KEYS_SHORT_CONV = 1 << 16, /* shortconv.l_cache */
    KEYS_DELTA = 1 << 20,      /* ssm_..., full_attention_interval, recurrent_layers */
    KEYS_MAMBA = 1 << 22,      /* ssm_..., moe_latent_size; rope.scaling.finetuned: rotation */
    KEYS_PER_LAYER = 1 << 24,  /* shared_kv_layers, embedding_length_per_layer_input */
    KEYS_LATENT = 1 << 25,     /* attention.kv_lora_rank and the others of latent attention */
    KEYS_INDEXER = 1 << 26,    /* attention.indexer..., attention.compress_ratios */
    KEYS_STREAMS = 1 << 27     /* hyper_connection..., ple... */
};

typedef struct block_class block_class; /* model/block/block.h */
typedef struct model_pass model_pass;   /* model/pass.h */
typedef struct model_shape model_shape;

/* Layers of other blocks than attention and a feed-forward part. */
typedef struct arch_layers {
    /* The blocks of a layer, in their order, and then NULL. */
    const block_class *const *(*blocks)(const model_shape *s, int32_t layer);
    bool states; /* some have a state that runs through the text */
    /* Numbers of the lookup.n rows of its table on the disk that a row of a pass needs, whose token
     * this is; row -1: it is a deferred one. NULL: there is no table. */
    void (*rows)(const model_pass *p, int32_t row, int32_t token, int64_t *out);
} arch_layers;
extern const arch_layers delta_layers;     /* model/block/delta_block.c */
extern const arch_layers hyper_layers;     /* model/block/hyper_block.c */
extern const arch_layers mamba_layers;     /* model/block/mamba_block.c */
extern const arch_layers latent_layers;    /* model/block/latent_block.c */
extern const arch_layers per_layer_layers; /* model/block/per_layer_block.c */

/* Convolutions where a layer has no attention (block/short_conv_block.c). */
extern const arch_layers short_conv_layers;

/* Most layers of a target whose states a model of this kind sees. */
enum { MODEL_MAX_TAPS = 3 };

typedef struct arch {
    const char *name; /* general.architecture, and the prefix of its keys */
    rope_kind rope;
    ffn_kind ffn;
    uint32_t keys;          /* KEYS_... */
    uint32_t forms;         /* FORM_... */
    bool encoder;           /* there is one, and each layer reads its output */
    bool layer_norm;        /* norms take the mean off, and have a bias; else RMS */
    bool head_norms;        /* each head of Q and K is normed before it is rotated */
    bool wide_norms;        /* the same of all heads of a row together */
    bool post_norms;        /* the outputs of attention and feed-forward are normed as well */
    bool sinks;             /* attention may look at nothing: each head has a sink */
    bool post_is_ffn_norm;  /* the file calls ffn_norm post_attention_norm */
    bool embd_norm_is_last; /* and output_norm token_embd_norm */
    bool norms_sums;        /* norms are of embeddings and of each sum with what is added:
                                       nothing is normed before a product, nor after the layers */
    bool gate_in_up;        /* ffn_up has the gate's rows in front of its own */
    bool longrope;          /* may have RoPE factors for short and for long contexts */
    bool sqrt_embedding;    /* embeddings are multiplied with sqrt(n_embd) */
    int32_t no_rope_period; /* every so many layers the last one is not rotated; 0: all are */
    struct {
        int32_t window, period; /* if the file does not say: window of local layers, 0: none;
                                   every so many layers the last one sees all, 0: none does */
        bool first;             /* the first one of them does, not the last */
        bool rotated_alone;     /* layers that see all are not rotated */
        bool unscaled;          /* frequencies of local layers are not scaled */
        bool halved;            /* the others rotate half of the numbers that the file states, and
                                   rope_freqs are theirs alone */
        double base;            /* base of their rotation; 0: as in the others */
    } local;
    struct {
        float attention, logit;
    } cap; /* caps, where the file does not say; 0: none */
    struct {
        router_gate gate;    /* if the file does not say */
        bool weights_normed; /* the same */
        bool biases;         /* routers and experts have biases */
        bool by_best;        /* a softmax's groups are chosen by their best expert alone */
        bool by_router;      /* layers without a router have a feed-forward part */
    } experts;
    bool heads_in_turns;       /* recurrent_shape.in_turns */
    bool yarn_exact;           /* the ends of YaRN's blend are no whole pairs */
    const arch_layers *layers; /* NULL: the usual ones */
    int32_t wide_layers;       /* a model of so many layers divides scores by sqrt(n_embd / n_heads)
                              instead of sqrt(head_dim); 0: none */
} arch;

/* A further architecture, for tests that add one; NULL: there is none. */
extern const arch *arch_of_test;
/* The architecture with this name; NULL: drey does not know it. */
const arch *arch_find(const char *name, size_t n_bytes);
/* The name of architecture i; NULL after the last one. */
const char *arch_name(size_t i);

/* "ARCH.suffix" in out, which is returned. */
const char *arch_key(const arch *a, const char *suffix, char out[96]);

/* Reads a count that has to be there, from low to high. */
drey_status arch_require_count(const gguf *g, const arch *a, const char *suffix, int64_t low,
                               int64_t high, int32_t *out, drey_error *err);
/* The same for one that may be missing, and is 0 then. */
drey_status arch_read_count(const gguf *g, const arch *a, const char *suffix, int64_t high,
                            int32_t *out, drey_error *err);

/* Rotary position embedding with its scaling (rope.c). */
typedef struct rope_shape {
    double base;
    double factor;           /* frequencies are divided by it; 1: no scaling */
    double blend;            /* part of YaRN's blend that applies: 0 none, 1 all */
    double fast, slow;       /* turns within the original context where the blend begins, ends */
    double original_context; /* positions */
    double magnitude;        /* cosines and sines are multiplied with it */
    int32_t n_rot;           /* rotated numbers of a head, even */
    int32_t first;           /* first of its angles among those of a row */
} rope_shape;

/* A model that is a layer after another one, its target (EAGLE, MTP): what it sees of it. */
typedef struct tap_shape {
    int32_t n;                     /* 0: the model is no such layer */
    int32_t layer[MODEL_MAX_TAPS]; /* states are taken where so many layers are complete; rising */
    int32_t width;                 /* the target's D */
    int32_t n_ids;                 /* ids of its head, which has its own vocabulary */
    bool normed;                   /* the residual stream begins with the normed state */
    int32_t mtp_block; /* the layer is this block of a file (blk.N), for multi-token prediction; 0:
                          it is not one */
} tap_shape;

/* Rotations of a model's layers: of those that see all, of local ones. */
enum { ROPE_OF_NONE = -1, ROPE_OF_ALL, ROPE_OF_LOCAL, ROPES };

/* Attention of one kind of layer. Letters used for shapes: H n_heads, K n_heads_kv, S head_dim (of
 * queries and keys). */
typedef struct attention_shape {
    int32_t n_heads, n_heads_kv; /* heads of queries; of keys and values, which divides that */
    int32_t head_dim;            /* numbers of a head's queries and keys */
    int32_t v_dim;               /* numbers of a head's values: head_dim in most models */
    int32_t
        window;  /* a row sees the last so many positions; negative: its chunk of so many; 0: all */
    bool local;  /* its layers are local, also where the window hides nothing */
    bool latent; /* keys alone are kept, whose first v_dim numbers are the values */
    int32_t rope; /* its rotation, of model_shape.rope, or ROPE_OF_NONE */
    float scale;  /* scores are multiplied with it */
} attention_shape;

enum { MODEL_MAX_LAYERS = 1024, ATTENTION_KINDS = 16, LAYER_ATTENDS_NOT = 255 };

/* Properties that differ from layer to layer. */
typedef struct layer_shape {
    int32_t n_ff;      /* width of its feed-forward part; 0: it has none */
    int32_t kv_before; /* it reads keys and values of the layer so many before it; 0: its own */
    uint8_t attention; /* its kind, of model_shape.attention, or LAYER_ATTENDS_NOT */
    bool experts;      /* its feed-forward part is a mixture */
} layer_shape;

/* Shape of a model with an encoder, which reads the input, and a decoder, which writes. */
typedef struct encoder_shape {
    int32_t n_layers;  /* layers of the encoder; 0: the model has none */
    int32_t n_buckets; /* buckets of distances between positions, each with its bias; 0: none */
    int32_t start_id;  /* the decoder's first token */
    int32_t forced_id; /* and its second, where the file says so; -1: the model writes it */
    int32_t n_readers; /* decoder layers, if this is the shape of the encoder; 0: it is not */
} encoder_shape;

/* Shape of a mixture of experts: each of its layers chooses a few of many feed-forward parts for a
 * row, and may have one more that all rows take (shared). */
typedef struct expert_shape {
    router_shape router; /* n_experts 0: the model has none */
    int32_t n_ff;        /* width of an expert */
    int32_t n_ff_shared; /* 0: none is shared */
    int32_t n_latent;    /* width of what experts read and make; 0: that of rows */
} expert_shape;

/* Latent attention (MLA): a row keeps kv_rank + n_rot numbers, which all heads share
 * (block/latent_block.c). Each head has n_plain + n_rot numbers of queries and v_dim of values. */
typedef struct latent_shape {
    int32_t q_rank;  /* queries are made of so many numbers; 0: of the row */
    int32_t kv_rank; /* 0: the model has no latent attention */
    int32_t n_plain, n_rot, v_dim;
} latent_shape;

/* Layers with a state that runs through the text. */
typedef struct recurrent_shape {
    int32_t n_taps; /* rows before a row that its convolution sees */
    int32_t n_k_heads, n_v_heads,
        head_dim;      /* heads of keys and queries, of values; numbers of each */
    int32_t state_dim; /* numbers of a key, where it differs: of a state space */
    bool in_turns;     /* value head h has key head h mod n_k_heads; else neighbours share one */
    int32_t stride;    /* states are kept at its multiples (block/block.h) */
} recurrent_shape;

/* A residual stream of several parts of D numbers each (hyper connections, block/hyper_block.c). */
typedef struct stream_shape {
    int32_t n;    /* 0: the residual stream is one */
    int32_t rank; /* numbers of which the gates of a block's input are made */
} stream_shape;

/* Rows of a table that stays on the disk, which rows of a pass need besides their embedding
 * (weights/row_lookup.h). */
typedef struct lookup_shape {
    int32_t n;         /* rows of it for each row of a pass; 0: there is no table */
    int32_t row_bytes; /* as in the file */
    int32_t width;     /* numbers of it that a layer adds to what it knows of a token (gemma4) */
} lookup_shape;

/* Numbers that a layer knows of the last tokens of a row's path (block/ngram_block.c): each head
 * reads a row of a table on the disk, whose number follows from 2 tokens, or 3, ... */
enum { NGRAM_TOKENS = 4, NGRAM_HEADS = 32 };
typedef struct ngram_shape {
    int32_t n_heads; /* heads of 2 tokens, as many of 3, ...; 0: there is no such layer */
    int32_t layer;   /* layer in front of which they are added, counted with those of others */
    int32_t n_tokens, width;  /* most tokens; numbers of a row of the table */
    int32_t n_taps, dilation; /* taps of its convolution, and rows from one to the next */
    int32_t end_id;           /* a token that ends what comes before it */
    int64_t n_rows;           /* rows of the table */
    uint64_t factor[NGRAM_TOKENS];
    int64_t first[NGRAM_HEADS], n[NGRAM_HEADS]; /* a head's rows */
} ngram_shape;

/* Letters used for shapes: D n_embd, F n_ff, V n_vocab; those of attention are its own. */
struct model_shape {
    const arch *arch;
    int32_t first_layer; /* before it come layers that others compute (layout.h) */
    int32_t n_layers, n_embd, n_vocab;
    int32_t n_context_train;
    struct {
        bool ends;         /* the file has no numbers for positions after n_context_train */
        bool longrope;     /* frequencies are divided by rope_factors_short */
        int32_t most_seen; /* a row that sees more positions than this chooses among them; 0: none
                              does */
    } context;
    float norm_eps;
    struct {
        float embedding, residual, logit;
    } scale; /* factors that they are multiplied with */
    struct {
        float attention, logit; /* x becomes cap * tanh(x / cap); 0: it stays */
    } cap;
    struct {
        float scale;    /* queries are multiplied with 1 + scale ln(1 + floor(p / length)), */
        int32_t length; /* p being the position and `after`; scale 0: they stay */
        int32_t after;
        bool still_alone; /* only queries of layers that are not rotated are */
    } temperature;
    rope_shape rope[ROPES];
    int32_t n_ropes;  /* 1: local layers rotate as the others do; 0: none is rotated */
    int32_t n_angles; /* cosines and sines of a row, of all rotations */
    tap_shape taps;
    encoder_shape encoder;
    expert_shape experts;
    recurrent_shape recurrent;
    latent_shape latent;
    stream_shape streams;
    ngram_shape ngram;
    lookup_shape lookup;
    attention_shape attention[ATTENTION_KINDS]; /* the first layer's that attends, ... */
    int32_t n_attentions;
    layer_shape layer[MODEL_MAX_LAYERS];
};

/* Numbers of a row of the residual stream. */
static inline int32_t shape_width(const model_shape *s)
{
    return s->streams.n > 0 ? s->streams.n * s->n_embd : s->n_embd;
}

/* Its layers have one of these forms; a shape may be sizes alone. */
static inline bool shape_has_form(const model_shape *s, uint32_t forms)
{
    return s->arch && s->arch->forms & forms;
}

/* NULL: the layer has no attention. */
static inline const attention_shape *layer_attention(const model_shape *s, int32_t layer)
{
    const uint8_t kind = s->layer[layer].attention;
    return kind == LAYER_ATTENDS_NOT ? NULL : &s->attention[kind];
}

/* Numbers of a row: queries, keys, values, and what attention makes of them. */
static inline int64_t attention_queries(const attention_shape *a)
{
    return (int64_t)a->n_heads * a->head_dim;
}
static inline int64_t attention_keys(const attention_shape *a)
{
    return (int64_t)a->n_heads_kv * a->head_dim;
}
static inline int64_t attention_values(const attention_shape *a)
{
    return (int64_t)a->n_heads_kv * a->v_dim;
}
static inline int64_t attention_out(const attention_shape *a)
{
    return (int64_t)a->n_heads * a->v_dim;
}

static inline bool layer_has_experts(const model_shape *s, int32_t layer)
{
    return s->layer[layer].experts;
}
/* Numbers of a row of the widest feed-forward part, and of what the widest attention makes. */
int32_t shape_widest_ff(const model_shape *s);
int64_t shape_widest_out(const model_shape *s);
/* The first layer that is a mixture; n_layers: there is none. */
int32_t shape_first_mixture(const model_shape *s);
/* Layers that are mixtures. */
int32_t shape_expert_layers(const model_shape *s);
/* Forgets the layers before `first` and after the n that come then. */
void shape_keep(model_shape *s, int32_t first, int32_t n);

/* Numbers of the states of one row of the target, one tap after the other. */
static inline int64_t tapped_numbers(const model_shape *s)
{
    return (int64_t)s->taps.n * s->taps.width;
}

/* The shape's layers are those of an encoder. Every row sees all rows. */
static inline bool shape_encodes(const model_shape *s)
{
    return s->encoder.n_readers > 0;
}
/* Returns whether the shape is a decoder's, which reads an encoder's output. */
static inline bool shape_reads(const model_shape *s)
{
    return s->encoder.n_layers > 0 && !shape_encodes(s);
}
/* The shape of the encoder of a model, whose shape is its decoder's. */
model_shape shape_of_encoder(const model_shape *decoder);

/* The shape is that of an MTP block; of an EAGLE layer, whose attention reads tokens next to
 * states. */
static inline bool shape_is_mtp(const model_shape *s)
{
    return s->taps.mtp_block > 0;
}
static inline bool shape_is_eagle(const model_shape *s)
{
    return s->taps.n > 0 && !shape_is_mtp(s);
}
/* Its layers need more of each other, or of tokens, than the residual stream. */
static inline bool shape_is_tied(const model_shape *s)
{
    return s->lookup.n > 0 || s->layer[s->n_layers - 1].kv_before > 0;
}

/* Layers have a state that runs through the text. */
static inline bool shape_has_states(const model_shape *s)
{
    return s->arch && s->arch->layers && s->arch->layers->states && /* sizes alone have no arch */
           !shape_is_mtp(s);
}
/* States of such a model are kept at multiples of this: so often that they take a byte for every 16
 * numbers of a row and layer, at most. (A row's keys and values take some times that.) */
int32_t model_state_stride(const model_shape *s);
/* The stores that its layers need for each text (block/block.c). */
cache_spec model_cache_spec(const model_shape *s, kv_format format);

/* Reads and checks the shape keys; n_vocab comes from the embedding tensor. Errors name
 * the file. */
/* The part of models with gated delta nets or state spaces: sizes, layers that do not attend. */
drey_status arch_read_delta(model_shape *s, const gguf *g, drey_error *err);
/* The part of models with latent attention: sizes of keys and values, after those of heads; and
 * after all else factors and routers. */
drey_status arch_read_latent(model_shape *s, const gguf *g, drey_error *err);
void arch_end_latent(model_shape *s, const gguf *g);
/* The part of models with hyper connections; and how many positions a text may have. */
drey_status arch_read_streams(model_shape *s, const gguf *g, drey_error *err);
/* The part of models whose layers share keys and values, or have embeddings of their own; kinds of
 * attention have been read. */
drey_status arch_read_per_layer(model_shape *s, const gguf *g, drey_error *err);
drey_status model_shape_read(model_shape *s, const gguf *g, drey_error *err);

/* The keys under "ARCH.": each has to be one that is read, one that has no influence on the
 * numbers, or neutral: 0, false or empty (for factors also 1). Any other is DREY_ERR_UNSUPPORTED
 * and named, also where drey does not know it. Keys under other prefixes are not looked at. The
 * shape's sizes have been read. */
drey_status arch_keys_check(const model_shape *s, const gguf *g, drey_error *err);

/* The same for all keys: each that is refused is reported. Returns how many. */
int32_t arch_keys_refused(const model_shape *s, const gguf *g,
                          void (*refused)(void *user, const drey_error *error), void *user);

/* Blocks for multi-token prediction, which files may have after the layers (keys and tensors named
 * nextn). They have no part in a text: the first of them may draft. */
int32_t arch_mtp_blocks(const arch *a, const gguf *g);
/* The shape of the first of them as a model after the one with shape `of`, which is of the same
 * file; a file with these blocks alone has that shape itself. DREY_ERR_UNSUPPORTED: the file has
 * none, or the architecture's are not computed; DREY_ERR_FORMAT: it is cut off. */
drey_status mtp_shape_read(model_shape *s, const model_shape *of, const gguf *g, drey_error *err);

/* Reads the RoPE keys; sizes and kinds of attention have been read. */
drey_status rope_read(model_shape *s, const gguf *g, drey_error *err);
/* Angle per position of each of its n_rot / 2 pairs; factors: rope_freqs [n_rot / 2] or NULL.
 * Returns what cosines and sines are multiplied with. */
double rope_frequencies(const model_shape *s, const rope_shape *rope, const float *factors,
                        double *out);
