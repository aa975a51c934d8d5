/* A matrix product by tiles: blocking for the caches, and the order in which tiles and vectors
 * work.
 *
 * Costs, measured on one core of a Xeon at 3.4 GHz (cycles), everything in its first cache. A
 * unit is 32 rows of a super-block (256 k) by 16 tokens, here of Q4_K:
 *
 *   products   16 of 16 cycles; their 20 tile loads run at the same time            256
 *   C          4 tile stores of 15, which nothing hides                              60
 *   finish     512 sums: 384 vector operations on two ports, 176 loads              192
 *              (330 were measured with 256 loads: each half broadcast its own)
 *   planes     a super-block's, once for all tokens of a block                      650
 *   arranging  16 tokens of a super-block, once for all groups of a call            130
 *
 * Tiles and vectors work at the same time where all of it is in the first cache (48 KB): then
 * products with their stores hide the finish, and a unit takes 340 cycles, 39 % of the tiles' peak;
 * two planes allow 50 %. Four tile loads from the second cache wait 50 cycles more. So:
 *
 *   - A job's finish is done between the products of the next one, a quarter after each part.
 *   - Sums of BLOCK_TILES x 16 tokens (8 KB) stay in the first cache while a few super-blocks pass,
 *     with the planes of one (18 KB), two jobs' C (8 KB) and 16 tokens' activations (5 KB).
 *   - Planes are built for CHUNK_STEPS super-blocks at once, into the second cache, and serve all
 *     tokens of a span (256): 650 / 16 cycles a unit, and some 50 to fetch them again for each 64
 *     tokens. With up to 64 tokens, 650 / 4.
 *   - The next chunk's packed weights are fetched into the second cache a few lines after each
 *     part: in a burst before the planes they were slower (a prototype: 1.88 and 2.1 TOPS).
 *
 * That makes 340 + 40 + 50 cycles for a unit with 256 tokens, 340 + 160 with 64, and 340 + 650 with
 * 16, where avx512's vectors are as fast: see TILES_FROM. This is a prediction: no machine with AMX
 * has run this blocking yet. Types with one plane (Q2_K, Q3_K) are bound by their finish. Blocks of
 * 32 empty C each 32 k: two stores and 32 conversions there, 30 cycles and 50 of vectors, where the
 * tiles need 32 and their peak would be 16.
 *
 * k goes in spans whose rearranged activations fit scratch, which should stay in the second cache
 * (2 MB) next to planes and weights. Rows without a token are zeros, so that all tiles have one
 * shape and are configured once. */
#include "kernel/x86/amx/amx.h"

enum {
    SPAN_TOKENS = 256, /* whose products planes are built for */
    BLOCK_TILES = 4,   /* of 16 tokens: whose sums stay in the first cache */
    CHUNK_STEPS = 4    /* whose planes are built at once */
};

/* Scratch of a call, 64-byte aligned. */
typedef struct workspace {
    float sums[SPAN_TOKENS * GROUP_ROWS];
    int32_t c[2][STEP_C]; /* products of this job, and of the one being finished */
    step_weights weights[CHUNK_STEPS];
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

/* Some steps of a group whose planes are there, and the packed weights that come after them. */
typedef struct chunk {
    int32_t first, n;    /* steps */
    const uint8_t *next; /* to be fetched, a few lines after each part */
    int32_t n_lines;     /* after each */
} chunk;

/* Blocks of k in a step: the last one of blocks of 32 may have fewer. */
static int32_t blocks_of(const amx_job *p, const span *s, int32_t step)
{
    return smaller(p->step_blocks, s->b1 - s->b0 - step * p->step_blocks);
}

/* Builds the planes of a chunk from step `first` on. */
static chunk chunk_build(const amx_job *p, const span *s, const uint8_t *group, int32_t first)
{
    int32_t n_steps = (s->b1 - s->b0 + p->step_blocks - 1) / p->step_blocks;
    chunk c = {.first = first, .n = smaller(CHUNK_STEPS, n_steps - first)};
    int32_t step_bytes = p->step_blocks * p->weight_block_bytes;
    const uint8_t *at =
        group + (size_t)s->b0 * (size_t)p->weight_block_bytes + (size_t)first * (size_t)step_bytes;
    for (int32_t i = 0; i < c.n; i++, at += step_bytes)
        p->type->build(&p->space->weights[i], at, blocks_of(p, s, first + i));
    c.next = first + c.n < n_steps
                 ? at
                 : group + p->group_bytes + (size_t)s->b0 * (size_t)p->weight_block_bytes;
    int32_t parts = c.n * token_tiles(s) * STEP_PARTS;
    c.n_lines = (c.n * step_bytes / 64 + parts - 1) / parts;
    return c;
}

/* A job's products; after each part a quarter of the finish of the one before, and some of the
 * chunk's fetching. */
static void job_multiply(const amx_type *type, int32_t *products, const tile_job *job,
                         const tile_job *before, chunk *c)
{
    for (int32_t part = 0; part < STEP_PARTS; part++) {
        if (part < job->n_parts)
            type->multiply(products, job->acts, job->weights, part);
        for (int32_t i = 0; i < c->n_lines; i++, c->next += 64)
            _mm_prefetch((const char *)c->next, _MM_HINT_T1);
        int32_t from = part * (TILE_TOKENS / STEP_PARTS);
        int32_t to = smaller(from + TILE_TOKENS / STEP_PARTS, before->n_tokens);
        if (from < to)
            type->finish(before, from, to);
    }
}

/* The products of a chunk with token tiles first .. last - 1. */
static void block_multiply(const amx_job *p, const span *s, chunk *c, int32_t first, int32_t last)
{
    workspace *space = p->space;
    tile_job before = {0}; /* no tokens: nothing to finish */
    int32_t turn = 0;
    for (int32_t step = 0; step < c->n; step++)
        for (int32_t i = first; i < last; i++, turn ^= 1) {
            int32_t n_blocks = blocks_of(p, s, c->first + step);
            tile_job job = {
                .sums = space->sums + i * TILE_TOKENS * GROUP_ROWS,
                .c = space->c[turn],
                .acts = tile_acts(p, s, i, s->b0 + (c->first + step) * p->step_blocks),
                .weights = &space->weights[step],
                .n_tokens = smaller(TILE_TOKENS, s->last - s->first - i * TILE_TOKENS),
                .n_parts = p->step_blocks == 1 ? STEP_PARTS : n_blocks,
            };
            job_multiply(p->type, space->c[turn], &job, &before, c);
            before = job;
        }
    p->type->finish(&before, 0, before.n_tokens);
}

/* Adds the products of one group to the sums of the span's tokens. */
static void group_multiply(const amx_job *p, const span *s, const uint8_t *group)
{
    int32_t n_tiles = token_tiles(s);
    int32_t n_steps = (s->b1 - s->b0 + p->step_blocks - 1) / p->step_blocks;
    for (int32_t step = 0; step < n_steps; step += CHUNK_STEPS) {
        chunk c = chunk_build(p, s, group, step);
        for (int32_t first = 0; first < n_tiles; first += BLOCK_TILES)
            block_multiply(p, s, &c, first, smaller(n_tiles, first + BLOCK_TILES));
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
        {space->sums, space->c[0], space->acts, space->weights, TILE_TOKENS, STEP_PARTS},
        {space->sums, space->c[1], space->acts, space->weights, TILE_TOKENS, STEP_PARTS},
    };
    const uint8_t *operand = space->acts + sizeof(tokens_256); /* zeros */
    chunk nothing = {.n = 0};
    switch (part) {
    case PART_ARRANGE:
        type->arrange(space->acts, operand, 0, TOKEN_TILE);
        type->arrange(space->acts, operand, TOKEN_TILE, TOKEN_TILE);
        return;
    case PART_PLANES:
        type->build(space->weights, operand, STEP_PARTS);
        return;
    case PART_PRODUCTS:
        for (int32_t i = 0; i < STEP_PARTS; i++)
            type->multiply(space->c[0], space->acts, space->weights, i);
        return;
    case PART_FINISH:
        for (int32_t i = 0; i < TILE_TOKENS; i += TILE_TOKENS / STEP_PARTS)
            type->finish(&jobs[0], i, i + TILE_TOKENS / STEP_PARTS);
        return;
    default:
        job_multiply(type, space->c[round % 2], &jobs[round % 2], &jobs[(round + 1) % 2], &nothing);
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
