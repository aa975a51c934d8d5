/* Quantising models: other files of a model, with fewer bits per weight; and what says which bits
 * matter. */
#ifndef DREY_QUANTIZE_H
#define DREY_QUANTIZE_H

#include "drey/drey_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct drey_quantize_options {
    const char *input;  /* a GGUF file of any architecture, or the first of a split one's parts */
    const char *output; /* the file that is written, in one part */
    const char *type;   /* one of drey_quantize_type, in small or large letters */
    /* An importance matrix of this model, as drey or llama.cpp write it; NULL: each column of a
     * matrix counts the same. */
    const char *importance;
    bool requantize;       /* also what is quantised already; DREY_ERR_UNSUPPORTED otherwise */
    bool force;            /* replaces a file of the output's name */
    uint64_t memory_bytes; /* bound on the memory of the process, or DREY_MEMORY_* */
    int32_t n_threads;     /* 0: the cores */
    /* Each may be NULL. Called from the calling thread: progress with bytes of the input; go_on
     * from time to time: false ends the call with DREY_ERR_CANCELLED. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    bool (*go_on)(void *user);
    void *user;
    uint64_t reserved[9]; /* zero */
} drey_quantize_options;
DREY_API void drey_quantize_options_init(drey_quantize_options *options);

typedef struct drey_quantize_report {
    uint64_t input_bytes, output_bytes; /* bytes of the files */
    int32_t n_tensors, n_changed;       /* tensors whose type is another one now */
    int32_t n_fallbacks;   /* with another type than the mixture's, because of their rows' length */
    int32_t n_unimportant; /* quantised without importance, although there is a matrix of it */
    uint64_t reserved[4];  /* zero */
} drey_quantize_report;

/* Writes the input with other types of its matrices. All keys stay but those that say how the file
 * is quantised or split. The same input gives the same output, whatever the threads and the memory.
 * The file appears complete or not at all. The report may be NULL. */
DREY_API drey_status drey_quantize(const drey_quantize_options *options,
                                   drey_quantize_report *report, drey_error *err);

/* The name of type i: "Q4_K_M"; NULL: there are no more. Static. */
DREY_API const char *drey_quantize_type(int32_t i);

/* ---- Importance matrices ---- */

typedef struct drey_imatrix_options {
    /* options as for drey_engine_open: target, threads, memory, tier. What it says of drafting,
     * sessions, n_context and progress is ignored. */
    const drey_engine_options *engine;
    const int32_t *ids; /* [n_ids], at least 1: the text without BOS; borrowed for the call */
    size_t n_ids;
    int32_t window;      /* tokens that are read together, each window for itself; 0: 512. A window
                           begins with BOS where the model's texts do */
    const char *dataset; /* the text's name, for the file; NULL: none */
    const char *output;  /* the file that is written, GGUF as llama.cpp has it */
    bool force;          /* replaces a file of that name */
    /* Each may be NULL. progress with DREY_PROGRESS_PROMPT of all tokens, and as for an engine;
     * go_on from time to time: false ends the call with DREY_ERR_CANCELLED. */
    drey_progress_fn *progress;
    bool (*go_on)(void *user);
    void *user;
    uint64_t reserved[8]; /* zero */
} drey_imatrix_options;
DREY_API void drey_imatrix_options_init(drey_imatrix_options *options);

typedef struct drey_imatrix_report {
    int64_t n_tokens;     /* tokens that were read, BOS included */
    int32_t n_windows;    /* the last may be shorter */
    int32_t n_matrices;   /* in the file */
    int32_t n_experts;    /* experts of all layers; 0: the model is no mixture */
    int32_t n_unused;     /* experts among them that no token has used */
    uint64_t reserved[4]; /* zero */
} drey_imatrix_report;

/* Reads a text and writes how much the columns of each matrix matter for it: sums of squares of
 * what the layers' matrices are multiplied with, of experts each for itself. The head is left out.
 * The same model and text give the same file, whatever the threads and the memory. The file appears
 * complete or not at all. The report may be NULL. DREY_ERR_UNSUPPORTED: the model has an encoder.
 */
DREY_API drey_status drey_imatrix(const drey_imatrix_options *options, drey_imatrix_report *report,
                                  drey_error *err);

#ifdef __cplusplus
}
#endif
#endif
