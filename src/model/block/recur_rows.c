/* Rows of a layer with a running state: see block.h and state/recurrent.h. */
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "state/recurrent.h"

static text_cache *cache_of(const model_pass *p, int32_t row)
{
    return p->groups[p->r->ws->group[row]].cache;
}

/* A row's position as recurrent_record names it: deferred rows, which stand after the pass's own,
 * are committed. */
static int32_t row_name(const model_pass *p, int32_t row)
{
    const workspace *ws = p->r->ws;
    return row < p->n_own ? cache_end(cache_of(p, row)) + ws->pending[row] : ws->position[row];
}

float *block_record(const model_pass *p, const program_step *s, int32_t i)
{
    return recurrent_record(recurrent_of(cache_of(p, i)), layer_of(p, s)->state, row_name(p, i));
}

/* Rows of one text stand together, but for deferred ones. */
void block_recur(model_pass *p, const program_step *s, int32_t to)
{
    const int32_t layer = layer_of(p, s)->state;
    const text_cache *cache = NULL;
    recurrent_branch branch = {-1, -1};
    for (int32_t i = 0; i < p->n_rows; i++) {
        if (cache != cache_of(p, i)) {
            cache = cache_of(p, i);
            branch = (recurrent_branch){-1, -1};
            recurrent_advance(recurrent_of(cache), cache, layer);
        }
        recurrent_read(recurrent_of(cache), cache, layer, row_name(p, i), &branch,
                       block_row(p, s, to, i));
    }
}
