/* Kinds of the keys under "tokenizer." that decide a text: see tokenizer.h. Lists are checked by
 * the code that reads them. */
#include <string.h>

#include "text/tokenizer.h"

static const struct {
    const char *name; /* after "tokenizer."; one that ends with a dot: all that begin so */
    gguf_want want;
    bool lists; /* an array of several is right as well */
} kinds[] = {{"ggml.model", GGUF_WANT_TEXT, false},
             {"ggml.pre", GGUF_WANT_TEXT, false},
             {"ggml.bos_token_id", GGUF_WANT_INT, false},
             {"ggml.eos_token_id", GGUF_WANT_INT, true},
             {"ggml.eot_token_id", GGUF_WANT_INT, true},
             {"ggml.eom_token_id", GGUF_WANT_INT, true},
             {"ggml.fim_pre_token_id", GGUF_WANT_INT, false},
             {"ggml.fim_suf_token_id", GGUF_WANT_INT, false},
             {"ggml.fim_mid_token_id", GGUF_WANT_INT, false},
             {"ggml.prefix_token_id", GGUF_WANT_INT, false},
             {"ggml.suffix_token_id", GGUF_WANT_INT, false},
             {"ggml.middle_token_id", GGUF_WANT_INT, false},
             {"ggml.add_bos_token", GGUF_WANT_BOOL, false},
             {"ggml.add_eos_token", GGUF_WANT_BOOL, false},
             {"ggml.add_space_prefix", GGUF_WANT_BOOL, false},
             {"ggml.remove_extra_whitespaces", GGUF_WANT_BOOL, false},
             {"chat_template", GGUF_WANT_TEXT, false},
             {"chat_template.", GGUF_WANT_TEXT, false}};

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
            if (is_meant(key->name, kinds[k].name) && !(kinds[k].lists && gguf_is_int_array(key)))
                TRY(gguf_check_kind(key, kinds[k].want, err));
    }
    return DREY_OK;
}
