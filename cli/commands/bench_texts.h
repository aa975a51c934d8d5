/* What benchmarks share that let several sides write the same texts: writing one, its hash, the
 * order of all of them, budgets in a file of results, medians, and what is told at the end. */
#ifndef DREY_CLI_BENCH_TEXTS_H
#define DREY_CLI_BENCH_TEXTS_H

#include "cli/args/options.h"
#include "cli/files/prompts.h"
#include "drey/drey.h"

#include <cjson/cJSON.h>
#include <stdio.h>

enum { TEXT_HASH_HEAD = 16 };

typedef struct text_hash { /* begin: text_hash_begin */
    uint64_t value;
    char head[20]; /* the hash of the first TEXT_HASH_HEAD ids; "": there are fewer */
    int32_t n;
} text_hash;

static inline text_hash text_hash_begin(void)
{
    return (text_hash){.value = UINT64_C(0xcbf29ce484222325)}; /* FNV-1a's */
}
/* A drey_token_fn; user: the text_hash. */
bool text_hash_id(void *user, int32_t id);
/* 17 bytes. */
void text_hash_put(const text_hash *h, char *out, size_t size);

/* A text, and what came of it. */
typedef struct bench_text {
    text_hash hash;
    drey_statistics statistics;
    drey_speculation speculation;
    drey_exits exits;
} bench_text;
/* Writes n_predict tokens behind a prompt, the text's own end ignored, with an engine of its own.
 * sampling: NULL: the likeliest tokens. */
drey_status bench_text_write(bench_text *out, const drey_engine_options *options,
                             const bench_prompt *prompt, int32_t n_predict,
                             const drey_sampling *sampling, drey_error *err);

/* All texts of a benchmark in order: of each round every prompt, of each prompt every budget, of each
 * budget every side, so that sides take turns. */
typedef struct text_place {
    int side, budget, prompt, round; /* each from 0 on */
} text_place;
int text_count(const cli_settings *s, int n_prompts, int n_sides);
text_place text_place_of(const cli_settings *s, int n_prompts, int n_sides, int i);

/* As a CSV file keeps it; 0: no bound. */
double kept_mib(uint64_t bytes);
/* Back: the bytes, DREY_MEMORY_UNLIMITED for 0. */
uint64_t bytes_of_mib(double mib);
/* "in memory", "800 MiB"; out: [32]. */
const char *budget_words(char *out, double mib);

/* Sorts the values; 0 for none. */
double median_of(double *values, size_t n);
/* Of so many texts of sides that are not lossy so many differ that have to be the same, and so many
 * could not be written: said on `out` and in `root`; where there are any that is the error. */
drey_status tell_texts(int n_texts, int n_other, int n_failed, FILE *out, cJSON *root,
                       drey_error *err);

#endif
