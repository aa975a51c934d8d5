/* Kinds of the keys under "tokenizer." that decide a text: see tokenizer.h. Lists are checked by
 * the code that reads them. */
#include <string.h>

#include "text/tokenizer.h"

static const struct {
    const char *name; /* after "tokenizer."; one that ends with a dot: all that begin so */
    gguf_want want;
} kinds[] = {{"ggml.model", GGUF_WANT_TEXT},
             {"ggml.pre", GGUF_WANT_TEXT},
             {"ggml.bos_token_id", GGUF_WANT_INT},
             {"ggml.eos_token_id", GGUF_WANT_INT},
             {"ggml.eot_token_id", GGUF_WANT_INT},
             {"ggml.eom_token_id", GGUF_WANT_INT},
             {"ggml.fim_pre_token_id", GGUF_WANT_INT},
             {"ggml.fim_suf_token_id", GGUF_WANT_INT},
             {"ggml.fim_mid_token_id", GGUF_WANT_INT},
             {"ggml.prefix_token_id", GGUF_WANT_INT},
             {"ggml.suffix_token_id", GGUF_WANT_INT},
             {"ggml.middle_token_id", GGUF_WANT_INT},
             {"ggml.add_bos_token", GGUF_WANT_BOOL},
             {"ggml.add_eos_token", GGUF_WANT_BOOL},
             {"ggml.add_space_prefix", GGUF_WANT_BOOL},
             {"ggml.remove_extra_whitespaces", GGUF_WANT_BOOL},
             {"chat_template", GGUF_WANT_TEXT},
             {"chat_template.", GGUF_WANT_TEXT}};

/* Several ends of a text may be a list, whose items the tokenizer reads. */
static bool is_list_of_ends(const gguf_key *key, const char *name)
{
    size_t n = strlen(name);
    return gguf_is_int_array(key) && strncmp(name, "ggml.eo", 7) == 0 &&
           strcmp(name + n - 9, "_token_id") == 0;
}

static bool is_meant(gguf_string key, const char *name)
{
    static const char prefix[] = "tokenizer.";
    const size_t n_prefix = sizeof prefix - 1, n = strlen(name);
    if (key.n_bytes < n_prefix + n || memcmp(key.text, prefix, n_prefix) != 0 ||
        memcmp(key.text + n_prefix, name, n) != 0)
        return false;
    return key.n_bytes == n_prefix + n || name[n - 1] == '.';
}

drey_status tokenizer_keys_check(const gguf *g, drey_error *err)
{
    for (uint64_t i = 0; i < gguf_n_keys(g); i++) {
        const gguf_key *key = gguf_key_at(g, i);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (is_meant(key->name, kinds[k].name) && !is_list_of_ends(key, kinds[k].name))
                TRY(gguf_check_kind(key, kinds[k].want, err));
    }
    return DREY_OK;
}
