/* Tokenizers against the reference implementations' ids (tests/data/tokens, made by
 * scripts/make-token-goldens.py), merging against a brute-force oracle, and files that are broken.
 * The golden files of real vocabularies run where the models are: $DREY_MODELS, or drey/models in
 * the user's cache directory. */
#include "common/hex.h"
#include "support/scene.h"
#include "support/vocab_file.h"
#include "text/ids.h"
#include "text/merge.h"
#include "text/pretokenizer.h"

/* ---- Golden files ---- */

typedef struct golden {
    int flags;
    char *text;
    size_t n_bytes;
    int32_t *ids;
    size_t n_ids;
} golden;

/* FLAGS <tab> HEX <tab> IDS; the golden's arrays are at least one long. */
static golden read_golden(const char *line)
{
    golden g = {.flags = atoi(line)};
    const char *hex = strchr(line, '\t');
    assert_non_null(hex);
    const char *ids = strchr(++hex, '\t');
    assert_non_null(ids);
    g.n_bytes = (size_t)(ids - hex) / 2;
    g.text = malloc(g.n_bytes + 1);
    for (size_t i = 0; i < g.n_bytes; i++)
        g.text[i] = (char)(hex_digit(hex[2 * i]) * 16 + hex_digit(hex[2 * i + 1]));
    g.ids = malloc((strlen(ids) + 1) * sizeof *g.ids);
    for (char *end;; ids = end) {
        long id = strtol(ids, &end, 10);
        if (end == ids)
            return g;
        g.ids[g.n_ids++] = (int32_t)id;
    }
}

/* Encodes exactly and with too little room, and back. whole: no byte is lost on the way. */
static void check_golden(const tokenizer *t, const golden *g, int line, bool whole)
{
    static int32_t ids[1 << 16];
    static char text[1 << 16];
    size_t n_ids = 0, n_bytes = 0;
    MUST(tokenizer_encode, t, g->text, g->n_bytes, g->flags, ids, 1 << 16, &n_ids);
    if (n_ids != g->n_ids || memcmp(ids, g->ids, n_ids * sizeof *ids) != 0) {
        for (size_t i = 0; i < n_ids || i < g->n_ids; i++)
            print_error("%zu: %d, golden %d\n", i, i < n_ids ? ids[i] : -1,
                        i < g->n_ids ? g->ids[i] : -1);
        fail_msg("line %d: other ids than the reference's", line);
    }
    MUST(tokenizer_encode, t, g->text, g->n_bytes, g->flags, ids, n_ids, &n_ids);
    if (n_ids > 0) {
        ids[n_ids - 1] = -7;
        REFUSED(DREY_ERR_USAGE, "", tokenizer_encode, t, g->text, g->n_bytes, g->flags, ids,
                n_ids - 1, &n_ids);
        assert_int_equal(n_ids, g->n_ids);
        assert_int_equal(ids[n_ids - 1], -7); /* beyond the capacity nothing is written */
        assert_memory_equal(ids, g->ids, (n_ids - 1) * sizeof *ids);
    }
    if (!whole)
        return;
    MUST(tokenizer_decode, t, g->ids, g->n_ids, DREY_TOKENIZE_SPECIAL, text, sizeof text, &n_bytes);
    assert_int_equal(n_bytes, g->n_bytes);
    assert_memory_equal(text, g->text, n_bytes);
    size_t needed = 0;
    assert_int_equal(
        tokenizer_decode(t, g->ids, g->n_ids, DREY_TOKENIZE_SPECIAL, NULL, 0, &needed, NULL),
        n_bytes ? DREY_ERR_USAGE : DREY_OK);
    assert_int_equal(needed, n_bytes);
}

static void check_goldens(const char *name, const tokenizer *t, bool whole)
{
    char path[4096];
    snprintf(path, sizeof path, TEST_DATA "/tokens/%s.txt", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t room = 0;
    int n = 0, n_goldens = 0;
    while (getline(&line, &room, f) > 0) {
        n++;
        if (line[0] == '#')
            continue;
        golden g = read_golden(line);
        check_golden(t, &g, n, whole);
        free(g.text);
        free(g.ids);
        n_goldens++;
    }
    free(line);
    fclose(f);
    assert_true(n_goldens > 300);
}

TEST(goldens)
{
    static const char *const names[] = {"gpt-2",  "qwen2",         "smollm", "llama-bpe", "gpt-4o",
                                        "tekken", "sentencepiece", "t5",     "gemma4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        test_vocab v = vocab_open(names[i]);
        /* smollm lacks bytes; t5 normalizes; SentencePiece and gemma4 write U+2581 as a blank, and
         * SentencePiece blanks after special tokens. */
        bool whole = strcmp(names[i], "smollm") != 0 && strcmp(names[i], "sentencepiece") != 0 &&
                     strcmp(names[i], "t5") != 0 && strcmp(names[i], "gemma4") != 0;
        check_goldens(names[i], v.tokenizer, whole);
        vocab_close(&v);
    }
}

static void real_goldens(const char *name, const char *of)
{
    test_vocab v = vocab_open(real_model(of));
    check_goldens(name, v.tokenizer, strcmp(name, "real-smollm") != 0);
    assert_true(tokenizer_bytes(v.tokenizer) < 8000000);
    vocab_close(&v);
}

TEST(goldens_of_qwen2)
{
    real_goldens("real-qwen2", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
}

TEST(goldens_of_smollm)
{
    real_goldens("real-smollm", "SmolLM2-135M-Instruct.Q4_1.gguf");
}

/* ---- Merging ---- */

enum { IDS = 24 };

typedef struct table {
    int32_t merged[IDS][IDS]; /* -1: no merge */
    uint32_t priority[IDS][IDS];
} table;

static void pair_by_table(const void *rules, symbol *left, const symbol *right)
{
    const table *t = rules;
    if (left->id < 0 || right->id < 0)
        return;
    left->merged = t->merged[left->id][right->id];
    left->priority = t->priority[left->id][right->id];
}

/* Over and over the pair of least priority, the leftmost of equals. */
static size_t merge_by_search(const table *t, int32_t *ids, size_t n)
{
    for (;;) {
        size_t best = n;
        for (size_t i = 0; i + 1 < n; i++)
            if (t->merged[ids[i]][ids[i + 1]] >= 0 &&
                (best == n ||
                 t->priority[ids[i]][ids[i + 1]] < t->priority[ids[best]][ids[best + 1]]))
                best = i;
        if (best == n)
            return n;
        ids[best] = t->merged[ids[best]][ids[best + 1]];
        memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof *ids);
        n--;
    }
}

TEST(merging_is_greedy)
{
    rng r = {11};
    merger m = {.pair = pair_by_table};
    for (int round = 0; round < 2000; round++) {
        table t;
        for (int32_t a = 0; a < IDS; a++)
            for (int32_t b = 0; b < IDS; b++) {
                t.merged[a][b] = rng_below(&r, 3) ? rng_below(&r, IDS) : -1;
                /* Few values, so that equals occur. */
                t.priority[a][b] = (uint32_t)rng_below(&r, round % 2 ? 4 : 1000);
            }
        int32_t ids[200];
        size_t n = (size_t)rng_below(&r, 200) + 1;
        m.rules = &t;
        MUST(merge_begin, &m, n);
        for (size_t i = 0; i < n; i++) {
            ids[i] = rng_below(&r, 4);
            merge_push(&m, ids[i], (uint32_t)i, 1);
        }
        merge_run(&m);
        n = merge_by_search(&t, ids, n);
        size_t k = 0;
        uint32_t at = 0;
        for (int32_t i = 0; i >= 0; i = m.symbols[i].next) {
            assert_true(k < n);
            assert_int_equal(m.symbols[i].id, ids[k++]);
            assert_int_equal(m.symbols[i].at, at);
            at += m.symbols[i].n_bytes;
        }
        assert_int_equal(k, n);
    }
    merge_free(&m);
}

/* ---- Any bytes, any length ---- */

static void check_round_trip(const tokenizer *t, const char *text, size_t n, int flags)
{
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    char *back = malloc(n + 1);
    size_t n_ids, n_back;
    MUST(tokenizer_encode, t, text, n, flags, ids, n + 1, &n_ids);
    assert_true(n_ids <= n + 1); /* SentencePiece puts a blank in front */
    MUST(tokenizer_decode, t, ids, n_ids, flags, back, n, &n_back);
    assert_int_equal(n_back, n);
    assert_memory_equal(back, text, n);
    free(ids);
    free(back);
}

TEST(any_bytes_come_back)
{
    static const char *const names[] = {"gpt-2", "qwen2", "llama-bpe"};
    static const char pool[] = "aA '\n\r\t1<|>im_end\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80\xFF\x80";
    rng r = {5};
    for (size_t i = 0; i < 3; i++) {
        test_vocab v = vocab_open(names[i]);
        for (int round = 0; round < 500; round++) {
            char text[300];
            size_t n = (size_t)rng_below(&r, sizeof text);
            for (size_t k = 0; k < n; k++)
                text[k] = round % 2 ? (char)rng_below(&r, 256)
                                    : pool[rng_below(&r, (int32_t)sizeof pool)];
            check_round_trip(v.tokenizer, text, n, round & DREY_TOKENIZE_SPECIAL);
        }
        vocab_close(&v);
    }
}

/* Longer than a word may be, of one kind of character: what would be slow if anything were worse
 * than n log n, or deep if anything recursed. */
TEST(long_texts)
{
    static const char *const kinds[] = {"a",    " ",         "\n",       "1",   "'",
                                        "ab",   "\xFF",      "\xC3\xA9", "\r ", "\xE3\x80\x80",
                                        "<|im", "<|im_end|>"};
    size_t n = MERGE_WORD_BYTES + 1000;
    char *text = malloc(n);
    for (int bpe = 0; bpe < 2; bpe++) {
        test_vocab v = vocab_open(bpe ? "qwen2" : "sentencepiece");
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            for (size_t k = 0; k < n; k++)
                text[k] = kinds[i][k % strlen(kinds[i])];
            if (kinds[i][0] != '\xE3' || bpe) /* a cut character is no longer one: broken bytes */
                check_round_trip(v.tokenizer, text, n, 0);
        }
        vocab_close(&v);
    }
    free(text);
}

/* ---- What the file says besides ---- */

static const char *const tiny[] = {"a", "b", "ab", "<|end|>", "</s>", "<x>", "<x>y", NULL};
static const int32_t tiny_types[] = {1, 1, 1, 3, 1, 4, 4};
static const char *const tiny_merges[] = {"a b", NULL};
static const vocab_keys tiny_keys = {
    .model = "gpt2", .pre = "gpt-2", .tokens = tiny, .types = tiny_types, .merges = tiny_merges};

TEST(special_tokens_and_ends)
{
    vocab_keys keys = tiny_keys;
    keys.bos_plus_1 = keys.eos_plus_1 = 3; /* "ab" ends a text because the file says so */
    test_vocab v;
    MUST(vocab_make, &v, &keys);
    const tokenizer *t = v.tokenizer;
    assert_int_equal(tokenizer_n_vocab(t), 7);
    assert_true(tokenizer_is_end(t, 2) && tokenizer_is_end(t, 3));
    assert_false(tokenizer_is_end(t, 4)); /* plain text that looks like an end */
    assert_false(tokenizer_is_end(t, -1) || tokenizer_is_end(t, 7));
    assert_true(tokenizer_is_special(t, 3));
    assert_false(tokenizer_is_special(t, 5) || tokenizer_is_special(t, -1) ||
                 tokenizer_is_special(t, 7));
    int32_t ids[8];
    size_t n;
    /* User-defined tokens always; control tokens only if asked for; the longest of two. */
    vocab_ids_are(t, "a<|end|><x>yab", 0, (int32_t[]){0, 6, 2}, 3); /* others have no token */
    vocab_ids_are(t, "a<|end|><x>ab", DREY_TOKENIZE_SPECIAL, (int32_t[]){0, 3, 5, 2}, 4);
    /* Around a text that is nothing but text, and none that begins before it and ends inside. */
    const text_range plain[] = {{7, 15}, {16, 20}};
    const parted_text parted = {"<|end|>a<|end|>b<|end|><|end|><x>y", 34, plain, 2};
    id_sink sink = {ids, 8, 0};
    MUST(tokenizer_encode_around, t, &parted, DREY_TOKENIZE_SPECIAL, &sink);
    assert_true(sink.n == 5 && ids[0] == 3 && ids[1] == 0 && ids[2] == 1 && ids[3] == 3 &&
                ids[4] == 6);
    char text[16];
    assert_int_equal(tokenizer_piece(t, 3, false, false, text, sizeof text), 0);
    assert_int_equal(tokenizer_piece(t, 3, true, false, text, sizeof text), 7);
    assert_int_equal(tokenizer_piece(t, 5, false, false, text, 2), 3);
    assert_memory_equal(text, "<x|end|>", 2);
    assert_int_equal(tokenizer_piece(t, 7, true, false, text, sizeof text), 0);
    assert_int_equal(tokenizer_piece(t, -1, true, false, text, sizeof text), 0);
    const int32_t outside[] = {0, 7};
    REFUSED(DREY_ERR_USAGE, "", tokenizer_decode, t, outside, 2, 0, text, sizeof text, &n);
    vocab_close(&v);
}

/* All but three of Phi 3's special tokens also take the blanks after them; those of other models do
 * not. A file that names no ids has SentencePiece's own. */
TEST(blanks_after_special_tokens)
{
    static const char *const tokens[] = {"<unk>",    "<s>", "</s>", "\xE2\x96\x81",  "a",
                                         "<|user|>", "\n",  "<x>",  "<|endoftext|>", NULL};
    static const int32_t types[] = {2, 3, 4, 1, 1, 3, 1, 4, 3};
    static const float scores[9] = {0};
    static const struct {
        const char *architecture, *text;
        size_t n;
        int32_t ids[8];
    } cases[] = {
        {"phi3", "<|user|>\n a", 3, {5, 3, 4}},    {"llama", "<|user|>\na", 4, {5, 3, 6, 4}},
        {"phi3", "<s> a", 4, {1, 3, 3, 4}},        {"phi3", "<|endoftext|>\na", 4, {8, 3, 6, 4}},
        {"phi3", "<x> \t\na", 3, {3, 7, 4}},       {"phi3", "a</s> \n", 3, {3, 4, 2}},
        {"phi3", "<|user|> <|user|>\n", 2, {5, 5}}};
    vocab_keys keys = {.model = "llama", .tokens = tokens, .types = types, .scores = scores};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_vocab v;
        keys.architecture = cases[i].architecture;
        MUST(vocab_make, &v, &keys);
        vocab_ids_are(v.tokenizer, cases[i].text, DREY_TOKENIZE_SPECIAL, cases[i].ids, cases[i].n);
        assert_int_equal(tokenizer_bos(v.tokenizer), 1);
        assert_int_equal(tokenizer_eos(v.tokenizer), -1); /* </s> is a tag here */
        assert_false(tokenizer_is_end(v.tokenizer, 2));
        assert_true(tokenizer_is_end(v.tokenizer, 8));
        vocab_close(&v);
    }
}

/* Where an answer has several messages <|end|> ends one of them only. */
TEST(ends_of_answers_in_messages)
{
    static const char *const tokens[] = {"<|end|>", "<|call|>", "<|return|>", "x", NULL};
    static const char *const others[] = {"<|end|>", "<|call|>", "<|ret|>", "x", NULL};
    static const int32_t types[] = {3, 3, 3, 1};
    vocab_keys keys = tiny_keys;
    keys.types = types;
    for (int harmony = 0; harmony < 2; harmony++) {
        test_vocab v;
        keys.tokens = harmony ? tokens : others;
        keys.merges = (const char *const[]){NULL};
        MUST(vocab_make, &v, &keys);
        assert_int_equal(tokenizer_is_end(v.tokenizer, 0), !harmony);
        assert_int_equal(tokenizer_is_end(v.tokenizer, 1), harmony);
        assert_int_equal(tokenizer_is_end(v.tokenizer, 2), harmony);
        vocab_close(&v);
    }
}

/* Gemma's begin token always comes, a result ends an answer, and </s> is a tag. A character that
 * merges alone know, and one that nothing knows, is bytes. */
TEST(characters)
{
    static const char *const tokens[] = {"<bos>",  "<eos>",  "<|tool_response>", "</s>",   "a",
                                         "b",      "ab",     "\xE2\x96\x81",     "\n",     "\n\n",
                                         "\n\n\n", "<0xC3>", "<0xA9>",           "<0xFF>", NULL};
    static const int32_t types[] = {3, 3, 4, 3, 1, 1, 1, 1, 1, 1, 1, 6, 6, 6};
    const vocab_keys keys = {.model = "gemma4",
                             .tokens = tokens,
                             .types = types,
                             .merges = (const char *const[]){"a b", "\n \n", "\xC3\xA9 b", NULL},
                             .bos_plus_1 = 1,
                             .eos_plus_1 = 2};
    test_vocab v;
    MUST(vocab_make, &v, &keys);
    const tokenizer *t = v.tokenizer;
    assert_true(tokenizer_wants_bos(t));
    assert_true(tokenizer_is_end(t, 1) && tokenizer_is_end(t, 2) && !tokenizer_is_end(t, 3));
    vocab_ids_are(t, "", DREY_TOKENIZE_BOS, (int32_t[]){0}, 1);
    vocab_ids_are(t, "ab a\n\n\nb", 0, (int32_t[]){6, 7, 4, 10, 5}, 5);
    vocab_ids_are(t, "\n\n\n\n", 0, (int32_t[]){9, 9}, 2);
    vocab_ids_are(t,
                  "\xC3\xA9\xC3\xA9"
                  "b\xFF",
                  0, (int32_t[]){11, 12, 11, 12, 13}, 5);
    char text[8];
    assert_int_equal(tokenizer_piece(t, 13, false, false, text, sizeof text), 1);
    assert_memory_equal(text, "\xFF", 1);
    assert_int_equal(tokenizer_piece(t, 7, false, true, text, sizeof text), 1);
    assert_memory_equal(text, " ", 1);
    vocab_close(&v);
}

/* Names of several families stand for one expression. */
TEST(names_of_one_expression)
{
    static const char *const pairs[][2] = {{"gpt-2", "mellum"},      {"qwen2", "megrez"},
                                           {"llama-bpe", "falcon3"}, {"llama-bpe", "pixtral"},
                                           {"smollm", "minerva-7b"}, {"dbrx", "smaug-bpe"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        pretokenizer p[2];
        for (int j = 0; j < 2; j++)
            MUST(pretokenizer_init, &p[j], pairs[i][j], strlen(pairs[i][j]));
        assert_ptr_equal(p[0].family->steps, p[1].family->steps);
        assert_int_equal(p[0].family->ignore_merges, p[1].family->ignore_merges);
        assert_int_equal(p[0].family->wants_bos, p[1].family->wants_bos);
        for (int j = 0; j < 2; j++)
            pretokenizer_free(&p[j]);
    }
}

TEST(suppressed_tokens)
{
    static const int32_t ids[] = {5, 1, 3, -1};
    vocab_keys keys = tiny_keys;
    test_vocab v;
    keys.suppressed = ids;
    keys.n_suppressed = 4;
    MUST(vocab_make, &v, &keys);
    size_t n;
    const int32_t *got = tokenizer_suppressed(v.tokenizer, &n);
    assert_true(n == 3 && got[0] == 1 && got[1] == 3 && got[2] == 5);
    for (int32_t id = -1; id < 8; id++)
        assert_int_equal(tokenizer_is_suppressed(v.tokenizer, id), id == 1 || id == 3 || id == 5);
    vocab_close(&v);
}

TEST(begin_of_text)
{
    test_vocab v = vocab_open("llama-bpe"); /* the file does not say; the family wants one */
    assert_true(tokenizer_wants_bos(v.tokenizer));
    vocab_ids_are(v.tokenizer, "", DREY_TOKENIZE_BOS, (int32_t[]){tokenizer_bos(v.tokenizer)}, 1);
    assert_true(tokenizer_is_end(v.tokenizer, tokenizer_eos(v.tokenizer)));
    vocab_close(&v);
    v = vocab_open("qwen2");
    assert_false(tokenizer_wants_bos(v.tokenizer));
    vocab_ids_are(v.tokenizer, "", DREY_TOKENIZE_BOS, (int32_t[]){0}, 0);
    vocab_close(&v);
    v = vocab_open("sentencepiece");
    assert_true(tokenizer_wants_bos(v.tokenizer));
    vocab_close(&v);
}

TEST(first_blank_is_dropped)
{
    test_vocab v = vocab_open("sentencepiece");
    int32_t ids[16];
    size_t n, n_bytes;
    char text[64];
    MUST(tokenizer_encode, v.tokenizer, "<s>the tree", 11,
         DREY_TOKENIZE_SPECIAL | DREY_TOKENIZE_BOS, ids, 16, &n);
    assert_true(n > 2 && ids[0] == 1 && ids[1] == 1);
    MUST(tokenizer_decode, v.tokenizer, ids, n, 0, text, sizeof text, &n_bytes);
    assert_int_equal(n_bytes, 8);
    assert_memory_equal(text, "the tree", 8);
    MUST(tokenizer_decode, v.tokenizer, ids + 2, n - 2, DREY_TOKENIZE_INNER, text, sizeof text,
         &n_bytes);
    assert_int_equal(n_bytes, 9);
    assert_memory_equal(text, " the tree", 9);
    MUST(tokenizer_encode, v.tokenizer, "the tree", 8, DREY_TOKENIZE_INNER, ids, 16, &n);
    MUST(tokenizer_decode, v.tokenizer, ids, n, DREY_TOKENIZE_INNER, text, sizeof text, &n_bytes);
    assert_int_equal(n_bytes, 8);
    assert_memory_equal(text, "the tree", 8);
    assert_int_equal(tokenizer_piece(v.tokenizer, ids[2], false, false, text, sizeof text),
                     tokenizer_piece(v.tokenizer, ids[2], false, true, text, sizeof text) + 1);
    vocab_close(&v);
}

/* ---- Draft and target ---- */

static drey_status compare(const vocab_keys *target, const vocab_keys *draft, drey_error *err)
{
    test_vocab a, b;
    assert_int_equal(vocab_make(&a, target, err), DREY_OK);
    assert_int_equal(vocab_make(&b, draft, err), DREY_OK);
    drey_status status = tokenizer_compare(a.tokenizer, b.tokenizer, err);
    vocab_close(&a);
    vocab_close(&b);
    return status;
}

TEST(drafts_that_fit_and_do_not)
{
    static const char *const padded[] = {"a",   "b",    "ab",     "<|end|>", "</s>",
                                         "<x>", "<x>y", "[PAD7]", "<spare>", NULL};
    static const int32_t padded_types[] = {1, 1, 1, 3, 1, 4, 4, 1, 5};
    static const char *const other[] = {"a", "b", "ab", "<|end|>", "\n", "<x>", "<x>y", NULL};
    static const float scores[] = {0, 0, 0, 0, 0, 0, 0};
    drey_error err = {0};
    vocab_keys draft = tiny_keys;
    MUST(compare, &tiny_keys, &draft);
    draft.tokens = padded;
    draft.types = padded_types;
    MUST(compare, &tiny_keys, &draft);
    MUST(compare, &draft, &tiny_keys);
    draft.types = NULL; /* then <spare> is a token like others */
    REFUSED(DREY_ERR_MISMATCH, "token 8, \"<spare>\", exists only in the draft", compare,
            &tiny_keys, &draft);
    draft = tiny_keys;
    draft.tokens = other;
    REFUSED(DREY_ERR_MISMATCH, "token 4 is \"</s>\" in the target and \"?\" in the", compare,
            &tiny_keys, &draft);
    draft = tiny_keys;
    draft.model = "llama";
    draft.scores = scores;
    assert_int_equal(compare(&tiny_keys, &draft, &err), DREY_ERR_MISMATCH);
}

/* ---- Broken files ---- */

static void refused(const vocab_keys *keys, drey_status code, const char *words)
{
    test_vocab v;
    REFUSED(code, words, vocab_make, &v, keys);
}

TEST(broken_files)
{
    static const char *const no_tokens[] = {NULL};
    static const char *const bad_merges[][2] = {
        {"a", NULL}, {"a ", NULL}, {" a", NULL}, {"", NULL}};
    static const float scores[] = {0, 0, 0, 0, 0, 0, 0};
    vocab_keys keys;
#define BROKEN_BY(change, code, words) keys = tiny_keys, change, refused(&keys, code, words)
    BROKEN_BY(keys.model = NULL, DREY_ERR_FORMAT, "no tokenizer");
    BROKEN_BY(keys.model = "wordpiece", DREY_ERR_UNSUPPORTED, "\"wordpiece\" is not supported");
    BROKEN_BY(keys.pre = "no-such", DREY_ERR_UNSUPPORTED, "gpt-2, qwen2, llama-bpe, smollm");
    BROKEN_BY((keys.tokens = NULL, keys.types = NULL), DREY_ERR_FORMAT, "no tokens");
    BROKEN_BY((keys.tokens = no_tokens, keys.types = NULL), DREY_ERR_FORMAT, "no tokens");
    BROKEN_BY(keys.n_types_wrong_by = 1, DREY_ERR_FORMAT, "token_type");
    BROKEN_BY(keys.merges = NULL, DREY_ERR_FORMAT, "no merges");
    for (size_t i = 0; i < sizeof bad_merges / sizeof *bad_merges; i++)
        BROKEN_BY(keys.merges = bad_merges[i], DREY_ERR_FORMAT, "merge 0");
    BROKEN_BY(keys.model = "llama", DREY_ERR_FORMAT, "scores");
    BROKEN_BY((keys.model = "llama", keys.scores = scores, keys.n_scores_wrong_by = 1),
              DREY_ERR_FORMAT, "scores");
    BROKEN_BY(keys.eos_plus_1 = 8, DREY_ERR_FORMAT,
              "eos_token_id is 7, but the file has only 7 tokens");
#undef BROKEN_BY
    static const int32_t seven[8] = {7};
    keys = tiny_keys, keys.suppressed = seven, keys.n_suppressed = 1;
    refused(&keys, DREY_ERR_FORMAT, "suppress_tokens is 7, but the file has only 7 tokens");
    keys.n_suppressed = 8;
    refused(&keys, DREY_ERR_FORMAT, "no list of at most 7 ids");
    keys = tiny_keys;
    keys.eos_plus_1 = (int64_t)UINT32_MAX + 1; /* "none" */
    test_vocab v;
    MUST(vocab_make, &v, &keys);
    assert_int_equal(tokenizer_eos(v.tokenizer), -1);
    vocab_close(&v);
}
