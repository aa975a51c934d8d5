/* Pre-tokenizers against the reference's words (tests/data/splits.txt), and their names against
 * llama.cpp's and against the architectures that drey runs (tests/data/pretokenizers.tsv). The
 * scripts that made both are in scripts/pretokenizers. */
#include "model/arch.h"
#include "support/scene.h"
#include "support/vocab_file.h"
#include "text/pretokenizer.h"

enum { MOST_TEXTS = 400, MOST_BYTES = 1 << 10 };

/* ---- Words ---- */

static struct text {
    char bytes[MOST_BYTES];
    size_t n;
} texts[MOST_TEXTS];

static void read_text(struct text *t, const char *hex)
{
    unsigned byte;
    for (t->n = 0; sscanf(hex, "%2x", &byte) == 1 && t->n < MOST_BYTES; hex += 2)
        t->bytes[t->n++] = (char)byte;
}

/* Lengths of words, as a line of the file has them. */
static void show_words(splitter *s, const struct text *t, char *out, size_t capacity)
{
    size_t n, at = 0, sum = 0;
    out[0] = '\0';
    splitter_begin(s, t->bytes, t->n);
    while ((n = splitter_next(s)) > 0) {
        at += (size_t)snprintf(out + at, capacity - at, "%s%zu", at ? " " : "", n);
        assert_true(at < capacity);
        sum += n;
    }
    assert_int_equal(sum, t->n);
}

TEST(words_of_the_reference)
{
    FILE *f = fopen(TEST_DATA "/splits.txt", "r");
    assert_non_null(f);
    char line[2 * MOST_BYTES + 16], words[4 * MOST_BYTES], rule[64] = "";
    pretokenizer p = {0};
    splitter s = {0};
    size_t n_texts = 0, at = 0, n_rules = 0, n_differ = 0;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#')
            continue;
        if (strncmp(line, "text ", 5) == 0) {
            assert_true(n_texts < MOST_TEXTS);
            read_text(&texts[n_texts++], line + 5);
        } else if (strncmp(line, "rule ", 5) == 0) {
            splitter_free(&s);
            pretokenizer_free(&p);
            snprintf(rule, sizeof rule, "%.60s", line + 5);
            MUST(pretokenizer_init, &p, rule, strlen(rule));
            MUST(splitter_init, &s, &p);
            at = 0;
            n_rules++;
        } else {
            assert_true(at < n_texts);
            show_words(&s, &texts[at], words, sizeof words);
            if (strcmp(line, "?") != 0 && strcmp(line, words) != 0) {
                print_error("%s, text %zu: words %s, reference %s\n", rule, at, words, line);
                n_differ++;
            }
            at++;
        }
    }
    splitter_free(&s);
    pretokenizer_free(&p);
    fclose(f);
    assert_int_equal(n_differ, 0);
    assert_true(n_texts > 200 && n_rules > 20);
}

/* A long run of anything takes each rule about as long as it is: words end, and their sum is the
 * text. Quadratic time would show as a test that does not end. */
TEST(long_runs)
{
    static const char *const rules[] = {
        "gpt-2",      "smollm",     "deepseek-llm", "deepseek-coder", "deepseek-v3", "kimi-k2",
        "tiny_aya",   "superbpe",   "exaone-moe",   "laguna",         "youtu",       "afmoe",
        "bailingmoe", "seed-coder", "qwen35",       "chameleon"};
    static const char *const kinds[] = {
        "a", "A", "1", " ", "\n", "a ", "\r\n", ".", "\xE4\xB8\xAD", "\xCC\x81"};
    enum { N = 200000 };
    char *text = malloc(N);
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        pretokenizer p;
        splitter s;
        MUST(pretokenizer_init, &p, rules[r], strlen(rules[r]));
        MUST(splitter_init, &s, &p);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            size_t length = strlen(kinds[k]), n = N - N % length, sum = 0, word;
            for (size_t i = 0; i < n; i++)
                text[i] = kinds[k][i % length];
            splitter_begin(&s, text, n);
            while ((word = splitter_next(&s)) > 0)
                sum += word;
            assert_int_equal(sum, n);
        }
        splitter_free(&s);
        pretokenizer_free(&p);
    }
    free(text);
}

/* ---- Names ---- */

static const pretokenizer_family *find(const char *name)
{
    return pretokenizer_find(name, strlen(name));
}

static void check_name(char *line)
{
    char *save, *name = strtok_r(line, "\t\n", &save), *rule = strtok_r(NULL, "\t\n", &save);
    int ignore_merges = atoi(strtok_r(NULL, "\t\n", &save));
    int wants_bos = atoi(strtok_r(NULL, "\t\n", &save));
    pretokenizer p;
    if (strcmp(rule, "-") == 0) {
        const char *kind = strtok_r(NULL, "\t\n", &save);
        assert_non_null(kind);
        REFUSED(DREY_ERR_UNSUPPORTED, kind, pretokenizer_init, &p, name, strlen(name));
        return;
    }
    MUST(pretokenizer_init, &p, name, strlen(name));
    if (p.family->steps != find(rule)->steps || p.family->ignore_merges != ignore_merges ||
        p.family->wants_bos != wants_bos)
        fail_msg("%s is not what llama.cpp's loader makes of it", name);
    pretokenizer_free(&p);
}

TEST(names_of_llama_cpp_and_of_the_architectures)
{
    FILE *f = fopen(TEST_DATA "/pretokenizers.tsv", "r");
    assert_non_null(f);
    char line[1024], seen[2048] = ",";
    size_t n_names = 0;
    while (fgets(line, sizeof line, f)) {
        char *save, *tab = strchr(line, '\t');
        if (line[0] == '#')
            continue;
        assert_non_null(tab);
        if (strncmp(line, "architecture ", 13) != 0) {
            n_names++;
            check_name(line);
            continue;
        }
        strncat(seen, line + 13, (size_t)(tab - line) - 13);
        strcat(seen, ",");
        for (char *name = strtok_r(tab, "\t \n", &save); name; name = strtok_r(NULL, " \n", &save))
            if (!find(name))
                fail_msg("%s, which models of this architecture have, is missing: %s", name, line);
    }
    fclose(f);
    assert_true(n_names > 80);
    for (size_t i = 0; arch_name(i); i++) {
        char listed[64];
        snprintf(listed, sizeof listed, ",%s,", arch_name(i));
        if (!strstr(seen, listed))
            fail_msg("pretokenizers.tsv does not say what models of \"%s\" have", arch_name(i));
    }
}

TEST(unknown_names)
{
    pretokenizer p;
    REFUSED(DREY_ERR_UNSUPPORTED, "the nearest one is \"qwen2\"", pretokenizer_init, &p, "qwen9",
            5);
    REFUSED(DREY_ERR_UNSUPPORTED, "is not supported; use a model", pretokenizer_init, &p, "zz", 2);
    REFUSED(DREY_ERR_UNSUPPORTED, "(WordPiece)", pretokenizer_init, &p, "bert-bge", 8);
    MUST(pretokenizer_init, &p, NULL, 0);
    assert_ptr_equal(p.family->steps, find("gpt-2")->steps);
    pretokenizer_free(&p);
}

TEST(other_kinds_of_tokenizers)
{
    static const char *const kinds[][2] = {{"bert", "WordPiece"},
                                           {"rwkv", "RWKV"},
                                           {"plamo2", "PLaMo"},
                                           {"whitespace", "characters"},
                                           {"none", "no vocabulary"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        test_vocab v;
        const vocab_keys keys = {.model = kinds[i][0]};
        REFUSED(DREY_ERR_UNSUPPORTED, kinds[i][1], vocab_make, &v, &keys);
    }
}

/* From a file's key to tokens: the rules differ in which of these merges can happen. */
TEST(rules_in_files)
{
    static const char *const tokens[] = {"1",
                                         "2",
                                         "?",
                                         "\xC4\x8A",
                                         "12",
                                         "?\xC4\x8A",
                                         "\xC4\xA0",
                                         "\xC4\xA0"
                                         "1",
                                         NULL};
    static const char *const merges[] = {"1 2", "? \xC4\x8A", "\xC4\xA0 1", NULL};
    static const struct {
        const char *pre;
        size_t n;
        int32_t ids[6];
    } cases[] = {{"olmo", 4, {4, 7, 2, 3}},           {"seed-coder", 6, {0, 1, 6, 0, 2, 3}},
                 {"qwen2", 5, {0, 1, 6, 0, 5}},       {"glm4", 4, {4, 6, 0, 5}},
                 {"deepseek-v3", 4, {4, 6, 0, 5}},    {"deepseek-coder", 6, {0, 1, 6, 0, 2, 3}},
                 {"command-r", 6, {0, 1, 6, 0, 2, 3}}};
    vocab_keys keys = {.model = "gpt2", .tokens = tokens, .merges = merges};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_vocab v;
        int32_t ids[8];
        size_t n;
        keys.pre = cases[i].pre;
        MUST(vocab_make, &v, &keys);
        MUST(tokenizer_encode, v.tokenizer, "12 1?\n", 6, 0, ids, 8, &n);
        if (n != cases[i].n || memcmp(ids, cases[i].ids, n * sizeof *ids) != 0)
            fail_msg("%s: other tokens", cases[i].pre);
        vocab_close(&v);
    }
}
