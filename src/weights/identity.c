/* Identity of a model file: see identity.h. */
#include "weights/identity.h"

#include "common/error.h"
#include "common/hash.h"
#include "gguf/gguf.h"
#include "weights/sidecar.h"

drey_status model_identity(const gguf *g, uint64_t *identity, drey_error *err)
{
    sidecar_table t = {0};
    uint64_t all = 0;
    TRY(sidecar_table_make(&t, gguf_n_shards(g), NULL, 0, err));
    drey_status status = sidecar_table_stamp(&t, g, err);
    for (int32_t part = 0; part < gguf_n_shards(g); part++) {
        const sidecar_stamp *s = &t.stamp[part];
        uint64_t numbers[4] = {all, s->n_bytes, s->header_hash, s->sample_hash};
        all = hash64_of(numbers, sizeof numbers);
    }
    *identity = all;
    sidecar_table_free(&t);
    return status;
}
