/* Where saved keys and values come from: see saved.h. */
#include "engine/saved.h"

#include "weights/identity.h"

drey_status saved_origin_make(saved_origin *o, const drey_engine *e, const gguf *model,
                              const kv_cache *kv, drey_error *err)
{
    bool floats = e->kernels->kv_plain == KV_F32;
    *o = (saved_origin){.arithmetic = floats ? SAVED_ARITHMETIC_FLOAT : SAVED_ARITHMETIC,
                        .format = kv->format,
                        .n_layers = kv->n_layers,
                        .n_heads_kv = kv->n_heads_kv,
                        .head_dim = kv->head_dim};
    return model_identity(model, &o->model, err);
}
