/* Origin of saved keys and values: see kv_origin.h. */
#include "store/kv_origin.h"

#include "model/arch.h"
#include "weights/identity.h"

drey_status saved_origin_make(saved_origin *o, const gguf *model, const model_shape *shape,
                              kv_format format, bool float_tier, drey_error *err)
{
    const attention_shape *a = &shape->attention[0];
    *o = (saved_origin){.arithmetic = float_tier ? SAVED_ARITHMETIC_FLOAT : SAVED_ARITHMETIC,
                        .format = format,
                        .n_layers = shape->n_layers,
                        .n_heads_kv = a->n_heads_kv,
                        .head_dim = a->head_dim,
                        .v_dim = a->v_dim == a->head_dim ? 0 : a->v_dim};
    return model_identity(model, &o->model, err);
}
