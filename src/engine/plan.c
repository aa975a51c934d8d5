/* The plan: what a memory budget buys.
 *
 * Everything that does not depend on the budget is added up first: the process as it stands,
 * caches, buffers, rings, the draft. What is left pins the target: small matrices first (reading
 * them would cost a request each), then the same share of every other matrix, so that in each
 * product the pinned rows are computed while the streamed ones arrive . */
#include <string.h>

#include "engine/engine.h"
#include "os/memory.h"

/* Matrices up to this size in the file are pinned before others. */
static const int64_t small_bytes = 1 << 20;
/* What no other line counts: what a cgroup is charged for a processor beforehand (up to 256 KiB for
 * each that threads ran on), buffered reads on their way through the page cache
 * (READER_CACHED_BYTES for each reading thread), kernel structures, growth of the libraries,
 * rounding. */
static const uint64_t slack_bytes = 6 << 20;
static const uint64_t mib = 1 << 20;

typedef struct setting { /* from generous to frugal */
    int32_t chunk, logit_rows;
    uint64_t ring_bytes;
} setting;

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t pinned_bytes(const model_layout *l)
{
    uint64_t total = 0;
    for (int32_t i = 0; i < l->n_matrices; i++)
        total += weight_pinned_bytes(&l->matrix[i]);
    return total;
}

/* What passes use. */
static void pin_all(model_layout *l)
{
    for (int32_t i = l->n_looked_up; i < l->n_matrices; i++)
        l->matrix[i].n_pinned = l->matrix[i].n_groups;
}

static uint64_t packed_bytes(const model_layout *l)
{
    uint64_t total = 0;
    for (int32_t i = l->n_looked_up; i < l->n_matrices; i++)
        total += (uint64_t)l->matrix[i].n_groups * l->matrix[i].group_bytes;
    return total;
}

static bool is_small(const weight *m)
{
    return m->n_rows * m->row_bytes <= small_bytes;
}

/* Pins what fits into `room` bytes. */
static void pin_share(model_layout *l, uint64_t room)
{
    uint64_t rest = 0;
    for (int32_t i = l->n_looked_up; i < l->n_matrices; i++) {
        weight *m = &l->matrix[i];
        uint64_t bytes = (uint64_t)m->n_groups * m->group_bytes;
        bool fits = is_small(m) && bytes <= room;
        m->n_pinned = fits ? m->n_groups : 0;
        room -= fits ? bytes : 0;
        rest += fits ? 0 : bytes;
    }
    if (rest == 0)
        return;
    double share = room >= rest ? 1.0 : (double)room / (double)rest;
    for (int32_t i = l->n_looked_up; i < l->n_matrices; i++) {
        weight *m = &l->matrix[i];
        if (m->n_pinned == m->n_groups)
            continue;
        m->n_pinned = (int32_t)(share * m->n_groups);
        room -= weight_pinned_bytes(m);
    }
    for (int32_t i = l->n_looked_up; i < l->n_matrices; i++) {
        weight *m = &l->matrix[i];
        if (m->n_pinned < m->n_groups && m->group_bytes <= room) {
            m->n_pinned++;
            room -= m->group_bytes;
        }
    }
}

static void pin_share_of_each(model_layout *l, double share)
{
    for (int32_t i = l->n_looked_up; i < l->n_matrices; i++)
        l->matrix[i].n_pinned = (int32_t)(share * l->matrix[i].n_groups);
}

static void shapes_of(const drey_engine *e, const model_shape *shapes[2])
{
    shapes[0] = &e->target.layout.shape;
    shapes[1] = e->has_draft ? &e->draft.layout.shape : &e->target.layout.shape;
}

static uint64_t work_bytes(const drey_engine *e, const engine_plan *p)
{
    const model_shape *shapes[2];
    shapes_of(e, shapes);
    return workspace_bytes(shapes, 2, p->chunk > p->logit_rows ? p->chunk : p->logit_rows,
                           p->logit_rows, p->max_pending, p->n_slots, p->report.n_threads) +
           sampler_bytes(e->target.layout.shape.n_vocab) +
           2 * arena_size((size_t)(e->options.n_context + 1) * sizeof(int32_t)) + (1 << 16);
}

/* The n-gram drafter brings its own memory. */
static uint64_t ngram_bytes(const drey_engine *e)
{
    bool used = e->options.drafter == DREY_DRAFTER_NGRAM;
    return used ? drafter_ngram_bytes(e->options.n_context + 1) : 0;
}

kv_format engine_kv_format(const drey_engine *e)
{
    return e->options.kv == DREY_KV_Q8_0 ? KV_Q8_0 : e->kernels->kv_plain;
}

static uint64_t draft_cache_bytes(const drey_engine *e, kv_format format)
{
    const engine_plan *p = &e->plan;
    return e->has_draft ? kv_bytes(&e->draft.layout.shape, p->n_slots, p->max_pending, format) : 0;
}

static uint64_t cache_bytes(const drey_engine *e, kv_format format)
{
    const engine_plan *p = &e->plan;
    return kv_bytes(&e->target.layout.shape, p->n_slots, p->max_pending, format) +
           draft_cache_bytes(e, format);
}

size_t engine_session_bytes(const drey_engine *e)
{
    return work_bytes(e, &e->plan) + cache_bytes(e, engine_kv_format(e));
}

/* Page tables: an entry of eight bytes a page. */
static uint64_t with_page_tables(uint64_t bytes)
{
    return bytes + bytes / 512;
}

/* Everything but the target's pinned weights, for one setting. */
static uint64_t fixed_bytes(drey_engine *e, const setting *s)
{
    engine_plan *p = &e->plan;
    drey_plan *t = &p->report;
    p->chunk = s->chunk;
    p->logit_rows = s->logit_rows;
    p->max_pending = (s->chunk > s->logit_rows ? s->chunk : s->logit_rows) + CATCH_UP;
    p->n_slots = e->options.n_context + p->tree_nodes + CATCH_UP + 1;
    p->target_ring = larger(
        s->ring_bytes, weights_ring_least(e->target.layout.matrix, e->target.layout.n_matrices));
    t->ring_bytes = p->target_ring + p->draft_ring;
    t->kv = e->options.kv;
    t->kv_bytes = cache_bytes(e, engine_kv_format(e));
    t->draft_kv_bytes = draft_cache_bytes(e, engine_kv_format(e));
    uint64_t plain = cache_bytes(e, e->kernels->kv_plain);
    t->kv_saved_bytes = plain > t->kv_bytes ? plain - t->kv_bytes : 0;
    t->process_bytes =
        t->program_bytes + t->tokenizer_bytes + t->stack_bytes + t->queue_bytes + t->reserve_bytes;
    t->work_bytes = work_bytes(e, p) + ngram_bytes(e) + p->target_overhead + p->draft_overhead;
    uint64_t sum = t->ring_bytes + t->kv_bytes + t->work_bytes + t->draft_bytes + t->process_bytes;
    return with_page_tables(sum);
}

static void measure_sides(drey_engine *e)
{
    const model_layout *l = &e->target.layout, *d = &e->draft.layout;
    engine_plan *p = &e->plan;
    int32_t threads = p->report.n_threads;
    const gguf *target = e->options.target->file;
    p->target_overhead = weights_overhead_bytes(l->matrix, l->n_matrices, l->embedding,
                                                gguf_n_parts(target), threads) +
                         e->target.layout_memory.size_bytes;
    p->report.queue_bytes = weights_stream_bytes(l->matrix, l->n_matrices, gguf_n_parts(target));
    if (!e->has_draft)
        return;
    const gguf *draft = e->options.draft->file;
    p->report.queue_bytes += weights_stream_bytes(d->matrix, d->n_matrices, gguf_n_parts(draft));
    p->draft_overhead = weights_overhead_bytes(d->matrix, d->n_matrices, d->embedding,
                                               gguf_n_parts(draft), threads) +
                        e->draft.layout_memory.size_bytes;
    p->draft_ring = larger(weights_ring_least(d->matrix, d->n_matrices), 4 << 20);
    p->report.draft_bytes = pinned_bytes(d);
}

static drey_status bind(drey_engine *e, engine_side *side, const drey_model *m, drey_error *err)
{
    arena_free(&side->layout_memory);
    TRY(arena_init(&side->layout_memory, model_layout_bytes(&m->shape, m->file), false, err));
    TRY(model_layout_init(&side->layout, m->file, e->kernels, &side->layout_memory, err));
    for (int32_t i = 0; e->options.read_bytes && i < side->layout.n_matrices; i++)
        weight_set_read(&side->layout.matrix[i], (int64_t)e->options.read_bytes);
    return DREY_OK;
}

/* The draft is resident; its untied embedding only where memory is no concern. */
static drey_status bind_draft(drey_engine *e, bool keep_embedding, drey_error *err)
{
    if (!e->has_draft)
        return DREY_OK;
    TRY(bind(e, &e->draft, e->options.draft, err));
    pin_all(&e->draft.layout);
    if (keep_embedding)
        e->draft.layout.embedding->n_pinned = e->draft.layout.embedding->n_groups;
    return DREY_OK;
}

static void tell(drey_engine *e, uint64_t fixed)
{
    const model_layout *l = &e->target.layout;
    drey_plan *t = &e->plan.report;
    t->pinned_bytes = pinned_bytes(l);
    t->streamed_bytes_per_pass = 0;
    for (int32_t i = l->n_looked_up; i < l->n_matrices; i++) {
        t->streamed_bytes_per_pass += weight_streamed_bytes(&l->matrix[i]);
        t->n_tensors_pinned += l->matrix[i].n_pinned == l->matrix[i].n_groups;
        t->n_tensors_streamed += l->matrix[i].n_pinned < l->matrix[i].n_groups;
    }
    const gguf *g = e->options.target->file;
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++)
        t->target_bytes += gguf_tensor_at(g, i)->n_bytes;
    t->lookup_bytes = weight_is_pinned(l->embedding) || l->tied ? 0 : l->embedding->tensor->n_bytes;
    t->prompt_chunk = e->plan.chunk;
    t->tree_rows = e->plan.tree_nodes + 1;
    uint64_t used = fixed + with_page_tables(t->pinned_bytes);
    uint64_t named = t->pinned_bytes + t->draft_bytes + t->ring_bytes + t->kv_bytes +
                     t->work_bytes + t->process_bytes;
    t->reserve_bytes += used - named;
    t->process_bytes += used - named;
    t->spare_bytes = t->budget_bytes == DREY_MEMORY_UNLIMITED ? 0 : t->budget_bytes - used;
}

static drey_status too_small(drey_engine *e, drey_error *err)
{
    drey_plan *t = &e->plan.report;
    return error_set(
        err, DREY_ERR_MEMORY,
        "a budget of %.0f MiB is too small; the smallest that works here is %llu MiB%s",
        (double)t->budget_bytes / (double)mib, (unsigned long long)(t->smallest_budget_bytes / mib),
        e->has_draft ? " (less without a draft)" : "");
}

/* Takes the most generous setting that leaves the larger part of the budget to weights. */
static drey_status fit(drey_engine *e, drey_error *err)
{
    drey_plan *t = &e->plan.report;
    int32_t need = e->plan.tree_nodes + 1;
    need = need > e->tuning.least_logit_rows ? need : e->tuning.least_logit_rows;
    int32_t rows =
        need > 32 ? need : 32; /* more than a turn needs: scoring takes them by so many */
    int32_t chunk = e->options.prompt_chunk;
    uint64_t ring = t->budget_bytes / 32;
    ring = ring < 8 << 20 ? 8 << 20 : ring > 48 << 20 ? 48 << 20 : ring;
    const setting settings[] = {{chunk ? chunk : 256, rows, ring},
                                {chunk ? chunk : 128, rows, ring},
                                {chunk ? chunk : 64, need, ring},
                                {chunk ? chunk : 32, need, 0}};
    const int last = (int)(sizeof settings / sizeof *settings) - 1;
    uint64_t least = fixed_bytes(e, &settings[last]);
    /* What a program has written to differs by some pages from run to run, and a budget that is
     * named in one has to work in the next: so the named one has half a MiB in hand. */
    t->smallest_budget_bytes = (least + mib / 2 + mib - 1) / mib * mib;
    if (t->budget_bytes < least)
        return too_small(e, err);
    uint64_t fixed = 0;
    for (int i = 0; i <= last; i++) {
        fixed = fixed_bytes(e, &settings[i]);
        if (fixed <= t->budget_bytes && (i == last || fixed - least < t->budget_bytes / 12))
            break;
    }
    uint64_t room = t->budget_bytes - fixed;
    room -= room / 512;
    if (e->tuning.set_share)
        pin_share_of_each(&e->target.layout, e->tuning.share);
    else if (room >= packed_bytes(&e->target.layout))
        pin_all(&e->target.layout);
    else
        pin_share(&e->target.layout, room);
    tell(e, fixed);
    return DREY_OK;
}

/* What the process takes whatever the budget is. */
static void count_process(drey_engine *e)
{
    drey_plan *t = &e->plan.report;
    const drey_model *models[2] = {e->options.target, e->options.draft};
    uint64_t held = memory_program();
    for (int i = 0; i < 2 && models[i]; i++)
        t->tokenizer_bytes +=
            gguf_header_bytes(models[i]->file) + tokenizer_bytes(models[i]->tokenizer);
    t->program_bytes = held > t->tokenizer_bytes ? held - t->tokenizer_bytes : 0;
    t->stack_bytes = (uint64_t)t->n_threads * pool_thread_bytes();
    t->reserve_bytes = slack_bytes;
}

drey_status engine_plan_make(drey_engine *e, drey_error *err)
{
    engine_plan *p = &e->plan;
    drey_plan *t = &p->report;
    count_process(e);
    TRY(bind(e, &e->target, e->options.target, err));
    TRY(engine_find_sidecar(e, err));
    TRY(bind_draft(e, true, err));
    measure_sides(e);
    drey_plan before = *t;
    drey_status status = fit(e, err);
    bool all = status == DREY_OK && t->streamed_bytes_per_pass == 0;
    if (all || !e->has_draft || e->draft.layout.tied)
        return status;
    *t = before;
    TRY(bind_draft(e, false, err));
    measure_sides(e);
    return fit(e, err);
}
