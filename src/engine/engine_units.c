/* An engine's units: opened by its options, and reported. */
#include <math.h>
#include <stdio.h>

#include "engine/engine.h"
#include "os/pool.h"
#include "unit/device.h"
#include "unit/units.h"

drey_status engine_take_units(drey_engine *e, drey_error *err)
{
    const config_units *c = &e->config.units;
    bool mixed;
    TRY(units_check(&c->words, e->kernels, &mixed, err));
    if (mixed) {
        e->cpu.shape &= ~SHAPE_LINES;
        e->kernels = kernel_select_shape(e->kernels->tier, e->cpu.shape);
    }
    if (unit_words_are_plain(&c->words))
        return DREY_OK;
    TRY(units_open(&e->units, &c->words, e->kernels, c->has_shares ? &c->shares : NULL, err));
    e->units->whole = e->hooks.whole_devices;
    const model_shape *s = &e->config.target->shape;
    bool unlike = false;
    for (int32_t i = 0; i < s->n_attentions; i++)
        unlike = unlike || s->attention[i].head_dim != s->attention[i].v_dim;
    if (unlike)
        units_leave_attention(e->units, "it attends to keys and values of the same width alone");
    return DREY_OK;
}

drey_status engine_open_pool(drey_engine *e, drey_error *err)
{
    const core_set *cores[DREY_MAX_THREADS];
    bool any = false;
    for (int32_t i = 0; e->units && i < e->config.n_threads; i++) {
        const core_set *of = &e->units->unit[e->units->worker[i].unit].word.cores;
        cores[i] = cores_count(of) > 0 ? of : NULL;
        any = any || cores[i];
    }
    return pool_open_on(&e->pool, e->config.n_threads, any ? cores : NULL, err);
}

size_t engine_units_bytes(const drey_engine *e)
{
    uint64_t weight_bytes = 0;
    if (!e->units)
        return 0;
    for (int32_t i = 0; i < e->target.layout.n_matrices; i++) {
        const weight *m = &e->target.layout.matrix[i];
        weight_bytes +=
            m->residency.in_pass ? (uint64_t)m->residency.n_groups * m->residency.group_bytes : 0;
    }
    int32_t rows = e->config.prompt_chunk ? e->config.prompt_chunk : DREY_MAX_PROMPT_CHUNK;
    return units_bytes(e->units) + units_device_bytes(e->units, weight_bytes, rows);
}

bool drey_engine_unit(const drey_engine *engine, int32_t i, drey_unit *out)
{
    const unit_set *us = engine->units;
    *out = (drey_unit){.slow = 1};
    if (i < 0 || i >= (us ? us->n : 1))
        return false;
    if (!us) {
        snprintf(out->name, sizeof out->name, "cpu");
        snprintf(out->cpu_tier, sizeof out->cpu_tier, "%s", engine->kernels->tier);
        out->n_threads = engine->config.n_threads;
        for (int32_t w = 0; w < DREY_UNIT_WIDTHS; w++)
            out->share[w] = 1;
        out->attends = 1;
        return true;
    }
    const unit *u = &us->unit[i];
    snprintf(out->name, sizeof out->name, "%s%s%s", u->word.device ? u->word.device->name : "cpu",
             u->word.which[0] ? ":" : "", u->word.which);
    if (!u->word.device) {
        snprintf(out->cpu_tier, sizeof out->cpu_tier, "%s",
                 us->worker[u->first_worker].kernels->tier);
        out->n_threads = u->n_workers;
        out->slow = u->word.slow;
    }
    for (int32_t w = 0; w < DREY_UNIT_WIDTHS; w++)
        out->share[w] = units_share(us, 1 << w, i);
    for (int32_t k = 0; k < u->n_workers; k++) {
        const unit_worker *worker = &us->worker[u->first_worker + k];
        out->n_groups += worker->n_groups;
        out->n_dense_blocks += worker->n_dense_blocks;
        out->n_tails += worker->n_tails;
    }
    out->attends = drey_engine_unit_no_attention(engine, i) == NULL;
    if (u->failed)
        snprintf(out->failed, sizeof out->failed, "%s", u->why);
    return true;
}

const char *drey_engine_unit_no_attention(const drey_engine *engine, int32_t i)
{
    const unit_set *us = engine->units;
    if (!us || i < us->n_clusters || i >= us->n)
        return NULL;
    const unit *u = &us->unit[i];
    return u->failed ? u->why : u->no_attention[0] ? u->no_attention : NULL;
}
