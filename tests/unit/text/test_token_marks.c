/* Tokens that are marks and not text, in files that give them the wrong type or none, and all that
 * ends a text. The right values are those of llama.cpp's loader, but for </s>, which stays text
 * where no key names it. */
#include "engine/config.h"
#include "support/scene.h"
#include "support/vocab_file.h"

enum { END, THINK, TAG, HOLE, A, B, AB, LESS, N_MARKS = 16 };
static const char *const marks[] = {
    "<|im_end|>", "<think>", "</s>", "<fim_middle>", "a",      "b",     "ab",  "<", "/",
    "s",          ">",       "</",   "s>",           "[PAD7]", "<x y>", "<s>", NULL};
static const char *const mark_merges[] = {"a b", "< /", "s >", "</ s>", NULL};

static test_vocab marks_with(vocab_keys keys)
{
    test_vocab v;
    keys.model = "gpt2";
    keys.pre = "bloom"; /* in whose words signs and letters may be together */
    keys.tokens = marks;
    keys.merges = mark_merges;
    MUST(vocab_make, &v, &keys);
    return v;
}

static void is_hidden(const tokenizer *t, int32_t id, bool hidden)
{
    char text[32];
    assert_int_equal(tokenizer_is_special(t, id), hidden);
    assert_int_equal(tokenizer_piece(t, id, false, false, text, sizeof text) == 0, hidden);
    assert_true(tokenizer_piece(t, id, true, false, text, sizeof text) > 0);
}

/* Added tokens are no merge's result. Tags of HTML stay text. */
TEST(marks_of_the_wrong_type)
{
    static const int32_t normal[N_MARKS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const int32_t undefined[N_MARKS] = {0};
    static const int32_t user[N_MARKS] = {4, 4, 1, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 4, 1};
    const int32_t *const types[] = {NULL, normal, undefined, user};
    for (int i = 0; i < 4; i++) {
        test_vocab v = marks_with((vocab_keys){.types = types[i]});
        const tokenizer *t = v.tokenizer;
        vocab_ids_are(t, "ab<|im_end|>a", DREY_TOKENIZE_SPECIAL, (int32_t[]){AB, END, A}, 3);
        vocab_ids_are(t, "<fim_middle>", DREY_TOKENIZE_SPECIAL, (int32_t[]){HOLE}, 1);
        vocab_ids_are(t, "a<think>b", 0, (int32_t[]){A, THINK, B}, 3);
        vocab_ids_are(t, "a</s>", DREY_TOKENIZE_SPECIAL, (int32_t[]){A, TAG}, 2);
        vocab_ids_are(t, "a<s>", DREY_TOKENIZE_SPECIAL, (int32_t[]){A, LESS, LESS + 5}, 3);
        /* What a user writes never ends a turn: its letters, of which three are tokens here. */
        vocab_ids_are(t, "ab<|im_end|>a", 0, (int32_t[]){AB, LESS, LESS + 3, A}, 4);
        is_hidden(t, END, true);
        is_hidden(t, HOLE, true);
        is_hidden(t, THINK, false);
        is_hidden(t, TAG, false);
        is_hidden(t, AB, false);
        assert_true(tokenizer_is_end(t, END));
        assert_false(tokenizer_is_end(t, TAG) || tokenizer_is_end(t, HOLE) ||
                     tokenizer_is_end(t, THINK));
        vocab_close(&v);
    }
}

/* A key makes an end of what is text otherwise, but a word stays a word. */
TEST(ends_that_keys_name)
{
    static const int32_t both[] = {TAG, THINK}, one_too_many[] = {TAG, N_MARKS};
    test_vocab v = marks_with((vocab_keys){.eos_plus_1 = TAG + 1});
    vocab_ids_are(v.tokenizer, "a</s>", DREY_TOKENIZE_SPECIAL, (int32_t[]){A, TAG}, 2);
    is_hidden(v.tokenizer, TAG, true);
    assert_true(tokenizer_is_end(v.tokenizer, TAG) && tokenizer_is_end(v.tokenizer, END));
    assert_int_equal(tokenizer_eos(v.tokenizer), TAG);
    vocab_close(&v);
    v = marks_with((vocab_keys){.eos_list = both, .n_eos = 2});
    assert_int_equal(tokenizer_eos(v.tokenizer), TAG);
    assert_true(tokenizer_is_end(v.tokenizer, TAG) && tokenizer_is_end(v.tokenizer, THINK) &&
                tokenizer_is_end(v.tokenizer, END));
    is_hidden(v.tokenizer, THINK, true);
    vocab_close(&v);
    v = marks_with((vocab_keys){.eos_plus_1 = AB + 1});
    assert_true(tokenizer_is_end(v.tokenizer, AB));
    is_hidden(v.tokenizer, AB, false);
    vocab_close(&v);
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
                                       "tokenizer.ggml.fim_pad_token_id"};
    for (int i = 0; i < 3; i++) {
        v = marks_with((vocab_keys){.id_key = keys[i], .id = THINK});
        assert_true(tokenizer_is_end(v.tokenizer, THINK));
        is_hidden(v.tokenizer, THINK, true);
        vocab_close(&v);
    }
    v = marks_with((vocab_keys){.id_key = keys[2], .id = 1000}); /* a row that is no token */
    vocab_close(&v);
    const vocab_keys broken = {.model = "gpt2",
                               .tokens = marks,
                               .merges = mark_merges,
                               .eos_list = one_too_many,
                               .n_eos = 2};
    REFUSED(DREY_ERR_FORMAT, "eos_token_id is 16, but the file has only 16 tokens", vocab_make, &v,
            &broken);
}

/* SentencePiece's own tokens, and marks. */
TEST(pieces_without_types)
{
    static const char *const tokens[] = {"<unk>", "<s>",        "</s>",         "<0x41>",
                                         "a",     "<|eot_id|>", "\xE2\x96\x81", NULL};
    static const float scores[7] = {0};
    const vocab_keys keys = {.model = "llama", .tokens = tokens, .scores = scores};
    test_vocab v;
    MUST(vocab_make, &v, &keys);
    vocab_ids_are(v.tokenizer, "aA<|eot_id|>", DREY_TOKENIZE_SPECIAL, (int32_t[]){6, 4, 3, 5}, 4);
    assert_int_equal(tokenizer_bos(v.tokenizer), 1);
    assert_int_equal(tokenizer_eos(v.tokenizer), 2);
    assert_true(tokenizer_is_end(v.tokenizer, 2) && tokenizer_is_end(v.tokenizer, 5));
    is_hidden(v.tokenizer, 0, true);
    is_hidden(v.tokenizer, 1, true);
    is_hidden(v.tokenizer, 3, false);
    vocab_close(&v);
}

/* The key names <|im_end|>, the template ends turns with another token. */
TEST(the_end_that_a_template_writes)
{
    static const struct {
        const char *after;
        bool ends;
    } cases[] = {
        {"<|im_start|>", true}, {" <|im_start|>\n", true}, {" x <|im_start|>", false}, {"", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char chat[256];
        int32_t id;
        size_t n;
        drey_model *m;
        toy_options o = toy_default();
        snprintf(chat, sizeof chat,
                 "{%% for m in messages %%}[{{ m.role }}]{{ m.content }}%s{%% endfor %%}",
                 cases[i].after);
        o.chat_template = chat;
        toy_write(temp_path("end.gguf"), &o);
        MUST(drey_model_open, &m, temp_path("end.gguf"));
        MUST(drey_tokenize, m, "<|im_start|>", 12, DREY_TOKENIZE_SPECIAL, &id, 1, &n);
        assert_int_equal(tokenizer_is_end(m->tokenizer, id), cases[i].ends);
        drey_model_close(&m);
    }
}
