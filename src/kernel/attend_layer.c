/* Sharing a layer's attention among threads.
 *
 * The task is a group of query heads that share a key head, and a range of rows. Where the tasks do
 * not come out even (one row, three
 * key heads, two threads), the last ones are cut further, each into ranges of blocks: the first
 * range folds as it goes, the others leave their blocks' results, and the thread that ends last
 * folds those in order. So cutting changes no bit. */
#include "kernel/attend.h"

#include <stdatomic.h>

enum {
    TASK_ROWS = 16, /* rows of a prompt see different prefixes: what they do not share goes alone */
    TASK_PAIRS = 8, /* fewer would leave registers empty */
    CUT_PAIRS = 16, /* more come from so many rows that tasks come out even */
    LEAST_GROUP = 4, /* query heads: keys are read once a group */
    RANGE_BLOCKS = 4 /* a range should be worth the fold */
};

static int32_t ceil_div(int32_t a, int32_t b)
{
    return (a + b - 1) / b;
}

/* The least number of groups that have CUT_PAIRS query heads at most: alone, the heads of one row
 * would be one task. */
int32_t attend_groups(int32_t n_q)
{
    int32_t n = 1;
    while (n_q % n || n_q / n > CUT_PAIRS)
        n++;
    return n_q / n < LEAST_GROUP ? 1 : n;
}

static int32_t rows_of_task(const attend_layer *l)
{
    const attention *a = &l->head;
    int32_t rows = ATTEND_PAIRS / l->group_q;
    rows = rows < 1 ? 1 : rows > TASK_ROWS ? TASK_ROWS : rows;
    rows = rows < a->n_rows ? rows : a->n_rows;
    int32_t row_tasks = ceil_div(l->n_threads, l->n_heads * l->n_groups);
    if (row_tasks <= ceil_div(a->n_rows, rows))
        return rows;
    int32_t fewer = ceil_div(a->n_rows, row_tasks), least = ceil_div(TASK_PAIRS, l->group_q);
    fewer = fewer > least ? fewer : least;
    return fewer < rows ? fewer : rows;
}

/* Then all rows begin at block 0. */
bool attend_can_split(const attention *a)
{
    if (a->more || a->base || a->end)
        return false;
    for (int32_t row = 0; a->window != 0 && row < a->n_rows; row++)
        if (attend_first_seen(a->window, a->n_prefix[row] + a->n_path[row]) > 0)
            return false;
    return true;
}

void attend_cut(attend_layer *l)
{
    const attention *a = &l->head;
    l->n_groups = a->more ? 1 : attend_groups(a->n_q);
    l->group_q = a->n_q / l->n_groups;
    l->task_rows = rows_of_task(l);
    int32_t tasks = ceil_div(a->n_rows, l->task_rows) * l->n_heads * l->n_groups;
    int32_t rest = tasks % l->n_threads;
    l->n_tasks = l->n_whole = tasks;
    l->n_cut = 0;
    l->n_ranges = 1;
    int32_t ranges = rest && l->n_threads % rest == 0 ? l->n_threads / rest : l->n_threads;
    size_t one = attend_partials_floats(l->task_rows * l->group_q, a->v_dim, 1);
    if (rest && rest <= (int32_t)(sizeof l->left / sizeof *l->left) &&
        l->task_rows * l->group_q <= CUT_PAIRS && l->n_partials / (size_t)rest >= one &&
        a->n_prefix[0] >= ranges * RANGE_BLOCKS * ATTEND_BLOCK && attend_can_split(a)) {
        l->n_whole = tasks - rest;
        l->n_cut = rest;
        l->n_ranges = ranges;
    }
    for (int32_t i = 0; i < l->n_cut; i++)
        atomic_store_explicit(&l->left[i], l->n_ranges, memory_order_relaxed);
    atomic_store_explicit(&l->next, 0, memory_order_relaxed);
}

attention attend_task(const attend_layer *l, int32_t task, int32_t *first, int32_t *last)
{
    attention a = l->head;
    int32_t n_groups = l->n_heads * l->n_groups;
    int32_t row = task / n_groups * l->task_rows, head = task % n_groups / l->n_groups;
    a.group = task % n_groups;
    a.n_q = l->group_q;
    a.keys += (size_t)head * l->key_bytes;
    if (a.values)
        a.values += (size_t)head * l->value_bytes;
    if (a.kept)
        a.kept += (int64_t)a.group * 2 * a.n_rows * a.n_q;
    a.q += (int64_t)a.group * a.n_q * a.k_dim;
    a.out += (int64_t)a.group * a.n_q * a.v_dim;
    *first = row * a.n_q;
    *last = (row + l->task_rows < a.n_rows ? row + l->task_rows : a.n_rows) * a.n_q;
    return a;
}

/* Range `range` of the task that is number `cut` of those that are cut. */
static void range_work(attend_layer *l, const kernel_table *kernels, int32_t cut, int32_t range,
                       void *scratch)
{
    int32_t first, last;
    attention a = attend_task(l, l->n_whole + cut, &first, &last);
    a.kernels = kernels;
    int32_t n_blocks = attend_dense_blocks(&a, first, last);
    size_t share = l->n_partials / (size_t)l->n_cut;
    float *partials = l->partials + (size_t)cut * share;
    size_t fixed = attend_partials_floats(last - first, a.v_dim, 0);
    size_t each = attend_partials_floats(last - first, a.v_dim, 1) - fixed;
    int32_t room = (int32_t)((share - fixed) / each);
    int32_t head = ceil_div(n_blocks, l->n_ranges); /* blocks of the first range */
    head = n_blocks - head > room ? n_blocks - room : head;
    int32_t rest = n_blocks - head, others = l->n_ranges - 1;
    int32_t from = range ? head + rest * (range - 1) / others : 0;
    int32_t to = range ? head + rest * range / others : head;
    attend_range(&a, first, last, head, from, to, partials, scratch);
    if (atomic_fetch_sub_explicit(&l->left[cut], 1, memory_order_acq_rel) == 1)
        attend_finish(&a, first, last, head, false, partials, scratch);
}

bool attend_next(attend_layer *l, const kernel_table *kernels, void *scratch)
{
    int32_t item = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
    if (item >= l->n_whole + l->n_cut * l->n_ranges)
        return false;
    if (item >= l->n_whole) {
        item -= l->n_whole;
        range_work(l, kernels, item / l->n_ranges, item % l->n_ranges, scratch);
        return true;
    }
    int32_t first, last;
    attention a = attend_task(l, item, &first, &last);
    a.kernels = kernels;
    attend(&a, first, last, scratch);
    return true;
}

void attend_work(attend_layer *l, void *scratch)
{
    while (attend_next(l, l->head.kernels, scratch))
        ;
}

size_t attend_partials_wanted(int32_t n_q, int32_t v_dim, int32_t n_positions, int32_t n_threads)
{
    const size_t most = 256 << 10; /* a MiB */
    n_q /= attend_groups(n_q);
    if (n_threads < 2 || n_q > CUT_PAIRS)
        return 0;
    /* At most n_threads - 1 tasks are cut, and they keep all blocks but their first ranges'. */
    size_t floats = attend_partials_floats(n_q, v_dim, n_positions / ATTEND_BLOCK);
    size_t tasks = n_threads > 2 ? 2 : 1;
    return floats * tasks < most ? floats * tasks : most;
}
