/* Importance matrices: for each matrix of a model the mean squares of its inputs' columns, over a
 * text. Files are llama.cpp's: GGUF (sums of squares and counts), and the older .dat, which is only
 * read. */
#pragma once

#include "gguf/gguf.h"

typedef struct importance_entry {
    char *name;     /* name of the tensor */
    int64_t n;      /* numbers: the row length, times the number of experts */
    float *squares; /* [n], mean squares */
} importance_entry;

typedef struct importance {
    importance_entry *entry; /* [n_entries], sorted by name */
    int64_t n_entries;
    int64_t n_chunks;  /* chunks of the text; 0: not known */
    char dataset[256]; /* the text's name; "": not known */
    uint64_t n_bytes;  /* memory that all of it takes */
} importance;

/* Reads a file of either kind. DREY_ERR_FORMAT: it is damaged, or neither. */
drey_status importance_read(importance *m, const char *path, drey_error *err);
/* Accepts a half-read one. */
void importance_free(importance *m);

/* NULL: there is none for this tensor. */
const importance_entry *importance_find(const importance *m, const char *name);
/* Checks that it belongs to a model of these tensors: each entry has its tensor, and as many
 * numbers as that has columns. DREY_ERR_MISMATCH. */
drey_status importance_check(const importance *m, const char *path, const gguf *model,
                             drey_error *err);

/* ---- Making one (importance_write.c) ---- */

enum { IMPORTANCE_SHARING = 4 };

/* Inputs of some matrices: sums of squares over its rows so far. */
typedef struct importance_input {
    int64_t k;                             /* numbers of a row */
    int32_t n;                             /* experts, each with its own sums; else 1 */
    double *squares;                       /* [n][k] */
    int64_t *counts;                       /* [n]: rows */
    const char *names[IMPORTANCE_SHARING]; /* [n_names], of those matrices' tensors */
    int32_t n_names;
} importance_input;

/* Adds n rows [n][ld] to the sums of `expert`, one after another: so these do not depend on how
 * many rows come at a time. */
void importance_add(importance_input *in, int32_t expert, const float *rows, int64_t ld, int64_t n);
/* Returns whether all sums are finite. */
bool importance_is_finite(const importance_input *in);

/* The text, in windows of so many tokens. */
typedef struct importance_text {
    const char *name; /* NULL: none */
    int32_t n_windows, window;
} importance_text;
/* Writes a GGUF file completely or not at all. DREY_ERR_IO, DREY_ERR_MEMORY. */
drey_status importance_write(const char *path, const importance_input *in, int32_t n_inputs,
                             const importance_text *text, drey_error *err);
/* Memory that writing takes, at most, for so many matrices. */
size_t importance_write_bytes(int64_t n_matrices);
