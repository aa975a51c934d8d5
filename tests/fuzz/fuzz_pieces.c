/* Property: any bytes are refused with a message, or are a vocabulary whose pieces lie inside them,
 * in their order, and are of a type that there is; and so does its character map. */
#include "convert/pieces.h"
#include "fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    piece_reader r;
    piece_settings settings;
    text_piece piece;
    drey_error err = {0};
    bool more = true;
    const char *begin = (const char *)bytes, *last = begin;
    pieces_begin(&r, bytes, n, &settings);
    while (more) {
        if (pieces_next(&r, &piece, &more, &settings, &err) != DREY_OK) {
            FUZZ_CHECK(strlen(err.message) > 0);
            return 0;
        }
        FUZZ_CHECK(settings.method >= 0 && settings.method < 8);
        if (settings.charsmap.text)
            FUZZ_CHECK(settings.charsmap.n_bytes > 0 && settings.charsmap.text >= begin &&
                       settings.charsmap.text + settings.charsmap.n_bytes <= begin + n);
        if (!more || piece.text.n_bytes == 0)
            continue;
        FUZZ_CHECK(piece.text.text >= last && piece.type >= 1 && piece.type <= 6);
        last = piece.text.text + piece.text.n_bytes;
        FUZZ_CHECK(last <= begin + n);
    }
    return 0;
}
