/* Hash tables of tokens and merges: lists whose entries met in the slots of an unkeyed hash cost no
 * more than others, and lists that collide all the same are refused. What is counted is slots
 * looked at. */
#include "support/scene.h"
#include "text/bpe.h"
#include "text/special.h"

enum { N_TOKENS = 20000, LONGEST = 600 };

static const hash_key no_key = {0}; /* the last byte alone makes the hash, and all pairs collide */

/* A file of tokens, and of merges when there are any; frees both lists. */
static gguf *make_file(gguf_writer *tokens, uint64_t n_tokens, gguf_writer *merges,
                       uint64_t n_merges)
{
    gguf_writer w = {0};
    gguf *g;
    writer_begin(&w, 0, 3);
    writer_key_text(&w, "tokenizer.ggml.pre", "gpt-2");
    writer_key_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, n_tokens);
    writer_put(&w, tokens->bytes, tokens->n);
    writer_key_array(&w, "tokenizer.ggml.merges", GGUF_STRING, n_merges);
    writer_free(tokens);
    if (n_merges) {
        writer_put(&w, merges->bytes, merges->n);
        writer_free(merges);
    }
    MUST(gguf_parse, &g, w.bytes, w.n, w.n);
    writer_free(&w);
    return g;
}

/* Six letters: the number in base 26. */
static void spell(uint32_t number, char out[static 7])
{
    for (int i = 0; i < 6; i++, number /= 26)
        out[i] = (char)('a' + number % 26);
    out[6] = 0;
}

static uint64_t fnv1a(const char *text)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001B3u;
    return hash ^ hash >> 32;
}

/* Texts that FNV-1a, which has no key, puts into 1/128 of the table. */
TEST(tokens_that_met)
{
    gguf_writer list = {0};
    vocab v;
    hash_key key;
    char text[7];
    uint32_t mask = hash_slots(N_TOKENS) - 1, n = 0;
    for (uint32_t number = 0; n < N_TOKENS; number++) {
        spell(number, text);
        if ((fnv1a(text) & mask) > mask / 128)
            continue;
        writer_string(&list, text);
        n++;
    }
    gguf *g = make_file(&list, N_TOKENS, NULL, 0);
    for (int i = 0; i < 3; i++) { /* keys */
        hash_key_draw(&key);
        MUST(vocab_init, &v, g, &key);
        assert_in_range(v.n_probes, N_TOKENS, 8 * N_TOKENS);
        for (int32_t id = 0; id < N_TOKENS; id++)
            assert_int_equal(vocab_find(&v, vocab_text(&v, id).text, 6), id);
        assert_int_equal(vocab_find(&v, "aaaaa", 5), -1);
        vocab_free(&v);
    }
    gguf_close(&g);
}

TEST(tokens_that_collide)
{
    gguf_writer list = {0};
    vocab v;
    char text[8];
    for (uint32_t number = 0; number < 3000; number++) {
        spell(number, text);
        strcat(text, "!");
        writer_string(&list, text);
    }
    gguf *g = make_file(&list, 3000, NULL, 0);
    REFUSED(DREY_ERR_FORMAT, "token list", vocab_init, &v, g, &no_key);
    gguf_close(&g);
}

TEST(more_tokens_than_any_model_has)
{
    gguf_writer list = {0};
    vocab v;
    for (int i = 0; i <= VOCAB_MOST_TOKENS; i++)
        writer_string(&list, "");
    gguf *g = make_file(&list, VOCAB_MOST_TOKENS + 1, NULL, 0);
    REFUSED(DREY_ERR_UNSUPPORTED, "more than 2097152 tokens", vocab_init, &v, g, &no_key);
    gguf_close(&g);
}

/* Tokens a, aa, aaa, ...: every pair of them whose sum is not too long is a merge. */
typedef struct runs {
    gguf_writer tokens, merges;
    uint32_t n_merges;
} runs;

static runs make_runs(void)
{
    runs r = {0};
    char as[LONGEST + 1], line[LONGEST + 2];
    memset(as, 'a', LONGEST);
    as[LONGEST] = 0;
    for (int n = 1; n <= LONGEST; n++)
        writer_string(&r.tokens, as + LONGEST - n);
    for (uint64_t left = 1; left < LONGEST; left++)
        for (uint64_t right = 1; left + right <= LONGEST; right++) {
            /* A multiplication by the golden ratio has no key either. */
            uint64_t pair = (left - 1) << 32 | (right - 1);
            if ((pair * 0x9E3779B97F4A7C15u >> 32 & 4095) > 4095 / 64)
                continue;
            snprintf(line, sizeof line, "%s %s", as + LONGEST - left, as + LONGEST - right);
            writer_string(&r.merges, line);
            r.n_merges++;
        }
    return r;
}

TEST(pairs_that_met)
{
    runs r = make_runs();
    vocab v;
    bpe b;
    hash_key key;
    assert_in_range(r.n_merges, 2000, 3072); /* 4096 slots, in 64 of which all would lie */
    gguf *g = make_file(&r.tokens, LONGEST, &r.merges, r.n_merges);
    hash_key_draw(&key);
    MUST(vocab_init, &v, g, &key);
    MUST(bpe_init, &b, &v, false, g);
    assert_int_equal(b.slot_mask, 4095);
    assert_in_range(b.n_probes, r.n_merges, 8 * r.n_merges);
    bpe_free(&b);
    vocab_free(&v);
    gguf_close(&g);
}

TEST(pairs_that_collide)
{
    runs r = make_runs();
    vocab v;
    bpe b;
    gguf *g = make_file(&r.tokens, LONGEST, &r.merges, r.n_merges);
    hash_key key = {.point = 7}; /* texts apart, pairs together */
    MUST(vocab_init, &v, g, &key);
    REFUSED(DREY_ERR_FORMAT, "merge list", bpe_init, &b, &v, false, g);
    vocab_free(&v);
    gguf_close(&g);
}

/* A text that many special tokens have is kept once, or twice where the first is no user-defined
 * one: a match walks over all that are kept. */
TEST(doubles_of_special_tokens)
{
    enum { N = 300 };
    gguf_writer w = {0};
    gguf *g;
    vocab v;
    special_tokens s;
    hash_key key;
    writer_begin(&w, 0, 2);
    writer_key_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, N);
    for (int i = 0; i < N; i++)
        writer_string(&w, i % 2 ? "<x>" : "<y>");
    writer_key_array(&w, "tokenizer.ggml.token_type", GGUF_I32, N);
    for (int i = 0; i < N; i++)
        writer_u32(&w, i >= 100 && i % 2 ? TOKEN_USER_DEFINED : TOKEN_CONTROL);
    MUST(gguf_parse, &g, w.bytes, w.n, w.n);
    hash_key_draw(&key);
    MUST(vocab_init, &v, g, &key);
    MUST(special_init, &s, &v);
    assert_int_equal(s.n, 3);
    assert_int_equal(special_match(&s, "<x>", 3, true)->id, 1);
    assert_int_equal(special_match(&s, "<x>", 3, false)->id, 101);
    assert_int_equal(special_match(&s, "<y>", 3, true)->id, 0);
    assert_null(special_match(&s, "<y>", 3, false));
    special_free(&s);
    vocab_free(&v);
    gguf_close(&g);
    writer_free(&w);
}

/* Two pieces have the hash of the whole text, and each table draws its own key. */
TEST(pieces_and_keys)
{
    hash_key a, b;
    hash_key_draw(&a);
    hash_key_draw(&b);
    assert_memory_not_equal(&a, &b, sizeof a);
    const char text[] = "\0\0one text";
    for (size_t n = 0; n < sizeof text; n++)
        assert_true(text_hash(&a, text_hash(&a, 0, text, n), text + n, sizeof text - n) ==
                    text_hash(&a, 0, text, sizeof text));
    assert_true(text_hash(&a, 0, text, 1) != text_hash(&a, 0, text, 2));
}
