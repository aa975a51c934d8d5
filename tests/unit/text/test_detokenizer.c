/* Streaming text: nothing lost, never half a character, nothing of a stop text, and nothing held
 * back without a reason. The oracle looks at all bytes so far, from the beginning, every time. */
#include "support/scene.h"
#include "support/vocab_file.h"
#include "text/detokenizer.h"

enum { LONGEST = 1 << 16 };

static size_t encode(const tokenizer *t, const char *text, size_t n, int32_t *ids)
{
    size_t n_ids;
    MUST(tokenizer_encode, t, text, n, DREY_TOKENIZE_SPECIAL, ids, LONGEST, &n_ids);
    return n_ids;
}

/* Bytes at the end of all[0..n) that begin a character without being one. */
static size_t unfinished(const char *all, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        const uint8_t *p = (const uint8_t *)all + n - k;
        size_t length = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : p[0] >= 0xC2 ? 2 : 1;
        if (p[0] < 0xC2 || p[0] > 0xF4)
            continue;
        bool fits = k < length;
        for (size_t i = 1; i < k; i++)
            fits = fits && (p[i] & 0xC0) == 0x80;
        if (fits && k > 1) /* overlong, a surrogate or too large */
            fits = !((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
                     (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F));
        if (fits)
            return k;
    }
    return 0;
}

/* Returns how many of all[0..n) may be shown; *stopped: a stop text is complete. */
static size_t showable(const char *all, size_t n, const char *const *stops, size_t n_stops,
                       bool *stopped)
{
    *stopped = false;
    for (size_t end = 1; end <= n; end++) {
        size_t longest = 0;
        for (size_t i = 0; i < n_stops; i++) {
            size_t length = strlen(stops[i]);
            if (length > longest && length <= end &&
                memcmp(all + end - length, stops[i], length) == 0)
                longest = length;
        }
        if (longest) {
            *stopped = true;
            return end - longest;
        }
    }
    for (size_t begin = 0; begin < n; begin++)
        for (size_t i = 0; i < n_stops; i++)
            if (strlen(stops[i]) > n - begin && memcmp(all + begin, stops[i], n - begin) == 0)
                return begin - unfinished(all, begin);
    return n - unfinished(all, n);
}

static void check_stream(const tokenizer *t, const int32_t *ids, size_t n_ids,
                         const char *const *stops, size_t n_stops)
{
    static char all[LONGEST], shown[LONGEST];
    size_t n_all = 0, n_shown = 0, n_bytes, expected = 0;
    const char *text;
    bool stopped = false;
    detokenizer d;
    MUST(detokenizer_init, &d, t, stops, n_stops, true);
    for (size_t i = 0; i < n_ids; i++) {
        n_all += tokenizer_piece(t, ids[i], true, i == 0, all + n_all, LONGEST - n_all);
        detokenizer_push(&d, ids[i], &text, &n_bytes);
        memcpy(shown + n_shown, text, n_bytes);
        n_shown += n_bytes;
        if (!stopped)
            expected = showable(all, n_all, stops, n_stops, &stopped);
        assert_int_equal(n_shown, expected);
        assert_memory_equal(shown, all, n_shown);
        assert_int_equal(d.stopped, stopped);
        if (stopped)
            assert_memory_equal(all + expected, stops[d.stop], strlen(stops[d.stop]));
    }
    detokenizer_flush(&d, false, &text, &n_bytes);
    memcpy(shown + n_shown, text, n_bytes);
    n_shown += n_bytes;
    assert_int_equal(n_shown, stopped ? expected : n_all);
    assert_memory_equal(shown, all, n_shown);
    detokenizer_flush(&d, false, &text, &n_bytes);
    assert_int_equal(n_bytes, 0);
    detokenizer_free(&d);
}

TEST(characters_stay_whole)
{
    static int32_t ids[LONGEST];
    static const char *const texts[] = {
        "na\xC3\xAFve \xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9",
        "\xF0\x9F\x8F\xB4\xF3\xA0\x81\xA7\xF3\xA0\x81\xA2 \xED\x95\x9C\xEA\xB5\xAD",
        "cut \xF0\x9F\x98",
        "lone \x80\xBF\xC0\xFF end",
        "\xE2\x82 \xE2\x82\xAC\xE2",
        "\xED\xA0\x80\xF4\x90\x80\x80"};
    const char *names[] = {"qwen2", "sentencepiece"};
    for (size_t k = 0; k < 2; k++) {
        test_vocab v = vocab_open(names[k]);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            check_stream(v.tokenizer, ids, encode(v.tokenizer, texts[i], strlen(texts[i]), ids),
                         NULL, 0);
        vocab_close(&v);
    }
}

TEST(any_tokens)
{
    static const char *const stops[] = {"\n\n", "the", "<|im_end|>", "\xE4\xBD", ""};
    const char *names[] = {"gpt-2", "qwen2", "sentencepiece"};
    rng r = {3};
    for (size_t k = 0; k < 3; k++) {
        test_vocab v = vocab_open(names[k]);
        for (int round = 0; round < 300; round++) {
            int32_t ids[60];
            for (size_t i = 0; i < 60;
                 i++) /* single bytes half of the time: halves of characters */
                ids[i] = rng_below(&r, round % 2 ? 260 : tokenizer_n_vocab(v.tokenizer) + 2);
            check_stream(v.tokenizer, ids, 60, stops, round % 3 ? 5 : 0);
        }
        vocab_close(&v);
    }
}

/* A text that is cut off in a character ends before it; what is broken anyway stays. */
TEST(cut_in_a_character)
{
    static const struct {
        const char *text, *left, *stop;
    } cases[] = {{"a\xF0\x9F\x98", "a", NULL},
                 {"\xC3", "", NULL},
                 {"\xE6\xBC", "", NULL},
                 {"a\xF0\x9F\x98\x80", "a\xF0\x9F\x98\x80", NULL},
                 {"a\x98", "a\x98", NULL},
                 {"\xFF\xE6", "\xFF", NULL},
                 {"so \xF0\x9F", "so ", "so \xF0\x9F\x98\x80"},
                 {"b\xC3", "b", "\xC3\xA9x"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_vocab v = vocab_open("gpt-2");
        const char *text, *const stops[] = {cases[i].stop};
        char shown[64];
        int32_t ids[16];
        size_t n_bytes, n = 0,
                        n_ids = encode(v.tokenizer, cases[i].text, strlen(cases[i].text), ids);
        detokenizer d;
        MUST(detokenizer_init, &d, v.tokenizer, stops, cases[i].stop ? 1 : 0, false);
        for (size_t k = 0; k <= n_ids; k++) {
            if (k < n_ids)
                detokenizer_push(&d, ids[k], &text, &n_bytes);
            else
                detokenizer_flush(&d, true, &text, &n_bytes);
            memcpy(shown + n, text, n_bytes);
            n += n_bytes;
        }
        assert_int_equal(n, strlen(cases[i].left));
        assert_memory_equal(shown, cases[i].left, n);
        detokenizer_free(&d);
        vocab_close(&v);
    }
}

enum { LETTERS_MOST = 5, LETTERS_TEXTS = 3 + 9 + 27 + 81 + 243 };

/* A vocabulary of all texts of up to five letters a, b, c. */
static test_vocab open_letters(void)
{
    static char texts[LETTERS_TEXTS][LETTERS_MOST + 1];
    static const char *tokens[LETTERS_TEXTS + 1];
    static const char *const merges[] = {NULL};
    size_t n = 0;
    for (int length = 1, count = 3; length <= LETTERS_MOST; length++, count *= 3)
        for (int i = 0; i < count; i++, n++) {
            for (int k = 0, rest = i; k < length; k++, rest /= 3)
                texts[n][k] = "abc"[rest % 3];
            tokens[n] = texts[n];
        }
    assert_int_equal(n, LETTERS_TEXTS);
    test_vocab v;
    vocab_keys keys = {.model = "gpt2", .tokens = tokens, .merges = merges};
    MUST(vocab_make, &v, &keys);
    return v;
}

/* Texts of three letters against stop texts of the same: overlaps, beginnings, one in another, and
 * several complete in one token. */
TEST(stop_texts)
{
    rng r = {17};
    test_vocab v = open_letters();
    for (int round = 0; round < 5000; round++) {
        int32_t ids[12];
        char stop[3][8];
        const char *stops[3];
        for (int s = 0; s < 3; s++) {
            int n = 1 + rng_below(&r, 6);
            for (int i = 0; i < n; i++)
                stop[s][i] = "abc"[rng_below(&r, 3)];
            stop[s][n] = 0;
            stops[s] = stop[s];
        }
        for (size_t i = 0; i < 12; i++)
            ids[i] = rng_below(&r, round % 2 ? LETTERS_TEXTS : 3);
        check_stream(v.tokenizer, ids, 12, stops, (size_t)rng_below(&r, 4));
    }
    vocab_close(&v);
}

TEST(special_tokens)
{
    test_vocab v = vocab_open("qwen2");
    int32_t ids[16];
    const char *text;
    size_t n_bytes, n = encode(v.tokenizer, "<|im_end|>", 10, ids);
    assert_int_equal(n, 1);
    for (int special = 0; special < 2; special++) {
        detokenizer d;
        MUST(detokenizer_init, &d, v.tokenizer, NULL, 0, special);
        detokenizer_push(&d, ids[0], &text, &n_bytes);
        assert_int_equal(n_bytes, special ? 10 : 0);
        detokenizer_free(&d);
    }
    vocab_close(&v);
}

/* SentencePiece: the blank in front of a text goes, in front of its continuation it stays. */
TEST(the_first_blank)
{
    test_vocab v = vocab_open("sentencepiece");
    int32_t ids[16];
    const char *text;
    size_t n_bytes;
    encode(v.tokenizer, "the", 3, ids);
    detokenizer d;
    MUST(detokenizer_init, &d, v.tokenizer, NULL, 0, false);
    detokenizer_push(&d, tokenizer_bos(v.tokenizer), &text, &n_bytes);
    detokenizer_push(&d, ids[0], &text, &n_bytes);
    assert_true(n_bytes > 0 && text[0] == 't');
    detokenizer_push(&d, ids[0], &text, &n_bytes);
    assert_true(n_bytes > 0 && text[0] == ' ');
    detokenizer_free(&d);
    MUST(detokenizer_init, &d, v.tokenizer, NULL, 0, false);
    d.started = true;
    detokenizer_push(&d, ids[0], &text, &n_bytes);
    assert_true(n_bytes > 0 && text[0] == ' ');
    detokenizer_free(&d);
    vocab_close(&v);
}
