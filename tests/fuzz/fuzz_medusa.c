/* Property: any bytes are refused as Medusa heads with one sentence, or all that they say is within
 * its bounds, and the tensors that they name are within the file. */
#include "draft/medusa_heads.h"
#include "fuzz/fuzz.h"
#include "model/arch.h"

#include <math.h>

enum { IDENTITY = 5 };

static const model_shape target = {.n_embd = 32, .n_vocab = 320};

static void check_taken(const medusa_heads *m, size_t n_bytes)
{
    const medusa_shape *s = &m->shape;
    FUZZ_CHECK(s->n_heads >= 1 && s->n_heads <= MEDUSA_MAX_HEADS);
    FUZZ_CHECK(s->n_embd == target.n_embd && isfinite(s->scale));
    FUZZ_CHECK(s->n_ids >= 1 && s->n_ids <= target.n_vocab);
    const gguf_key *ids = gguf_find_key(m->file, MEDUSA_ARCHITECTURE ".tokens");
    int64_t last = -1;
    for (int32_t i = 0; i < s->n_ids; i++) {
        FUZZ_CHECK(gguf_item_int(ids, (uint64_t)i) > last);
        last = gguf_item_int(ids, (uint64_t)i);
    }
    FUZZ_CHECK(last < target.n_vocab);
    for (int32_t k = 0; k < s->n_heads; k++)
        for (int32_t r = 0; r < MEDUSA_RANKS; r++)
            FUZZ_CHECK(s->accuracy[k][r] >= 0 && s->accuracy[k][r] <= 1);
    for (int32_t k = 0; k < s->n_heads; k++) {
        const weight *w = &m->block[k];
        FUZZ_CHECK(w->form.n_rows == s->n_embd && w->form.k == 2 * s->n_embd);
        FUZZ_CHECK(w->form.tensor->offset + (uint64_t)(w->form.n_rows * w->form.row_bytes) <=
                   n_bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    medusa_heads m;
    drey_error err = {0};
    drey_status status =
        medusa_parse(&m, bytes, n_bytes, IDENTITY, &target, kernel_select("ref"), &err);
    if (status == DREY_OK) {
        check_taken(&m, n_bytes);
    } else {
        FUZZ_CHECK(status == DREY_ERR_FORMAT || status == DREY_ERR_MISMATCH ||
                   status == DREY_ERR_UNSUPPORTED);
        fuzz_check_refused(status, &err);
    }
    medusa_close(&m);
    return 0;
}
