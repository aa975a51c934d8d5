/* vocab.json with merges.txt, as GPT-2 and BART have it: see vocabulary.h. */
#include <stdlib.h>
#include <string.h>

#include "convert/vocabulary.h"

enum { CONTROL = 3 };

/* Marks tokens as markup, about which the two files say nothing: those that GPT-2's and BART's
 * tokenizers know of themselves, and those that config.json has a use for. */
static void mark_control(token_list *t, const hub_folder *f)
{
    static const char *const ends[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    static const char *const names[] = {"<s>", "</s>", "<pad>", "<unk>", "<mask>", "<|endoftext|>"};
    for (int32_t id = 0; id < t->n; id++)
        for (size_t i = 0; t->texts[id].text && i < sizeof names / sizeof *names; i++)
            if (gguf_is_text(t->texts[id], names[i]))
                t->types[id] = CONTROL;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const json_value *v = config_find(f, ends[i]);
        if (v && v->type == JSON_NUMBER && v->is_integer && v->integer >= 0 && v->integer < t->n)
            t->types[v->integer] = CONTROL;
    }
}

/* A line each, "left right", after one with the version. */
static drey_status put_merges(const hub_folder *f, new_gguf *g, drey_error *err)
{
    const char *end = f->merges + f->n_merges;
    uint64_t n = 0, n_lines = 1;
    for (const char *c = f->merges; c < end; c++)
        n_lines += *c == '\n';
    gguf_string *merges = malloc(n_lines * sizeof *merges);
    if (!merges)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the merges of a vocabulary");
    for (const char *line = f->merges; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((next ? next : end) - line);
        next = next ? next + 1 : end;
        if (length > 0 && line[length - 1] == '\r')
            length--;
        bool version = length >= 8 && memcmp(line, "#version", 8) == 0;
        if (length > 0 && !version)
            merges[n++] = (gguf_string){line, length};
        line = next;
    }
    if (n > 0)
        new_gguf_texts(g, "tokenizer.ggml.merges", merges, n);
    free(merges);
    if (n == 0)
        FAIL(err, DREY_ERR_FORMAT, "merges.txt has no merges; fetch it again");
    return DREY_OK;
}

drey_status pair_keys(const family *a, token_list *t, const hub_folder *f, new_gguf *g,
                      drey_error *err)
{
    if (!a->pre)
        FAIL(err, DREY_ERR_IO,
             "the folder has vocab.json, which does not say how a %s splits texts; put its "
             "tokenizer.json into the folder",
             a->name);
    if (!f->merges)
        FAIL(err, DREY_ERR_IO,
             "the folder has vocab.json, and neither merges.txt nor tokenizer.json; fetch one");
    TRY(tokens_set_all(t, f->vocab.root, err));
    mark_control(t, f);
    TRY(tokens_add_listed(t, f, err));
    TRY(tokens_add(t, f, err));
    TRY(tokens_pad(t, err));
    tokens_put(t, g, "gpt2", a->pre);
    return put_merges(f, g, err);
}
