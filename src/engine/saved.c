/* Where saved keys and values come from: see saved.h. */
#include "engine/saved.h"

#include "weights/identity.h"

drey_status saved_origin_make(saved_origin *o, const drey_engine *e, drey_error *err)
{
    bool floats = e->kernels->kv_plain == KV_F32;
    const model_shape *shape = &e->target.layout.shape;
    *o = (saved_origin){.arithmetic = floats ? SAVED_ARITHMETIC_FLOAT : SAVED_ARITHMETIC,
                        .format = engine_kv_format(e),
                        .n_layers = shape->n_layers,
                        .n_heads_kv = shape->n_heads_kv,
                        .head_dim = shape->head_dim};
    return model_identity(e->options.target->file, &o->model, err);
}
