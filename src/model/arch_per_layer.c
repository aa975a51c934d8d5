/* Keys of models whose layers share keys and values, and have embeddings by layer: see arch.h. */
#include "common/error.h"
#include "gguf/gguf.h"
#include "model/arch.h"

/* The last layers read what the last layer of their kind before them has stored. */
static drey_status share_stores(model_shape *s, int32_t n_shared, drey_error *err)
{
    const int32_t first = s->n_layers - n_shared;
    for (int32_t i = first; i < s->n_layers; i++) {
        const attention_shape *a = layer_attention(s, i), *of;
        int32_t from = first - 1;
        while (from >= 0 && layer_attention(s, from)->local != a->local)
            from--;
        of = from >= 0 ? layer_attention(s, from) : NULL;
        if (!of || of->n_heads_kv != a->n_heads_kv || of->head_dim != a->head_dim ||
            of->v_dim != a->v_dim)
            FAIL(err, DREY_ERR_FORMAT,
                 "layer %d has to read keys and values of an earlier layer of its kind, and there "
                 "is none of its size; the file is broken",
                 i);
        s->layer[i].kv_before = i - from;
    }
    return DREY_OK;
}

/* A layer reads a part of a row of the table, in whole blocks. */
static drey_status read_table(model_shape *s, const gguf *g, int32_t width, drey_error *err)
{
    static const char name[] = "per_layer_token_embd.weight";
    const gguf_tensor *t = gguf_find_tensor(g, name);
    if (!t || t->dims[1] < 1)
        FAIL(err, DREY_ERR_FORMAT,
             "tensor %s is missing; the file is incomplete or of another architecture", name);
    if (t->dims[0] != (int64_t)width * s->n_layers)
        FAIL(err, DREY_ERR_FORMAT,
             "tensor %s has rows of %lld numbers, where %d layers read %d each; the file is broken",
             name, (long long)t->dims[0], s->n_layers, width);
    if (width % type_find(t->type)->block_elements)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tensor %s has type %s, in blocks that do not divide the %d numbers of a layer", name,
             type_find(t->type)->name, width);
    s->lookup = (lookup_shape){
        .n = 1, .row_bytes = (int32_t)(t->n_bytes / (uint64_t)t->dims[1]), .width = width};
    return DREY_OK;
}

drey_status arch_read_per_layer(model_shape *s, const gguf *g, drey_error *err)
{
    int32_t n_shared, width;
    if (!(s->arch->keys & KEYS_PER_LAYER))
        return DREY_OK;
    TRY(arch_read_count(g, s->arch, "attention.shared_kv_layers", s->n_layers - 1, &n_shared, err));
    TRY(arch_read_count(g, s->arch, "embedding_length_per_layer_input", 1 << 14, &width, err));
    TRY(share_stores(s, n_shared, err));
    return width > 0 ? read_table(s, g, width, err) : DREY_OK;
}
