/* A matrix product by tiles: blocking for the caches, and the order in which tiles and vectors
 * work.
 *
 * What it should cost, from Intel's published figures for Sapphire Rapids (a tile product 16
 * cycles, a tile load 8, two vector operations a cycle); no such machine has measured it yet. Q4_K,
 * 32 rows of a super-block (4608 bytes):
 *
 *   planes        about 300 cycles, once for all tokens of a block
 *   16 tokens     4 parts x 4 products = 256 cycles; 20 tile loads run at the same time
 *   their finish  512 sums: load two C, shift, add, convert, two fused multiply-adds with a product
 *                 each, four vpdpwssd for the minima: about 220 cycles of vector work
 *
 * A core that reads 4 to 8 bytes of weights per cycle takes 600 to 1150 cycles for one token. So
 * tiles and vectors must work at the same time. The finish of 16 tokens is done between the
 * products of the next 16, a quarter after each part; the next step's planes are built while the
 * last tokens' products run (the reorder buffer holds them; neither waits for the other's result).
 * Then 16 tokens take max(300 + 220, 256) cycles, 64 tokens 300 + 4 * 280: within what the memory
 * takes for 1 and 1.2 to 2.3 times it. With 256 tokens it is 300 + 16 * 280 cycles for 16 * 128 at
 * the peak of 1024 products per cycle: 43 %. Two planes allow at most 50 %; types with one plane
 * (Q2_K, Q3_K) are bound by their finish. Blocks of 32 empty C each 32 k: a convert, a
 * multiplication and a fused multiply-add for 16 products each, 48 cycles where the tiles need 32
 * and the peak is 16.
 *
 * Tokens go in blocks of 256, for which planes are built once. k goes in spans whose rearranged
 * activations fit scratch, which should stay in the L2 cache (2 MB) next to a group's weights.
 * Rearranging 16 tokens takes about 130 cycles per super-block, and is done once for all groups of
 * a call. Rows without a token are zeros, so that all tiles have one shape and are configured once.
 */
#include "kernel/x86/amx/amx.h"

enum { BLOCK_TOKENS = 256 };

/* Scratch of a call, 64-byte aligned. */
typedef struct workspace {
    float sums[BLOCK_TOKENS * GROUP_ROWS];
    int32_t c[2][STEP_C];    /* products of this job, and of the one being finished */
    step_weights weights[2]; /* of this step, and of the one being finished or to come */
    uint8_t acts[];
} workspace;

enum { ACTS_BYTES = AMX_SCRATCH_BYTES - sizeof(workspace) };

/* One call's shapes. */
typedef struct amx_job {
    const amx_type *type;
    int32_t weight_block_bytes; /* 32 rows */
    int32_t act_block_bytes;    /* a row's, as quantised */
    int32_t tile_block_bytes;   /* 16 tokens', rearranged */
    int32_t step_blocks;        /* 1 or 4 */
    int32_t n_blocks;           /* of k */
    size_t act_row_bytes;
    const uint8_t *groups, *acts;
    int32_t n;
    float *y;
    int64_t ldy;
    workspace *space;
} amx_job;

/* Tokens [first, last) and blocks [b0, b1): what one round over the groups takes. */
typedef struct span {
    int32_t first, last, b0, b1;
} span;

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t token_tiles(const span *s)
{
    return (s->last - s->first + TILE_TOKENS - 1) / TILE_TOKENS;
}

/* Where the rearranged activations of token tile i, block b are. */
static uint8_t *tile_acts(const amx_job *p, const span *s, int32_t i, int32_t b)
{
    return p->space->acts + ((size_t)i * (size_t)(s->b1 - s->b0) + (size_t)(b - s->b0)) *
                                (size_t)p->tile_block_bytes;
}

static void span_arrange(const amx_job *p, const span *s)
{
    for (int32_t i = 0; i < token_tiles(s); i++)
        for (int32_t first = 0; first < TILE_TOKENS; first += TOKEN_TILE) {
            int32_t t = s->first + i * TILE_TOKENS + first;
            int32_t m = t < s->last ? tile_rows(t, p->n) : 0;
            for (int32_t b = s->b0; b < s->b1; b++)
                p->type->arrange(tile_acts(p, s, i, b),
                                 m == 0 ? p->acts /* not read */
                                        : p->acts + (size_t)t * p->act_row_bytes +
                                              (size_t)b * (size_t)p->act_block_bytes * (size_t)m,
                                 first, m);
        }
}

static void step_build(const amx_job *p, const span *s, const uint8_t *group, int32_t step)
{
    int32_t b = s->b0 + step * p->step_blocks;
    p->type->build(&p->space->weights[step % 2], group + (size_t)b * (size_t)p->weight_block_bytes,
                   smaller(p->step_blocks, s->b1 - b));
}

/* Adds the products of one group to the sums of the span's tokens. */
static void group_multiply(const amx_job *p, const span *s, const uint8_t *group)
{
    workspace *space = p->space;
    int32_t n_tiles = token_tiles(s);
    int32_t n_steps = (s->b1 - s->b0 + p->step_blocks - 1) / p->step_blocks;
    tile_job before = {0}; /* no tokens: nothing to finish */
    int32_t turn = 0;
    step_build(p, s, group, 0);
    for (int32_t step = 0; step < n_steps; step++)
        for (int32_t i = 0; i < n_tiles; i++, turn ^= 1) {
            int32_t b = s->b0 + step * p->step_blocks;
            int32_t n_blocks = smaller(p->step_blocks, s->b1 - b);
            tile_job job = {
                .sums = space->sums + i * TILE_TOKENS * GROUP_ROWS,
                .c = space->c[turn],
                .acts = tile_acts(p, s, i, b),
                .weights = &space->weights[step % 2],
                .n_tokens = smaller(TILE_TOKENS, s->last - s->first - i * TILE_TOKENS),
                .n_parts = p->step_blocks == 1 ? STEP_PARTS : n_blocks,
            };
            for (int32_t part = 0; part < STEP_PARTS; part++) {
                if (part < job.n_parts)
                    p->type->multiply(space->c[turn], job.acts, job.weights, part);
                int32_t from = part * (TILE_TOKENS / STEP_PARTS);
                int32_t to = smaller(from + TILE_TOKENS / STEP_PARTS, before.n_tokens);
                if (from < to)
                    p->type->finish(&before, from, to);
            }
            if (i == n_tiles - 1 && step + 1 < n_steps)
                step_build(p, s, group, step + 1);
            before = job;
        }
    p->type->finish(&before, 0, before.n_tokens);
}

/* All groups for one span; y holds the sums of the spans before. */
static void span_multiply(const amx_job *p, const span *s, int32_t n_groups)
{
    float *sums = p->space->sums;
    size_t row_bytes = GROUP_ROWS * sizeof(float);
    span_arrange(p, s);
    for (int32_t g = 0; g < n_groups; g++) {
        float *y = p->y + s->first * p->ldy + (int64_t)g * GROUP_ROWS;
        int32_t n = s->last - s->first;
        if (s->b0 == 0)
            memset(sums, 0, (size_t)n * row_bytes);
        else
            for (int32_t t = 0; t < n; t++)
                memcpy(sums + t * GROUP_ROWS, y + t * p->ldy, row_bytes);
        group_multiply(p, s,
                       p->groups + (size_t)g * (size_t)p->n_blocks * (size_t)p->weight_block_bytes);
        for (int32_t t = 0; t < n; t++)
            memcpy(y + t * p->ldy, sums + t * GROUP_ROWS, row_bytes);
    }
}

void dot_amx(const amx_type *type, float *y, int64_t ldy, const void *groups, int32_t n_groups,
             const void *acts, int32_t n, int64_t k, void *scratch)
{
    const type_layout *layout = layout_find(type->type);
    bool wide = layout->block_k == 256;
    amx_job p = {
        .type = type,
        .weight_block_bytes = layout->file_block_bytes * GROUP_ROWS,
        .act_block_bytes = wide ? ACT_Q8_256_BYTES : ACT_Q8_32_BYTES,
        .tile_block_bytes = wide ? sizeof(tokens_256) : sizeof(tokens_32),
        .step_blocks = wide ? 1 : STEP_PARTS,
        .n_blocks = (int32_t)(k / layout->block_k),
        .act_row_bytes = act_row_bytes(wide ? ACT_Q8_256 : ACT_Q8_32, k),
        .groups = groups,
        .acts = acts,
        .n = n,
        .y = y,
        .ldy = ldy,
        .space = scratch,
    };
    /* The tiles' state is a thread's: taken here and given back, so that nothing else meets it and
     * the system has no 8 KB more to save on a switch. Both take some hundred cycles at most; the
     * smallest call multiplies 9 tokens by a group of rows, tens of thousands of cycles. */
    TILE_CONFIGURE(type->config);
    for (int32_t first = 0; first < n; first += BLOCK_TOKENS) {
        span s = {.first = first, .last = smaller(n, first + BLOCK_TOKENS)};
        int32_t steps = ACTS_BYTES / (token_tiles(&s) * p.step_blocks * p.tile_block_bytes);
        for (; s.b0 < p.n_blocks; s.b0 = s.b1) {
            s.b1 = smaller(p.n_blocks, s.b0 + steps * p.step_blocks);
            span_multiply(&p, &s, n_groups);
        }
    }
    TILE_RELEASE();
}
