/* The list of rows that passes carry on: see deferred.h. */
#include "model/deferred.h"

#include "common/num.h"
#include "model/arch.h"
#include "model/workspace.h"

static size_t x_bytes(const model_shape *s, int32_t max)
{
    return (size_t)max * (size_t)row_stride(shape_width(s)) * sizeof(float);
}

size_t deferred_bytes(const model_shape *s, int32_t max)
{
    return max > 0 ? arena_size(x_bytes(s, max)) + 2 * arena_size((size_t)max * sizeof(int32_t))
                   : 0;
}

void deferred_init(deferred_rows *d, const model_shape *s, int32_t max, arena *a)
{
    *d = (deferred_rows){.max = max};
    if (max == 0)
        return;
    d->x = arena_take(a, x_bytes(s, max));
    d->next_layer = arena_take(a, (size_t)max * sizeof(int32_t));
    d->token = arena_take(a, (size_t)max * sizeof(int32_t));
}

void deferred_cut(deferred_rows *d, int32_t n_positions)
{
    d->n = max_i32(0, d->n - n_positions);
}

bool deferred_is_valid(const deferred_rows *d, int32_t n_committed)
{
    bool valid = d->n >= 0 && d->n <= d->max && d->n <= n_committed;
    for (int32_t i = 0; valid && i < d->n; i++)
        valid = d->next_layer[i] >= 1 && (i == 0 || d->next_layer[i] <= d->next_layer[i - 1]);
    return valid;
}
