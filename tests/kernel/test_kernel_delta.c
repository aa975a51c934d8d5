/* Operations of running states: every tier that runs here has the bits of the scalar reference; the
 * block form is as exact as steps in double; and a row of a tree has the bits of its path alone. */
#include <math.h>

#include "kernel/delta.h"
#include "kernel/kernel_test.h"

/* ---- Every operation on every tier ---- */

#define OPERATION(op) DELTA_##op,
typedef enum operation { KERNEL_DELTA(OPERATION) N_OPERATIONS } operation;
#undef OPERATION
#define OPERATION(op) #op,
static const char *const names[] = {KERNEL_DELTA(OPERATION)};
#undef OPERATION

enum { MOST = 16 }; /* rows, and rows before one */

/* Operands, each of which ends where its memory does. n: rows, or rows before one. */
typedef struct operands {
    guarded x, s, v, past[MOST], k[MOST];
    float exponent[MOST + 1], kk[MOST + 1];
    int32_t n, k_dim, v_dim, round;
} operands;

static void fill(guarded *g, int64_t n)
{
    *g = guard_alloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++)
        ((float *)g->data)[i] = random_bits() % 64 == 0 ? 0 : uniform(-2, 2);
}

static void operands_init(operands *o, int32_t n, int32_t k_dim, int32_t v_dim, int round)
{
    static const float bottom[] = {-1e-4f, -3, -90, -1e5f};
    *o = (operands){.n = n, .k_dim = k_dim, .v_dim = v_dim, .round = round};
    fill(&o->x, (int64_t)2 * MOST * k_dim);
    fill(&o->s, (int64_t)k_dim * v_dim);
    fill(&o->v, 3 * v_dim);
    for (int32_t t = 0; t < MOST; t++)
        fill(&o->past[t], v_dim), fill(&o->k[t], k_dim);
    for (int32_t t = 0; t <= MOST; t++) {
        o->exponent[t] = uniform(bottom[round % 4], 0);
        o->kk[t] = uniform(-1, 1);
    }
}

static void operands_free(operands *o)
{
    guard_free(&o->x), guard_free(&o->s), guard_free(&o->v);
    for (int32_t t = 0; t < MOST; t++)
        guard_free(&o->past[t]), guard_free(&o->k[t]);
}

static void run_row(void (*of)(const delta_row *row), const operands *o, const float *const *past,
                    float *y)
{
    const float *v = o->v.data;
    of(&(delta_row){.u = v,
                    .w = v + o->v_dim,
                    .v = v + 2 * o->v_dim,
                    .exponent = o->exponent + MOST - o->n,
                    .kk = o->kk + MOST - o->n,
                    .qk = o->kk,
                    .past = past,
                    .beta = 0.7f,
                    .skip = -0.3f,
                    .n = o->n,
                    .v_dim = o->v_dim,
                    .d = y,
                    .out = y + o->v_dim});
}

/* Runs it. Returns how many numbers it has written. */
static int64_t run(operation op, const delta_kernel *k, const operands *o, float *y)
{
    const float *x = o->x.data, *s = o->s.data, *past[MOST], *keys[MOST];
    for (int32_t t = 0; t < MOST; t++)
        past[t] = o->past[t].data, keys[t] = o->k[t].data;
    switch (op) {
    case DELTA_conv:
        k->conv(y,
                &(conv_taps){.x = keys,
                             .w = x,
                             .ld = o->k_dim,
                             .bias = o->round % 3 ? NULL : x,
                             .n_taps = 3 + o->round % 2,
                             .silu = o->round < 3},
                o->k_dim);
        return o->k_dim;
    case DELTA_unit:
        k->unit(y, keys[0], o->k_dim, 1e-6f, 0.25f);
        return o->k_dim;
    case DELTA_gated_norm:
        k->gated_norm(y, keys[0], keys[1], keys[2], o->k_dim, 1e-6f);
        return o->k_dim;
    case DELTA_rows:
        k->rows(y, o->v_dim, x, o->k_dim, 2 * o->n, s, o->k_dim, o->v_dim);
        return (int64_t)2 * o->n * o->v_dim;
    case DELTA_dots:
        k->dots(y, x, keys, o->n, o->k_dim);
        return o->n;
    case DELTA_join:
    case DELTA_scan:
        run_row(op == DELTA_scan ? k->scan : k->join, o, past, y);
        return 2 * o->v_dim;
    case DELTA_end:
        memcpy(y, s, o->s.size_bytes);
        k->end(y, o->round % 2 ? y : s,
               &(delta_records){.k = keys,
                                .d = past,
                                .exponent = o->exponent + MOST - o->n,
                                .n = o->n,
                                .k_dim = o->k_dim,
                                .v_dim = o->v_dim});
        return (int64_t)o->k_dim * o->v_dim;
    case N_OPERATIONS:
        fail_msg("no operation");
    }
    return 0;
}

static void check(operation op, const operands *o)
{
    const size_t most = (size_t)(o->k_dim + 2 * MOST) * (size_t)(o->v_dim + 1) * sizeof(float);
    guarded want = guard_alloc(most);
    const int64_t n = run(op, &delta_ref, o, want.data);
    guarded got = guard_alloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++)
        assert_true(isfinite(((const float *)want.data)[i]));
    FOR_EACH_TIER(t)
    {
        memset(got.data, 0xff, got.size_bytes);
        run(op, t->delta, o, got.data);
        if (memcmp(got.data, want.data, got.size_bytes) != 0 || !guard_intact(&got))
            fail_msg(
                "%s of %d rows, %d x %d, on %s differs from ref, round %d, or wrote before its "
                "output",
                names[op], (int)o->n, (int)o->k_dim, (int)o->v_dim, t->tier, (int)o->round);
    }
    guard_free(&want), guard_free(&got);
}

TEST(test_every_operation)
{
    static const int32_t dims[][2] = {{1, 1},   {3, 7},   {8, 16},   {16, 15},   {17, 33},
                                      {32, 64}, {64, 48}, {128, 96}, {128, 128}, {65, 145}};
    for (size_t d = 0; d < COUNT_OF(dims); d++)
        for (int32_t n = 1; n <= MOST; n += n < 4 ? 1 : 4 - n % 4 + 3 * (n % 4 == 0)) {
            operands o;
            operands_init(&o, n, dims[d][0], dims[d][1], (int)(d + (size_t)n) % 5);
            for (operation op = 0; op < N_OPERATIONS; op++)
                if ((op != DELTA_join && op != DELTA_scan) || n < DELTA_BLOCK)
                    check(op, &o);
            operands_free(&o);
        }
}

/* ---- The reference against the definitions, in double ---- */

static double silu(double x)
{
    return x / (1 + exp(-x));
}

TEST(test_small_definitions)
{
    enum { N = 40 };
    float x[4][N], w[4][N], b[N], y[N];
    double square = 0;
    for (int i = 0; i < N; i++) {
        for (int t = 0; t < 4; t++)
            x[t][i] = uniform(-2, 2), w[t][i] = uniform(-1, 1);
        b[i] = uniform(-1, 1);
        square += (double)x[0][i] * (double)x[0][i];
    }
    const conv_taps taps = {.x = (const float *[]){x[0], x[1], x[2], x[3]},
                            .w = w[0],
                            .ld = N,
                            .bias = b,
                            .n_taps = 4,
                            .silu = true};
    delta_ref.conv(y, &taps, N);
    for (int i = 0; i < N; i++) {
        double sum = (double)b[i];
        for (int t = 0; t < 4; t++)
            sum += (double)x[t][i] * (double)w[t][i];
        assert_true(fabs((double)y[i] - silu(sum)) < 2e-6);
    }
    delta_ref.unit(y, x[0], N, 1e-6f, 0.5f);
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)y[i] - 0.5 * (double)x[0][i] / sqrt(square + 1e-6)) < 1e-6);
    delta_ref.gated_norm(y, x[0], x[1], x[2], N, 1e-6f);
    for (int i = 0; i < N; i++) {
        const double scale = 1 / sqrt(square / N + 1e-6);
        const double want = (double)x[0][i] * scale * (double)x[1][i] * silu((double)x[2][i]);
        assert_true(fabs((double)y[i] - want) < 1e-5);
    }
}

/* ---- Rows of one head ---- */

enum { DIM = 128 };

typedef struct head_row {
    float q[DIM], k[DIM], v[DIM], d[DIM], out[DIM];
    double g, decay; /* its log decay; the sum of those since its block began */
    float beta;
    int parent, position;
} head_row;

static double normal(void)
{
    const double u = (double)uniform(1e-6f, 1), v = (double)uniform(0, 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static void scale_to(float *x, double length)
{
    double square = 0;
    for (int i = 0; i < DIM; i++)
        square += (double)x[i] * (double)x[i];
    for (int i = 0; i < DIM; i++)
        x[i] = (float)((double)x[i] / sqrt(square) * length);
}

/* Says how alike keys are, how strong decays and weights, and how many rows in a hundred have a
 * decay of -90 instead. */
typedef struct head_kind {
    const char *name;
    double decay, same, beta;
    int n_strong;
    double bound; /* most that an output may be off */
} head_kind;

static void fill_row(head_row *r, const float base[DIM], const head_kind *kind)
{
    for (int i = 0; i < DIM; i++) {
        r->q[i] = (float)normal();
        r->k[i] = (float)(kind->same * (double)base[i] + (1 - kind->same) * normal());
        r->v[i] = (float)normal();
    }
    scale_to(r->q, 1 / sqrt(DIM));
    scale_to(r->k, 1);
    r->g = (double)(float)((double)uniform(0, 1) * kind->decay);
    if ((int)(random_bits() % 100) < kind->n_strong)
        r->g = -90;
    r->beta = (float)(kind->beta * (double)uniform(0.5f, 1));
}

/* Computes a row from the state at the beginning of its block and the n rows of its path since. */
static void compute(const delta_kernel *kernels, head_row *r, const float *state,
                    head_row *const *path, int32_t n)
{
    float x[2 * DIM], uw[2 * DIM], exponent[DELTA_BLOCK], kk[DELTA_BLOCK], qk[DELTA_BLOCK];
    const float *keys[DELTA_BLOCK], *past[DELTA_BLOCK];
    memcpy(x, r->k, sizeof r->k), memcpy(x + DIM, r->q, sizeof r->q);
    r->decay = (n > 0 ? path[n - 1]->decay : 0) + r->g;
    for (int32_t t = 0; t < n; t++) {
        keys[t] = path[t]->k, past[t] = path[t]->d;
        exponent[t] = (float)(r->decay - path[t]->decay);
    }
    exponent[n] = (float)r->decay, keys[n] = r->k;
    kernels->rows(uw, DIM, x, DIM, 2, state, DIM, DIM);
    kernels->dots(kk, r->k, keys, n, DIM);
    kernels->dots(qk, r->q, keys, n + 1, DIM);
    kernels->join(&(delta_row){.u = uw,
                               .w = uw + DIM,
                               .v = r->v,
                               .exponent = exponent,
                               .kk = kk,
                               .qk = qk,
                               .past = past,
                               .beta = r->beta,
                               .n = n,
                               .v_dim = DIM,
                               .d = r->d,
                               .out = r->out});
}

static void end_block(const delta_kernel *kernels, float *to, const float *state,
                      head_row *const *path)
{
    const float *keys[DELTA_BLOCK], *d[DELTA_BLOCK];
    float exponent[DELTA_BLOCK + 1];
    const double last = path[DELTA_BLOCK - 1]->decay;
    for (int t = 0; t < DELTA_BLOCK; t++) {
        keys[t] = path[t]->k, d[t] = path[t]->d;
        exponent[t] = (float)(last - path[t]->decay);
    }
    exponent[DELTA_BLOCK] = (float)last;
    kernels->end(
        to, state,
        &(delta_records){
            .k = keys, .d = d, .exponent = exponent, .n = DELTA_BLOCK, .k_dim = DIM, .v_dim = DIM});
}

/* One step in double. */
static void step(double (*s)[DIM], const head_row *r, double out[DIM])
{
    const double e = exp(r->g);
    double d[DIM] = {0};
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            s[i][j] *= e;
            d[j] += (double)r->k[i] * s[i][j];
        }
    for (int j = 0; j < DIM; j++)
        d[j] = (double)r->beta * ((double)r->v[j] - d[j]), out[j] = 0;
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            s[i][j] += (double)r->k[i] * d[j];
            out[j] += (double)r->q[i] * s[i][j];
        }
}

/* Outputs are 0.03 where nothing decays, and 0.005 where all does. Steps in float err by 2e-7 and
 * 3e-8 there, and so would the block form with its decays in float, but for the last kind: 2e-6. */
TEST(test_blocks_against_steps_in_double)
{
    enum { N = 240 };
    static const head_kind kinds[] = {{"no decay", -1e-4, 0.9, 0.99, 0, 5e-7},
                                      {"weak decay", -0.05, 0, 0.9, 0, 2e-7},
                                      {"keys nearly equal", -0.05, 0.999, 1, 0, 1e-7},
                                      {"decay to -3", -3, 0.5, 0.9, 0, 4e-8},
                                      {"decay to -90", -90, 0.5, 0.9, 0, 4e-8},
                                      {"some of -90", -0.01, 0.5, 0.95, 5, 2e-7}};
    static head_row rows[N];
    static double exact[DIM][DIM];
    static float block[DIM * DIM];
    const delta_kernel *kernels = kernel_select(NULL)->delta;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        float base[DIM];
        double worst = 0, largest = 0, out[DIM];
        head_row *path[DELTA_BLOCK] = {0};
        memset(exact, 0, sizeof exact), memset(block, 0, sizeof block);
        for (int j = 0; j < DIM; j++)
            base[j] = (float)normal();
        for (int p = 0; p < N; p++) {
            const int n = p % DELTA_BLOCK;
            fill_row(&rows[p], base, &kinds[i]);
            step(exact, &rows[p], out);
            compute(kernels, &rows[p], block, path, n);
            path[n] = &rows[p];
            if (n == DELTA_BLOCK - 1)
                end_block(kernels, block, block, path);
            for (int j = 0; j < DIM; j++) {
                worst = fmax(worst, fabs((double)rows[p].out[j] - out[j]));
                largest = fmax(largest, fabs(out[j]));
                assert_true(isfinite(rows[p].out[j]));
            }
        }
        if (worst > kinds[i].bound || largest < 0.005)
            fail_msg("%s: off by %g, where outputs are %g", kinds[i].name, worst, largest);
    }
}

/* ---- Trees ---- */

enum { MOST_ROWS = 1024, MOST_LEVELS = 8 };

typedef struct tree {
    const delta_kernel *kernels;
    head_row row[MOST_ROWS];
    int n;
    float state[MOST_LEVELS][DIM * DIM]; /* at the beginnings of the blocks of a path */
    int n_made;
} tree;

/* The rows of i's path before it in its block. */
static int32_t path_of(tree *t, int i, head_row *path[DELTA_BLOCK])
{
    const int32_t n = t->row[i].position % DELTA_BLOCK;
    int at = t->row[i].parent;
    for (int32_t j = n - 1; j >= 0; j--, at = t->row[at].parent)
        path[j] = &t->row[at];
    return n;
}

/* Row i and all after it, from the state at the beginning of its block. */
static void walk(tree *t, int i, int level)
{
    head_row *path[DELTA_BLOCK] = {0};
    const int32_t n = path_of(t, i, path);
    compute(t->kernels, &t->row[i], t->state[level], path, n);
    if (n == DELTA_BLOCK - 1) {
        path[n] = &t->row[i];
        assert_true(level + 1 < MOST_LEVELS);
        end_block(t->kernels, t->state[level + 1], t->state[level], path);
        level++, t->n_made++;
    }
    for (int c = i + 1; c < t->n; c++)
        if (t->row[c].parent == i)
            walk(t, c, level);
}

/* Compares a row with its path alone, from position 0, one row at a time. */
static void check_alone(const tree *t, int i)
{
    static head_row alone[MOST_ROWS];
    static float state[DIM * DIM];
    head_row *path[DELTA_BLOCK] = {0};
    int way[MOST_ROWS], n = 0;
    for (int at = i; at >= 0; at = t->row[at].parent)
        way[n++] = at;
    memset(state, 0, sizeof state);
    for (int p = 0; p < n; p++) {
        alone[p] = t->row[way[n - 1 - p]];
        memset(alone[p].d, 0, sizeof alone[p].d), memset(alone[p].out, 0, sizeof alone[p].out);
        compute(t->kernels, &alone[p], state, path, p % DELTA_BLOCK);
        path[p % DELTA_BLOCK] = &alone[p];
        if (p % DELTA_BLOCK == DELTA_BLOCK - 1)
            end_block(t->kernels, state, state, path);
    }
    assert_memory_equal(alone[n - 1].out, t->row[i].out, sizeof t->row[i].out);
    assert_memory_equal(alone[n - 1].d, t->row[i].d, sizeof t->row[i].d);
}

/* Moves the state to the beginning of the block after row `last`, through rows from `first` on. */
static void keep(tree *t, int first, int last)
{
    head_row *path[DELTA_BLOCK] = {0};
    if (last < first)
        return;
    keep(t, first, t->row[last].parent);
    if (t->row[last].position % DELTA_BLOCK == DELTA_BLOCK - 1) {
        path[path_of(t, last, path)] = &t->row[last];
        end_block(t->kernels, t->state[0], t->state[0], path);
    }
}

/* Trees that grow after what was kept of the tree before them. */
TEST(test_tree_has_the_bits_of_its_paths)
{
    enum { TURNS = 9 };
    static const head_kind kind = {.name = "trees", .decay = -3, .same = 0.5, .beta = 1};
    static tree t;
    const float base[DIM] = {1};
    int last = -1;
    t = (tree){.kernels = kernel_select(NULL)->delta};
    for (int turn = 0; turn < TURNS; turn++) {
        const int first = t.n, size = 1 + (int)(random_bits() % 40);
        for (int i = 0; i < size; i++, t.n++) {
            head_row *r = &t.row[t.n];
            fill_row(r, base, &kind);
            r->parent = i == 0                  ? last
                        : random_bits() % 3 > 0 ? t.n - 1
                                                : first + (int)(random_bits() % (uint32_t)i);
            r->position = r->parent < 0 ? 0 : t.row[r->parent].position + 1;
        }
        walk(&t, first, 0);
        for (int i = first; i < t.n; i++)
            check_alone(&t, i);
        last = first + (int)(random_bits() % (uint32_t)size);
        keep(&t, first, last);
    }
    assert_true(t.n_made > 5);
}
