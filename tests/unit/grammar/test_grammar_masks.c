/* Masks of grammars: masks are what each token's bytes say, along any way through a text, however
 * often states are forgotten. */
#include "grammar/grammar.h"
#include "grammar/vocab_trie.h"
#include "support/grammar/grammar_text.h"
#include "support/scene.h"
#include "support/vocab_file.h"

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":"
    "\"integer\",\"minimum\":0,\"maximum\":150},\"tags\":{\"type\":\"array\",\"items\":{\"enum\":"
    "[\"red\",\"green\"]}}},\"required\":[\"name\",\"age\",\"tags\"]}";

/* A grammar over a vocabulary. */
typedef struct bound_grammar {
    test_vocab v;
    vocab_trie *trie;
    drey_grammar *g;
} bound_grammar;

/* Opens it, and holds a place in it. */
static drey_grammar *bind(bound_grammar *b, const char *vocab_name, drey_grammar_kind kind,
                          const char *text, int32_t *place)
{
    b->v = vocab_open(vocab_name);
    MUST(vocab_trie_open, &b->trie, b->v.tokenizer);
    MUST(grammar_open, &b->g, b->trie, kind, text, strlen(text));
    grammar_hold(b->g, place, 1);
    return b->g;
}

static void unbind(bound_grammar *b)
{
    grammar_close(&b->g);
    vocab_trie_close(&b->trie);
    vocab_close(&b->v);
}

static bool allowed_by_bytes(test_grammar *g, const char *text, size_t n, const tokenizer *t,
                             int32_t id)
{
    char all[4096];
    bool whole;
    memcpy(all, text, n);
    size_t more = tokenizer_piece(t, id, false, false, all + n, sizeof all - n);
    if (tokenizer_is_end(t, id)) {
        test_grammar_takes(g, text, n, &whole);
        return whole;
    }
    return more > 0 && more <= VOCAB_TRIE_LONGEST &&
           test_grammar_takes(g, all, n + more, &whole) == n + more;
}

/* A text that the grammar allows, token by token at random; each mask is compared with all
 * tokens. */
static void walk(drey_grammar_kind kind, const char *text, const char *vocab_name, int n_texts,
                 uint64_t seed)
{
    bound_grammar b;
    int32_t place;
    drey_grammar *g = bind(&b, vocab_name, kind, text, &place);
    const tokenizer *t = b.v.tokenizer;
    test_grammar *bytes = test_grammar_of(kind, text);
    const int32_t n_vocab = tokenizer_n_vocab(t);
    int32_t *ids = malloc((size_t)n_vocab * sizeof *ids);
    rng r = rng_from(seed);
    assert_non_null(ids);
    for (int i = 0; i < n_texts; i++) {
        char so_far[2048];
        size_t n_bytes = 0;
        grammar_restart(g);
        for (int k = 0; k < 24 && n_bytes < 1500; k++) {
            int32_t n_ids = 0;
            place = grammar_now(g);
            const uint64_t *mask = grammar_mask(g, &place);
            bool may_end = false;
            for (int32_t id = 0; id < n_vocab; id++) {
                bool set = mask[id / 64] >> (id % 64) & 1;
                if (set != allowed_by_bytes(bytes, so_far, n_bytes, t, id))
                    fail_msg("%.*s: token %d", (int)n_bytes, so_far, id);
                may_end = may_end || (set && tokenizer_is_end(t, id));
                if (set && !tokenizer_is_end(t, id))
                    ids[n_ids++] = id;
            }
            assert_int_equal(may_end, grammar_may_end(g, &place));
            if (n_ids == 0)
                break;
            int32_t id = ids[rng_below(&r, n_ids)], forced = grammar_forced(g, &place);
            assert_true(forced < 0 || grammar_allows(g, &place, forced));
            for (int32_t x = 0; x < 200; x++) {
                int32_t any = rng_below(&r, n_vocab);
                mask = grammar_mask(g, &place);
                assert_int_equal(grammar_allows(g, &place, any), mask[any / 64] >> (any % 64) & 1);
            }
            n_bytes += tokenizer_piece(t, id, false, false, so_far + n_bytes, 500);
            grammar_advance(g, id);
        }
    }
    free(ids);
    free(bytes);
    unbind(&b);
}

TEST(masks_of_a_schema_are_those_of_each_token)
{
    walk(DREY_GRAMMAR_JSON_SCHEMA, schema, "gpt-2", 1, 1);
    walk(DREY_GRAMMAR_JSON_SCHEMA, "{\"type\":\"object\"}", "sentencepiece", 2, 2);
}

TEST(masks_of_regular_expressions_and_choices)
{
    walk(DREY_GRAMMAR_REGEX, "[a-z]{3,12}( [A-Zé]+)* \\d{1,3}%?", "sentencepiece", 2, 3);
    walk(DREY_GRAMMAR_CHOICES, "[\"yes\",\"no\",\"perhaps, who knows\",\"中文\"]", "gpt-2", 1, 4);
}

/* Plain tokens are not walked through where any plain character may come: all of them or a few
 * more characters, after another beginning, of all scripts or of some. */
TEST(masks_inside_of_strings)
{
    static const char *const schemas[] = {
        "{\"type\":\"string\"}", "{\"type\":\"string\",\"maxLength\":3}",
        "{\"type\":\"string\",\"minLength\":2,\"maxLength\":30}",
        "{\"anyOf\":[{\"enum\":[\"the\",\"there is\"]},{\"type\":\"string\"}]}",
        "{\"anyOf\":[{\"enum\":[\"the\"]},{\"type\":\"string\",\"maxLength\":4}]}"};
    for (int i = 0; i < 5; i++) {
        walk(DREY_GRAMMAR_JSON_SCHEMA, schemas[i], "gpt-2", 2, 20 + (uint64_t)i);
        walk(DREY_GRAMMAR_JSON_SCHEMA, schemas[i], "qwen2", 2, 30 + (uint64_t)i);
    }
    walk(DREY_GRAMMAR_GBNF, "root ::= [^\\n]{1,4} \"\\n\" [^\\n]{20,40}", "gpt-2", 4, 40);
    walk(DREY_GRAMMAR_GBNF, "root ::= [ -~\\u0080-\\u8000]+ \"\\n\"", "qwen2", 2, 41);
    walk(DREY_GRAMMAR_GBNF, "root ::= [ -~]* [\\u4e00]", "qwen2", 2, 42);
    walk(DREY_GRAMMAR_GBNF, "root ::= .{3} [a-z]+", "gpt-2", 4, 43);
}

/* Places of a long repetition share masks, but near its bounds: there as well each is what each
 * token's bytes say. */
TEST(masks_in_long_repetitions)
{
    static const char *const texts[] = {
        "root ::= \"<\" ([a-z] | \"th\" | \"é\"){700,1500} \">\"",
        "root ::= \"<\" ([a-z]{0,600} \",\" | \"x\"){0,900} \">\"",
        "root ::= \"<\" [a-z]{800} \">\" | \"<a\" ([a-z] [a-z]){400,} \".\"",
        "text ::= %unlike (.* \"ab\")\n"
        "root ::= \"<\" %text {\"minLength\":700,\"maxLength\":1500} \"ab\"",
        "text ::= %unlike (.* \"b\")\n"
        "root ::= \"<\" %each (%text {\"minLength\":445} \"b\"?) \">\""};
    test_vocab v = vocab_open("gpt-2");
    vocab_trie *trie;
    MUST(vocab_trie_open, &trie, v.tokenizer);
    for (int i = 0; i < 5; i++) {
        drey_grammar *g;
        int32_t place, n_vocab = tokenizer_n_vocab(v.tokenizer), a, begin;
        size_t n;
        MUST(grammar_open, &g, trie, DREY_GRAMMAR_GBNF, texts[i], strlen(texts[i]));
        MUST(tokenizer_encode, v.tokenizer, "a", 1, 0, &a, 1, &n);
        MUST(tokenizer_encode, v.tokenizer, "<", 1, 0, &begin, 1, &n);
        grammar_hold(g, &place, 1);
        grammar_advance(g, begin);
        for (int k = 0; k < 1502 && grammar_now(g) != GRAMMAR_NOWHERE; k++) {
            place = grammar_now(g);
            const uint64_t *mask = grammar_mask(g, &place);
            const bool checked = k % 97 == 0 || (k > 440 && k < 448) || k > 1490 ||
                                 (k > 690 && k < 702) || (k > 796 && k < 802);
            for (int32_t id = 0; id < n_vocab && checked; id++)
                if (!tokenizer_is_end(v.tokenizer, id) &&
                    (mask[id / 64] >> (id % 64) & 1) !=
                        (grammar_follow(g, &place, id) != GRAMMAR_NOWHERE))
                    fail_msg("%s: token %d after %d", texts[i], id, k);
            grammar_advance(g, a);
        }
        grammar_close(&g);
    }
    vocab_trie_close(&trie);
    vocab_close(&v);
}

/* A grammar at random, in GBNF; most of them are refused or can be walked. */
static void random_grammar(rng *r, char *out, size_t size)
{
    static const char *const parts[] = {"\"a\"",   "[a-f]", "\" \"", "[^a-y]",      "x",    "y",
                                        "\"the\"", "[0-9]", "\"é\"", "(x | \"b\")", "\"\"", "."};
    static const char *const after[] = {"", "", "", "*", "+", "?", "{2}", "{0,3}"};
    static const char *const rules[] = {"root", "x", "y"};
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        n += (size_t)snprintf(out + n, size - n, "%s ::=", rules[i]);
        for (int k = 0, n_parts = 1 + rng_below(r, 5); k < n_parts; k++)
            n += (size_t)snprintf(out + n, size - n, " %s%s%s", parts[rng_below(r, 12)],
                                  after[rng_below(r, 8)],
                                  k + 1 < n_parts && rng_below(r, 4) == 0 ? " |" : "");
        n += (size_t)snprintf(out + n, size - n, "\n");
    }
}

TEST(masks_of_random_grammars)
{
    int n_walked = 0;
    rng r = rng_from(17);
    for (int i = 0; i < 60 && n_walked < 6; i++) {
        char text[1024];
        drey_error err;
        random_grammar(&r, text, sizeof text);
        test_grammar *g = test_grammar_open(DREY_GRAMMAR_GBNF, text, &err);
        bool whole = true;
        if (g)
            test_grammar_takes(g, "", 0, &whole);
        free(g);
        if (!g || whole) /* refused, or perhaps nothing but the empty text */
            continue;
        walk(DREY_GRAMMAR_GBNF, text, "sentencepiece", 1, (uint64_t)i);
        n_walked++;
    }
    assert_int_equal(n_walked, 6);
}

/* A certain text is named in the tokens that its tokenizer makes, from any of them on. */
static void check_names(const char *vocab_name, const char *grammar, const char *text)
{
    bound_grammar b;
    int32_t ids[64], place;
    size_t n;
    drey_grammar *g = bind(&b, vocab_name, DREY_GRAMMAR_GBNF, grammar, &place);
    MUST(tokenizer_encode, b.v.tokenizer, text, strlen(text), 0, ids, 64, &n);
    assert_true(n > 3);
    for (size_t i = 0; i + 1 < n; i++) {
        place = grammar_now(g);
        assert_int_equal(grammar_forced(g, &place), ids[i]);
        grammar_advance(g, ids[i]);
    }
    unbind(&b);
}

TEST(certain_texts_are_named_in_the_tokenizers_tokens)
{
    check_names("qwen2", "root ::= \"coastal explanation of astatine: xyzzy\"",
                "coastal explanation of astatine: xyzzy");
    check_names("gpt-2", "root ::= \"The quick returned biography\"",
                "The quick returned biography");
}

static int32_t only_token(const tokenizer *t, const char *text)
{
    int32_t id;
    size_t n;
    MUST(tokenizer_encode, t, text, strlen(text), 0, &id, 1, &n);
    assert_int_equal(n, 1);
    return id;
}

static int32_t named_after(drey_grammar *g, int32_t *place, int32_t token)
{
    grammar_advance(g, token);
    *place = grammar_now(g);
    return grammar_forced(g, place);
}

/* Where a longer token came than the certain bytes have, it is not named again, until it comes. */
TEST(what_was_longer_is_not_named_again)
{
    bound_grammar b;
    int32_t place;
    drey_grammar *g =
        bind(&b, "gpt-2", DREY_GRAMMAR_GBNF, "root ::= \"(\" (\"onac\" [a-z]{2} \"(\"){4}", &place);
    const tokenizer *t = b.v.tokenizer;
    int32_t bracket = only_token(t, "("), part = only_token(t, "onac"),
            whole = only_token(t, "onacci"), letter = only_token(t, "c");
    place = grammar_now(g);
    assert_int_equal(grammar_forced(g, &place), -1); /* a byte alone */
    assert_int_equal(named_after(g, &place, bracket), part);
    assert_int_equal(named_after(g, &place, whole), bracket);
    assert_int_equal(named_after(g, &place, bracket), -1);
    named_after(g, &place, part);
    named_after(g, &place, letter);
    named_after(g, &place, letter);
    assert_int_equal(named_after(g, &place, bracket), part);
    unbind(&b);
}

/* Of a word that is certain the longest token comes first. */
TEST(what_is_certain_is_found)
{
    bound_grammar b;
    char text[512] = "";
    size_t n = 0;
    int n_tokens = 0, n_certain = 0;
    int32_t place;
    drey_grammar *g =
        bind(&b, "gpt-2", DREY_GRAMMAR_GBNF,
             "root ::= \"{\\\"name\\\": \\\"\" [a-z] \"\\\", \\\"colour\\\": 1}\"", &place);
    for (place = grammar_now(g); !grammar_is_over(g, &place); place = grammar_now(g)) {
        int32_t id = grammar_forced(g, &place);
        n_certain += id >= 0;
        for (int32_t k = 0; id < 0; k++)
            id = grammar_allows(g, &place, k) ? k : -1;
        n += tokenizer_piece(b.v.tokenizer, id, false, false, text + n, sizeof text - n);
        n_tokens++;
        grammar_advance(g, id);
    }
    assert_true(n_certain >= n_tokens - 2); /* but the letter, and a bracket alone */
    assert_true(n_tokens < (int)n - 8);
    assert_memory_equal(text, "{\"name\": \"", 10);
    unbind(&b);
}

/* Errors are sentences, also where a grammar has its vocabulary. */
TEST(a_grammar_without_texts_is_refused)
{
    test_vocab v = vocab_open("gpt-2");
    vocab_trie *trie;
    drey_grammar *g;
    char *long_text = calloc(1, 100000);
    assert_non_null(long_text);
    MUST(vocab_trie_open, &trie, v.tokenizer);
    REFUSED(DREY_ERR_USAGE, "empty text", grammar_open, &g, trie, DREY_GRAMMAR_GBNF,
            "root ::= \"\"", 11);
    assert_null(g);
    REFUSED(DREY_ERR_USAGE, "at most", grammar_open, &g, trie, DREY_GRAMMAR_GBNF, long_text,
            100000);
    free(long_text);
    vocab_trie_close(&trie);
    vocab_close(&v);
}

TEST(special_tokens_come_where_a_grammar_names_them)
{
    bound_grammar b;
    int32_t start[2], place = 0;
    size_t n;
    drey_grammar *g = bind(&b, "qwen2", DREY_GRAMMAR_GBNF,
                           "root ::= [a-z]* %token \"<|im_start|>\" [a-z]", &place);
    MUST(tokenizer_encode, b.v.tokenizer, "<|im_start|>", 12, DREY_TOKENIZE_SPECIAL, start, 2, &n);
    assert_int_equal(n, 1);
    assert_true(tokenizer_is_special(b.v.tokenizer, start[0]));
    place = grammar_now(g);
    assert_true(grammar_mask(g, &place)[start[0] / 64] >> (start[0] % 64) & 1);
    assert_true(grammar_allows(g, &place, start[0]));
    grammar_advance(g, start[0]);
    place = grammar_now(g);
    assert_true(place != GRAMMAR_NOWHERE);
    assert_false(grammar_allows(g, &place, start[0]));
    assert_false(grammar_mask(g, &place)[start[0] / 64] >> (start[0] % 64) & 1);
    unbind(&b);
}

/* <[number]>, <name> and !<name>, as in llama.cpp's notation. */
TEST(tokens_by_number_and_name)
{
    test_vocab v = vocab_open("qwen2");
    vocab_trie *trie;
    drey_grammar *g;
    char text[128];
    int32_t start[2], ends[2], a[2], place;
    size_t n;
    MUST(vocab_trie_open, &trie, v.tokenizer);
    MUST(tokenizer_encode, v.tokenizer, "<|im_start|>", 12, DREY_TOKENIZE_SPECIAL, start, 2, &n);
    MUST(tokenizer_encode, v.tokenizer, "<|im_end|>", 10, DREY_TOKENIZE_SPECIAL, ends, 2, &n);
    MUST(tokenizer_encode, v.tokenizer, "a", 1, 0, a, 2, &n);
    snprintf(text, sizeof text, "root ::= <[%d]> (!<|im_start|>)* <|im_start|> <[%d]>", start[0],
             a[0]);
    MUST(grammar_open, &g, trie, DREY_GRAMMAR_GBNF, text, strlen(text));
    const int32_t ids[] = {start[0], a[0], a[0], start[0], a[0]};
    const bool starts[] = {true, true, true, true, false}; /* where that token may come */
    grammar_hold(g, &place, 1);
    for (int i = 0; i < 5; i++) {
        place = grammar_now(g);
        assert_int_equal(grammar_allows(g, &place, start[0]), starts[i]);
        assert_int_equal(grammar_allows(g, &place, a[0]), i > 0);
        grammar_advance(g, ids[i]);
    }
    assert_true(grammar_now_over(g));
    grammar_close(&g);
    const struct {
        const char *grammar, *says;
    } refused[] = {{"root ::= <[9999999]>", "no special token <[9999999]>"},
                   {"root ::= <[]>", "no special token"},
                   {"root ::= <[1x]>", "no special token"},
                   {"root ::= <nobody>", "no special token <nobody>"},
                   {"root ::= <|im_end|>", "ends texts"},
                   {"root ::= !<[64]>", "special tokens alone"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        REFUSED(DREY_ERR_USAGE, refused[i].says, grammar_open, &g, trie, DREY_GRAMMAR_GBNF,
                refused[i].grammar, strlen(refused[i].grammar));
    vocab_trie_close(&trie);
    vocab_close(&v);
}

/* What the file suppresses is in no mask: neither as text nor as an end. */
TEST(suppressed_tokens_are_not_allowed)
{
    static const char *const tokens[] = {"a", "b", "ab", "<|end|>", "<|im_end|>", NULL};
    static const int32_t types[] = {1, 1, 1, 3, 3}, suppressed[] = {2, 3};
    const vocab_keys keys = {.model = "gpt2",
                             .tokens = tokens,
                             .types = types,
                             .merges = (const char *const[]){"a b", NULL},
                             .suppressed = suppressed,
                             .n_suppressed = 2};
    bound_grammar b;
    int32_t place;
    MUST(vocab_make, &b.v, &keys);
    MUST(vocab_trie_open, &b.trie, b.v.tokenizer);
    MUST(grammar_open, &b.g, b.trie, DREY_GRAMMAR_GBNF, "root ::= [ab]*", 14);
    grammar_hold(b.g, &place, 1);
    place = grammar_now(b.g);
    assert_int_equal(grammar_mask(b.g, &place)[0], 1 | 2 | 16);
    unbind(&b);
}
