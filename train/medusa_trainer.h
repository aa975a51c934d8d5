/* Training of Medusa heads: the target does not change, only the blocks are trained (Medusa-1).
 *
 *   g = W_k [h; e(t_k)] + b_k,  x = h + silu(g),  z = V x
 *   loss = sum over heads k of 0.8^k * (  (1 - soft) * -log softmax(z)[y_k]
 *                                       + soft * -sum over tokens i of q_k[i] log softmax(z)[i]
 *                                       + pull * mean over D of huber((x - h_k) / rms(h_k)))
 *
 * h: a position's hidden state; y_k: the token that the model chose k + 1 positions later, k = 0,
 * 1, ... (block k of the file); t_k: the one before it; e(t_k): as in medusa_heads.h. V: rows of
 * the target's own head, those of the slice; they do not change. The heads begin as the target's
 * own: W = 0, b = 0. Tokens are places of token_slice.h.
 *
 * h_k: the state from which y_k was chosen, and q_k = softmax(V h_k). With little text, blocks
 * memorise the one token that was drawn; its alternatives and the state itself contain more
 * information. EAGLE (Li et al. 2024) learns from both.
 *
 * A slice of the vocabulary has tens of thousands of rows, of which a batch needs few. z is
 * computed for the batch's own labels and some tokens that are drawn, half from those of the texts
 * and half from all; the others are estimated: a token that is included with probability p counts 1
 * / p times in the softmax's sum (Bengio and Senecal, importance sampling). Accuracies are over all
 * rows. */
#pragma once

#include "draft/medusa_heads.h"
#include "train/adam.h"
#include "train/gemm.h"

typedef struct self_texts self_texts;

typedef struct medusa_training {
    int32_t n_heads, n_embd;
    int32_t n_ids, n_rows;     /* ids that are guessed; ids that have rows */
    const uint16_t *head_rows; /* [n_rows][D] in half precision, borrowed; V: the first n_ids */
    const self_texts *texts;   /* borrowed */
    const kernel_table *kernels;
    pool *pool;
    int32_t n_batch; /* positions of a step */
    /* Tokens drawn per step besides its labels; n_ids or more: all tokens. */
    int32_t n_drawn;
    int64_t n_steps;
    float rate; /* the highest, after a short rise; it falls to 0 along half a cosine */
    float soft, pull;
    uint64_t seed;
} medusa_training;

typedef struct medusa_trainer {
    medusa_training about;
    int64_t n_parameters; /* W [n_heads * D][2 D], then b [n_heads * D] */
    float *parameters, *gradient;
    adam adam;
    gemm gemm;
    int64_t step;
    double loss; /* loss of the last step, per position */
    struct {
        int64_t *position, n;
    } taught;          /* the positions for training */
    float *log_chance; /* [n_ids]: the logarithm of a token's probability to be included */
    /* Arrays of one step. */
    int64_t *batch;     /* [n_batch] */
    int32_t *candidate; /* [n_candidates] */
    int32_t *place;     /* [n_ids]: among the candidates, -1: none */
    int32_t n_candidates, max_candidates;
    int32_t *label;    /* [n_batch][n_heads]: place of a candidate, -1: none is known */
    float *input;      /* [n_batch][n_heads][2 D] */
    float *g, *x, *dx; /* [n_batch][n_heads][D] each */
    float *v, *z;      /* [n_candidates][D], [n_batch * n_heads][n_candidates] */
    float *said, *q;   /* as x and z: the states h_k, and their q_k */
    double *row_loss;  /* [n_batch * n_heads] */
} medusa_trainer;

/* Bytes of an arena. */
size_t medusa_trainer_bytes(const medusa_training *t);
/* Takes its memory from `a`, whose owner checks it; the parameters are 0. DREY_ERR_USAGE: there are
 * no positions to train with. */
drey_status medusa_trainer_init(medusa_trainer *m, const medusa_training *t, arena *a,
                                drey_error *err);

/* The next of about.n_steps: gradient, then Adam. */
void medusa_trainer_step(medusa_trainer *m);
/* Only the gradient: of the batch in m->batch, into m->gradient and m->loss. */
void medusa_trainer_gradient(medusa_trainer *m);

/* accuracy[head][rank]: the share of held-out (or trained) positions whose token was the head's
 * guess number `rank`, over at most n_most positions and all rows of V; seen[head]: number of
 * positions. */
void medusa_trainer_judge(medusa_trainer *m, bool held, int64_t n_most,
                          float accuracy[][MEDUSA_RANKS], int64_t seen[]);
