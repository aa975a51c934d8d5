/* Property: any bytes are refused as predictors with one sentence that says what to do, or all that
 * they hold is within its bounds and finite, and scores are probabilities. */
#include "exit/exit_file.h"
#include "fuzz/fuzz.h"

#include <math.h>

enum { IDENTITY = 5 };

static void check_taken(const exit_predictors *p)
{
    static const float x[EXIT_FEATURES] = {20, 18, 3, -5, 0.8f, 0.2f};
    FUZZ_CHECK(p->n_layers >= 2 && p->n_layers <= EXIT_LAYERS);
    FUZZ_CHECK(p->first >= 1 && p->first < p->n_layers);
    FUZZ_CHECK(p->n_hidden >= 1 && p->n_hidden <= EXIT_HIDDEN);
    FUZZ_CHECK(p->threshold >= 0 && p->threshold <= 1);
    FUZZ_CHECK(p->source_layer >= 0 && p->source_layer <= p->first);
    for (int32_t layer = 0; layer <= p->n_layers; layer++) {
        float score = exit_score_of(p, layer, x);
        FUZZ_CHECK(isnan(score) || (score >= 0 && score <= 1)); /* sums may be infinite */
        FUZZ_CHECK(layer >= p->first || score == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    exit_predictors p;
    drey_error err = {0};
    drey_status status = exit_parse(&p, bytes, n_bytes, IDENTITY, "m.gguf.drey-exit", &err);
    if (status == DREY_OK) {
        check_taken(&p);
        exit_close(&p);
        return 0;
    }
    FUZZ_CHECK(status == DREY_ERR_FORMAT || status == DREY_ERR_MISMATCH);
    FUZZ_CHECK(!p.memory.base);
    fuzz_check_refused(status, &err);
    return 0;
}
