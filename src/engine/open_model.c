/* The public functions of models: a file's header and tokenizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draft/drafter_kind.h"
#include "engine/engine.h"
#include "grammar/vocab_trie.h"
#include "os/cpu.h"
#include "text/tokenizer.h"
#include "weights/identity.h"

static drey_status open_tokenizer(drey_model *m, drey_error *err)
{
    TRY(tokenizer_open(&m->tokenizer, m->file, err));
    if (tokenizer_n_vocab(m->tokenizer) > m->shape.n_vocab)
        FAIL(err, DREY_ERR_FORMAT,
             "the tokenizer has %d tokens, but the embedding only %d rows; the file is broken",
             tokenizer_n_vocab(m->tokenizer), m->shape.n_vocab);
    return DREY_OK;
}

/* vocabulary: that alone. */
static drey_status open_model(drey_model **out, const char *path, bool vocabulary, drey_error *err)
{
    *out = NULL;
    if (!path)
        FAIL(err, DREY_ERR_USAGE, "no model file was given");
    drey_model *m = calloc(1, sizeof *m);
    if (!m)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory to open %s", SHOWN_PATH(path));
    drey_status status = gguf_open(&m->file, path, err);
    if (status == DREY_OK && vocabulary)
        m->shape.n_vocab = INT32_MAX;
    else if (status == DREY_OK)
        status = model_shape_read(&m->shape, m->file, err);
    if (status == DREY_OK)
        status = error_in_file(err, path, open_tokenizer(m, err));
    if (status != DREY_OK) {
        drey_model_close(&m);
        return status;
    }
    gguf_string name = gguf_text(m->file, "general.name");
    if (name.text)
        gguf_printable(m->name, sizeof m->name, name.text, name.n_bytes);
    model_learn_end(m);
    *out = m;
    return DREY_OK;
}

drey_status drey_model_open(drey_model **out, const char *path, drey_error *err)
{
    return open_model(out, path, false, err);
}

drey_status drey_vocabulary_open(drey_model **out, const char *path, drey_error *err)
{
    return open_model(out, path, true, err);
}

void drey_model_close(drey_model **model)
{
    if (!model || !*model)
        return;
    vocab_trie_close(&(*model)->trie);
    tokenizer_close(&(*model)->tokenizer);
    gguf_close(&(*model)->file);
    free(*model);
    *model = NULL;
}

/* Their tensors have names such as blk.3.ffn_up_exps.weight. */
static uint64_t expert_bytes(const drey_model *m)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < gguf_n_tensors(m->file); i++) {
        const gguf_tensor *t = gguf_tensor_at(m->file, i);
        total += strstr(t->name, "_exps.") ? t->n_bytes : 0;
    }
    return total;
}

bool drey_model_experts(const drey_model *m, drey_experts *out)
{
    const expert_shape *e = &m->shape.experts;
    drey_model_info info;
    if (e->router.n_experts == 0)
        return false;
    drey_model_describe(m, &info);
    *out = (drey_experts){.n_layers = shape_expert_layers(&m->shape),
                          .n_experts = e->router.n_experts,
                          .n_used = e->router.n_used,
                          .n_ff = e->n_ff,
                          .n_ff_shared = e->n_ff_shared,
                          .router = router_gate_name(e->router.gate),
                          .normed = e->router.normed,
                          .n_groups = e->router.n_groups,
                          .n_groups_used = e->router.n_choices,
                          .expert_bytes = expert_bytes(m)};
    out->trunk_bytes = info.weight_bytes - out->expert_bytes;
    out->token_bytes = out->expert_bytes / (uint64_t)out->n_experts * (uint64_t)out->n_used;
    return true;
}

drey_pooling drey_model_pooling(const drey_model *m)
{
    static const drey_pooling of_file[] = {DREY_POOLING_NONE, DREY_POOLING_MEAN, DREY_POOLING_CLS,
                                           DREY_POOLING_LAST, DREY_POOLING_RANK};
    char key[80];
    snprintf(key, sizeof key, "%s.pooling_type", m->shape.arch->name);
    int64_t type = gguf_int(m->file, key, -1);
    bool known = type >= 0 && type < (int64_t)(sizeof of_file / sizeof *of_file);
    return known ? of_file[type] : DREY_POOLING_LAST;
}

void drey_model_describe(const drey_model *m, drey_model_info *info)
{
    const model_shape *s = &m->shape;
    const attention_shape *a = &s->attention[0];
    *info = (drey_model_info){.architecture = s->arch->name,
                              .name = m->name,
                              .path = gguf_shard_path(m->file, 0),
                              .n_layers = s->n_layers,
                              .n_embd = s->n_embd,
                              .n_heads = a->n_heads,
                              .n_heads_kv = a->n_heads_kv,
                              .head_dim = a->head_dim,
                              .n_ff = s->layer[0].n_ff,
                              .n_vocab = s->n_vocab,
                              .n_encoder_layers = s->encoder.n_layers,
                              .start_id = s->encoder.start_id,
                              .n_context_train = s->n_context_train,
                              .file_bytes = gguf_file_bytes(m->file),
                              .bos_id = tokenizer_bos(m->tokenizer),
                              .eos_id = tokenizer_eos(m->tokenizer),
                              .token_bytes_most = (uint32_t)tokenizer_longest_piece(m->tokenizer)};
    for (uint64_t i = 0; i < gguf_n_tensors(m->file); i++) {
        const gguf_tensor *t = gguf_tensor_at(m->file, i);
        info->weight_bytes += t->n_bytes;
        info->n_parameters += t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
    }
}

/* Finds a token by the file's key, by its older one, or by the names that families have for it. -1:
 * none. */
static int32_t fim_token(const drey_model *m, const char *const *names, int32_t n)
{
    for (int32_t i = 0; i < n && names[i]; i++) {
        int32_t ids[2];
        size_t n_ids = 0;
        int64_t id = -1;
        if (strncmp(names[i], "tokenizer.", 10) == 0)
            id = gguf_int(m->file, names[i], -1);
        else if (drey_tokenize(m, names[i], strlen(names[i]), DREY_TOKENIZE_SPECIAL, ids, 2, &n_ids,
                               NULL) == DREY_OK &&
                 n_ids == 1)
            id = ids[0];
        if (id >= 0 && id < tokenizer_n_vocab(m->tokenizer))
            return (int32_t)id;
    }
    return -1;
}

bool drey_model_fim(const drey_model *m, drey_fim *fim)
{
    static const char *const names[][6] = {
        {"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id", "<|fim_prefix|>",
         "<fim_prefix>", "<fim-prefix>", "<｜fim▁begin｜>"},
        {"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id", "<|fim_suffix|>",
         "<fim_suffix>", "<fim-suffix>", "<｜fim▁hole｜>"},
        {"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id", "<|fim_middle|>",
         "<fim_middle>", "<fim-middle>", "<｜fim▁end｜>"},
        {"tokenizer.ggml.fim_rep_token_id", "<|fim_repo|>", "<|repo_name|>", "<reponame>",
         "<fim-repo>", "<repo_name>"},
        {"tokenizer.ggml.fim_sep_token_id", "<|file_sep|>", "<file_sep>"}};
    int32_t ids[5];
    for (int32_t i = 0; i < 5; i++)
        ids[i] = fim_token(m, names[i], 6);
    *fim = (drey_fim){ids[0], ids[1], ids[2], ids[3], ids[4], {0}};
    return ids[0] >= 0 && ids[1] >= 0 && ids[2] >= 0;
}

drey_status drey_tokenize(const drey_model *m, const char *text, size_t n_bytes, int flags,
                          int32_t *ids, size_t capacity, size_t *n_ids, drey_error *err)
{
    return tokenizer_encode(m->tokenizer, text, n_bytes, flags, ids, capacity, n_ids, err);
}

drey_status drey_detokenize(const drey_model *m, const int32_t *ids, size_t n, int flags,
                            char *text, size_t capacity, size_t *n_bytes, drey_error *err)
{
    return tokenizer_decode(m->tokenizer, ids, n, flags, text, capacity, n_bytes, err);
}

drey_status drey_grammar_open(drey_grammar **out, drey_model *m, drey_grammar_kind kind,
                              const char *text, size_t n_bytes, drey_error *err)
{
    *out = NULL;
    if (!m->trie)
        TRY(vocab_trie_open(&m->trie, m->tokenizer, err));
    return grammar_open(out, m->trie, kind, text, n_bytes, err);
}

const char *drey_grammar_not_held(const drey_grammar *grammar)
{
    return grammar_not_held(grammar);
}

void drey_grammar_close(drey_grammar **grammar)
{
    grammar_close(grammar);
}

uint64_t drey_grammar_bytes(const drey_model *m, int32_t n)
{
    size_t each = grammar_bytes(tokenizer_n_vocab(m->tokenizer));
    return (uint64_t)vocab_trie_most_bytes(m->tokenizer) + (uint64_t)n * each;
}

void drey_free(void *memory)
{
    free(memory);
}

const char *const *drey_cpu_tiers(void)
{
    return kernel_tiers();
}

void drey_cpu_name(char *out, size_t capacity)
{
    cpu_name(out, capacity);
}

drey_status drey_model_identity(const drey_model *model, uint64_t *identity, drey_error *err)
{
    return model_identity(model->file, identity, err);
}

drey_status drey_draft_open(drey_model **draft, drey_engine_options *options, const char *path,
                            drey_error *err)
{
    bool heads = drey_is_heads_file(path);
    *draft = NULL;
    if (!heads)
        TRY(drey_model_open(draft, path, err));
    options->heads = heads ? path : NULL;
    options->draft = *draft;
    options->drafter = heads ? DREY_DRAFTER_MEDUSA : drafter_for(&(*draft)->shape);
    return DREY_OK;
}
