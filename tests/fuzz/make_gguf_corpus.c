/* Writes the GGUF fuzzer's first inputs: toys of both vocabularies cut before their tensors, and a
 * file with every kind of value. Usage: make_gguf_corpus FOLDER */
#include "support/toy.h"

#include <stdio.h>
#include <string.h>

static int save(gguf_writer *w, const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bool saved = writer_save(w, path);
    if (!saved)
        perror(path);
    writer_free(w);
    return !saved;
}

static int save_toy(const char *folder, const char *name, const char *architecture, const char *pre)
{
    gguf_writer w = {0};
    gguf *g;
    drey_error err;
    toy_options o;
    o = toy_usual();
    o.architecture = architecture;
    o.pre = pre;
    o.n_layers = 1;
    o.n_vocab = 300;
    toy_build(&w, &o, 0);
    if (gguf_parse(&g, w.bytes, w.n, w.n, &err) != DREY_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    w.n = (size_t)gguf_tensor_at(g, 0)->offset;
    gguf_close(&g);
    return save(&w, folder, name);
}

static int save_kinds(const char *folder)
{
    gguf_writer w = {0};
    static const uint8_t ones[8] = {1};
    static const struct {
        gguf_kind kind;
        size_t n_bytes;
    } kinds[] = {{GGUF_U8, 1},  {GGUF_I8, 1},  {GGUF_U16, 2}, {GGUF_I16, 2},
                 {GGUF_U32, 4}, {GGUF_I32, 4}, {GGUF_F32, 4}, {GGUF_BOOL, 1},
                 {GGUF_U64, 8}, {GGUF_I64, 8}, {GGUF_F64, 8}};
    enum { n_kinds = sizeof kinds / sizeof kinds[0] };
    writer_begin(&w, 2, 2 * n_kinds + 3);
    for (size_t i = 0; i < n_kinds; i++) {
        char name[16];
        snprintf(name, sizeof name, "one.%zu", i);
        writer_key(&w, name, kinds[i].kind);
        writer_put(&w, ones, kinds[i].n_bytes);
        snprintf(name, sizeof name, "two.%zu", i);
        writer_key_array(&w, name, kinds[i].kind, 2);
        writer_put(&w, ones, kinds[i].n_bytes);
        writer_put(&w, ones, kinds[i].n_bytes);
    }
    writer_key_text(&w, "text", "a\x1b[31m\xc3\xa9\xff");
    writer_key_array(&w, "texts", GGUF_STRING, 2);
    writer_string(&w, "");
    writer_string(&w, "b");
    writer_key_u32(&w, "general.alignment", 64);
    writer_tensor(&w, "a", TYPE_F32, (int64_t[]){3, 1, 2, 1}, 4, 64);
    writer_tensor(&w, "b", TYPE_Q4_K, (int64_t[]){256}, 1, 128);
    writer_align(&w, 64);
    return save(&w, folder, "kinds");
}

int main(int n_arguments, char **arguments)
{
    if (n_arguments != 2) {
        fprintf(stderr, "usage: make_gguf_corpus FOLDER\n");
        return 2;
    }
    const char *folder = arguments[1];
    gguf_writer empty = {0};
    writer_begin(&empty, 0, 0);
    int failed = save(&empty, folder, "empty-model");
    failed |= save_kinds(folder);
    failed |= save_toy(folder, "bpe", "qwen2", "smollm");
    failed |= save_toy(folder, "sentencepiece", "llama", NULL);
    return failed;
}
