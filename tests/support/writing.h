/* Texts, for tests that compare them. */
#pragma once

#include "support/scene.h"

struct engine_hooks; /* engine/engine.h */

enum { WRITING_MAX = 512 };

typedef struct writing {
    int32_t ids[WRITING_MAX];
    int32_t n_ids;
    int32_t refuse_at; /* the callback refuses this token; 0: none */
    char text[8 * WRITING_MAX];
    size_t n_bytes;
    drey_statistics stats;
    drey_speculation speculation;
    drey_exits exits;
    drey_unit units[DREY_MAX_UNITS]; /* [n_units] */
    int32_t n_units;
    drey_status status;
    drey_error error;
} writing;

/* Keeps a token, as on_token of such options: keeps a token in the writing that user is. */
bool writing_keep_id(void *user, int32_t id);
/* Options to write n tokens into *out, the likeliest each time; an end of text does not end
 * them. */
drey_generate_options writing_into(writing *out, int32_t n);
/* Writes on in a session from ids[0..n) into *out, which may hold a beginning. It has to succeed.
 * sampling may be NULL: greedy. */
void writing_continue(writing *out, drey_session *s, const int32_t *ids, size_t n,
                      int32_t n_predict, const drey_sampling *sampling);
/* Fails the test where tokens differ, */
void must_be_same_ids(const writing *want, const writing *got, const char *what);
/* or tokens or bytes. */
void must_be_same(const writing *want, const writing *got, const char *what);

/* Text as somebody who follows its events sees it: verified bytes, then provisional ones. */
typedef struct seen_text {
    char shown[16 * WRITING_MAX];
    size_t n_verified, n_shown;
    size_t n_stood; /* provisional bytes that became verified */
} seen_text;
/* Fails the test where an event does not go together with those before it. */
void seen_text_take(seen_text *t, const drey_event *e);

/* share: of every matrix that is pinned, the rest streamed; negative: as the budget says.
 * Opens engine and session, writes on from ids[0..n), closes both. `generate` may be NULL: greedy,
 * n_predict tokens, end-of-text ignored. It has to succeed, */
void writing_run(writing *out, const drey_engine_options *engine, double share, const int32_t *ids,
                 size_t n, int32_t n_predict, const drey_sampling *sampling);
/* or a failure is left in out->status and out->error, */
void writing_try(writing *out, const drey_engine_options *engine, double share, const int32_t *ids,
                 size_t n, int32_t n_predict, const drey_sampling *sampling);
/* as it is with settings that the public interface has not got. */
void writing_run_tuned(writing *out, const drey_engine_options *engine,
                       const struct engine_hooks *hooks, const int32_t *ids, size_t n,
                       int32_t n_predict, const drey_sampling *sampling);
