/* drey/convert.h: GGUF files of models as model hubs hold them. */
#ifndef DREY_CONVERT_H
#define DREY_CONVERT_H

#include "drey/drey_error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct drey_convert_options {
    const char *folder; /* with config.json, safetensors, and a tokenizer */
    const char *output; /* the file that is written */
    /* type of matrices: one of drey_convert_type; NULL: as the folder has them */
    const char *type;
    bool force; /* replaces a file of the output's name */
    /* Each may be NULL. Called from the calling thread: progress with bytes of the tensors; go_on
     * from time to time: false ends the call with DREY_ERR_CANCELLED. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    bool (*go_on)(void *user);
    void *user;
    uint64_t reserved[8]; /* zero */
} drey_convert_options;
DREY_API void drey_convert_options_init(drey_convert_options *options);

typedef struct drey_convert_report {
    char architecture[32]; /* as the file names it */
    char type[16];         /* type of most matrices */
    uint64_t output_bytes;
    int64_t n_tensors;
    int64_t n_left_out;   /* the folder's that have no part in a text: images, sounds */
    uint64_t reserved[3]; /* zero */
} drey_convert_report;

/* Writes the folder's model as a GGUF file that drey runs; before a tensor is read, what the file
 * would have is checked as it is when a model is opened. Memory: the descriptions of tokenizer and
 * tensors, and some MiB of a tensor at a time. The file appears complete or not at all. The report
 * may be NULL. */
DREY_API drey_status drey_convert(const drey_convert_options *options, drey_convert_report *report,
                                  drey_error *err);

/* The name of type i: "f16", "bf16", "f32", "q8_0"; NULL: there are no more. Static. */
DREY_API const char *drey_convert_type(int32_t i);

#ifdef __cplusplus
}
#endif
#endif
