/* Buffers that blocks ask of a workspace: a block that only this test knows has its own buffers,
 * those of unlike blocks lie over each other, and what is planned is what is taken. */

#include "base/arena.h"
#include "model/block/block.h"
#include "support/scene.h"

enum { N_ROWS = 12, N_BYTES = 1000, N_PARTS = 3 };
enum { OWN_ROWS = BUFFER_OWN, OWN_BYTES, OWN_LASTING, OWN_UNUSED, OWN_NONE };

static void needs(buffer_needs *n)
{
    assert_int_equal(n->n_rows, N_ROWS);
    need_rows(n, OWN_ROWS, n->n_rows, n->shape->n_embd + 1);
    need_bytes(n, OWN_BYTES, N_BYTES);
    need_lasting(n, OWN_LASTING, N_BYTES);
    need_bytes(n, OWN_UNUSED, 0);
    need_acts(n, n->n_rows, n->shape->layer[0].n_ff, N_PARTS);
}

static const block_class own_block = {.name = "own", .needs = needs};
static const block_class plain_block = {.name = "plain"};
static const model_shape shape = {
    .n_layers = 1,
    .n_embd = 64,
    .n_vocab = 100,
    .attention = {{.n_heads = 2, .n_heads_kv = 1, .head_dim = 32, .v_dim = 32}},
    .n_attentions = 1,
    .layer = {{.n_ff = 128}}};
static const workspace_limits limits = {.max_rows = N_ROWS - 2,
                                        .max_deferred = 2,
                                        .max_logit_rows = 4,
                                        .max_groups = 2,
                                        .max_pending = 8,
                                        .n_slots = 64,
                                        .n_threads = 2,
                                        .n_attending = 1};

typedef struct made {
    arena memory;
    workspace ws;
} made;

/* Plans a workspace and takes it. */
static void make(made *m, const block_list *blocks)
{
    size_t bytes = workspace_bytes(&shape, blocks, &limits);
    MUST(arena_init, &m->memory, bytes, false);
    workspace_init(&m->ws, &shape, blocks, &limits, &m->memory);
    assert_int_equal(m->memory.used_bytes, bytes);
    MUST(arena_check, &m->memory);
}

/* Buffer `own` of the i-th kind of block. */
static const workspace_buffer *buffer_of(const made *m, int32_t i, int32_t own)
{
    return &m->ws.buffer[i * BLOCK_BUFFERS + own];
}

static void fill(const workspace_buffer *b, int with)
{
    memset(b->at, with, b->bytes);
}

static bool has(const workspace_buffer *b, int all)
{
    const uint8_t *at = b->at;
    for (size_t i = 0; i < b->bytes; i++)
        if (at[i] != all)
            return false;
    return true;
}

TEST(a_block_gets_what_it_asks_for)
{
    const block_list blocks = {.class = {&ends_block, &plain_block, &own_block}, .n = 3};
    made m;
    make(&m, &blocks);
    const workspace_buffer *rows = buffer_of(&m, 2, OWN_ROWS), *bytes = buffer_of(&m, 2, OWN_BYTES),
                           *lasting = buffer_of(&m, 2, OWN_LASTING);
    assert_int_equal(rows->ld, row_stride(shape.n_embd + 1));
    assert_int_equal(rows->bytes, N_ROWS * (size_t)row_stride(shape.n_embd + 1) * sizeof(float));
    assert_int_equal(bytes->bytes, N_BYTES);
    assert_null(buffer_of(&m, 2, OWN_UNUSED)->at);
    assert_null(buffer_of(&m, 2, OWN_NONE)->at);
    assert_true(has(lasting, 0));
    fill(rows, 1);
    fill(bytes, 2);
    fill(lasting, 3);
    memset(m.ws.x, 4, N_ROWS * (size_t)row_stride(shape.n_embd) * sizeof(float));
    for (int kind = 0; kind < ACT_KINDS; kind++)
        memset(m.ws.acts[kind], 5,
               act_bytes((act_kind)kind, N_ROWS, shape.layer[0].n_ff) + N_PARTS * 64);
    assert_true(has(rows, 1) && has(bytes, 2) && has(lasting, 3));
    assert_int_equal((uintptr_t)bytes->at % 64, 0);
    arena_free(&m.memory);
}

TEST(blocks_lie_over_each_other)
{
    const block_list few = {.class = {&ends_block, &feed_forward_block, &attention_block}, .n = 3};
    const block_list more = {
        .class = {&ends_block, &feed_forward_block, &attention_block, &own_block}, .n = 4};
    made a, b;
    make(&a, &few);
    make(&b, &more);
    assert_int_equal(b.memory.used_bytes - a.memory.used_bytes,
                     arena_size(N_BYTES) + ACT_KINDS * N_PARTS * 64);
    fill(buffer_of(&b, 3, OWN_LASTING), 1);
    fill(buffer_of(&b, 2, ATTEND_SCRATCH), 2);
    fill(buffer_of(&b, 3, OWN_ROWS), 3);
    assert_ptr_equal(buffer_of(&b, 3, OWN_ROWS)->at, buffer_of(&b, 1, FFN_GATE)->at);
    fill(buffer_of(&b, 1, FFN_GATE), 4);
    assert_false(has(buffer_of(&b, 3, OWN_ROWS), 3));
    assert_true(has(buffer_of(&b, 3, OWN_LASTING), 1));
    assert_true(has(buffer_of(&b, 2, ATTEND_SCRATCH), 2));
    arena_free(&a.memory);
    arena_free(&b.memory);
}
