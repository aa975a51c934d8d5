/* Rows of a table on the disk that the rows of a pass need (weights/row_lookup.h): which are known
 * with the tokens, and asked for when the pass begins. A row keeps its place among what was asked
 * for (workspace.looked_up) while others are dropped; deferred rows, which join later, come after
 * all others there. */
#include "model/pass_steps.h"

#include <math.h>

#include "model/arch.h"
#include "model/deferred.h"
#include "model/layout.h"
#include "model/workspace.h"
#include "weights/row_lookup.h"

/* The place of a group's first deferred row. */
static int32_t first_deferred(const model_pass *p, int32_t group)
{
    int32_t n = p->n_own;
    for (int32_t g = 0; g < group; g++)
        n += p->groups[g].n_deferred;
    return n;
}

drey_status pass_ask_looked_up(model_pass *p, drey_error *err)
{
    const model_layout *l = p->r->layout;
    workspace *ws = p->r->ws;
    const int32_t n = l->shape.lookup.n;
    if (n == 0)
        return DREY_OK;
    int64_t *rows = ws->buffer[ENDS_ROWS].at, *to = rows;
    for (int32_t i = 0; i < p->n_own; i++, to += n) {
        ws->looked_up[i] = i;
        l->shape.arch->layers->rows(p, i, pass_token(p, i), to);
    }
    for (int32_t g = 0; g < p->n_groups; g++)
        for (int32_t i = 0; i < p->groups[g].n_deferred; i++, to += n)
            l->shape.arch->layers->rows(p, -1, p->groups[g].deferred->token[i], to);
    return row_lookup_ask(p->r->weights->lookup, rows, (int32_t)(to - rows),
                          ws->buffer[ENDS_RAW].at, err);
}

void pass_join_looked_up(model_pass *p, int32_t row)
{
    workspace *ws = p->r->ws;
    if (p->r->layout->shape.lookup.n > 0)
        ws->looked_up[row] = first_deferred(p, ws->group[row]) + ws->pending[row];
}

drey_status pass_wait_looked_up(model_pass *p, drey_error *err)
{
    return row_lookup_wait(p->r->weights->lookup, err);
}

/* Numbers that are not finite are found at the end of the pass, which refuses the file. */
void pass_looked_up(const model_pass *p, int32_t row, int32_t which, int64_t from, int64_t n,
                    float *out, int32_t thread)
{
    const lookup_shape *s = &p->r->layout->shape.lookup;
    const uint8_t *raw = p->r->ws->buffer[ENDS_RAW].at;
    const int64_t at = (int64_t)p->r->ws->looked_up[row] * s->n + which;
    if (row_lookup_numbers(p->r->weights->lookup, raw + at * s->row_bytes, from, n, out, thread,
                           NULL) != DREY_OK)
        out[0] = NAN;
}
