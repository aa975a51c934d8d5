/* Property: the tokenizer of any GGUF file is refused with a message, or encodes and decodes
 * without leaving its vocabulary.
 *
 * The input is a GGUF file; its own last bytes are the text too. */
#include "drey/drey_model.h"
#include "fuzz/fuzz.h"
#include "gguf/gguf.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

#include <string.h>

/* Checks a text of n bytes; normalizes: texts become longer, by as much as the file says. */
static void check_tokenizer(const tokenizer *t, bool normalizes, const char *text, size_t n)
{
    size_t n_ids, n_back, room;
    tokenizer_encode(t, text, n, DREY_TOKENIZE_SPECIAL, NULL, 0, &room, NULL);
    FUZZ_CHECK(normalizes || room <= 4 * n + 4); /* a blank may be three byte tokens */
    int32_t *ids = malloc((room + 1) * sizeof *ids);
    FUZZ_CHECK(ids);
    FUZZ_CHECK(tokenizer_encode(t, text, n, DREY_TOKENIZE_SPECIAL, ids, room, &n_ids, NULL) ==
               DREY_OK);
    FUZZ_CHECK(n_ids == room);
    for (size_t i = 0; i < n_ids; i++)
        FUZZ_CHECK(ids[i] >= 0 && ids[i] < tokenizer_n_vocab(t));
    tokenizer_decode(t, ids, n_ids, 0, NULL, 0, &n_back, NULL);
    detokenizer d;
    FUZZ_CHECK(detokenizer_init(&d, t, NULL, 0, false, NULL) == DREY_OK);
    size_t total = 0, n_part;
    const char *part;
    for (size_t i = 0; i < n_ids; i++) {
        detokenizer_push(&d, ids[i], &part, &n_part);
        total += n_part;
    }
    detokenizer_flush(&d, false, &part, &n_part);
    FUZZ_CHECK(total + n_part == n_back);
    detokenizer_free(&d);
    free(ids);
    int32_t n_vocab = tokenizer_n_vocab(t);
    for (int32_t id = -1; id <= n_vocab; id++) {
        char piece[16];
        size_t n_piece = tokenizer_piece(t, id, true, true, piece, sizeof piece);
        FUZZ_CHECK(n_piece <= tokenizer_longest_piece(t));
        FUZZ_CHECK(n_piece == tokenizer_piece(t, id, true, true, NULL, 0));
        FUZZ_CHECK((id >= 0 && id < n_vocab) || n_piece == 0);
    }
    FUZZ_CHECK(tokenizer_compare(t, t, NULL) == DREY_OK);
    FUZZ_CHECK(tokenizer_bos(t) < n_vocab && tokenizer_eos(t) < n_vocab);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    gguf *g;
    tokenizer *t;
    drey_error err = {0};
    if (gguf_parse(&g, bytes, n_bytes, n_bytes, &err) != DREY_OK)
        return 0;
    drey_status status = tokenizer_open(&t, g, &err);
    FUZZ_CHECK((status == DREY_OK) == (t != NULL));
    if (t) {
        size_t n = n_bytes < 300 ? n_bytes : 300;
        bool normalizes = gguf_is_text(gguf_text(g, "tokenizer.ggml.model"), "t5");
        check_tokenizer(t, normalizes, (const char *)bytes + n_bytes - n, n);
    } else {
        FUZZ_CHECK(err.code == status && strlen(err.message) > 20);
    }
    tokenizer_close(&t);
    gguf_close(&g);
    return 0;
}
