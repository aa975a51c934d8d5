/* Special tokens in a text: see special.h. */
#include "text/special.h"

#include <stdlib.h>
#include <string.h>

#include "common/num.h"

static int by_text(const void *a, const void *b)
{
    const struct special_token *x = a, *y = b;
    size_t n = min_size(x->text.n_bytes, y->text.n_bytes);
    int order = memcmp(x->text.text, y->text.text, n);
    if (order != 0)
        return order;
    if (x->text.n_bytes != y->text.n_bytes)
        return x->text.n_bytes < y->text.n_bytes ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static bool matched_as_text(const vocab *v, int32_t id)
{
    token_type type = vocab_type(v, id);
    size_t n_bytes = vocab_text(v, id).n_bytes;
    return (type == TOKEN_CONTROL || type == TOKEN_USER_DEFINED || type == TOKEN_UNKNOWN) &&
           n_bytes > 0 && n_bytes <= SPECIAL_TOKEN_BYTES;
}

/* Keeps the first of tokens with the same text, and the first user-defined one: the others would
 * have to be skipped at each match. */
static void drop_doubles(special_tokens *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct special_token *t = &s->tokens[i];
        const struct special_token *last = n > 0 ? &s->tokens[n - 1] : NULL;
        bool again = last && last->text.n_bytes == t->text.n_bytes &&
                     memcmp(last->text.text, t->text.text, t->text.n_bytes) == 0;
        if (!again || (t->user_defined && !last->user_defined))
            s->tokens[n++] = *t;
    }
    s->n = n;
}

drey_status special_init(special_tokens *s, const vocab *v, drey_error *err)
{
    *s = (special_tokens){0};
    size_t n = 0;
    for (int32_t id = 0; id < v->n_tokens; id++)
        n += matched_as_text(v, id);
    if (n == 0)
        return DREY_OK;
    s->tokens = malloc(n * sizeof *s->tokens);
    if (!s->tokens)
        FAIL(err, DREY_ERR_MEMORY, "no memory for %zu special tokens", n);
    for (int32_t id = 0; id < v->n_tokens; id++) {
        if (!matched_as_text(v, id))
            continue;
        gguf_string text = vocab_text(v, id);
        bool user_defined = vocab_type(v, id) == TOKEN_USER_DEFINED;
        s->tokens[s->n++] = (struct special_token){text, id, user_defined};
        s->first[(uint8_t)text.text[0]] = true;
        s->first_user_defined[(uint8_t)text.text[0]] |= user_defined;
    }
    qsort(s->tokens, s->n, sizeof *s->tokens, by_text);
    drop_doubles(s);
    return DREY_OK;
}

void special_free(special_tokens *s)
{
    free(s->tokens);
    *s = (special_tokens){0};
}

/* First of tokens[low..high), which agree in their first `depth` bytes and are longer, whose next
 * byte is not below c. */
static size_t lower_bound(const special_tokens *s, size_t low, size_t high, size_t depth, int c)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uint8_t)s->tokens[middle].text.text[depth] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct special_token *special_match(const special_tokens *s, const char *text, size_t n,
                                          bool all)
{
    const struct special_token *best = NULL;
    if (n == 0 || !(all ? s->first : s->first_user_defined)[(uint8_t)text[0]])
        return NULL;
    size_t low = 0, high = s->n;
    for (size_t depth = 0; low < high && depth < n; depth++) {
        /* tokens[low..high) begin with text[0..depth) and are longer than that. */
        int c = (uint8_t)text[depth];
        low = lower_bound(s, low, high, depth, c);
        high = lower_bound(s, low, high, depth, c + 1);
        const struct special_token *whole = NULL;
        for (; low < high && s->tokens[low].text.n_bytes == depth + 1; low++)
            if (!whole && (all || s->tokens[low].user_defined))
                whole = &s->tokens[low];
        if (whole)
            best = whole;
    }
    return best;
}
