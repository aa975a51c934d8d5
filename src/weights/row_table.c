/* Taking rows in: see row_table.h. */
#include "weights/row_table.h"

#include <assert.h>

size_t row_table_bytes(const weight *source, int32_t room)
{
    return arena_size((size_t)(room / GROUP_ROWS) * source->residency.group_bytes) +
           arena_size((size_t)room * sizeof(int32_t)) +
           arena_size((size_t)GROUP_ROWS * (size_t)source->form.row_bytes);
}

void row_table_init(row_table *t, weights *w, const weight *source, int32_t room, arena *a)
{
    assert(room > 0 && room % GROUP_ROWS == 0);
    *t = (row_table){.w = w, .source = source, .matrix = *source, .room = room};
    weight_stay_whole(&t->matrix, 0);
    t->matrix.packed = arena_take(a, (size_t)(room / GROUP_ROWS) * source->residency.group_bytes);
    t->id = arena_take(a, (size_t)room * sizeof *t->id);
    t->raw = arena_take(a, (size_t)GROUP_ROWS * (size_t)source->form.row_bytes);
    w->table = t;
}

int32_t row_table_find(const row_table *t, int64_t id)
{
    int32_t found = -1;
    for (int32_t i = 0, n = row_table_places(t); i < n; i++)
        found = t->id[i] == id ? i : found;
    return found;
}

/* The group after the last one; where there is no room, the oldest that may go. */
static void open_group(row_table *t)
{
    if (t->next == t->room)
        t->next = t->n_kept;
    for (int32_t i = 0; i < GROUP_ROWS; i++)
        t->id[t->next + i] = -1;
    int32_t n = t->next / GROUP_ROWS + 1;
    if (n > t->matrix.residency.n_groups) {
        t->matrix.residency.n_groups = t->matrix.residency.n_pinned = n;
        t->matrix.form.n_rows = (int64_t)n * GROUP_ROWS;
    }
}

drey_status row_table_take(row_table *t, const int32_t *ids, int32_t n, drey_error *err)
{
    weight *m = &t->matrix;
    for (int32_t i = 0; i < n; i++) {
        if (ids[i] < t->source->form.n_rows || row_table_find(t, ids[i]) >= 0)
            continue;
        int32_t at = t->next % GROUP_ROWS;
        uint8_t *raw = t->raw + (int64_t)at * m->form.row_bytes;
        TRY(weights_read_row(t->w, t->source, ids[i], raw, 0, err));
        if (at == 0)
            open_group(t);
        uint8_t *group = m->packed + (size_t)(t->next / GROUP_ROWS) * m->residency.group_bytes;
        if (!m->form.kernel->pack(group, t->raw, m->form.row_bytes, at + 1, m->form.k))
            return matrix_refuse(&m->form, t->w->reading.paths[m->form.tensor->part], err);
        t->id[t->next++] = ids[i];
    }
    return DREY_OK;
}

void row_table_keep(row_table *t)
{
    t->next = t->n_kept = row_table_places(t);
    assert(t->n_kept < t->room);
}
