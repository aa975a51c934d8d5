/* Property: any bytes are refused with a message, or are a vocabulary whose pieces lie inside them,
 * in their order, and are of a type that there is. */
#include "convert/pieces.h"
#include "fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    piece_reader r;
    text_piece piece;
    drey_error err = {0};
    bool more = true;
    int32_t method = 0;
    const char *last = (const char *)bytes;
    pieces_begin(&r, bytes, n);
    while (more) {
        if (pieces_next(&r, &piece, &more, &method, &err) != DREY_OK) {
            FUZZ_CHECK(strlen(err.message) > 0);
            return 0;
        }
        FUZZ_CHECK(method >= 0 && method < 8);
        if (!more || piece.text.n_bytes == 0)
            continue;
        FUZZ_CHECK(piece.text.text >= last && piece.type >= 1 && piece.type <= 6);
        last = piece.text.text + piece.text.n_bytes;
        FUZZ_CHECK(last <= (const char *)bytes + n);
    }
    return 0;
}
