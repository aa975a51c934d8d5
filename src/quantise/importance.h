/* Importance matrices: for each matrix of a model the mean squares of its inputs' columns, over a
 * text. Files are llama.cpp's: GGUF (sums of squares and counts), and the older .dat. */
#pragma once

#include "gguf/gguf.h"

typedef struct importance_entry {
    char *name;     /* of the tensor */
    int64_t n;      /* numbers: the row length, times the number of experts */
    float *squares; /* [n], mean squares */
} importance_entry;

typedef struct importance {
    importance_entry *entry; /* [n_entries], sorted by name */
    int64_t n_entries;
    int64_t n_chunks;  /* of the text; 0: not known */
    char dataset[256]; /* the text's name; "": not known */
    uint64_t n_bytes;  /* memory that all of it takes */
} importance;

/* Reads a file of either kind. DREY_ERR_FORMAT: it is damaged, or neither. */
drey_status importance_read(importance *m, const char *path, drey_error *err);
/* Accepts a half-read one. */
void importance_free(importance *m);

/* NULL: there is none for this tensor. */
const importance_entry *importance_find(const importance *m, const char *name);
/* That it belongs to a model of these tensors: each entry has its tensor, and as many numbers as
 * that has columns. DREY_ERR_MISMATCH. */
drey_status importance_check(const importance *m, const char *path, const gguf *model,
                             drey_error *err);
