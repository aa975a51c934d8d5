/* Blanks and bytes in the texts of tokens: see token_pieces.h. */
#include "text/token_pieces.h"

#include <string.h>

const char piece_blank[] = "\xE2\x96\x81";

bool piece_is_blank(const char *p, size_t n)
{
    return n >= PIECE_BLANK_BYTES && memcmp(p, piece_blank, PIECE_BLANK_BYTES) == 0;
}

int piece_byte(gguf_string s)
{
    if (s.n_bytes != 6 || memcmp(s.text, "<0x", 3) != 0 || s.text[5] != '>')
        return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        char c = s.text[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

void piece_find_bytes(const vocab *v, int32_t out[static 256])
{
    memset(out, 0xFF, 256 * sizeof *out);
    for (int32_t id = 0; id < v->n_tokens; id++) {
        int byte = vocab_type(v, id) == TOKEN_BYTE ? piece_byte(vocab_text(v, id)) : -1;
        if (byte >= 0)
            out[byte] = id;
    }
}

size_t piece_decode(const vocab *v, int32_t id, char *out, size_t capacity)
{
    gguf_string text = vocab_text(v, id);
    if (vocab_type(v, id) == TOKEN_BYTE) {
        int byte = piece_byte(text);
        if (byte >= 0 && capacity > 0)
            out[0] = (char)byte;
        return byte >= 0;
    }
    size_t n = 0;
    for (size_t i = 0; i < text.n_bytes;) {
        bool here = piece_is_blank(text.text + i, text.n_bytes - i);
        if (n < capacity)
            out[n] = here ? ' ' : text.text[i];
        n++;
        i += here ? PIECE_BLANK_BYTES : 1;
    }
    return n;
}
