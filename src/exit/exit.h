/* Early exits: may a token leave the model before its last layer?
 *
 * SpecEE (arXiv 2504.08850, sections 4 and 5). A drafter gives four candidates for the next token.
 * A predictor's features at a layer boundary are their logits (the final norm and four rows of the
 * head), the softmax over these four, and its change since the previous layer that was looked at;
 * the variant here adds the drafter's own log-probabilities. Each layer has a predictor, an MLP
 * with one hidden layer. Its score only says whether to compute the whole head, which decides: a
 * token leaves if the head's choice is one of the candidates.
 *
 *   layers complete   1 ... first .................. n_layers - 1, n_layers
 *   predictor         -     one each, those that the schedule has active      -
 *
 * A place is always a number of complete layers: 1 .. n_layers, where n_layers is no exit.
 *
 * The arithmetic is float, in the order given at each function, so that scores, and so the text of
 * the lossy mode, are the same on every machine. */
#pragma once

#include "base/arena.h"
#include "drey/choices.h"
#include "gguf/gguf.h"

enum {
    EXIT_CANDIDATES = 4,
    EXIT_FEATURES = 16,           /* at most: four of each kind */
    EXIT_LAYERS = 256,            /* the most layers of a model */
    EXIT_HIDDEN = 1024,           /* the most hidden units of a predictor */
    EXIT_QUEUE = 5,               /* latest exits that the schedule remembers, */
    EXIT_NEAR = 2,                /* and how far from one of them a layer is active */
    EXIT_SESSION_BYTES = 24 << 10 /* memory of a session that watches its passes */
};

/* drey_exit_source_name, which is in another library. */
const char *exit_source_name(drey_exit_source source);

/* ---- Features ---- */

/* Features of one token at one layer; candidates in their drafter's order, the best first. */
typedef struct exit_features {
    float logit[EXIT_CANDIDATES];       /* logits of the target's head */
    float probability[EXIT_CANDIDATES]; /* softmax over the candidates */
    float change[EXIT_CANDIDATES];      /* since the previous layer looked at; at first the
                                      probability */
    float draft_logp[EXIT_CANDIDATES];  /* natural logarithms, at least EXIT_LEAST_LOGP */
    int32_t n;                          /* candidates; the remaining places are 0, draft_logp the
                                          least */
} exit_features;

#define EXIT_LEAST_LOGP (-20.0f)

/* A new token with n candidates, 1 to EXIT_CANDIDATES. draft_logp: [n], clamped; NULL: all 0. */
void exit_features_begin(exit_features *f, int32_t n, const float *draft_logp);
/* Looks at the next layer; logit: [n]. The softmax sums exp_f32(l_i - the largest) from the first
 * on. */
void exit_features_next(exit_features *f, const float *logit);
/* Writes the features in a predictor's order: logits, probabilities, changes, the draft's; x:
 * [EXIT_FEATURES]. */
void exit_features_put(const exit_features *f, float *x);

/* ---- Predictors ---- */

typedef struct exit_mlp { /* w1 NULL: this layer has none */
    const float *w1;      /* [K][H]: feature k's weight in hidden unit j is w1[k * H + j] */
    const float *b1;      /* [H] */
    const float *w2;      /* [H] */
    float b2;
} exit_mlp;

typedef struct exit_predictors {
    drey_exit_source source;
    int32_t source_layer; /* DREY_EXIT_FROM_TARGET: layers before its four; else 0 */
    int32_t n_layers;     /* layers of the target */
    int32_t first;        /* the first layer with a predictor */
    int32_t n_features;   /* K: 12, or 16 with the drafter's log-probabilities */
    int32_t n_hidden;     /* H */
    /* threshold that the trainer suggests; the head is computed for scores above it */
    float threshold;
    char drafter[128];      /* the draft model's general.name; "" where the source is not a draft */
    char drafter_file[128]; /* its file's name then; "": not a draft, or an older side file */
    uint64_t drafter_identity;       /* its model_identity; 0 where the source is not a draft */
    bool offline[EXIT_LAYERS + 1];   /* the most frequent layers of the training prompts */
    float expected[EXIT_LAYERS + 1]; /* share of the training tokens that left at a layer, at
                                        n_layers those that went through; the sum is 1 */
    float passes[EXIT_LAYERS + 1];   /* share of passes that end there: exit_mean_layers */
    exit_mlp mlp[EXIT_LAYERS + 1];
    arena memory; /* the weights */
} exit_predictors;

/* z = b2 + sum_j w2[j] relu(b1[j] + sum_k w1[k][j] x[k]): sums begin with the bias, in rising
 * order, without fused steps. x: [K]; unit: [H], gets the hidden units after their relu. */
float exit_mlp_forward(const exit_mlp *m, int32_t n_features, int32_t n_hidden, const float *x,
                       float *unit);
/* sigmoid(z) = 1 / (1 + exp_f32(-z)), kept below 1: no score passes the highest threshold. */
float exit_mlp_score(const exit_mlp *m, int32_t n_features, int32_t n_hidden, const float *x);
/* The score of a token after `layer` complete layers; 0 if there is no predictor. */
float exit_score(const exit_predictors *p, int32_t layer, const exit_features *f);
/* The same for given features, [n_features]. */
float exit_score_of(const exit_predictors *p, int32_t layer, const float *x);
static inline bool exit_has_draft_logp(const exit_predictors *p)
{
    return p->n_features == EXIT_FEATURES;
}

/* ---- The schedule (schedule.c): which layers ask their predictor ---- */

typedef enum exit_layers {
    EXIT_EVERY_LAYER = 0,  /* every layer that has a predictor */
    EXIT_TWO_LEVELS = 1,   /* the most frequent ones, and those near the latest exits */
    EXIT_RANDOM_LAYERS = 2 /* as many as the most frequent ones, at random places: for comparison */
} exit_layers;

/* Schedule of one session. */
typedef struct exit_schedule {
    int32_t first, n_layers;
    bool fixed[EXIT_LAYERS + 1];     /* active whatever happens */
    uint8_t n_near[EXIT_LAYERS + 1]; /* latest exits within EXIT_NEAR of this layer */
    int32_t latest[EXIT_QUEUE], n_latest, oldest;
    bool follows; /* the latest exits */
} exit_schedule;

/* seed: of EXIT_RANDOM_LAYERS. */
void exit_schedule_init(exit_schedule *s, const exit_predictors *p, exit_layers which,
                        uint64_t seed);
/* Never at the last layer, nor at layers without a predictor. */
bool exit_schedule_active(const exit_schedule *s, int32_t layer);
/* A token left after `layer` complete layers; n_layers: it went through. */
void exit_schedule_note(exit_schedule *s, int32_t layer);
/* The n most frequent layers of [first, n_layers), the later of two equals. counts: [n_layers
 * + 1]. */
void exit_choose_layers(const int64_t *counts, int32_t first, int32_t n_layers, int32_t n,
                        bool *chosen);

/* ---- The other baseline ---- */

/* A random score: uniform in [0, 1), a function of its arguments. */
float exit_random_score(uint64_t seed, int32_t position, int32_t layer);
