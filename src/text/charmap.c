/* Walking the character map's trie: see charmap.h. */
#include "text/charmap.h"

#include <string.h>

/* Longer strings are ignored, so that a text cannot become a thousand times as long; the longest of
 * NFKC has 33 bytes. */
enum { LONGEST = 128 };

static const char key_name[] = "tokenizer.ggml.precompiled_charsmap";

static uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

drey_status charmap_init(charmap *m, const gguf *g, drey_error *err)
{
    const gguf_key *key = gguf_find_key(g, key_name);
    if (!key || key->kind != GGUF_ARRAY || key->n_items == 0 ||
        (key->item_kind != GGUF_U8 && key->item_kind != GGUF_I8))
        FAIL(err, DREY_ERR_FORMAT,
             "the file has no character map (%s), without which text becomes other tokens; convert "
             "the model again",
             key_name);
    uint64_t n = key->n_items;
    uint64_t n_trie = n > 4 ? load_u32(key->value) : 0;
    if (n_trie < 4 || n_trie % 4 || n_trie > n - 5 || key->value[n - 1] != 0)
        FAIL(err, DREY_ERR_FORMAT, "%s is broken; fetch or convert the file again", key_name);
    *m = (charmap){.units = key->value + 4,
                   .n_units = (size_t)(n_trie / 4),
                   .strings = (const char *)key->value + 4 + n_trie,
                   .n_bytes = (size_t)(n - 4 - n_trie)};
    return DREY_OK;
}

/* False: there is no such unit. */
static bool unit_at(const charmap *m, size_t i, uint32_t *unit)
{
    if (i >= m->n_units)
        return false;
    *unit = load_u32(m->units + 4 * i);
    return true;
}

static size_t children_of(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

size_t charmap_match(const charmap *m, const char *text, size_t n, gguf_string *replacement)
{
    size_t longest = 0, node = 0;
    uint32_t unit, value;
    if (!unit_at(m, 0, &unit))
        return 0;
    node ^= children_of(unit);
    for (size_t i = 0; i < n && text[i]; i++) {
        uint8_t c = (uint8_t)text[i];
        node ^= c;
        if (!unit_at(m, node, &unit) || (unit & (1u << 31 | 0xFFu)) != c)
            break;
        node ^= children_of(unit);
        bool ends = unit & 1u << 8;
        if (!ends || !unit_at(m, node, &value) || (value & 0x7FFFFFFFu) >= m->n_bytes)
            continue;
        const char *string = m->strings + (value & 0x7FFFFFFFu);
        size_t n_string = strnlen(string, LONGEST + 1);
        if (n_string > LONGEST)
            continue;
        *replacement = (gguf_string){string, n_string};
        longest = i + 1;
    }
    return longest;
}
