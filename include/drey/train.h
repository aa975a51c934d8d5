/* drey/train.h: side files that are trained on this machine, on text that the model itself writes.
 *
 * For programs that train; drey/drey.h is enough to run a model. Reports have no reserved fields:
 * their structures may change with every minor version. */
#ifndef DREY_TRAIN_H
#define DREY_TRAIN_H

#include "drey/drey.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A text that the model continues. */
typedef struct drey_train_prompt {
    const int32_t *ids; /* [n_ids], n_ids at least 1; borrowed for the call */
    size_t n_ids;
} drey_train_prompt;

/* ---- Predictors of early exits ---- */

/* "draft", "text", "target", "heads"; NULL: there is no such source. */
DREY_API const char *drey_exit_source_name(drey_exit_source source);

typedef struct drey_train_exit_options {
    /* Options as for drey_engine_open: target, threads, memory. Its drafter names the candidates: a
     * model from the draft, DREY_DRAFTER_LOOKUP from the text, DREY_DRAFTER_MEDUSA from the
     * target's heads, DREY_DRAFTER_NONE from the target itself; DREY_WITH(DREY_PART_LOOKUP) adds
     * those of lookup. n_context, policy and progress are the trainer's. */
    const drey_engine_options *engine;
    const drey_train_prompt *prompts; /* [n_prompts], at least 2; the second and third of every four
                                         are held out */
    int32_t n_prompts;
    int32_t n_predict;  /* most tokens of text per prompt; 0: 128 */
    int32_t n_hidden;   /* hidden units of a predictor; 0: 64 */
    float threshold;    /* the threshold that the file suggests; 0: 0.6. From 0.5 on an exit is
                           worthwhile */
    bool plain;         /* without the drafter's own log-probabilities: the paper's 12 features */
    uint64_t seed;      /* seed of the initial weights */
    const char *output; /* NULL: MODEL.drey-exit, next to the model's first file */
    /* Each may be NULL. progress with DREY_PROGRESS_TRAIN, and as for an engine; go_on from time to
     * time: false ends the call with DREY_ERR_CANCELLED. */
    drey_progress_fn *progress;
    bool (*go_on)(void *user);
    void *user;
    uint64_t reserved[8]; /* zero */
} drey_train_exit_options;
DREY_API void drey_train_exit_options_init(drey_train_exit_options *options);

#define DREY_EXIT_LAYERS   256
#define DREY_EXIT_VERDICTS 24

/* After `layer` complete layers, on held-out prompts. A position is positive if its final token is
 * a candidate and the head's choice here. */
typedef struct drey_exit_layer {
    int32_t layer;
    double positive;          /* share of positions */
    double precision, recall; /* precision and recall of scores above the threshold */
    double exits;             /* share of positions that leave here, every layer active */
    double final_for_good;    /* share whose token is final here and at every later layer */
    double recall_own; /* share whose final token is among the target's four likeliest here */
} drey_exit_layer;

/* Verdict on one way of deciding, at the held-out positions, one after another. */
typedef struct drey_exit_verdict {
    char name[64];
    double threshold;
    double layers;    /* per token, of n_layers */
    double agreement; /* share of tokens that are those of the full depth */
    double share;     /* share of the layers that the oracle saves */
    double scores;    /* predictors asked per token */
    double refused;   /* whole heads computed without an exit, per token */
} drey_exit_verdict;

typedef struct drey_train_exit_report {
    drey_exit_source source;
    int32_t n_layers, first, source_layer;
    int64_t n_train, n_held;  /* positions */
    double recall_candidates; /* share of held-out positions whose final token is a candidate */
    double oracle_layers;     /* per token: where its token is final */
    int32_t n_layer_reports, n_verdicts;
    drey_exit_layer layers[DREY_EXIT_LAYERS];
    drey_exit_verdict verdicts[DREY_EXIT_VERDICTS]; /* the first: every layer, as the file says */
    double write_s, gather_s, fit_s;
    uint64_t file_bytes; /* bytes of predictors in memory */
} drey_train_exit_report;

/* Lets the target continue each prompt, looks at every layer of what it wrote, trains a predictor
 * for each layer of the second half, judges them on held-out prompts, then trains them with those
 * as well, and writes the side file completely or not at all. The same text, layers and seed give
 * the same file. report may be NULL. DREY_ERR_USAGE, and the errors of an engine. */
DREY_API drey_status drey_train_exit(const drey_train_exit_options *options,
                                     drey_train_exit_report *report, drey_error *err);

/* ---- Medusa heads, and an EAGLE layer ---- */

enum { DREY_MEDUSA_HEADS = 8, DREY_EAGLE_PASSES = 3, DREY_GUESS_RANKS = 8 };

typedef struct drey_train_draft_options {
    /* Options as for drey_engine_open: target, threads, memory, tier. Its drafter, policy,
     * n_context and progress are ignored. Memory limits the texts that training holds as well. */
    const drey_engine_options *engine;
    int32_t n_heads; /* heads of Medusa; 0: 4. A layer has none */
    int32_t n_ids;   /* tokens that can be guessed, the most frequent ones of the texts; 0: 12288,
                        or all of a smaller vocabulary */
    int64_t n_positions; /* tokens of text to learn from and to judge by; if OUTPUT.texts has more,
                            its first ones; 0: 500,000 */
    int32_t n_epochs;    /* about how often each is seen; 0: 2 */
    float rate;          /* learning rate; 0: 0.002 for heads, 0.001 for a layer */
    float temperature;   /* temperature of answers; 0: 0.3 */
    bool greedy;         /* take the likeliest tokens instead */
    bool keep_texts;     /* keep OUTPUT.texts, which have one form for heads and layers */
    uint64_t seed;
    /* NULL: MODEL.drey-medusa or MODEL.eagle.gguf, next to the model's first file */
    const char *output;
    /* Each may be NULL. progress with DREY_PROGRESS_TRAIN: tokens written, then steps; go_on from
     * time to time: false ends the call with DREY_ERR_CANCELLED. */
    drey_progress_fn *progress;
    bool (*go_on)(void *user);
    void *user;
    /* Prompts that the target answers, each at the beginning of a text: in order, then again with
     * other seeds. All texts of each 16th are held out. NULL, 0: the target asks itself; else at
     * least 2. */
    const drey_train_prompt *prompts; /* [n_prompts] */
    int32_t n_prompts, zero;
    uint64_t reserved[6]; /* zero */
} drey_train_draft_options;
DREY_API void drey_train_draft_options_init(drey_train_draft_options *options);

typedef struct drey_train_draft_report {
    int32_t n_guesses, n_ids;          /* n_guesses: heads, or a layer's DREY_EAGLE_PASSES */
    int64_t n_kept;                    /* tokens that OUTPUT.texts had before */
    int64_t n_texts;                   /* tokens of text that were used, old and new */
    int64_t n_positions;               /* trained with */
    int64_t n_held[DREY_MEDUSA_HEADS]; /* judged by */
    /* Accuracy on held-out texts: how often a head's guess of a rank was right; or a layer's, after
     * tokens that the target has computed, after one guess, after two. */
    float accuracy[DREY_MEDUSA_HEADS][DREY_GUESS_RANKS];
    double loss; /* at the end, per position */
    double write_s, train_s;
} drey_train_draft_report;

/* Lets the target write texts (both sides of a conversation, or answers to prompts, sampled with
 * seeds; several per pass), keeps its hidden states in OUTPUT.texts, trains the heads with them,
 * judges them on held-out texts, and writes the file completely or not at all. After an
 * interruption the next call with the same options continues from the texts and from
 * OUTPUT.checkpoint, which is written every minute; both are removed at the end. The same options
 * give the same file on a machine, interrupted or not. report may be NULL. DREY_ERR_USAGE,
 * DREY_ERR_MEMORY (reported before any text is written, with the memory needed), and the errors of
 * an engine. */
DREY_API drey_status drey_train_medusa(const drey_train_draft_options *options,
                                       drey_train_draft_report *report, drey_error *err);

/* The same of one decoder layer after the target (docs/reference/eagle3.md), which options.draft
 * takes then. DREY_ERR_UNSUPPORTED: the target has norms that take the mean off. */
DREY_API drey_status drey_train_eagle(const drey_train_draft_options *options,
                                      drey_train_draft_report *report, drey_error *err);

#ifdef __cplusplus
}
#endif

#endif
