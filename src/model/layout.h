/* A model's tensors, found in its file by name and bound to their roles. */
#pragma once

#include "base/arena.h"
#include "kernel/kernel.h"
#include "model/arch.h"
#include "model/pass_program.h"

typedef struct gguf gguf;
typedef struct gguf_tensor gguf_tensor;

/* The way of a block's sum to the residual stream: NULL where nothing is done. */
typedef struct added_tensors {
    float scale;                   /* multiplies the sum, after its norm */
    float *bias;                   /* [D] */
    float *norm;                   /* [D]: of the sum, before it is added */
    float *of_both, *of_both_bias; /* [D]: of the residual stream after it was added */
} added_tensors;

/* Tensors of attention. A layer lacks what is NULL or 0 here and below. */
typedef struct attention_tensors {
    weight *q, *k, *v, *o;   /* [H*S][D], [K*S][D] twice, [D][H*S]; v NULL: values are what k gives;
                                k too: another layer has stored both */
    weight *q_b;             /* queries of what q and a norm give: of latent attention */
    float *norm, *norm_bias; /* [D]; a bias has a norm that takes the mean off */
    float *token_norm;       /* [D]: Q, K and V read [norm(e); norm(x)], e being the row's token's
                          embedding, and are twice as wide */
    float *q_bias, *k_bias, *v_bias; /* [H*S], [K*S] twice */
    struct {
        float *q, *k;   /* [S]: of each head; [H*S], [K*S]: of all together (arch.h: wide_norms) */
        float *v;       /* [V] of 1, of each head of values; NULL: they are as they are */
        float *no_bias; /* [S] of 0: they take the mean off; NULL: RMS */
        bool own;       /* [H][S], [K][S]: each head has its own */
        bool rotated;   /* after the rotation */
    } head_norm;
    weight *gate; /* [H*V] or [H][D]: what attention gives is multiplied with a function of it */
    struct {
        float *sinks;       /* [H]: scores of seeing nothing */
        float *buckets;     /* [n_buckets][H], as in the file; NULL: as in the first layer */
        float *by_distance; /* the same, as `bias` has it */
        attend_bias bias;
    } positions;
    added_tensors added;
} attention_tensors;

/* Tensors of attention to an encoder's output. */
typedef struct cross_tensors {
    weight *q, *o;        /* [H*S][D], [D][H*S] */
    float *norm, *q_bias; /* [D], [H*S] */
    added_tensors added;
} cross_tensors;

/* Numbers of a layer's activation, where its architecture or its file has some. */
typedef struct act_numbers {
    float limit; /* in SwiGLU silu(gate) is at most this, up within +-this; 0: there is none */
    /* p x^2 + b x for x > 0, else n (exp(min(x, eps)) - 1 - x) + b x. */
    struct {
        float p, n, b, eps;
    } xielu;
} act_numbers;

/* Tensors of a feed-forward part, or of a mixture's shared expert. */
typedef struct feed_forward_tensors {
    weight *gate, *up, *down;   /* [F][D] twice, [D][F]; gate NULL: up alone is activated */
    float *norm, *norm_bias;    /* [D] */
    float *gate_bias, *up_bias; /* [F] */
    bool parallel;              /* reads what attention's norm has made */
    act_numbers act;
    added_tensors added;
} feed_forward_tensors;

/* Tensors that layers of a mixture have besides: the layer's own feed-forward matrices are of the
 * shared expert, or missing. */
typedef struct expert_tensors {
    weight *router;                  /* [n_experts][D]; NULL: the layer has no experts */
    weight *latent_down, *latent_up; /* [L][D], [D][L]: around experts of another width than D */
    float *choice_bias;              /* [n_experts]: of the choice alone */
    struct {
        float *router; /* [D]: norm of what the router reads, before a factor of D^-0.5 */
        float *before; /* [D]: of what the experts read, */
        float *after, *after_shared; /* [D]: of their sum, and of what the shared one makes */
    } norm;             /* all NULL: all read the same, and nothing is normed before it is added */
    float *shared_gate; /* [D]: the shared expert counts as the sigmoid of the product with it */
    float *router_bias; /* [n_experts]: of the logits */
    float *gate_bias, *up_bias, *down_bias;    /* [n_experts][F] twice, [n_experts][D] */
    float *gate_scale, *up_scale, *down_scale; /* [n_experts]: of products with the matrices */
    act_numbers act;
    expert_layer *of;
} expert_tensors;

/* A layer's place in a text's memory: a store of its cache, and its number there. Store -1: it has
 * none. */
typedef struct layer_place {
    int32_t store, index;
} layer_place;

/* A hyper connection: tensors in front of a block and after it where the residual stream is of
 * several parts, W = n D numbers (block/hyper_block.c). */
typedef struct hyper_tensors {
    weight *down, *up; /* [rank][W], [W][rank] */
    weight *inject;    /* [n][W]; NULL: nothing is added, after the layers */
    float *norm;       /* [n][D] */
} hyper_tensors;

/* Tensors of n-grams, in front of a layer (block/ngram_block.c), with E numbers of a table. */
typedef struct ngram_tensors {
    weight *key, *value;                      /* [W][E], [D][E]; NULL: the layers have none */
    float *norm_key, *norm_query, *norm_conv; /* [n][D] each */
    float *taps;                              /* [n_taps][W] */
    layer_place state;                        /* place of its state, besides the layer's */
} ngram_tensors;

/* A layer: its blocks read it, and nothing else. Weights are those of the layout that was
 * bound: layout_matrix has a view's. */
typedef struct layer_layout {
    const block_class *const *blocks;
    layer_place kv, state; /* places of its keys and values, of its state */
    weight *first;         /* first of the layer's matrices in the order of a pass */
    void *own;             /* tensors of a block that this page does not know (bind_own) */
    attention_tensors attention;
    cross_tensors cross;
    feed_forward_tensors ffn;
    expert_tensors experts;
    hyper_tensors hyper[2]; /* around its first block and around the other one */
} layer_layout;

/* The matrices with which a decoder layer reads the encoder's output. A pass of the encoder
 * multiplies with them: the decoder's own have only their results. */
typedef struct reader_layout {
    weight *k, *v;          /* [K*S][D] */
    float *k_bias, *v_bias; /* [K*S] */
} reader_layout;

/* Distances from here on are in the last bucket, in every T5 model (no file states it). */
enum { LAYOUT_BUCKETS_END = 128 };

/* A norm or a bias: where it is in the file, and in memory. */
typedef struct layout_vector {
    const gguf_tensor *tensor;
    float *numbers;
    int32_t layer; /* its layer; n_layers: of none */
    bool turned;   /* numbers [n][rows], not [rows][n] */
    bool any_type; /* a matrix that is kept as floats */
} layout_vector;

struct model_layout {
    model_shape shape;
    weight *bound;  /* [n_matrices]: those that the layers name */
    weight *matrix; /* the same, or a view's: an untied embedding, then those of a pass in its
                       order, the head last */
    int32_t n_matrices;
    /* leading matrices whose rows are looked up, and with which no pass multiplies: 1, or 0 where
     * tied. A mixture's experts come next */
    int32_t n_looked_up;
    weight *embedding; /* [V][D]: matrix[0], or the head where tied; NULL: the target's */
    weight *looked_up; /* a matrix that stays on the disk, of whose rows passes need some, in no
                          list; NULL: there is none */
    struct {
        weight *fuse;      /* [D][taps]: the target's states to a row's; NULL: rows are tokens */
        float *token_norm; /* [D]: of an MTP block, whose fuse [D][2 D] reads [norm(e); norm(f)], */
        float *state_norm; /* [D]: e being the token's embedding, f the state before it */
        float *target_norm; /* [D]: states of the target and of this layer are normed, the former
                               with this; NULL: neither */
    } after;
    bool tied; /* no output.weight: the head is the embedding */
    /* table of rows of the head that the slice lacks; NULL: the head is whole */
    row_table *table;
    int32_t n_logits;      /* numbers of a row of logits: V, or those of the slice and the table */
    layer_layout *layer;   /* [n_layers] */
    expert_layer *experts; /* [n_layers]; NULL: the model is no mixture */
    layout_vector *vector;
    int32_t n_vectors;
    ngram_tensors ngram;
    weight *head;           /* head; of layers without one the last matrix */
    bool inner;             /* rows come from other layers and go to others: there is
                                            no embedding and no head */
    reader_layout *readers; /* [n_readers], of an encoder */
    struct {
        float *norm, *bias; /* [D]: of embeddings and positions; NULL: none */
    } embd;
    struct {
        float *norm, *bias;  /* [D]; both NULL: none; bias NULL: RMS */
        hyper_tensors hyper; /* in place of a norm, where the residual stream is of several parts */
    } last;                  /* tensors in front of the head */
    float *head_bias;        /* [V], added to logits; NULL: none */
    float *positions;        /* [n_context_train][D], added to embeddings; NULL: there are none */
    struct {
        double *frequency[ROPES]; /* [n_rot / 2], as many as there are */
        double scale[ROPES];
    } angles;
    program program;
};

/* Memory of a layout's arrays and vectors. The shape of an encoder (shape_of_encoder) stands for
 * the encoder's layout. */
size_t model_layout_bytes(const model_shape *s, const gguf *g);

/* Finds and checks every tensor: one that is missing, of another shape, of a type without kernel,
 * or one that this layout has no role for is an error that names it. Reads nothing but the shapes.
 */
drey_status model_layout_init(model_layout *l, const gguf *g, const kernel_table *kernels, arena *a,
                              drey_error *err);
/* The same of a shape that was read of this file, by model_shape_read or mtp_shape_read. */
drey_status model_layout_of(model_layout *l, const model_shape *shape, const gguf *g,
                            const kernel_table *kernels, arena *a, drey_error *err);
/* The same for the encoder of a model that has one; `decoder` is its shape. */
drey_status encoder_layout_init(model_layout *l, const model_shape *decoder, const gguf *g,
                                const kernel_table *kernels, arena *a, drey_error *err);
/* The matrix that says the next token: output.weight, or the embedding where tied. NULL:
 * neither. */
const gguf_tensor *model_head_tensor(const gguf *g);
/* Cuts the head to the first n_ids of its vocabulary, with room for a table of `room` more: from
 * then on a row of logits is [n_ids + room], those after n_ids in the order of the table. Both are
 * multiples of GROUP_ROWS. */
void model_layout_slice(model_layout *l, int32_t n_ids, int32_t room);
static inline int32_t model_layout_room(const model_layout *l)
{
    return l->n_logits - (int32_t)l->head->form.n_rows;
}
static inline bool model_layout_is_sliced(const model_layout *l)
{
    return l->n_logits > 0 && l->head->form.n_rows < l->shape.n_vocab && !l->after.fuse &&
           !l->inner;
}
/* Forgets all layers but [first, first + n), which are numbered from 0 then, with their matrices
 * and vectors. inner: embedding and head are forgotten as well, and n >= 1; otherwise they stay,
 * and first is 0. Of a decoder; before anything of it is opened, and once. */
void model_layout_keep(model_layout *l, int32_t first, int32_t n, bool inner);
/* The same layout over another array of its matrices, in the same order, whose memory is the
 * caller's; all else is shared. */
void model_layout_view(model_layout *view, const model_layout *of, weight *matrix);
/* The layout's own one of a matrix that a layer names. */
static inline weight *layout_matrix(const model_layout *l, const weight *m)
{
    return l->matrix + (m - l->bound);
}
/* Reads norms, biases and RoPE factors into the layout's vectors. */
drey_status model_layout_read(model_layout *l, const gguf *g, weights *w, drey_error *err);
