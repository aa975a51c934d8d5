/* Training of an EAGLE layer: the target does not change, only the layer is trained.
 *
 * Of a text the rows are its tokens, t_i, with the target's hidden state at the token before, h_i,
 * from which t_i was chosen (self_texts.h). n(x): x over its root mean square.
 *
 *   y_i = [n(e(t_i)); x_i]    q, k, v = Q y, K y, V y, rotated    o_i = O attend(q, k, v)
 *   m_i = x_i + o_i           s_i = m_i + Down (silu(Gate n(m_i)) * Up n(m_i))
 *   z_i = Head (w * n(s_i))                                  what follows t_i
 *
 * w: the target's final norm. Head: rows of the target's own head, those of the slice. There are
 * several passes over the rows, as guesses below each other are computed (EAGLE-3's training-time
 * test): in pass 0 x_i comes from the target, n(h_i / w); in pass p it is n(s_(i-1)) of the pass
 * before, as a number that does not change, and row i attends to rows up to i - p of pass 0, then
 * to a row of each pass up to its own.
 *
 *   loss = mean over rows, sum over passes p of 0.8^p * (
 *              (1 - soft) * -log softmax(z_i)[t_(i+1)]
 *            + soft * cross entropy with softmax(Head h_(i+1))
 *            + pull * mean over D of huber(n(s_i) - n(h_(i+1) / w)) )
 *
 * The layer begins with O = 0 and Down = 0. In its file (docs/reference/eagle3.md) fc is the
 * identity on the residual stream after the target's last layer, norm_before_residual is true, and
 * the norms that are not named here are 1: that computes the same. */
#pragma once

#include "kernel/kernel.h"
#include "train/adam.h"
#include "train/gemm.h"
#include "train/self_texts.h"

enum { EAGLE_MAX_PASSES = 4, EAGLE_RANKS = 8, EAGLE_MATRICES = 7 };

typedef struct eagle_training {
    int32_t n_embd, n_heads, n_heads_kv, head_dim, n_ff;
    float norm_eps, rope_base;
    int32_t n_ids, n_rows;      /* ids that are guessed; ids that have rows */
    const uint16_t *head_rows;  /* [n_rows][D] in half precision, borrowed, as all of these */
    const uint16_t *embeddings; /* [n_rows][D] */
    const float *final_norm;    /* [D] */
    const self_texts *texts;
    const kernel_table *kernels;
    pool *pool;
    int32_t n_windows, n_window; /* windows of a step; rows of each */
    int32_t n_passes;
    int64_t n_steps;
    float rate; /* the highest, after a short rise; it falls to 0 along half a cosine */
    float soft, pull;
    uint64_t seed;
} eagle_training;

/* Q, K, V, O, Gate, Up, Down, in this order. */
typedef struct eagle_matrix {
    int64_t at, rows, k; /* in the parameters */
} eagle_matrix;
void eagle_matrices(const eagle_training *t, eagle_matrix out[EAGLE_MATRICES]);

/* Rows of a pass: [R][...], R = n_windows * n_window. */
typedef struct eagle_rows {
    float *y;                 /* [2 D] */
    float *q, *att;           /* [H*S] */
    float *k, *v;             /* [K*S] */
    float *m, *nm;            /* [D] */
    float *gate, *up, *act;   /* [F] */
    float *s, *ns;            /* [D] */
    float *p;                 /* [H][n_window + n_passes]: shares of what a row attends to */
    float *dq, *dk, *dv, *ds; /* derivatives of the loss */
} eagle_rows;

typedef struct eagle_trainer {
    eagle_training about;
    int64_t n_parameters;
    float *parameters, *gradient;
    adam adam;
    gemm gemm;
    int64_t step;
    double loss; /* loss of the last step, per row */
    struct {
        int64_t *position, n;
    } taught;
    int64_t *batch; /* [n_windows]: where they begin */
    eagle_rows pass[EAGLE_MAX_PASSES];
    float *head;      /* [n_ids][D] */
    int32_t *label;   /* [R]: -1: none is known */
    float *angles;    /* [n_window][head_dim]: cosine and sine of each pair */
    float *said;      /* [R][D]: n(h_(i+1) / w) */
    float *wide;      /* [R][D]: w * what the head multiplies */
    float *z, *taken; /* [R][n_ids]: logits; those of the target */
    float *da, *dd;   /* [R][max(F, H*S)], [R][D] */
    double *row_loss; /* [R] */
    bool keeps_fed;   /* for tests: x of the passes after the first stays as it is */
} eagle_trainer;

/* Bytes of an arena. */
size_t eagle_trainer_bytes(const eagle_training *t);
/* Takes its memory from `a`, whose owner checks it. DREY_ERR_USAGE: there are no positions to train
 * with. */
drey_status eagle_trainer_init(eagle_trainer *m, const eagle_training *t, arena *a,
                               drey_error *err);
/* Sets the parameters to what they are at first. */
void eagle_trainer_begin(eagle_trainer *m);
/* The next of about.n_steps: gradient, then Adam. */
void eagle_trainer_step(eagle_trainer *m);
/* Only the gradient: of the windows in m->batch, into m->gradient and m->loss. */
void eagle_trainer_gradient(eagle_trainer *m);
/* accuracy[pass][rank]: the share of held-out (or trained) rows whose token was guess number `rank`
 * of that pass, over about n_most rows; seen[pass]: number of rows. */
void eagle_trainer_judge(eagle_trainer *m, bool held, int64_t n_most, float accuracy[][EAGLE_RANKS],
                         int64_t seen[]);
