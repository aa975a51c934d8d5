/* Scenes with which tests begin: toys as models, the options that most engines of tests have, an
 * engine with its sessions, and what an error says; a folder and random numbers. */
#pragma once

#include "drey/drey.h"
#include "drey/research.h"
#include "support/rng.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/toy.h"

struct engine_hooks; /* engine/config.h */

/* Fails the test where a call has failed. */
void must(drey_status status, const drey_error *err);
/* MUST(f, a, b) calls f(a, b, &err), which has to succeed. */
#define MUST(f, ...)                                                                               \
    do {                                                                                           \
        drey_error failed_ = {0};                                                                  \
        must(f(__VA_ARGS__, &failed_), &failed_);                                                  \
    } while (0)

/* REFUSED(status, says, f, a, b) calls f(a, b, &err), which has to fail with this status and a
 * message of one line that contains `says`. */
#define REFUSED(status, says, f, ...)                                                              \
    do {                                                                                           \
        drey_error refusal_ = {0};                                                                 \
        drey_status got_ = f(__VA_ARGS__, &refusal_);                                              \
        must_refuse(got_, status, says, &refusal_);                                                \
    } while (0)
void must_refuse(drey_status got, drey_status want, const char *says, const drey_error *err);
/* The same of an engine that is opened. hooks may be NULL. */
void must_refuse_engine(const drey_engine_options *o, const struct engine_hooks *hooks,
                        drey_status expected, const char *words);

/* Returns the path of a real model, in $DREY_MODELS or the user's cache folder, until the next
 * call. Where it is not there the test is skipped. */
const char *real_model(const char *name);

/* Writes NAME into the temporary folder and opens it. */
drey_model *toy_open(const char *name, const toy_options *toy);

/* For options.research: lookup's guesses added to those of another drafter, or left out. */
extern const drey_research looked_up, not_looked_up;

/* The usual options with this target, unlimited memory, and nobody who drafts. */
drey_engine_options plain_options(const drey_model *m, int32_t n_context, int32_t n_threads);

/* A session with its own engine; `hooks` may be NULL. close_alone closes both. */
drey_session *open_alone(const drey_engine_options *o, const struct engine_hooks *hooks);
void close_alone(drey_session **s);

/* n tokens, the likeliest each time; an end of text does not end them. */
drey_generate_options greedy(int32_t n);

/* The smallest budget that these options can have. hooks may be NULL. */
uint64_t smallest_budget(const drey_engine_options *o, const struct engine_hooks *hooks);

/* Writes a sidecar, in place of any that is there. output NULL: next to the model. */
void toy_prepare(const drey_model *m, const char *output, bool planes);

enum { PLACE_SESSIONS = 8 };
typedef struct engine_place { /* an engine, and all sessions that it has room for */
    drey_engine *engine;
    drey_session *session[PLACE_SESSIONS];
} engine_place;

/* hooks may be NULL. */
engine_place place_open(const drey_engine_options *o, const struct engine_hooks *hooks);
void place_close(engine_place *p);
