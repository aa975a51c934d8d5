/* Vocabularies that were cut down: merges whose texts are no tokens are merged all the same, as in
 * llama.cpp, and what is left of them is bytes. */
#include "support/scene.h"
#include "support/vocab_file.h"

enum { A, B, C, D, BC, ABC, BLANK };
static const char *const tokens[] = {"a", "b", "c", "d", "bc", "abc", "Ġ", NULL};
static const vocab_keys usual = {.model = "gpt2", .pre = "gpt-2", .tokens = tokens};

static void ids_are(const char *const *merges, const char *text, const int32_t *want, size_t n)
{
    vocab_keys keys = usual;
    test_vocab v;
    int32_t ids[16];
    size_t n_ids;
    keys.merges = merges;
    MUST(vocab_make, &v, &keys);
    MUST(tokenizer_encode, v.tokenizer, text, strlen(text), 0, ids, 16, &n_ids);
    if (n_ids != n || memcmp(ids, want, n * sizeof *ids) != 0)
        fail_msg("\"%s\" has %zu tokens, the first %d", text, n_ids, n_ids ? ids[0] : -1);
    vocab_close(&v);
}
#define IDS_ARE(merges, text, ...)                                                                 \
    ids_are(merges, text, (const int32_t[]){__VA_ARGS__},                                          \
            sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

TEST(parts_that_nothing_makes)
{
    static const char *const merges[] = {"x y", "b c", "xy z", "bc x", NULL};
    IDS_ARE(merges, "abc", A, BC);
    IDS_ARE(merges, "bcbc", BC, BC);
}

/* "ab" goes first, and is no token: without it there would be "bc". */
TEST(a_whole_that_is_no_token)
{
    static const char *const merges[] = {"a b", "b c", NULL};
    IDS_ARE(merges, "abc", A, B, C);
    IDS_ARE(merges, "ab bc", A, B, BLANK, BC);
}

TEST(a_way_to_a_token)
{
    static const char *const merges[] = {"a b", "ab c", "b c", NULL};
    IDS_ARE(merges, "abc", ABC);
    IDS_ARE(merges, "dabcd", D, ABC, D);
    IDS_ARE(merges, "abd", A, B, D);
}

/* A byte that is no token is part of a merge; what is left of it has no tokens. */
TEST(bytes_that_are_no_tokens)
{
    static const char *const merges[] = {"b x", "Ġ a", NULL};
    IDS_ARE(merges, "bxbc", B, B, C);
    IDS_ARE(merges, "ab x a", A, B, BLANK, BLANK, A);
}
