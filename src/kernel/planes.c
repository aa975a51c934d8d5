/* Types that can be split, and splitting them: see planes.h. */
#include "kernel/planes.h"

const plane_layout *plane_layout_find(tensor_type type)
{
    static const plane_layout layouts[TYPE_LIMIT] = {
        [TYPE_Q4_0] = {Q4_0_QS / PLANE_LINE, 1, 0, 8, 2},
        [TYPE_Q4_1] = {Q4_1_QS / PLANE_LINE, 1, 0, 8, 2},
        [TYPE_Q5_0] = {Q5_0_QS / PLANE_LINE, 1, 0, 8, 3},
        [TYPE_Q5_1] = {Q5_1_QS / PLANE_LINE, 1, 0, 8, 3},
        [TYPE_Q4_K] = {Q4_K_QS / PLANE_LINE, 1, 0, 64, 2},
        [TYPE_Q5_K] = {Q5_K_QS / PLANE_LINE, 1, 0, 64, 3},
        [TYPE_Q6_K] = {Q6_K_QUANTS / PLANE_LINE, 4, 8, 16, 4},
    };
    return layouts[type].split ? &layouts[type] : NULL;
}

size_t plane_block_bytes(const plane_layout *l, int plane)
{
    int32_t lines =
        plane == 0 ? l->front + l->n_chunks * (l->kept + l->split / 2) : l->n_chunks * l->split / 4;
    return (size_t)lines * PLANE_LINE;
}

/* Byte i of four lines: 2 bytes of plane 0, one of each other. */
static void split_bytes(const uint8_t *in, uint8_t *high, uint8_t *middle, uint8_t *low)
{
    uint8_t a = in[0], b = in[PLANE_LINE], c = in[2 * PLANE_LINE], d = in[3 * PLANE_LINE];
    high[0] = (uint8_t)((a & 0xcc) | (b & 0xcc) >> 2);
    high[PLANE_LINE] = (uint8_t)((c & 0xcc) | (d & 0xcc) >> 2);
    *middle = (uint8_t)((a & 0x22) >> 1 | (b & 0x22) | (c & 0x22) << 1 | (d & 0x22) << 2);
    *low = (uint8_t)((a & 0x11) | (b & 0x11) << 1 | (c & 0x11) << 2 | (d & 0x11) << 3);
}

static const uint8_t *keep(uint8_t **to, const uint8_t *from, int32_t n_lines)
{
    memcpy(*to, from, (size_t)n_lines * PLANE_LINE);
    *to += n_lines * PLANE_LINE;
    return from + n_lines * PLANE_LINE;
}

void plane_split(const plane_layout *l, uint8_t *const plane[N_PLANES], const uint8_t *blocks,
                 int32_t n_blocks)
{
    uint8_t *high = plane[0], *middle = plane[1], *low = plane[2];
    for (int32_t b = 0; b < n_blocks; b++) {
        blocks = keep(&high, blocks, l->front);
        for (int32_t c = 0; c < l->n_chunks; c++) {
            blocks = keep(&high, blocks, l->kept);
            for (int32_t line = 0; line < l->split; line += 4) {
                for (int32_t i = 0; i < PLANE_LINE; i++)
                    split_bytes(blocks + i, high + i, middle + i, low + i);
                blocks += 4 * PLANE_LINE;
                high += 2 * PLANE_LINE;
                middle += PLANE_LINE;
                low += PLANE_LINE;
            }
        }
    }
}

void plane_count(const plane_layout *l, plane_counts *c, const uint8_t *blocks, int32_t n_blocks)
{
    for (int32_t b = 0; b < n_blocks; b++) {
        blocks += l->front * PLANE_LINE;
        for (int32_t chunk = 0; chunk < l->n_chunks; chunk++) {
            blocks += l->kept * PLANE_LINE;
            for (int32_t i = 0; i < l->split * PLANE_LINE; i++) {
                c->n[blocks[i] >> 2 & 3][blocks[i] & 3]++;
                c->n[blocks[i] >> 6][blocks[i] >> 4 & 3]++;
            }
            blocks += l->split * PLANE_LINE;
        }
    }
}

plane_means plane_means_of(const plane_counts *c)
{
    plane_means means;
    for (int32_t high = 0; high < 4; high++) {
        uint64_t n = 0, sum = 0;
        for (uint32_t low = 0; low < 4; low++) {
            n += c->n[high][low];
            sum += low * c->n[high][low];
        }
        means.low[high] = (uint8_t)(n ? (2 * sum + n) / (2 * n) : high < 2 ? 2 : 1);
    }
    return means;
}
