/* Decoding any coded type by the decoder of its rows: see decoded.h. */
#include "kernel/decoded.h"

#include "kernel/ref/decode.h"

/* A row's block, whose words begin at first. */
static void put_row(decoded_step *to, const row_block *w, int32_t row, int32_t first, int32_t n)
{
    uint8_t *out = to->words[row / HALF_ROWS][first] + row % HALF_ROWS * 4;
    for (int32_t i = 0; i < n; i++)
        memcpy(out + i * HALF_BYTES, w->q + i * 4, 4);
}

void decode_coded(decoded_step *to, tensor_type type, const uint8_t *block, int32_t n_blocks)
{
    const type_layout *layout = layout_find(type);
    const type_decoder *decoder = &decoders_ref[type];
    const int32_t n_words = layout->block_k / 4;
    row_block w;
    for (int32_t b = 0; b < n_blocks; b++, block += layout->file_block_bytes * GROUP_ROWS)
        for (int32_t row = 0; row < GROUP_ROWS; row++) {
            decoder->decode(&w, block, row);
            put_row(to, &w, row, b * n_words, n_words);
            for (int32_t s = 0; decoder->sub_k == FLOAT_SUBS && s < 4; s++)
                to->fine[b * 4 + s][row] = w.fine[s];
            for (int32_t s = 0; decoder->sub_k != FLOAT_SUBS && s < 256 / decoder->sub_k; s++)
                to->scale[s][row] = w.scale[s];
            to->d[0][row] = w.d;
        }
}
