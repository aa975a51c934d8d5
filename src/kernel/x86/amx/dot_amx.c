/* A matrix product by tiles: blocking for the caches, and the order in which tiles and vectors
 * work.
 *
 * Measured on one virtual core of a Xeon (family 6, model 207; 2.9 GHz, 48 KB and 2 MB of cache),
 * nanoseconds of a unit of Q4_K: 32 rows of a super-block (256 k) by 16 tokens, each part alone in
 * the first cache.
 *
 *   products   18: 16 of two planes, 2 of minima; their loads run at the same time  125
 *              (20 cycles each; 16 where the operands are zero)
 *   C          6 tile stores of 5.8, which nothing hides                             35
 *   finish     512 sums, alone                                                       67
 *   planes     a super-block's, once for all tokens of a span                       240
 *   arranging  16 tokens of a super-block, once for all groups of a call            200
 *
 * With the finish between the products all of it takes some 200, and in the product of 512 tokens
 * 340: 15 for planes, 15 for arranging, the rest is activations that come from the second cache,
 * sums and y. So:
 *
 *   - A job's finish is done between the products of the next one, a quarter after each part, in
 *     one straight function: with calls between them a unit took 10 to 55 more.
 *   - Planes of one super-block (18 KB) stay in the first cache while all tokens of a span pass;
 *     their sums (32 KB) come from the second. Planes of four super-blocks at once for blocks of 64
 *     tokens, whose sums stay in the first cache, were slower (394 and 351).
 *   - Activations are not fetched ahead by software: 400 where 350 were taken without.
 *   - The next step's packed weights are fetched into the second cache a few lines after each part.
 *   - A call should have MANY_GROUPS groups. With one the arranging makes 620 of 340.
 *
 * Types with one plane (Q2_K, Q3_K) take 240 to 260. Blocks of 32 empty C each 32 k, 16 stores a
 * unit: 500.
 *
 * k goes in spans whose rearranged activations fit scratch, which should stay in the second cache
 * next to planes and weights (all of k, 1.3 MB, was slower). Rows without a token are zeros, so
 * that all tiles have one shape and are configured once. */
#include "kernel/x86/amx/amx.h"

enum {
    SPAN_TOKENS = 256 /* tokens whose products planes are built for */
};

/* Scratch of a call, 64-byte aligned. */
typedef struct workspace {
    float sums[SPAN_TOKENS * GROUP_ROWS];
    int32_t c[2][STEP_C]; /* products of this job, and of the one being finished */
    step_weights weights;
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
    int32_t n_blocks;           /* blocks of k */
    size_t act_row_bytes, group_bytes;
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

/* Address of the rearranged activations of token tile i, block b. */
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

/* Blocks of k in a step: the last one of blocks of 32 may have fewer. */
static int32_t blocks_of(const amx_job *p, const span *s, int32_t step)
{
    return smaller(p->step_blocks, s->b1 - s->b0 - step * p->step_blocks);
}

/* Address of the packed weights of a group's step; after the span's last one, the next group's. */
static const uint8_t *step_weights_at(const amx_job *p, const span *s, const uint8_t *group,
                                      int32_t step)
{
    int32_t block = s->b0 + step * p->step_blocks;
    if (block >= s->b1) {
        group += p->group_bytes;
        block = s->b0;
    }
    return group + (size_t)block * (size_t)p->weight_block_bytes;
}

/* The products of a step whose planes are there with all token tiles. */
static void step_multiply(const amx_job *p, const span *s, int32_t step, line_fetch fetch)
{
    workspace *space = p->space;
    tile_job jobs[2], *before = NULL;
    for (int32_t i = 0; i < token_tiles(s); i++) {
        tile_job *job = &jobs[i % 2];
        *job = (tile_job){
            .sums = space->sums + i * TILE_TOKENS * GROUP_ROWS,
            .c = space->c[i % 2],
            .acts = tile_acts(p, s, i, s->b0 + step * p->step_blocks),
            .weights = &space->weights,
            .n_parts = p->step_blocks == 1 ? STEP_PARTS : blocks_of(p, s, step),
        };
        p->type->job(job, before, &fetch);
        before = job;
    }
    for (int32_t t = 0; t < TILE_TOKENS; t += PART_TOKENS)
        p->type->finish(before, t);
}

/* Adds the products of one group to the sums of the span's tokens. */
static void group_multiply(const amx_job *p, const span *s, const uint8_t *group)
{
    int32_t n_steps = (s->b1 - s->b0 + p->step_blocks - 1) / p->step_blocks;
    int32_t parts = token_tiles(s) * STEP_PARTS;
    int32_t step_lines = p->step_blocks * p->weight_block_bytes / 64;
    for (int32_t step = 0; step < n_steps; step++) {
        p->type->build(&p->space->weights, step_weights_at(p, s, group, step),
                       blocks_of(p, s, step));
        line_fetch fetch = {.next = step_weights_at(p, s, group, step + 1),
                            .n_lines = (step_lines + parts - 1) / parts};
        step_multiply(p, s, step, fetch);
    }
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
        group_multiply(p, s, p->groups + (size_t)g * p->group_bytes);
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
    p.group_bytes = (size_t)p.n_blocks * (size_t)p.weight_block_bytes;
    /* The tiles' state is a thread's: taken here and given back, so that nothing else meets it and
     * the system has no 8 KB more to save on a switch. Both take some hundred cycles at most; the
     * smallest call multiplies 9 tokens by a group of rows, tens of thousands of cycles. */
    TILE_CONFIGURE(type->config);
    for (int32_t first = 0; first < n; first += SPAN_TOKENS) {
        span s = {.first = first, .last = smaller(n, first + SPAN_TOKENS)};
        int32_t steps = ACTS_BYTES / (token_tiles(&s) * p.step_blocks * p.tile_block_bytes);
        for (; s.b0 < p.n_blocks; s.b0 = s.b1) {
            s.b1 = smaller(p.n_blocks, s.b0 + steps * p.step_blocks);
            span_multiply(&p, &s, n_groups);
        }
    }
    TILE_RELEASE();
}

/* ---- The parts of a unit, each alone ---- */

enum { PART_ARRANGE, PART_PLANES, PART_PRODUCTS, PART_FINISH, PART_BOTH, N_PARTS };
static const char *const part_names[N_PARTS] = {"16 rows arranged", "planes", "products", "finish",
                                                "products, finish"};

static void part_round(const amx_type *type, int32_t part, workspace *space, int64_t round)
{
    const tile_job jobs[2] = {
        {space->sums, space->c[0], space->acts, &space->weights, STEP_PARTS},
        {space->sums, space->c[1], space->acts, &space->weights, STEP_PARTS},
    };
    const uint8_t *operand = space->acts + sizeof(tokens_256); /* zeros */
    line_fetch nothing = {0};
    switch (part) {
    case PART_ARRANGE:
        type->arrange(space->acts, operand, 0, TOKEN_TILE);
        type->arrange(space->acts, operand, TOKEN_TILE, TOKEN_TILE);
        return;
    case PART_PLANES:
        type->build(&space->weights, operand, STEP_PARTS);
        return;
    case PART_PRODUCTS:
        for (int32_t i = 0; i < STEP_PARTS; i++)
            type->multiply(space->c[0], space->acts, &space->weights, i);
        return;
    case PART_FINISH:
        for (int32_t t = 0; t < TILE_TOKENS; t += PART_TOKENS)
            type->finish(&jobs[0], t);
        return;
    default:
        type->job(&jobs[round % 2], &jobs[(round + 1) % 2], &nothing);
    }
}

const char *dot_part_amx(const amx_type *type, int32_t part, int64_t rounds, void *scratch)
{
    if (part >= N_PARTS)
        return NULL;
    memset(scratch, 0, AMX_SCRATCH_BYTES);
    TILE_CONFIGURE(type->config);
    for (int64_t i = 0; i < rounds; i++)
        part_round(type, part, scratch, i);
    TILE_RELEASE();
    return part_names[part];
}
