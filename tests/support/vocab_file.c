/* Tokenizers for tests: see vocab.h. */
#include "support/vocab_file.h"

#include "support/scene.h"

test_vocab vocab_open(const char *name)
{
    char path[4096];
    drey_error err = {0};
    test_vocab v = {0};
    snprintf(path, sizeof path, name[0] == '/' ? "%s" : TEST_DATA "/vocab/%s.gguf", name);
    if (gguf_open(&v.file, path, &err) != DREY_OK ||
        tokenizer_open(&v.tokenizer, v.file, &err) != DREY_OK)
        fail_msg("%s: %s", path, err.message);
    return v;
}

void vocab_close(test_vocab *v)
{
    tokenizer_close(&v->tokenizer);
    gguf_close(&v->file);
}

static uint64_t count(const char *const *list)
{
    uint64_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

static void put_strings(gguf_writer *w, const char *name, const char *const *list)
{
    writer_key_array(w, name, GGUF_STRING, count(list));
    for (uint64_t i = 0; list[i]; i++)
        writer_string(w, list[i]);
}

static void put_numbers(gguf_writer *w, const char *name, gguf_kind kind, const void *numbers,
                        uint64_t n)
{
    writer_key_array(w, name, kind, n);
    writer_put(w, numbers, 4 * n);
}

drey_status vocab_make(test_vocab *v, const vocab_keys *k, drey_error *err)
{
    gguf_writer w = {0};
    uint64_t n = count(k->tokens);
    *v = (test_vocab){0};
    writer_begin(&w, 0,
                 1u + (k->model != NULL) + (k->pre != NULL) + (k->tokens != NULL) +
                     (k->types != NULL) + (k->scores != NULL) + (k->merges != NULL) +
                     (k->eos_plus_1 != 0) + (k->bos_plus_1 != 0) + (k->id_key != NULL) +
                     (k->eos_list != NULL) + (k->suppressed != NULL));
    writer_key_text(&w, "general.architecture", k->architecture ? k->architecture : "llama");
    if (k->model)
        writer_key_text(&w, "tokenizer.ggml.model", k->model);
    if (k->pre)
        writer_key_text(&w, "tokenizer.ggml.pre", k->pre);
    if (k->tokens)
        put_strings(&w, "tokenizer.ggml.tokens", k->tokens);
    if (k->types)
        put_numbers(&w, "tokenizer.ggml.token_type", GGUF_I32, k->types,
                    n - (uint64_t)k->n_types_wrong_by);
    if (k->scores)
        put_numbers(&w, "tokenizer.ggml.scores", GGUF_F32, k->scores,
                    n - (uint64_t)k->n_scores_wrong_by);
    if (k->merges)
        put_strings(&w, "tokenizer.ggml.merges", k->merges);
    if (k->eos_plus_1)
        writer_key_u32(&w, "tokenizer.ggml.eos_token_id", (uint32_t)(k->eos_plus_1 - 1));
    if (k->bos_plus_1)
        writer_key_u32(&w, "tokenizer.ggml.bos_token_id", (uint32_t)(k->bos_plus_1 - 1));
    if (k->id_key)
        writer_key_u32(&w, k->id_key, k->id);
    if (k->eos_list)
        put_numbers(&w, "tokenizer.ggml.eos_token_id", GGUF_I32, k->eos_list, k->n_eos);
    if (k->suppressed)
        put_numbers(&w, "tokenizer.ggml.suppress_tokens", GGUF_I32, k->suppressed, k->n_suppressed);
    drey_status status = gguf_parse(&v->file, w.bytes, w.n, w.n, err);
    writer_free(&w);
    if (status != DREY_OK)
        fail_msg("the handmade file is no GGUF: %s", err->message);
    status = tokenizer_open(&v->tokenizer, v->file, err);
    if (status != DREY_OK)
        gguf_close(&v->file);
    return status;
}

void vocab_ids_are(const tokenizer *t, const char *text, int flags, const int32_t *want, size_t n)
{
    int32_t ids[16];
    size_t n_ids;
    MUST(tokenizer_encode, t, text, strlen(text), flags, ids, 16, &n_ids);
    assert_int_equal(n_ids, n);
    assert_memory_equal(ids, want, n * sizeof *ids);
}
