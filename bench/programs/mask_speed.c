/* Measures how long the masks of a grammar take along texts, each with a new grammar:
 *
 *     mask_speed VOCABULARY.gguf SCHEMA TEXT [SCHEMA TEXT]...       (files; a text may be cut off)
 *
 * Prints, for each text and for all, microseconds of the whole mask before each token (median, 99th
 * percentile, most), in the order in which the text meets them; and before how many tokens the
 * grammar was certain, and of these which it named. */
#include "grammar/grammar.h"
#include "grammar/vocab_trie.h"
#include "os/clock.h"
#include "support/bytes_file.h"
#include "support/scene.h"
#include "support/vocab_file.h"

enum { MOST = 1 << 16 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void show(const char *name, double *us, int n)
{
    if (n == 0)
        return;
    qsort(us, (size_t)n, sizeof *us, by_value);
    printf("%-40s %6d tokens  median %7.1f  99 %% %7.1f  most %7.1f\n", name, n, us[n / 2],
           us[(int)(0.99 * (n - 1))], us[n - 1]);
}

static int n_forced, n_named;

static void count_forced(drey_grammar *g, const int32_t *place, int32_t token)
{
    int32_t forced = grammar_forced(g, place);
    n_forced += forced >= 0;
    n_named += forced == token;
}

/* The schema's text and the answer: bytes of files, which the caller frees. */
static int measure(const vocab_trie *trie, const char *schema_path, const char *text_path,
                   double *us)
{
    size_t n_schema, n_text, n_ids = 0;
    char *schema = (char *)bytes_file_read(schema_path, &n_schema);
    char *text = (char *)bytes_file_read(text_path, &n_text);
    int32_t *ids = malloc((n_text + 8) * sizeof *ids), place;
    drey_grammar *g;
    drey_error err;
    if (grammar_open(&g, trie, DREY_GRAMMAR_JSON_SCHEMA, schema, n_schema, &err) != DREY_OK) {
        fprintf(stderr, "%s: %s\n", schema_path, err.message);
        exit(1);
    }
    MUST(tokenizer_encode, trie->tokenizer, text, n_text, 0, ids, n_text + 8, &n_ids);
    int n = 0;
    grammar_hold(g, &place, 1);
    for (size_t i = 0; i < n_ids && !grammar_now_over(g); i++) {
        place = grammar_now(g);
        int64_t start = clock_ns();
        grammar_mask(g, &place);
        us[n++] = 1e-3 * (double)(clock_ns() - start);
        if (!grammar_allows(g, &place, ids[i]))
            break; /* the blank after the text */
        count_forced(g, &place, ids[i]);
        grammar_advance(g, ids[i]);
    }
    grammar_close(&g);
    free(ids);
    free(schema);
    free(text);
    return n;
}

int main(int argc, char **argv)
{
    static double us[MOST], all[MOST];
    int n_all = 0;
    if (argc < 4 || argc % 2)
        return 2;
    test_vocab v = vocab_open(argv[1]);
    vocab_trie *trie;
    int64_t start = clock_ns();
    MUST(vocab_trie_open, &trie, v.tokenizer);
    printf("vocabulary of %d sorted in %.1f ms, %.1f MB\n", trie->n_vocab,
           1e-6 * (double)(clock_ns() - start), 1e-6 * (double)trie->size_bytes);
    for (int i = 2; i < argc; i += 2) {
        int n = measure(trie, argv[i], argv[i + 1], us);
        memcpy(all + n_all, us, (size_t)n * sizeof *us);
        n_all += n;
        show(argv[i], us, n);
    }
    show("all", all, n_all);
    printf("certain before %d tokens, which were named before %d\n", n_forced, n_named);
    vocab_trie_close(&trie);
    vocab_close(&v);
    return 0;
}
