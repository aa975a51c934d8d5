/* Attention divided between clusters and devices: which unit is given what at a boundary, that each
 * block is computed once, and that a row has the same bits wherever the boundary is, whichever unit
 * does what in whatever order, also when a device fails. */
#include "support/faults/fake_device.h"
#include "support/scene.h"
#include "unit/attend_split.h"
#include "unit/unit_words.h"
#include "unit/units.h"

static unit_set *open_set(const char *text, const drey_unit_shares *shares)
{
    unit_words w;
    unit_set *us = NULL;
    MUST(unit_words_parse, &w, text, &fake_device, 0);
    MUST(units_open, &us, &w, kernel_select_shape("ref", 0), shares);
    return us;
}

/* ---- Boundaries ---- */

TEST(between_contexts)
{
    static const int32_t contexts[] = {0, 100, 400, 1000};
    static const float boundary[] = {-0.5f, -0.25f, 0, 0.75f};
    assert_near(boundary_at(contexts, boundary, 4, 0), -0.5, 0);
    assert_near(boundary_at(contexts, boundary, 4, 250), -0.125, 1e-12);
    assert_near(boundary_at(contexts, boundary, 4, 600), 0.25, 1e-12);
    assert_near(boundary_at(contexts, boundary, 4, 9000), 0.75, 0);
    assert_near(boundary_at(contexts + 3, boundary + 3, 1, 5), 0.75, 0);
}

/* A tail counts as two blocks. With 1280 positions, 20 blocks, a fifth of all is 4.4: the tail
 * and 2.4 of 20; a twentieth is 1.1, 0.55 of the tail. */
TEST(from_shares)
{
    unit_set *us = open_set("cpu=4+cpu=1", NULL);
    assert_near(units_boundary(us, 1, 1280, false), 0.12, 1e-9);
    assert_near(units_boundary(us, 1, 1280 + 63, false), 0.12, 1e-9);
    units_close(&us);
    us = open_set("cpu=19+cpu=1", NULL);
    assert_near(units_boundary(us, 64, 1280, false), -0.45, 1e-9);
    units_close(&us);
    us = open_set("cpu=1+cpu=0", NULL);
    assert_near(units_boundary(us, 1, 1280, false), -1, 0);
    units_close(&us);
    us = open_set("cpu=0+cpu=1", NULL);
    assert_near(units_boundary(us, 1, 1280, false), 1, 1e-9);
    units_close(&us);

    drey_unit_shares measured = {.n_units = 2, .n_boundaries = 3, .boundary = {-0.5f, 0, 0.5f}};
    for (int w = 0; w < DREY_UNIT_WIDTHS; w++)
        measured.share[w][0] = measured.share[w][1] = 1;
    us = open_set("cpu+cpu", &measured);
    assert_near(units_boundary(us, 1, 100, false), -0.5, 0);
    assert_near(units_boundary(us, 1, 640, false), -0.25, 1e-9); /* of 256 and 1024 */
    assert_near(units_boundary(us, 1, 2560, false), 0.25, 1e-9);
    assert_near(units_boundary(us, 1, 100000, false), 0.5, 0);
    units_close(&us);
    us = open_set("cpu=4+cpu=1", &measured); /* what was said counts */
    assert_near(units_boundary(us, 1, 1280, false), 0.12, 1e-9);
    units_close(&us);
}

static void ends_with(const unit_set *us, int32_t slot, double boundary, bool devices, double dense,
                      double tail)
{
    double got_dense, got_tail;
    units_attend_end(us, slot, 1, boundary, devices, &got_dense, &got_tail);
    assert_near(got_dense, dense, 1e-9);
    assert_near(got_tail, tail, 1e-9);
}

static void ends_are(const unit_set *us, int32_t slot, double boundary, double dense, double tail)
{
    ends_with(us, slot, boundary, false, dense, tail);
}

TEST(parts_of_threads)
{
    unit_set *us = open_set("cpu=3+cpu=1/threads=2+cpu=4/threads=2", NULL);
    ends_are(us, 0, 0, 0.75, 0); /* the wide ones by their shares, the last one all tails */
    ends_are(us, 1, 0, 0.875, 0);
    ends_are(us, 2, 0, 1, 0);
    ends_are(us, 3, 0, 1, 0.5);
    ends_are(us, 4, 0, 1, 1);
    ends_are(us, 0, 0.5, 0.375, 0);
    ends_are(us, 2, 0.5, 0.5, 0);
    ends_are(us, 3, 0.5, 0.75, 0.5);
    ends_are(us, 4, 0.5, 1, 1);
    ends_are(us, 0, -0.4, 0.75, 0.3);
    ends_are(us, 2, -0.4, 1, 0.4);
    ends_are(us, 3, -0.4, 1, 0.7);
    ends_are(us, 4, -1, 1, 1);
    units_close(&us);
    us = open_set("cpu=0+cpu=0+cpu=1", NULL); /* alike, where there is nothing to go by */
    ends_are(us, 0, 0, 0.5, 0);
    ends_are(us, 1, 0, 1, 0);
    units_close(&us);
}

/* Devices come first, by their shares among the wide units, and have no tails. */
TEST(parts_of_devices)
{
    int32_t slot[8];
    unit_set *us = open_set("cpu=3+cpu=2/threads=2+fake=1+fake:plain=9", NULL);
    assert_int_equal(units_n_attending(us), 1);
    assert_string_equal(us->unit[3].no_attention, "the fake device is plain");
    assert_int_equal(units_attend_workers(us, true, slot), 4);
    assert_true(slot[0] == 3 && slot[1] == 0 && slot[2] == 1 && slot[3] == 2);
    assert_int_equal(units_attend_workers(us, false, slot), 3);
    assert_true(slot[0] == 0 && slot[2] == 2);
    ends_with(us, 3, 0.2, true, 0.2, 0); /* a quarter of four fifths */
    ends_with(us, 0, 0.2, true, 0.8, 0);
    ends_with(us, 1, 0.2, true, 0.9, 0.5);
    ends_with(us, 2, 0.2, true, 1, 1);
    ends_with(us, 3, -0.4, true, 0.25, 0);
    ends_with(us, 0, -0.4, true, 1, 0.4);
    ends_with(us, 2, -0.4, true, 1, 1);
    ends_with(us, 0, 0.2, false, 0.8, 0);
    assert_near(units_boundary(us, 1, 1280, true), (22 / 3. - 2) / 20, 1e-9); /* 2 of 6 */
    assert_near(units_boundary(us, 1, 1280, false), (22 * 0.4 - 2) / 20, 1e-9);
    const drey_error lost = {.message = "lost"};
    units_fail(us, 3, &lost);
    assert_int_equal(units_n_attending(us), 0);
    units_close(&us);
    us = open_set("cpu=1/threads=1+fake=1", NULL); /* all tails are the one cluster's */
    ends_with(us, 1, -0.5, true, 1, 0);
    ends_with(us, 0, -0.5, true, 1, 1);
    ends_with(us, 1, 0.3, true, 0.7, 0);
    units_close(&us);
    us = open_set("cpu=1/threads=1+fake=0", NULL);
    assert_near(units_boundary(us, 1, 1280, true), 1, 1e-9);
    ends_with(us, 1, 0.5, true, 0.5, 0);
    units_close(&us);
    us = open_set("cpu=1/threads=1+fake:deaf=1", NULL);
    assert_int_equal(units_n_attending(us), 1);
    units_lend(us, slot, sizeof slot, 1);
    assert_int_equal(units_n_attending(us), 0);
    assert_non_null(strstr(us->unit[1].no_attention, "takes no loans"));
    units_leave_attention(us, "the model is another"); /* the device's own reason stays */
    assert_non_null(strstr(us->unit[1].no_attention, "takes no loans"));
    units_close(&us);
    us = open_set("cpu=1/threads=1+fake=1", NULL);
    units_leave_attention(us, "the model is another");
    assert_int_equal(units_n_attending(us), 0);
    assert_string_equal(us->unit[1].no_attention, "the model is another");
    units_close(&us);
}

/* ---- A layer ---- */

enum { HEADS = 3, N_Q = 2, DIM = 32, ROWS = 21, WIDTH = HEADS * N_Q * DIM, MOST_PREFIX = 900 };
enum { SLOTS = MOST_PREFIX + ROWS, PARTIALS = 200000 };

typedef struct scene {
    kv_format format;
    size_t head_bytes;
    uint8_t *keys, *values;
    float *q, *want, *out, *partials; /* [ROWS][WIDTH]; [PARTIALS] */
    int32_t n_prefix[ROWS], n_path[ROWS], path[ROWS * ROWS];
    void *scratch;
    attend_layer layer;
} scene;

static void *must_alloc(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(p);
    memset(p, 0, bytes);
    return p;
}

/* Rows with random parents after a prefix; or, as a chain, each in its place. */
static void place(scene *s, rng *r, int32_t n_prefix, bool chain)
{
    for (int32_t row = 0; row < ROWS; row++) {
        int32_t *path = s->path + row * ROWS;
        int32_t parent = rng_below(r, row + 1) - 1;
        s->n_prefix[row] = chain ? n_prefix + row + 1 : n_prefix;
        s->n_path[row] = chain ? 0 : parent < 0 ? 1 : s->n_path[parent] + 1;
        if (parent >= 0)
            memcpy(path, s->path + parent * ROWS, ROWS * sizeof *path);
        if (!chain)
            path[s->n_path[row] - 1] = n_prefix + row;
    }
}

static void fill(scene *s, rng *r)
{
    const kernel_table *ref = kernel_select("ref");
    for (int32_t slot = 0; slot < SLOTS * HEADS; slot++) {
        float x[2][DIM];
        size_t at = (size_t)(slot % HEADS) * s->head_bytes;
        for (int32_t i = 0; i < 2 * DIM; i++)
            x[i / DIM][i % DIM] = (float)(4 * rng_unit(r) - 2);
        kv_store_key(ref, s->format, s->keys + at, slot / HEADS, x[0], DIM, s->scratch);
        kv_store_value(ref, s->format, s->values + at, slot / HEADS, x[1], DIM, s->scratch);
    }
    for (int32_t i = 0; i < ROWS * WIDTH; i++)
        s->q[i] = (float)(4 * rng_unit(r) - 2);
}

static attend_layer layer_of(scene *s, float *out, int32_t n_threads)
{
    return (attend_layer){.head = {.kernels = kernel_select("ref"),
                                   .format = s->format,
                                   .k_dim = DIM,
                                   .v_dim = DIM,
                                   .n_q = N_Q,
                                   .n_rows = ROWS,
                                   .scale = 0.2f,
                                   .keys = s->keys,
                                   .values = s->values,
                                   .n_prefix = s->n_prefix,
                                   .n_path = s->n_path,
                                   .path = s->path,
                                   .path_ld = ROWS,
                                   .q = s->q,
                                   .out = out,
                                   .q_ld = WIDTH,
                                   .out_ld = WIDTH},
                          .key_bytes = s->head_bytes,
                          .value_bytes = s->head_bytes,
                          .n_heads = HEADS,
                          .n_threads = n_threads,
                          .partials = s->partials,
                          .n_partials = PARTIALS};
}

static void scene_make(scene *s, kv_format format, int32_t n_prefix, bool chain, uint64_t seed)
{
    rng r = rng_from(seed);
    *s = (scene){.format = format, .head_bytes = kv_head_bytes(format, SLOTS, DIM)};
    s->keys = must_alloc(HEADS * s->head_bytes);
    s->values = must_alloc(HEADS * s->head_bytes);
    s->q = must_alloc(ROWS * WIDTH * sizeof(float));
    s->want = must_alloc(ROWS * WIDTH * sizeof(float));
    s->out = must_alloc(ROWS * WIDTH * sizeof(float));
    s->partials = must_alloc(PARTIALS * sizeof(float));
    s->scratch = must_alloc(attend_scratch_bytes(DIM, DIM, false));
    place(s, &r, n_prefix, chain);
    fill(s, &r);
    attend_layer l = layer_of(s, s->want, 1);
    l.n_partials = 0;
    attend_cut(&l);
    attend_work(&l, s->scratch);
}

static void scene_free(scene *s)
{
    free(s->keys);
    free(s->values);
    free(s->q);
    free(s->want);
    free(s->out);
    free(s->partials);
    free(s->scratch);
}

/* Blocks of each task are given away once each, and its tail, or all of it at once. */
static void check_pieces(const attend_split *p, const attend_layer *l, int32_t *n_dense,
                         int32_t *n_tails)
{
    int32_t blocks[SPLIT_TASKS] = {0}, tails[SPLIT_TASKS] = {0}, pieces[SPLIT_TASKS] = {0};
    const int32_t n_slots = p->units->n_workers, n_devices = n_slots - p->units->n_threads;
    for (int32_t k = 0; k < n_slots; k++) {
        const int32_t slot = (k + n_slots - n_devices) % n_slots; /* in the order of their parts */
        n_dense[slot] = n_tails[slot] = 0;
        for (int32_t i = 0; i < p->queue[slot].n; i++) {
            const split_piece *x = &p->queue[slot].piece[i];
            const int32_t n = x->to - x->from;
            if (x->kind == SPLIT_DENSE)
                assert_int_equal(x->from, blocks[x->task]);
            else
                assert_true(slot < p->units->n_threads);
            blocks[x->task] += n;
            n_dense[slot] += n;
            n_tails[slot] += x->kind != SPLIT_DENSE;
            tails[x->task] += x->kind != SPLIT_DENSE;
            pieces[x->task]++;
        }
    }
    for (int32_t task = 0; task < l->n_tasks; task++) {
        int32_t first, last;
        attention a = attend_task(l, task, &first, &last);
        assert_int_equal(blocks[task], attend_dense_blocks(&a, first, last));
        assert_int_equal(tails[task], 1);
        assert_int_equal(pieces[task], atomic_load(&p->task[task].left));
    }
}

static void compare(const scene *s, const char *units, double boundary)
{
    for (int32_t i = 0; i < ROWS * WIDTH; i++)
        if (memcmp(&s->out[i], &s->want[i], sizeof(float)) != 0)
            fail_msg("%s, boundary %g, format %d, %d positions: row %d has other bits", units,
                     boundary, (int)s->format, s->n_prefix[0], i / WIDTH);
}

/* Does each worker's part when it is its turn. */
static void work_in_order(attend_split *p, const int32_t *order, void *scratch)
{
    const unit_set *us = p->units;
    for (int32_t i = 0; i < us->n_workers; i++) {
        if (order[i] < us->n_threads)
            attend_split_work(p, order[i], scratch);
        else
            attend_split_drive(p, order[i], scratch);
    }
    if (!attend_split_left(p))
        return;
    for (int32_t i = 0; i < us->n_workers; i++)
        if (order[i] < us->n_threads)
            attend_split_work(p, order[i], scratch);
}

/* n_dense: [slots], as they were given. */
static void split_at(scene *s, const char *text, float boundary, size_t n_partials, rng *r,
                     int32_t *n_dense)
{
    unit_set *us = open_set(text, NULL);
    attend_split *p = must_alloc(attend_split_bytes(us->n_workers));
    attend_layer l = layer_of(s, s->out, us->n_threads);
    int32_t n_tails[8], order[8];
    l.n_partials = n_partials;
    units_set_boundaries(us, &boundary, 1);
    units_lend(us, s->keys, s->head_bytes, HEADS);
    units_lend(us, s->values, s->head_bytes, HEADS);
    attend_cut(&l);
    assert_true(attend_split_cut(p, us, &l, true));
    check_pieces(p, &l, n_dense, n_tails);
    memset(s->out, 0xff, ROWS * WIDTH * sizeof *s->out);
    memset(s->partials, 0xff, PARTIALS * sizeof *s->partials);
    for (int32_t i = 0; i < us->n_workers; i++) {
        int32_t k = rng_below(r, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    work_in_order(p, order, s->scratch);
    compare(s, text, (double)boundary);
    units_take_back(us, s->keys);
    units_take_back(us, s->values);
    free(p);
    units_close(&us);
}

TEST(same_bits)
{
    static scene s;
    char mixed[64];
    snprintf(mixed, sizeof mixed, "cpu=3/%s+cpu=1/ref", drey_cpu_tiers()[0]);
    const char *const units[] = {"cpu+cpu+static", "cpu=4+cpu=1/slow=2", mixed,
                                 "cpu=2/threads=3+cpu=1+cpu=1/threads=2+static"};
    static const int32_t prefixes[] = {256, 400, 640, 899};
    int32_t n_dense[8];
    rng r = rng_from(5);
    for (int i = 0; i < 4; i++) {
        scene_make(&s, (kv_format)(i % 3), prefixes[i], i == 1, 7 + (uint64_t)i);
        for (int k = -4; k <= 4; k++)
            for (int u = k & 1; u < 4; u += 2)
                split_at(&s, units[u], (float)k / 4, i % 2 || k > 2 ? PARTIALS : 3000u << (k + 4),
                         &r, n_dense);
        scene_free(&s);
    }
}

/* With devices, which work well or fail at the first or the second asking. */
TEST(same_bits_with_devices)
{
    static scene s;
    static const char *const units[] = {
        "cpu/threads=1+fake+static",  "cpu=1/threads=2+fake=2",
        "cpu=1+cpu=2+fake=3",         "cpu=1/threads=1+fake:attend1=3+static",
        "cpu/threads=2+fake:attend2", "cpu+cpu+fake:attend1+fake"};
    int32_t n_dense[8], n_of_devices = 0;
    rng r = rng_from(6);
    for (int i = 0; i < 3; i++) {
        scene_make(&s, (kv_format)i, 400 + 240 * i, i == 1, 17 + (uint64_t)i);
        for (int k = -4; k <= 4; k++)
            for (int u = 0; u < 6; u++) {
                memset(n_dense, 0, sizeof n_dense);
                split_at(&s, units[u], (float)k / 4, i || k > 2 ? PARTIALS : 3000u << (k + 4), &r,
                         n_dense);
                n_of_devices += n_dense[u == 0 || u == 3 ? 1 : 2];
            }
        scene_free(&s);
    }
    assert_true(n_of_devices > 100);
}

/* 640 positions are 10 blocks, of 3 heads and a range of rows each. */
TEST(who_has_what)
{
    static scene s;
    scene_make(&s, KV_F16, 640, false, 3);
    unit_set *us = open_set("cpu=1+cpu=1+static", NULL);
    attend_split *p = must_alloc(attend_split_bytes(2));
    attend_layer l = layer_of(&s, s.out, 2);
    attend_cut(&l);
    const int32_t tasks = l.n_tasks, blocks = 10 * tasks;
    static const float at[] = {0, 0.5f, 1, -1};
    const int32_t want[][4] = {{blocks, 0, 0, tasks}, /* dense, tails of both */
                               {blocks / 2, 0, blocks / 2, tasks},
                               {0, 0, blocks, tasks},
                               {blocks, tasks, 0, 0}};
    for (int i = 0; i < 4; i++) {
        int32_t n_dense[2], n_tails[2];
        units_set_boundaries(us, &at[i], 1);
        assert_true(attend_split_cut(p, us, &l, false));
        check_pieces(p, &l, n_dense, n_tails);
        assert_int_equal(n_tails[0], want[i][1]);
        assert_int_equal(n_tails[1], want[i][3]);
        assert_in_range(n_dense[0], want[i][0] > 5 ? want[i][0] - 5 : 0, want[i][0]);
        assert_in_range(n_dense[1], want[i][2], want[i][2] + 5);
    }
    l.n_partials = 0; /* no room: tasks stay whole */
    int32_t n_dense[2], n_tails[2];
    units_set_boundaries(us, at, 1);
    assert_true(attend_split_cut(p, us, &l, false));
    check_pieces(p, &l, n_dense, n_tails);
    assert_true(n_dense[0] == blocks && n_tails[0] == tasks);
    free(p);
    units_close(&us);
    us = open_set("cpu/threads=2", NULL);
    p = must_alloc(attend_split_bytes(2));
    assert_false(attend_split_cut(p, us, &l, false)); /* nobody to divide with */
    free(p);
    units_close(&us);
    scene_free(&s);
    scene_make(&s, KV_F16, 255, false, 3); /* three blocks are too few */
    us = open_set("cpu+cpu", NULL);
    p = must_alloc(attend_split_bytes(2));
    l = layer_of(&s, s.out, 2);
    attend_cut(&l);
    assert_false(attend_split_cut(p, us, &l, false));
    free(p);
    units_close(&us);
    scene_free(&s);
}

/* One cluster and a device: what is dense goes to the device, what is not to the cluster. */
TEST(what_devices_have)
{
    static scene s;
    int32_t n_dense[2], n_tails[2];
    scene_make(&s, KV_F16, 640, false, 3);
    unit_set *us = open_set("cpu=1/threads=1+fake=1+static", NULL);
    attend_split *p = must_alloc(attend_split_bytes(2));
    attend_layer l = layer_of(&s, s.out, 1);
    attend_cut(&l);
    const int32_t tasks = l.n_tasks, blocks = 10 * tasks;
    static const float at[] = {-1, 0, 0.5f, 1};
    const int32_t of_device[] = {blocks, blocks, blocks / 2, 0};
    for (int i = 0; i < 4; i++) {
        units_set_boundaries(us, &at[i], 1);
        assert_true(attend_split_cut(p, us, &l, true));
        check_pieces(p, &l, n_dense, n_tails);
        assert_true(n_tails[0] == tasks && n_tails[1] == 0);
        assert_in_range(n_dense[1], of_device[i] > 5 ? of_device[i] - 5 : 0, of_device[i]);
    }
    assert_false(attend_split_cut(p, us, &l, false)); /* nothing is lent to it */
    l.head.cap = 30;                                  /* it knows no caps */
    assert_false(attend_split_cut(p, us, &l, true));
    l.head.cap = 0;
    l.n_partials = 0; /* no room: the cluster has all */
    units_set_boundaries(us, at, 1);
    assert_true(attend_split_cut(p, us, &l, true));
    check_pieces(p, &l, n_dense, n_tails);
    assert_true(n_dense[0] == blocks && n_tails[0] == tasks);
    free(p);
    units_close(&us);
    scene_free(&s);
}
