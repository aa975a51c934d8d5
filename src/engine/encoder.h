/* The encoder of a model that has one (T5, BART): it reads the input once, before the decoder
 * writes.
 *
 * In a layer every position sees every other, so that each layer needs all rows of the input: they
 * are one pass, whose workspace has room for as many as the context has. The pass reads the
 * encoder's weights from the disk and keeps none of them. What stays of an input are the keys and
 * values of its output, in each decoder layer: the cross cache of a session.
 *
 *   ids --pass of the encoder--> output --readers' products--> cross cache <--attention-- decoder
 */
#pragma once

#include "model/layout.h"
#include "model/workspace.h"
#include "state/text_cache.h"

typedef struct engine_config engine_config;
typedef struct pool pool;
typedef struct unit_set unit_set;

typedef struct engine_encoder { /* all zero: the model has none */
    model_layout layout;
    weights weights;
    workspace ws;    /* for all sessions: inputs are read one after the other */
    text_cache rows; /* keys and values of the layer that is under way */
    const kernel_table *kernels;
    arena layout_memory, memory;
} engine_encoder;

/* Needs of opening and of passes. */
typedef struct encoder_needs {
    const engine_config *config;
    const kernel_table *kernels;
    unit_set *units;
    const cpu_tuning *cpu;
} encoder_needs;

/* Binds the tensors of m's encoder; does nothing if it has none. */
drey_status encoder_bind(engine_encoder *c, const drey_model *m, const encoder_needs *needs,
                         drey_error *err);
static inline bool encoder_is_there(const engine_encoder *c)
{
    return c->layout.n_matrices > 0;
}
/* Memory of a bound encoder in all. */
uint64_t encoder_bytes(const engine_encoder *c, const drey_model *m, const encoder_needs *needs);
/* Takes that memory; reads norms and biases. */
drey_status encoder_open(engine_encoder *c, const drey_model *m, const encoder_needs *needs,
                         drey_error *err);
void encoder_close(engine_encoder *c);

/* Reads ids[0..n), n at least 1 and at most the context, and fills the cross cache, which is empty
 * until that is done. DREY_ERR_IO, DREY_ERR_CANCELLED, DREY_ERR_FORMAT. */
drey_status encoder_read(engine_encoder *c, pool *threads, const int32_t *ids, int32_t n,
                         text_cache *cross, const _Atomic bool *cancel, drey_error *err);
