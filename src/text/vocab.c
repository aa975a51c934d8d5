/* The token table: see vocab.h. */
#include "text/vocab.h"

#include <stdlib.h>
#include <string.h>

/* The entry of a text: its slot, or the empty one where it belongs. *n_probes: slots looked at. */
static uint32_t find_slot(const vocab *v, gguf_string head, gguf_string tail, uint32_t *n_probes)
{
    uint64_t hash = text_hash(&v->key, 0, head.text, head.n_bytes);
    uint32_t slot = text_hash_slot(&v->key, text_hash(&v->key, hash, tail.text, tail.n_bytes));
    for (*n_probes = 1;; slot++, ++*n_probes) {
        uint32_t entry = v->slots[slot & v->slot_mask];
        if (entry == 0)
            return slot & v->slot_mask;
        gguf_string s = vocab_text(v, (int32_t)(entry - 1));
        if (s.n_bytes == head.n_bytes + tail.n_bytes &&
            memcmp(s.text, head.text, head.n_bytes) == 0 &&
            (tail.n_bytes == 0 || memcmp(s.text + head.n_bytes, tail.text, tail.n_bytes) == 0))
            return slot & v->slot_mask;
    }
}

int32_t vocab_find_joined(const vocab *v, gguf_string head, gguf_string tail)
{
    uint32_t n_probes;
    return (int32_t)v->slots[find_slot(v, head, tail, &n_probes)] - 1;
}

int32_t vocab_find(const vocab *v, const char *text, size_t n_bytes)
{
    return vocab_find_joined(v, (gguf_string){text, n_bytes}, (gguf_string){"", 0});
}

/* Types that are none are those of text. */
static drey_status read_types(vocab *v, const gguf *g, drey_error *err)
{
    const gguf_key *types = gguf_find_key(g, "tokenizer.ggml.token_type");
    memset(v->types, TOKEN_NORMAL, (size_t)v->n_tokens);
    if (!types)
        return DREY_OK;
    if (types->kind != GGUF_ARRAY || types->n_items != (uint64_t)v->n_tokens)
        FAIL(err, DREY_ERR_FORMAT,
             "tokenizer.ggml.token_type does not have one item for each of the %d tokens; the file "
             "is broken, fetch it again",
             v->n_tokens);
    if (!gguf_is_int_array(types))
        FAIL(err, DREY_ERR_FORMAT,
             "tokenizer.ggml.token_type is not an array of integers; the file is broken, fetch it "
             "again");
    v->has_types = true;
    for (int32_t id = 0; id < v->n_tokens; id++) {
        int64_t type = gguf_item_int(types, (uint64_t)id);
        if (type >= TOKEN_NORMAL && type <= TOKEN_BYTE)
            v->types[id] = (uint8_t)type;
    }
    return DREY_OK;
}

static drey_status fill(vocab *v, gguf_cursor cursor, drey_error *err)
{
    for (int32_t id = 0; id < v->n_tokens; id++) {
        gguf_string s;
        if (!gguf_next_string(&cursor, &s))
            FAIL(err, DREY_ERR_FORMAT, "the file's token list ends at token %d of %d", id,
                 v->n_tokens);
        if (id == 0)
            v->base = s.text;
        size_t offset = (size_t)(s.text - v->base);
        if (offset > UINT32_MAX || s.n_bytes > UINT32_MAX)
            FAIL(err, DREY_ERR_UNSUPPORTED, "the file's token texts are longer than 4G");
        v->texts[id] = (struct vocab_text){(uint32_t)offset, (uint32_t)s.n_bytes};
        uint32_t n_probes;
        uint32_t slot = find_slot(v, s, (gguf_string){"", 0}, &n_probes);
        v->n_probes += n_probes;
        if (n_probes > HASH_MOST_PROBES)
            FAIL(
                err, DREY_ERR_FORMAT,
                "the file's token list is made to slow its reader down (token %d); fetch the model "
                "from another source",
                id);
        if (v->slots[slot] == 0)
            v->slots[slot] = (uint32_t)id + 1;
    }
    return DREY_OK;
}

drey_status vocab_init(vocab *v, const gguf *g, const hash_key *key, drey_error *err)
{
    *v = (vocab){.key = *key};
    const gguf_key *tokens = gguf_find_key(g, "tokenizer.ggml.tokens");
    if (!tokens || gguf_strings(tokens).left == 0)
        FAIL(err, DREY_ERR_FORMAT,
             "the file has no tokens (tokenizer.ggml.tokens); use a GGUF file that carries its "
             "tokenizer");
    if (tokens->n_items > VOCAB_MOST_TOKENS)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the file has more than %d tokens; fetch the model from another source",
             VOCAB_MOST_TOKENS);
    v->n_tokens = (int32_t)tokens->n_items;
    uint32_t n_slots = hash_slots((size_t)v->n_tokens);
    v->slot_mask = n_slots - 1;
    v->texts = malloc((size_t)v->n_tokens * sizeof *v->texts);
    v->types = malloc((size_t)v->n_tokens);
    v->slots = calloc(n_slots, sizeof *v->slots);
    drey_status status = DREY_ERR_MEMORY;
    if (!v->texts || !v->types || !v->slots) {
        error_set(err, status, "no memory for a table of %d tokens", v->n_tokens);
        goto fail;
    }
    status = read_types(v, g, err);
    if (status != DREY_OK)
        goto fail;
    status = fill(v, gguf_strings(tokens), err);
    if (status != DREY_OK)
        goto fail;
    return DREY_OK;
fail:
    vocab_free(v);
    return status;
}

void vocab_free(vocab *v)
{
    free(v->texts);
    free(v->types);
    free(v->slots);
    *v = (vocab){0};
}

size_t vocab_bytes(const vocab *v)
{
    return (size_t)v->n_tokens * (sizeof *v->texts + 1) +
           (v->slot_mask + (size_t)1) * sizeof *v->slots;
}
