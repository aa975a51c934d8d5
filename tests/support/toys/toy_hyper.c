/* Hyper connections, n-grams and attention that chooses, of toys: tensors and keys as llama.cpp's
 * files of Qwen 3.8 Flash Next have them. */
#include <stdio.h>

#include "support/toys/toy_plan.h"

enum {
    NGRAMS_LAYER = 1,
    ROW_NUMBERS = 32,
    N_HEADS = 4,
    INDEX_HEADS = 2,
    INDEX_DIM = 16,
    BLOCK = 4
};

/* Rows of each head of n-grams: of 2 tokens, and of 3. */
static const int32_t head_rows[N_HEADS] = {97, 101, 103, 107};

static int64_t table_rows(void)
{
    int64_t n = 0;
    for (int i = 0; i < N_HEADS; i++)
        n += head_rows[i];
    return n;
}

/* n, or if the type's blocks are wider one of those. */
static int32_t whole_blocks(const toy_options *o, int32_t n)
{
    const int32_t block =
        o->type < TOY_TYPE_MIXED ? (int32_t)type_find(o->type)->block_elements : 1;
    return n % block ? block : n;
}

/* Gates differ from number to number, and shares from part to part. */
static void plan_connection(model_plan *m, const char *name, bool adds)
{
    const toy_options *o = m->options;
    const int64_t w = (int64_t)o->streams.n * o->n_embd;
    char full[64];
    snprintf(full, sizeof full, "%s_norm.weight", name);
    add_vector(m, full, w, 1.0f, 0.1f);
    snprintf(full, sizeof full, "%s_down.weight", name);
    const int32_t rank = whole_blocks(o, o->streams.rank);
    add_matrix(m, full, w, rank, 4.0f);
    snprintf(full, sizeof full, "%s_up.weight", name);
    add_matrix(m, full, rank, w, 2.0f);
    snprintf(full, sizeof full, "%s_inject.weight", name);
    if (adds)
        add_matrix(m, full, w, o->streams.n, 4.0f);
}

static void plan_ngrams(model_plan *m, int32_t layer)
{
    const toy_options *o = m->options;
    const int64_t w = (int64_t)o->streams.n * o->n_embd, e = N_HEADS * whole_blocks(o, ROW_NUMBERS);
    char name[64];
    add_matrix(m, layer_name(name, layer, "ple_key.weight"), e, w, 1.0f);
    add_matrix(m, layer_name(name, layer, "ple_value.weight"), e, o->n_embd, 4.0f);
    add_vector(m, layer_name(name, layer, "ple_norm_key.weight"), w, 1.0f, 0.2f);
    add_vector(m, layer_name(name, layer, "ple_norm_query.weight"), w, 1.0f, 0.2f);
    add_vector(m, layer_name(name, layer, "ple_norm_conv.weight"), w, 1.0f, 0.2f);
    add_table(m, layer_name(name, layer, "ple_conv1d.weight"), 4, w, 1.0f);
    add_matrix(m, "per_layer_token_embd.weight", whole_blocks(o, ROW_NUMBERS), table_rows(), 6.0f);
}

static void plan_layer_hyper(model_plan *m, int32_t layer)
{
    const toy_options *o = m->options;
    char name[64];
    if (o->streams.ngrams && layer == NGRAMS_LAYER)
        plan_ngrams(m, layer);
    plan_connection(m, layer_name(name, layer, "hc_attn"), true);
    plan_connection(m, layer_name(name, layer, "hc_ffn"), true);
    if ((layer + 1) % o->delta.period != 0)
        return;
    add_matrix(m, layer_name(name, layer, "indexer.q_proj.weight"), o->n_embd,
               INDEX_HEADS * INDEX_DIM, 1.0f);
    add_matrix(m, layer_name(name, layer, "indexer.k_proj.weight"), o->n_embd, INDEX_DIM, 1.0f);
    add_vector(m, layer_name(name, layer, "indexer.q_norm.weight"), INDEX_DIM, 1.0f, 0.2f);
    add_vector(m, layer_name(name, layer, "indexer.k_norm.weight"), INDEX_DIM, 1.0f, 0.2f);
}

bool plan_hyper(model_plan *m)
{
    for (int32_t i = 0; m->options->streams.n > 0 && i < m->options->n_layers; i++)
        plan_layer_hyper(m, i);
    if (m->options->streams.n > 0)
        plan_connection(m, "output_hc", false);
    return m->options->streams.n > 0;
}

static uint64_t put_numbers(gguf_writer *w, const toy_options *o)
{
    const struct {
        const char *suffix;
        int32_t value;
    } keys[] = {{"hyper_connection.count", o->streams.n},
                {"hyper_connection.low_rank", whole_blocks(o, o->streams.rank)},
                {"attention.indexer.head_count", INDEX_HEADS},
                {"attention.indexer.key_length", INDEX_DIM},
                {"attention.indexer.top_k", o->streams.n_chosen},
                {"ple.ngram_size", 3},
                {"ple.heads_per_ngram", N_HEADS / 2},
                {"ple.conv_kernel", 4},
                {"ple.eos_token_id", 278},
                {"embedding_length_per_layer_input", whole_blocks(o, ROW_NUMBERS)}};
    const uint64_t n_keys = o->streams.ngrams ? sizeof keys / sizeof *keys : 5;
    for (uint64_t i = 0; i < n_keys; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s.%s", o->architecture, keys[i].suffix);
        writer_key_u32(w, name, (uint32_t)keys[i].value);
    }
    return n_keys;
}

static void begin_list(gguf_writer *w, const toy_options *o, const char *suffix, gguf_kind kind,
                       int32_t n)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", o->architecture, suffix);
    writer_key_array(w, name, kind, (uint64_t)n);
}

/* Factors are as wide as those of files: products of 64 bits. */
static uint64_t put_lists(gguf_writer *w, const toy_options *o)
{
    static const uint64_t factors[] = {0x1234567890abcd, 0x2fedcba0987653, 0x3141592653589f};
    begin_list(w, o, "attention.compress_ratios", GGUF_U32, o->n_layers);
    for (int32_t i = 0; i < o->n_layers; i++)
        writer_u32(w, (i + 1) % o->delta.period ? 0 : BLOCK);
    if (!o->streams.ngrams)
        return 1;
    begin_list(w, o, "ple.layers", GGUF_U32, 1);
    writer_u32(w, NGRAMS_LAYER);
    begin_list(w, o, "ple.layer_multipliers", GGUF_U64, 3);
    for (int i = 0; i < 3; i++)
        writer_u64(w, factors[i]);
    begin_list(w, o, "ple.head_offsets", GGUF_U64, N_HEADS);
    for (int64_t i = 0, first = 0; i < N_HEADS; first += head_rows[i++])
        writer_u64(w, (uint64_t)first);
    begin_list(w, o, "ple.head_vocab_sizes", GGUF_U64, N_HEADS);
    for (int i = 0; i < N_HEADS; i++)
        writer_u64(w, (uint64_t)head_rows[i]);
    return 5;
}

uint64_t put_hyper_keys(gguf_writer *w, const toy_options *o)
{
    return o->streams.n > 0 ? put_numbers(w, o) + put_lists(w, o) : 0;
}
