/* What a test begins with: toys as models, and the options that most engines of tests have. */
#ifndef DREY_TESTS_SCENE_H
#define DREY_TESTS_SCENE_H

#include "drey/drey.h"
#include "support/toy.h"

/* Fails the test where a call has failed. */
void must(drey_status status, const drey_error *err);
/* MUST(f, a, b) calls f(a, b, &err), which has to succeed. */
#define MUST(f, ...)                                                                               \
    do {                                                                                           \
        drey_error failed_ = {0};                                                                  \
        must(f(__VA_ARGS__, &failed_), &failed_);                                                  \
    } while (0)

/* Writes NAME into the temporary folder and opens it. */
drey_model *toy_open(const char *name, const toy_options *toy);

/* The usual options with this target, unlimited memory, and nobody who drafts. */
drey_engine_options plain_options(const drey_model *m, int32_t n_context, int32_t n_threads);

/* n tokens, the likeliest each time; an end of text does not end them. */
drey_generate_options greedy(int32_t n);

#endif
