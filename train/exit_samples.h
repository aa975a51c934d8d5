/* Samples for training predictors: positions of text that a model wrote, each with what is seen
 * after every layer from the middle on. They are gathered once (exit_gather.c), used for training
 * (exit_fit.c) and for judging (exit_judge.c).
 *
 *   position t of a prompt: the tokens up to t are known, `final` is the whole model's next token
 *   look l of a position:   after first + l complete layers */
#pragma once

#include "exit/exit.h"
#include "tree/tree.h"
#include "drey/train.h"

typedef struct exit_look {
    int32_t head;                 /* the whole head's choice */
    bool own_hit;                 /* the final token is among the head's four most likely */
    float logit[EXIT_CANDIDATES]; /* logits of the drafter's candidates */
    float own[EXIT_CANDIDATES];   /* logits of the target's own, from own_layer on */
} exit_look;

typedef struct exit_candidates {
    int32_t n;
    int32_t token[EXIT_CANDIDATES];
    float logp[EXIT_CANDIDATES]; /* logarithms of the drafter's confidence */
} exit_candidates;

typedef struct exit_position {
    int32_t prompt, final;
    exit_candidates guessed, own; /* n = 0: there is no drafter */
} exit_position;

typedef struct exit_samples {
    /* own_layer: the layer after which the target's own four are taken. */
    int32_t n_layers, first, own_layer;
    int32_t n, room;
    exit_position *position; /* [n] */
    exit_look *look;         /* [n][n_layers - first] */
} exit_samples;

static inline exit_look *exit_look_at(const exit_samples *s, int32_t i, int32_t layer)
{
    return s->look + (int64_t)i * (s->n_layers - s->first) + (layer - s->first);
}

size_t exit_samples_bytes(int32_t n_layers, int32_t room);
/* Takes exit_samples_bytes from `a`, whose owner checks it. */
void exit_samples_init(exit_samples *s, int32_t n_layers, int32_t room, arena *a);
/* Half of the prompts are only for judging: the second and the third of each four, so that prompts
 * of two alternating sorts are divided as fairly as prompts in any other order. */
static inline bool exit_is_held_out(const exit_samples *s, int32_t i)
{
    int32_t place = s->position[i].prompt % 4;
    return place == 1 || place == 2;
}

/* ---- Gathering ---- */

enum { EXIT_LOOK_ROWS = 32 }; /* rows of a watched pass: engine_hooks.least_logit_rows */

typedef struct exit_gatherer {
    drey_session *session; /* session of an engine whose head stays in memory */
    exit_samples *samples;
    bool (*go_on)(void *user); /* may be NULL */
    /* n_done more tokens have been written or looked at; may be NULL. */
    void (*progress)(void *user, int32_t n_done);
    void *user;
    int64_t write_ns, gather_ns;
    token_tree tree; /* tree of the drafter's guesses */
} exit_gatherer;

/* Lets the model write up to n_predict tokens after a prompt and gathers their samples.
 * DREY_ERR_CANCELLED, and a session's errors. */
drey_status exit_gather(exit_gatherer *g, const drey_train_prompt *prompt, int32_t number,
                        int32_t n_predict, drey_error *err);

/* ---- Learning ---- */

/* Trains p's predictors, whose kind, source, sizes and memory (numbers: of exit_take) are set, on
 * the positions that are not held out, or on all. The callback gets the part of 1 that is done;
 * false ends it with DREY_ERR_CANCELLED; it may be NULL. DREY_ERR_USAGE: no position has
 * candidates. */
typedef struct exit_training {
    exit_predictors *p;
    float *numbers[4];
    const exit_samples *samples;
    bool all;
    uint64_t seed;
    bool (*progress)(void *user, double part);
    void *user;
} exit_training;
drey_status exit_fit(const exit_training *t, drey_error *err);
/* Number that was subtracted from b2 for the layers that leaving after `layer` saves
 * (exit_fit.c). */
float exit_price(const exit_predictors *p, int32_t layer);
/* Finds where training tokens leave at p->threshold with all layers active. Sets p->expected, and
 * p->offline: the three quarters of the layers where most tokens leave. */
void exit_fit_schedule(exit_predictors *p, const exit_samples *s);

/* ---- Judging ---- */

typedef struct exit_judgement {
    int64_t n, n_agree, n_scores, n_refused;
    double sum_layers;
    int64_t exits[EXIT_LAYERS + 1]; /* at n_layers: those that did not leave */
} exit_judgement;

typedef struct exit_rule {
    const exit_predictors *p;
    exit_layers layers;
    float threshold;
    bool random; /* scores are random */
    uint64_t seed;
} exit_rule;

/* Counts what the engine would do on held-out positions (or on the others), prompt by prompt: it
 * has the drafter's guesses, computes the head above the threshold, and exits if the head's choice
 * is a candidate. */
void exit_judge(const exit_samples *s, const exit_rule *rule, bool held_out, exit_judgement *j);
/* Number of complete layers after which position i's token no longer changes. */
int32_t exit_final_layer(const exit_samples *s, int32_t i);

/* The features of a position for predictors p, layer by layer. */
typedef struct exit_walk {
    const exit_samples *samples;
    const exit_predictors *p;
    const exit_candidates *candidates; /* n = 0: there are none, and no features */
    exit_features features;
    int32_t i;
} exit_walk;
void exit_walk_begin(exit_walk *w, const exit_samples *s, const exit_predictors *p, int32_t i);
/* The features at the next layer that is looked at; x: [EXIT_FEATURES]. */
void exit_walk_next(exit_walk *w, int32_t layer, float *x);
/* Returns whether a token may leave with this choice of the head. */
bool exit_walk_takes(const exit_walk *w, int32_t token);
