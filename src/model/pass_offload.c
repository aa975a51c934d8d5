/* Reads of a pass from caches that are in a file (kv_file.h): in the order of layers, of each the
 * groups one after the other, of each the chunks that its rows see. What is asked for is ahead of
 * what is used by what the ring has room for, so that the next layer's keys arrive while this one
 * computes. All rows of a group share each read. */
#include "model/layout.h"
#include "model/pass_steps.h"

#include "common/num.h"
#include "state/kv.h"
#include "state/kv_file.h"

int32_t pass_offload_chunks(const model_pass *p, int32_t group, int32_t layer, int32_t *end)
{
    const text_cache *cache = p->groups[group].cache;
    const kv_store *kv = kv_of(cache);
    const attention_shape *a = layer_attention(&p->r->layout->shape, layer);
    const int32_t window = a ? a->window : 0;
    const bool has = p->r->layout->layer[layer].kv.store >= 0;
    *end = has && p->groups[group].n > 0 && kv->file ? kv->n_disk / kv->chunk : 0;
    if (*end == 0 || window == 0)
        return 0;
    /* Rows see their own position as well; none is before the first after the committed ones. */
    return min_i32(attend_first_seen(window, cache_end(cache) + 1) / kv->chunk, *end);
}

/* The next chunk that has not been asked for. False: there is none. */
static bool find_next(model_pass *p)
{
    while (p->offload.layer < p->r->layout->shape.n_layers) {
        int32_t end, first = pass_offload_chunks(p, p->offload.group, p->offload.layer, &end);
        p->offload.chunk = max_i32(p->offload.chunk, first);
        if (p->offload.chunk < end)
            return true;
        p->offload.chunk = -1;
        if (++p->offload.group == p->n_groups) {
            p->offload.group = 0;
            p->offload.layer++;
        }
    }
    return false;
}

/* A failure shows again when the piece is waited for. */
static drey_status ask(model_pass *p, drey_error *err)
{
    kv_file *f = p->offload.file;
    while (f && kv_file_has_room(f) && find_next(p)) {
        TRY(kv_file_ask(f, kv_of(p->groups[p->offload.group].cache),
                        p->r->layout->layer[p->offload.layer].kv.index, p->offload.chunk, err));
        p->offload.chunk++;
    }
    return DREY_OK;
}

void pass_offload_begin(model_pass *p)
{
    pass_offload_leave(p);
    for (int32_t g = 0; g < p->n_groups; g++)
        if (p->groups[g].n > 0 && kv_of(p->groups[g].cache)->n_disk > 0)
            p->offload.file = kv_of(p->groups[g].cache)->file;
    if (p->offload.file)
        kv_file_skip(p->offload.file); /* nothing of a pass that could not begin */
    p->offload.layer = p->layer;
    p->offload.group = 0;
    p->offload.chunk = -1;
    (void)ask(p, NULL);
}

void pass_offload_leave(model_pass *p)
{
    if (p->offload.file)
        kv_file_skip(p->offload.file);
    p->offload.file = NULL;
}

drey_status pass_offload_wait(model_pass *p, const uint8_t **keys, drey_error *err)
{
    TRY(ask(p, err));
    return kv_file_wait(p->offload.file, keys, err);
}

void pass_offload_next(model_pass *p)
{
    kv_file_next(p->offload.file);
    (void)ask(p, NULL);
}
