/* Keys of models with hyper connections, and of attention to chosen positions: see arch.h. */
#include "common/error.h"
#include "common/num.h"
#include "gguf/gguf.h"
#include "model/arch.h"

/* Rows before a row that a convolution may see: a block of a state's (state/recurrent.h). */
enum { RECURRENT_ROWS_BEFORE = 15 };

/* Returns the most positions of a block, over all layers; 0: the file does not say. */
static int64_t block_positions(const gguf_key *ratios)
{
    int64_t most = 0;
    for (uint64_t i = 0; ratios && i < ratios->n_items; i++)
        most = max_i64(most, gguf_item_int(ratios, i));
    return most;
}

/* Rows choose among the blocks of positions before them, and see the open block in any case. As
 * long as no more blocks are complete than are chosen, they see all. */
static drey_status read_choice(model_shape *s, const gguf *g, drey_error *err)
{
    char key[96];
    int32_t n_chosen;
    const gguf_key *ratios = gguf_find_key(g, arch_key(s->arch, "attention.compress_ratios", key));
    if (!gguf_find_key(g, arch_key(s->arch, "attention.indexer.top_k", key)))
        return DREY_OK;
    TRY(arch_require_count(g, s->arch, "attention.indexer.top_k", 1, 1 << 30, &n_chosen, err));
    if (ratios && !gguf_is_int_array(ratios) && !gguf_key_is(ratios, GGUF_WANT_INT))
        FAIL(err, DREY_ERR_FORMAT, "%s has to be whole numbers; the file is broken",
             arch_key(s->arch, "attention.compress_ratios", key));
    const int64_t n = block_positions(ratios);
    if (n < 0 || n > n_chosen)
        FAIL(err, DREY_ERR_FORMAT, "%s has %lld, and %d positions are chosen; the file is broken",
             arch_key(s->arch, "attention.compress_ratios", key), (long long)n, n_chosen);
    if (n > 0) /* the open block has one position less */
        n_chosen = (int32_t)(n_chosen / n * n + n - 1);
    s->context.most_seen = n_chosen;
    s->context.ends = true;
    if (n_chosen < s->n_context_train)
        s->n_context_train = n_chosen;
    return DREY_OK;
}

/* ---- N-grams ---- */

/* A list of n numbers of 64 bits, from low to high. */
static drey_status read_list(const model_shape *s, const gguf *g, const char *suffix, int32_t n,
                             int64_t low, int64_t high, int64_t *out, drey_error *err)
{
    char name[96];
    const gguf_key *key = gguf_find_key(g, arch_key(s->arch, suffix, name));
    bool good = key && key->kind == GGUF_ARRAY && key->item_kind != GGUF_STRING &&
                key->item_kind != GGUF_F32 && key->item_kind != GGUF_F64 &&
                key->n_items >= (uint64_t)n;
    for (int32_t i = 0; good && i < n; i++) {
        out[i] = gguf_item_int(key, (uint64_t)i);
        good = out[i] >= low && out[i] <= high;
    }
    if (!good)
        FAIL(err, DREY_ERR_FORMAT,
             "key %s has to be a list of at least %d numbers; the file is broken", name, n);
    return DREY_OK;
}

static drey_status read_table(model_shape *s, const gguf *g, drey_error *err)
{
    static const char name[] = "per_layer_token_embd.weight";
    ngram_shape *n = &s->ngram;
    const gguf_tensor *t = gguf_find_tensor(g, name);
    if (!t || t->dims[1] < 1)
        FAIL(err, DREY_ERR_FORMAT,
             "tensor %s is missing; the file is incomplete or of another architecture", name);
    n->n_rows = t->dims[1];
    for (int32_t i = 0; i < n->n_heads; i++)
        if (n->n[i] > n->n_rows - n->first[i])
            FAIL(err, DREY_ERR_FORMAT,
                 "tensor %s has %lld rows, too few for its heads; the file is broken", name,
                 (long long)n->n_rows);
    s->lookup =
        (lookup_shape){.n = n->n_heads, .row_bytes = (int32_t)(t->n_bytes / (uint64_t)t->dims[1])};
    return DREY_OK;
}

static drey_status read_ngrams(model_shape *s, const gguf *g, drey_error *err)
{
    char name[96];
    ngram_shape *n = &s->ngram;
    const gguf_key *layers = gguf_find_key(g, arch_key(s->arch, "ple.layers", name));
    int64_t factor[NGRAM_TOKENS], layer;
    int32_t n_each, kernel;
    if (!layers || layers->n_items == 0)
        return DREY_OK;
    if (layers->n_items > 1)
        FAIL(err, DREY_ERR_UNSUPPORTED, "key %s names %d layers, where drey computes one", name,
             (int)layers->n_items);
    TRY(read_list(s, g, "ple.layers", 1, 0, s->n_layers - 1, &layer, err));
    TRY(arch_require_count(g, s->arch, "ple.ngram_size", 2, NGRAM_TOKENS, &n->n_tokens, err));
    TRY(arch_require_count(g, s->arch, "ple.heads_per_ngram", 1, NGRAM_HEADS / (n->n_tokens - 1),
                           &n_each, err));
    TRY(arch_require_count(g, s->arch, "ple.conv_kernel", 2,
                           1 + RECURRENT_ROWS_BEFORE / n->n_tokens, &kernel, err));
    TRY(arch_require_count(g, s->arch, "ple.eos_token_id", 0, INT32_MAX, &n->end_id, err));
    TRY(arch_require_count(g, s->arch, "embedding_length_per_layer_input", 1, 1 << 14, &n->width,
                           err));
    n->n_heads = (n->n_tokens - 1) * n_each;
    n->layer = (int32_t)layer;
    n->dilation = n->n_tokens;
    n->n_taps = kernel;
    TRY(read_list(s, g, "ple.layer_multipliers", n->n_tokens, 0, INT64_MAX, factor, err));
    for (int32_t i = 0; i < n->n_tokens; i++)
        n->factor[i] = (uint64_t)factor[i];
    TRY(read_list(s, g, "ple.head_offsets", n->n_heads, 0, INT64_MAX, n->first, err));
    TRY(read_list(s, g, "ple.head_vocab_sizes", n->n_heads, 1, INT64_MAX, n->n, err));
    return read_table(s, g, err);
}

drey_status arch_read_streams(model_shape *s, const gguf *g, drey_error *err)
{
    if (s->arch->keys & KEYS_STREAMS) {
        TRY(arch_require_count(g, s->arch, "hyper_connection.count", 2, 16, &s->streams.n, err));
        TRY(arch_require_count(g, s->arch, "hyper_connection.low_rank", 1, 1 << 16,
                               &s->streams.rank, err));
        if (s->n_embd > (1 << 24) / s->streams.n)
            FAIL(err, DREY_ERR_FORMAT, "%d streams of width %d are too wide; the file is broken",
                 s->streams.n, s->n_embd);
        TRY(read_ngrams(s, g, err));
    }
    return s->arch->keys & KEYS_INDEXER ? read_choice(s, g, err) : DREY_OK;
}
