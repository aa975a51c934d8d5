/* Orders of rows: see tensor_plan.h.
 *
 * Each is a list: item i is the row of the folder's tensor that becomes row i of the file's. A list
 * is small compared with its rows, and says any order: heads in turns, parts of groups, pairs. */
#include <stdlib.h>

#include "convert/tensor_names.h"
#include "convert/tensor_plan.h"

/* Numbers of heads of a delta net: of keys and values, and numbers of each head. */
typedef struct delta_heads {
    int64_t n_keys, n_values, dim_k, dim_v;
} delta_heads;

static drey_status read_delta(const hub_folder *f, delta_heads *h, drey_error *err)
{
    const int64_t most = 1 << 16;
    TRY(config_require(f, "linear_num_key_heads", 1, most, &h->n_keys, err));
    TRY(config_require(f, "linear_num_value_heads", 1, most, &h->n_values, err));
    TRY(config_require(f, "linear_key_head_dim", 1, most, &h->dim_k, err));
    TRY(config_require(f, "linear_value_head_dim", 1, most, &h->dim_v, err));
    if (h->n_values % h->n_keys != 0)
        FAIL(err, DREY_ERR_FORMAT,
             "config.json has %lld heads of values, which %lld heads of keys do not divide",
             (long long)h->n_values, (long long)h->n_keys);
    return DREY_OK;
}

static drey_status begin(row_order *o, int64_t n, drey_error *err)
{
    o->n = 0;
    o->rows = malloc((size_t)n * sizeof *o->rows);
    if (!o->rows)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the order of a tensor's rows");
    return DREY_OK;
}

static void put_run(row_order *o, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        o->rows[o->n++] = first + i;
}

static drey_status wrong_rows(int64_t n_rows, const char *name, drey_error *err)
{
    FAIL(err, DREY_ERR_FORMAT,
         "the %lld rows of tensor %s are not those of the heads in config.json", (long long)n_rows,
         name);
}

/* Heads at the end, in groups of those that share a head of keys, become turns of these groups. */
static drey_status turn_heads(row_order *o, const hub_folder *f, bool numbers, int64_t n_rows,
                              const char *name, drey_error *err)
{
    delta_heads h;
    TRY(read_delta(f, &h, err));
    const int64_t dim = numbers ? 1 : h.dim_v, n = h.n_values * dim, shared = h.n_values / h.n_keys;
    if (n_rows < n)
        return wrong_rows(n_rows, name, err);
    TRY(begin(o, n_rows, err));
    put_run(o, 0, n_rows - n);
    for (int64_t j = 0; j < shared; j++)
        for (int64_t g = 0; g < h.n_keys; g++)
            put_run(o, n_rows - n + (g * shared + j) * dim, dim);
    return DREY_OK;
}

/* Groups of a head of keys: its query, its key, values, gates. */
static drey_status part_delta(row_order *o, const hub_folder *f, bool gates, int64_t n_rows,
                              const char *name, drey_error *err)
{
    delta_heads h;
    TRY(read_delta(f, &h, err));
    const int64_t values = h.n_values / h.n_keys * h.dim_v, group = 2 * (h.dim_k + values);
    if (n_rows != h.n_keys * group)
        return wrong_rows(n_rows, name, err);
    const int64_t first[] = {0, h.dim_k, 2 * h.dim_k, 2 * h.dim_k + values};
    const int64_t n[] = {h.dim_k, h.dim_k, values, values};
    TRY(begin(o, n_rows, err));
    for (int part = gates ? 3 : 0; part < (gates ? 4 : 3); part++)
        for (int64_t g = 0; g < h.n_keys; g++)
            put_run(o, g * group + first[part], n[part]);
    return DREY_OK;
}

/* Groups of a head of keys: the heads of queries that share it, the key, the value. Halves of a
 * head that is rotated become pairs. */
static drey_status part_heads(row_order *o, const hub_folder *f, order part, int64_t n_rows,
                              const char *name, drey_error *err)
{
    int64_t n_heads, n_keys;
    bool there;
    TRY(config_require(f, "num_attention_heads", 1, 1024, &n_heads, err));
    n_keys = n_heads;
    TRY(config_int(f, "num_key_value_heads", 1, 1024, &n_keys, &there, err));
    const int64_t all = n_heads + 2 * n_keys, shared = n_heads / n_keys, dim = n_rows / all;
    if (n_heads % n_keys != 0 || n_rows % all != 0 || dim % 2 != 0)
        return wrong_rows(n_rows, name, err);
    const int64_t first = part == PART_Q ? 0 : part == PART_K ? shared : shared + 1;
    TRY(begin(o, n_rows, err));
    for (int64_t g = 0; g < n_keys; g++)
        for (int64_t h = first; h < (part == PART_Q ? shared : first + 1); h++)
            for (int64_t i = 0; i < dim; i++) {
                const int64_t row = part == PART_V ? i : i % 2 * (dim / 2) + i / 2;
                o->rows[o->n++] = (g * (shared + 2) + h) * dim + row;
            }
    return DREY_OK;
}

drey_status row_order_make(row_order *o, const family *a, const hub_folder *f, int which,
                           int64_t n_rows, const char *name, drey_error *err)
{
    const bool turns = a->arch->heads_in_turns;
    *o = (row_order){0};
    switch ((order)which) {
    case HEADS_NONE:
    case HEADS_Q:
    case HEADS_K:
        return DREY_OK;
    case ROWS_V:
    case COLUMNS_V:
        return turns ? turn_heads(o, f, false, n_rows, name, err) : DREY_OK;
    case NUMBERS_V:
    case DECAYS_V:
        return turns ? turn_heads(o, f, true, n_rows, name, err) : DREY_OK;
    case PART_QKV:
    case PART_Z:
        return part_delta(o, f, which == PART_Z, n_rows, name, err);
    case PART_Q:
    case PART_K:
    case PART_V:
        return part_heads(o, f, (order)which, n_rows, name, err);
    }
    return DREY_OK;
}
