/* Keys of models with latent attention: see arch.h. */
#include <math.h>

#include "base/fmath.h"
#include "common/error.h"
#include "common/num.h"
#include "gguf/gguf.h"
#include "model/arch.h"

/* Reads a number that may be missing: fallback. */
static drey_status read_one(const model_shape *s, const gguf *g, const char *suffix,
                            int64_t fallback, int64_t low, int64_t high, int32_t *out,
                            drey_error *err)
{
    char key[96];
    int64_t value = gguf_int(g, arch_key(s->arch, suffix, key), fallback);
    if (value < low || value > high)
        FAIL(err, DREY_ERR_FORMAT, "%s is %lld, or missing; the file is broken", key,
             (long long)value);
    *out = (int32_t)value;
    return DREY_OK;
}

/* Numbers of a head's queries and values: in older files these keys have them that say in newer
 * ones how wide the rows of the cache are. */
static drey_status read_widths(model_shape *s, const gguf *g, drey_error *err)
{
    latent_shape *l = &s->latent;
    char key[96];
    const bool old = !gguf_find_key(g, arch_key(s->arch, "attention.key_length_mla", key));
    int32_t k_dim = 0;
    TRY(read_one(s, g, "rope.dimension_count", 0, 2, 1 << 10, &l->n_rot, err));
    TRY(read_one(s, g, old ? "attention.key_length" : "attention.key_length_mla", 0, l->n_rot + 1,
                 1 << 10, &k_dim, err));
    TRY(read_one(s, g, old ? "attention.value_length" : "attention.value_length_mla", 0, 1, 1 << 10,
                 &l->v_dim, err));
    l->n_plain = k_dim - l->n_rot;
    return DREY_OK;
}

drey_status arch_read_latent(model_shape *s, const gguf *g, drey_error *err)
{
    latent_shape *l = &s->latent;
    if (!(s->arch->keys & KEYS_LATENT))
        return DREY_OK;
    TRY(read_one(s, g, "attention.q_lora_rank", 0, 0, 1 << 16, &l->q_rank, err));
    TRY(read_one(s, g, "attention.kv_lora_rank", 0, 1, 1 << 10, &l->kv_rank, err));
    TRY(read_widths(s, g, err));
    for (int32_t i = 0; i < s->n_attentions; i++) {
        attention_shape *a = &s->attention[i];
        a->n_heads_kv = 1;
        a->head_dim = l->kv_rank + l->n_rot;
        a->v_dim = l->kv_rank;
        a->latent = true;
    }
    return DREY_OK;
}

/* YaRN's part in scores: 0.1 a ln(factor) + 1, for queries and for keys. Files have 0.1 a. */
static double score_factor(const model_shape *s, const gguf *g)
{
    char key[96];
    const double factor = s->rope[ROPE_OF_ALL].factor,
                 part =
                     gguf_number(g, arch_key(s->arch, "rope.scaling.yarn_log_multiplier", key), 0);
    const double one = factor > 1 ? part * log_f64(factor) + 1 : 1;
    return one * one;
}

/* Files of GLM-4.7-Flash may lack a key for their routers' sigmoid. */
static void end_router(model_shape *s, const gguf *g)
{
    enum { FLASH_LAYERS = 47, FLASH_VOCABULARY = 154880 };
    router_shape *r = &s->experts.router;
    char key[96];
    const bool flash = (s->n_layers == FLASH_LAYERS || s->n_layers == FLASH_LAYERS + 1) &&
                       s->n_vocab == FLASH_VOCABULARY;
    if (flash && gguf_int(g, arch_key(s->arch, "expert_gating_func", key), 0) == 0)
        r->gate = ROUTER_SIGMOID;
    r->by_best = s->arch->experts.by_best && r->gate == ROUTER_SOFTMAX;
}

void arch_end_latent(model_shape *s, const gguf *g)
{
    const latent_shape *l = &s->latent;
    if (l->kv_rank == 0)
        return;
    for (int32_t i = 0; i < s->n_attentions; i++)
        s->attention[i].scale = (float)(score_factor(s, g) / sqrt(l->n_plain + l->n_rot));
    end_router(s, g);
}
