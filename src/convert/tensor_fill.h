/* The bytes of the tensors that a file gets: read from the folder in pieces, changed, written in
 * the file's types. Memory: a piece of at most a MiB, or of one head's rows, in three forms; of
 * turned matrices (GPT-2, gpt-oss in BF16) a whole one. */
#pragma once

#include "convert/tensor_plan.h"

typedef struct tensor_filler {
    const hub_folder *folder;
    const tensor_plan *plan;
    void (*progress)(void *user, uint64_t done, uint64_t total); /* bytes written; may be NULL */
    bool (*go_on)(void *user);                                   /* may be NULL */
    void *user;
    uint64_t done, total;
    uint8_t *raw, *out; /* its memory, which tensor_filler_free frees */
    float *rows;
    size_t raw_bytes, out_bytes, rows_bytes;
} tensor_filler;

/* A gguf_fill_fn; user is the tensor_filler, in which the five first fields are set, and the others
 * zero. DREY_ERR_UNSUPPORTED: a number that the type cannot hold; DREY_ERR_CANCELLED. */
drey_status tensor_fill(void *user, uint64_t i, gguf_sink *sink, drey_error *err);
void tensor_filler_free(tensor_filler *f);
