/* Property: any bytes become ids of the vocabulary, as many as are counted without room for them;
 * byte-level BPE with all bytes gives the very bytes back, and streaming gives what decoding gives.
 * A text that is said to be nothing but text holds no special token.
 *
 * The first byte chooses vocabulary and flags, the rest is the text. */
#include "drey/drey_model.h"
#include "fuzz/fuzz.h"
#include "gguf/gguf.h"
#include "text/detokenizer.h"
#include "text/ids.h"
#include "text/tokenizer.h"

#include <string.h>

enum { N_VOCABULARIES = 6, N_WHOLE = 3 };

/* tests/data/vocab; the first N_WHOLE have every byte. Opened once. */
static const tokenizer *vocabulary(int i)
{
    static const char *const names[N_VOCABULARIES] = {"gpt-2",  "qwen2",         "llama-bpe",
                                                      "smollm", "sentencepiece", "gemma4"};
    static tokenizer *open[N_VOCABULARIES];
    static gguf *files[N_VOCABULARIES];
    if (!open[i]) {
        char path[4096];
        snprintf(path, sizeof path, TEST_DATA "/vocab/%s.gguf", names[i]);
        FUZZ_CHECK(gguf_open(&files[i], path, NULL) == DREY_OK);
        FUZZ_CHECK(tokenizer_open(&open[i], files[i], NULL) == DREY_OK);
    }
    return open[i];
}

static void check_stream(const tokenizer *t, const int32_t *ids, size_t n, const char *text,
                         size_t n_bytes)
{
    detokenizer d;
    const char *part;
    size_t n_part, at = 0;
    FUZZ_CHECK(detokenizer_init(&d, t, NULL, 0, true, NULL) == DREY_OK);
    for (size_t i = 0; i <= n; i++) {
        if (i < n)
            detokenizer_push(&d, ids[i], &part, &n_part);
        else
            detokenizer_flush(&d, false, &part, &n_part);
        FUZZ_CHECK(n_part <= n_bytes - at && memcmp(part, text + at, n_part) == 0);
        at += n_part;
    }
    FUZZ_CHECK(at == n_bytes);
    detokenizer_free(&d);
}

/* Text all over is as without special tokens; where only a part is, the others' ids still come. */
static void check_plain(const tokenizer *t, const char *text, size_t n, int32_t *ids, size_t room)
{
    const text_range whole = {0, n}, middle = {n / 3, n - n / 3};
    const parted_text all = {text, n, &whole, 1}, part = {text, n, &middle, 1};
    id_sink sink = {ids, room, 0};
    size_t n_plain;
    int32_t *plain = malloc(room * sizeof *plain);
    FUZZ_CHECK(plain);
    FUZZ_CHECK(tokenizer_encode(t, text, n, 0, plain, room, &n_plain, NULL) == DREY_OK);
    FUZZ_CHECK(tokenizer_encode_around(t, &all, DREY_TOKENIZE_SPECIAL, &sink, NULL) == DREY_OK);
    FUZZ_CHECK(sink.n == n_plain && memcmp(ids, plain, sink.n * sizeof *ids) == 0);
    FUZZ_CHECK(tokenizer_encode_around(t, &part, DREY_TOKENIZE_SPECIAL, &sink, NULL) == DREY_OK);
    for (size_t i = 0; i < sink.n; i++)
        FUZZ_CHECK(ids[i] >= 0 && ids[i] < tokenizer_n_vocab(t));
    free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes == 0)
        return 0;
    int which = bytes[0] % N_VOCABULARIES;
    int flags = bytes[0] / N_VOCABULARIES % 2 ? DREY_TOKENIZE_SPECIAL : 0;
    const tokenizer *t = vocabulary(which);
    const char *text = (const char *)bytes + 1;
    size_t n = n_bytes - 1, n_ids, n_again, n_back, n_needed;
    /* SentencePiece may put a blank before the text and after each special token. */
    size_t room = 2 * n + 1;
    int32_t *ids = malloc(room * sizeof *ids);
    FUZZ_CHECK(ids);
    FUZZ_CHECK(tokenizer_encode(t, text, n, flags, ids, room, &n_ids, NULL) == DREY_OK);
    FUZZ_CHECK(tokenizer_encode(t, text, n, flags, NULL, 0, &n_again, NULL) ==
               (n_ids ? DREY_ERR_USAGE : DREY_OK));
    FUZZ_CHECK(n_again == n_ids);
    for (size_t i = 0; i < n_ids; i++)
        FUZZ_CHECK(ids[i] >= 0 && ids[i] < tokenizer_n_vocab(t));
    size_t room_bytes = n + n_ids + 1;
    char *back = malloc(room_bytes);
    FUZZ_CHECK(back);
    FUZZ_CHECK(tokenizer_decode(t, ids, n_ids, DREY_TOKENIZE_SPECIAL, back, room_bytes, &n_back,
                                NULL) == DREY_OK);
    tokenizer_decode(t, ids, n_ids, DREY_TOKENIZE_SPECIAL, NULL, 0, &n_needed, NULL);
    FUZZ_CHECK(n_needed == n_back);
    if (which < N_WHOLE)
        FUZZ_CHECK(n_back == n && memcmp(back, text, n) == 0);
    check_stream(t, ids, n_ids, back, n_back);
    check_plain(t, text, n, ids, room);
    free(back);
    free(ids);
    return 0;
}
