/* Writing a text with the public interface, for tests that compare texts. */
#ifndef DREY_TESTS_WRITING_H
#define DREY_TESTS_WRITING_H

#include "drey/drey.h"

struct engine_tuning; /* engine/engine.h */

enum { WRITING_MAX = 512 };

typedef struct writing {
    int32_t ids[WRITING_MAX];
    int32_t n_ids;
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

/* share: of every matrix that is pinned, the rest streamed; negative: as the budget says.
 * Opens engine and session, writes on from ids[0..n), closes both. `generate` may be NULL: greedy,
 * n_predict tokens, end-of-text ignored. Failures are left in out->status and out->error. */
void writing_run(writing *out, const drey_engine_options *engine, double share, const int32_t *ids,
                 size_t n, int32_t n_predict, const drey_sampling *sampling);
/* The same with settings that the public interface has not got. */
void writing_run_tuned(writing *out, const drey_engine_options *engine,
                       const struct engine_tuning *tuning, const int32_t *ids, size_t n,
                       int32_t n_predict, const drey_sampling *sampling);

#endif
