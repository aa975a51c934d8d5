/* Reading a protocol buffer: see pieces.h.
 *
 * A message is a list of fields, each a number (field * 8 + kind) and a value: a number of 7 bits a
 * byte, 8 bytes, a length and so many bytes, or 4 bytes. Of ModelProto: 1 is a piece (1 text, 2
 * score, 3 type), 2 the trainer's settings (3 the method, 24 blanks end words), 3 the normalizer's
 * (2 the character map, 3 to 5 what becomes of blanks). */
#include "convert/pieces.h"

#include <string.h>

enum { KIND_NUMBER = 0, KIND_8 = 1, KIND_BYTES = 2, KIND_4 = 5 };

typedef struct field {
    uint32_t number;
    uint64_t value;       /* KIND_NUMBER, KIND_4 */
    const uint8_t *bytes; /* KIND_BYTES, [n]; else NULL */
    size_t n;
} field;

static bool read_number(piece_reader *r, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        uint8_t byte = *r->at++;
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool read_fixed(piece_reader *r, size_t n, uint64_t *out)
{
    if ((size_t)(r->end - r->at) < n)
        return false;
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out |= (uint64_t)r->at[i] << 8 * i;
    r->at += n;
    return true;
}

static bool read_field(piece_reader *r, field *f)
{
    uint64_t tag;
    *f = (field){0};
    if (!read_number(r, &tag) || tag >> 3 > 1 << 29)
        return false;
    f->number = (uint32_t)(tag >> 3);
    switch (tag & 7) {
    case KIND_NUMBER:
        return read_number(r, &f->value);
    case KIND_8:
        return read_fixed(r, 8, &f->value);
    case KIND_4:
        return read_fixed(r, 4, &f->value);
    case KIND_BYTES:
        if (!read_number(r, &f->value) || f->value > (uint64_t)(r->end - r->at))
            return false;
        f->bytes = r->at;
        f->n = (size_t)f->value;
        r->at += f->n;
        return true;
    default:
        return false;
    }
}

static bool read_piece(const field *of, text_piece *out)
{
    piece_reader r = {of->bytes, of->bytes + of->n};
    field f;
    *out = (text_piece){.text = {"", 0}, .type = 1};
    while (r.at < r.end) {
        if (!read_field(&r, &f))
            return false;
        if (f.number == 1 && f.bytes) {
            out->text = (gguf_string){(const char *)f.bytes, f.n};
        } else if (f.number == 2 && !f.bytes) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&out->score, &bits, sizeof bits);
        } else if (f.number == 3 && !f.bytes) {
            out->type = f.value >= 1 && f.value <= 6 ? (int32_t)f.value : 0;
        }
    }
    return out->type != 0;
}

/* Reads how the vocabulary was trained. */
static bool read_training(const field *of, piece_settings *settings)
{
    piece_reader r = {of->bytes, of->bytes + of->n};
    field f;
    while (r.at < r.end) {
        if (!read_field(&r, &f))
            return false;
        if (f.number == 3 && !f.bytes)
            settings->method = f.value < 8 ? (int32_t)f.value : 0;
        else if (f.number == 24 && !f.bytes)
            settings->blanks_end_words = f.value != 0;
    }
    return true;
}

/* Reads how a text is changed before it is cut. */
static bool read_normalizer(const field *of, piece_settings *settings)
{
    piece_reader r = {of->bytes, of->bytes + of->n};
    field f;
    while (r.at < r.end) {
        if (!read_field(&r, &f))
            return false;
        if (f.number == 2 && f.bytes && f.n > 0)
            settings->charsmap = (gguf_string){(const char *)f.bytes, f.n};
        else if (f.number == 3 && !f.bytes)
            settings->dummy_prefix = f.value != 0;
        else if (f.number == 4 && !f.bytes)
            settings->merges_blanks = f.value != 0;
        else if (f.number == 5 && !f.bytes)
            settings->escapes_blanks = f.value != 0;
    }
    return true;
}

void pieces_begin(piece_reader *r, const uint8_t *bytes, size_t n, piece_settings *settings)
{
    *r = (piece_reader){bytes, bytes + n};
    *settings = (piece_settings){.method = PIECES_UNIGRAM,
                                 .dummy_prefix = true,
                                 .merges_blanks = true,
                                 .escapes_blanks = true};
}

drey_status pieces_next(piece_reader *r, text_piece *out, bool *more, piece_settings *settings,
                        drey_error *err)
{
    field f;
    while (r->at < r->end) {
        bool good = read_field(r, &f);
        if (good && f.number == 2 && f.bytes)
            good = read_training(&f, settings);
        if (good && f.number == 3 && f.bytes)
            good = read_normalizer(&f, settings);
        bool piece = good && f.number == 1 && f.bytes;
        if (piece)
            good = read_piece(&f, out);
        if (!good)
            FAIL(err, DREY_ERR_FORMAT,
                 "tokenizer.model is no SentencePiece vocabulary; fetch it again");
        *more = piece;
        if (piece)
            return DREY_OK;
    }
    *more = false;
    return DREY_OK;
}
