/* Finds a plan that fits: see plan.h. */
#include "plan/plan.h"
#include "base/usual.h"

#include <stdio.h>

#include "common/num.h"
#include "common/size_text.h"
#include "draft/drafter.h"
#include "drey/tune.h"
#include "model/arch.h"
#include "model/deferred.h"
#include "model/workspace.h"
#include "state/cache_room.h"
#include "state/kv_file.h"

/* Matrices up to this size are pinned before others. */
static const uint64_t small_bytes = 1 << 20;
static const uint64_t mib = 1 << 20;

/* Rows of a prompt pass, and rows whose logits are kept beyond what a turn needs (scoring takes
 * them by so many), from generous to frugal. A pass reads all streamed weights, so a prompt should
 * take few passes; but the buffers of its rows take memory from weights. */
typedef struct setting {
    int32_t chunk, logit_rows;
} setting;
static const setting settings[] = {{256, 32}, {128, 32}, {64, 1}, {32, 1}};
enum { N_SETTINGS = sizeof settings / sizeof *settings };

/* ---- Sizes ---- */

static bool has_passes(const plan_model *m)
{
    return m->shape != NULL;
}

/* The target's, if a side model is a view of it: planes are pinned by bits then. */
static bool is_viewed(const plan_inputs *in)
{
    return in->model[PLAN_DRAFT].is_view;
}

static bool is_small(const residency *groups)
{
    return residency_rest_bytes(groups) <= small_bytes;
}

/* Page tables: an entry of eight bytes per page. */
static uint64_t with_page_tables(uint64_t bytes)
{
    return bytes + bytes / 512;
}

/* Bytes of a model's weights, with planes of which only some groups are in memory. */
static uint64_t model_pinned_bytes(const plan_inputs *in, const plan_result *r, int model)
{
    const plan_model *m = &in->model[model];
    uint64_t total = 0;
    for (int32_t i = 0; i < m->n_matrices; i++)
        total += residency_bytes(&r->residency[model][i]);
    return total;
}

/* Bytes of a matrix that must stay; if it is split, its first plane must. */
static uint64_t staying_bytes(const plan_matrix *m)
{
    const residency *g = &m->groups;
    size_t group_bytes = g->split ? g->plane_bytes[0] : g->group_bytes;
    return m->must_stay ? (uint64_t)g->n_groups * group_bytes : 0;
}

/* Memory for n expert slots, all layers together. */
static uint64_t experts_bytes_of(const plan_experts *e, int32_t n)
{
    return e->most ? e->fixed_bytes + (uint64_t)n * e->slot_bytes : 0;
}

uint64_t plan_staying_bytes(const plan_inputs *in)
{
    const plan_model *m = &in->model[PLAN_TARGET];
    uint64_t total = experts_bytes_of(&m->experts, m->experts.least);
    for (int32_t i = 0; i < m->n_matrices; i++)
        total += staying_bytes(&m->matrix[i]);
    return total;
}

/* Rows of a draft that are no prompt's are those of a tree, and a few that it catches up with. */
static cache_spec spec_of(const plan_inputs *in, const plan_result *r, int model, kv_format format)
{
    cache_spec spec = model_cache_spec(in->model[model].shape, format);
    spec.max_deferred = model == PLAN_TARGET ? in->deferred_rows : 0;
    spec.max_tree = in->spare_rows + (model == PLAN_DRAFT ? in->draft.cache_nodes : r->logit_rows);
    return spec;
}

cache_spec plan_cache_spec(const plan_inputs *in, const plan_result *r, int model)
{
    return spec_of(in, r, model, in->kv);
}

static uint64_t model_cache_bytes(const plan_inputs *in, int model, kv_format format,
                                  const plan_result *r)
{
    const plan_model *m = &in->model[model];
    if (!has_passes(m))
        return 0;
    const cache_spec spec = spec_of(in, r, model, format);
    if (m->is_view)
        return cache_view_bytes(&spec, r->draft_pending);
    return model == PLAN_DRAFT ? cache_bytes(&spec, r->draft_slots, r->draft_pending)
                               : cache_bytes(&spec, r->n_slots, r->max_pending);
}

static uint64_t caches_bytes(const plan_inputs *in, kv_format format, const plan_result *r)
{
    uint64_t total = 0;
    for (int i = 0; i < PLAN_MODELS; i++)
        total += model_cache_bytes(in, i, format, r);
    return total;
}

/* Bytes of an encoder's output, in each of a session's models that have one. */
static uint64_t cross_bytes(const plan_inputs *in)
{
    uint64_t total = 0;
    for (int i = 0; i < PLAN_MODELS; i++) {
        const plan_model *m = &in->model[i];
        if (!has_passes(m) || m->is_view || !shape_reads(m->shape))
            continue;
        const cache_spec spec = model_cache_spec(m->shape, in->kv);
        total += cache_bytes(&spec, in->n_context, 0);
    }
    return total;
}

workspace_limits plan_workspace(const plan_inputs *in, const plan_result *r, int model)
{
    enum { DRAFT_CHUNK = 64 };
    workspace_limits limits = {.max_rows = r->max_rows,
                               .max_logit_rows = r->logit_rows,
                               .max_deferred = in->deferred_rows,
                               .max_tap_rows =
                                   max_i32(in->tap_rows, in->tapped_layers * r->max_rows),
                               .max_groups = in->n_sessions,
                               .max_pending = r->max_pending,
                               .n_slots = r->n_slots,
                               .n_threads = in->n_threads,
                               .n_attending = in->n_attending,
                               .n_devices = in->n_devices,
                               .n_logits = in->model[model].n_logits,
                               .offloads = model == PLAN_TARGET && r->window > 0};
    if (model == PLAN_DRAFT) {
        bool is_view = in->model[model].is_view;
        limits.max_rows =
            is_view ? DRAFT_MAX_BATCH : max_i32(in->spare_rows, min_i32(r->chunk, DRAFT_CHUNK));
        limits.max_logit_rows = DRAFT_MAX_BATCH;
        limits.max_deferred = 0;
        limits.max_tap_rows = in->tapped_layers ? DRAFT_MAX_BATCH : 0;
        limits.max_groups = min_i32(in->n_sessions, DRAFT_MAX_BATCH);
        limits.max_pending = r->draft_pending;
        limits.n_slots = is_view ? r->n_slots : r->draft_slots;
    }
    return limits;
}

static size_t work_bytes(const plan_inputs *in, const plan_result *r)
{
    size_t total = 0;
    for (int i = 0; i < PLAN_MODELS; i++) {
        const plan_model *m = &in->model[i];
        workspace_limits limits = plan_workspace(in, r, i);
        if (has_passes(m))
            total += workspace_bytes(m->shape, m->blocks, &limits);
    }
    return total;
}

static store_shape target_kv(const plan_inputs *in)
{
    return model_cache_spec(in->model[PLAN_TARGET].shape, in->kv).store[0].shape;
}

kv_file_options plan_kv_file(const plan_inputs *in, const plan_result *r)
{
    const store_shape shape = target_kv(in);
    return (kv_file_options){.n_caches = in->n_sessions,
                             .shape = shape,
                             .n_context = in->n_context,
                             .chunk = kv_chunk_of(&shape, r->window)};
}

/* Bytes of a position in all layers of the target. */
static uint64_t position_bytes(const plan_inputs *in)
{
    const cache_spec spec = model_cache_spec(in->model[PLAN_TARGET].shape, in->kv);
    return cache_positions_bytes(&spec, ATTEND_BLOCK) / ATTEND_BLOCK;
}

/* ---- What does not depend on pinning ---- */

static uint64_t ring_least(const plan_inputs *in, int model)
{
    return in->model[model].ring_least_bytes * (uint64_t)in->n_units;
}

/* Takes rows and rings. A turn needs the logits of its tree; a shared pass needs those of one row
 * per session. */
static void choose(const plan_inputs *in, const setting *s, uint64_t target_ring, plan_result *r)
{
    int32_t need = max_i32(in->draft.tree_nodes + 1, max_i32(in->n_sessions, in->least_logit_rows));
    r->chunk = in->prompt_chunk ? in->prompt_chunk : s->chunk;
    r->logit_rows = max_i32(need, s->logit_rows);
    r->max_rows = max_i32(r->chunk, r->logit_rows);
    r->max_pending = r->max_rows + in->spare_rows;
    r->n_slots = r->window ? r->window + r->max_pending
                           : in->n_context + in->draft.tree_nodes + in->spare_rows + 1;
    r->draft_pending = max_i32(r->max_rows, in->draft.cache_nodes) + in->spare_rows;
    r->draft_slots = (is_viewed(in) ? 0 : in->n_context) + in->draft.cache_nodes + in->spare_rows;
    r->n_slots += is_viewed(in) ? r->draft_slots : 0;
    for (int i = 0; i < PLAN_MODELS; i++)
        r->ring_bytes[i] = (size_t)ring_least(in, i);
    r->ring_bytes[PLAN_TARGET] = max_size(r->ring_bytes[PLAN_TARGET], (size_t)target_ring);
}

static void count_sessions(const plan_inputs *in, plan_result *r)
{
    drey_plan *t = &r->report;
    uint64_t n = (uint64_t)in->n_sessions;
    uint64_t caches = caches_bytes(in, in->kv, r), plain = caches_bytes(in, in->kv_plain, r);
    uint64_t cross = cross_bytes(in);
    r->session_bytes = (size_t)(caches + cross + in->session_state_bytes) +
                       deferred_bytes(in->model[PLAN_TARGET].shape, in->deferred_rows);
    t->session_bytes = r->session_bytes;
    t->kv_bytes = n * (caches + cross);
    t->cross_kv_bytes = n * cross;
    const cache_spec target = plan_cache_spec(in, r, PLAN_TARGET);
    t->state_bytes = n * cache_states_bytes(&target, r->n_slots, r->max_pending);
    t->draft_kv_bytes = n * (caches - model_cache_bytes(in, PLAN_TARGET, in->kv, r));
    t->kv_saved_bytes = plain > caches ? n * (plain - caches) : 0;
    r->work_bytes = work_bytes(in, r);
    t->work_bytes = r->work_bytes + n * (t->session_bytes - caches - cross);
    if (r->window) {
        const kv_file_options away = plan_kv_file(in, r);
        t->work_bytes += kv_file_bytes(&away);
    }
}

/* Everything except what is pinned by choice, for the chosen rows and rings. */
static uint64_t fixed_bytes(const plan_inputs *in, plan_result *r)
{
    drey_plan *t = &r->report;
    count_sessions(in, r);
    uint64_t stays = 0;
    t->ring_bytes = t->queue_bytes = t->encoder_bytes = 0;
    for (int i = 0; i < PLAN_MODELS; i++) {
        const plan_model *m = &in->model[i];
        t->ring_bytes += r->ring_bytes[i];
        t->queue_bytes += m->queue_bytes;
        t->work_bytes += m->overhead_bytes;
        t->encoder_bytes += m->encoder_bytes;
        stays += m->resident_bytes + experts_bytes_of(&m->experts, m->experts.least);
        for (int32_t j = 0; j < m->n_matrices; j++)
            stays += staying_bytes(&m->matrix[j]);
    }
    t->process_bytes =
        t->program_bytes + t->tokenizer_bytes + t->stack_bytes + t->queue_bytes + t->reserve_bytes;
    return with_page_tables(t->ring_bytes + t->kv_bytes + t->work_bytes + t->held_bytes +
                            t->prefix_bytes + t->encoder_bytes + t->process_bytes + stays);
}

/* Takes the largest setting whose memory beyond the least one, with a larger ring, base/usual.h
 * allows. Returns fixed_bytes. */
static uint64_t choose_within(const plan_inputs *in, uint64_t budget, uint64_t least,
                              plan_result *r)
{
    uint64_t most = min_u64(budget / USUAL_SETTING_PART, (budget - least) / 2);
    uint64_t ring =
        min_u64(max_u64(budget / USUAL_RING_PART, USUAL_RING_LEAST_BYTES), USUAL_RING_MOST_BYTES);
    for (int i = 0; i < N_SETTINGS - 1; i++) {
        choose(in, &settings[i], ring, r);
        uint64_t fixed = fixed_bytes(in, r);
        if (fixed <= least + most)
            return fixed;
    }
    choose(in, &settings[N_SETTINGS - 1], 0, r);
    return fixed_bytes(in, r);
}

/* ---- Pinning ---- */

static void pin_least(const plan_inputs *in, plan_result *r)
{
    for (int i = 0; i < PLAN_MODELS; i++) {
        r->expert_slots[i] = in->model[i].experts.least;
        for (int32_t j = 0; j < in->model[i].n_matrices; j++) {
            const plan_matrix *m = &in->model[i].matrix[j];
            residency *stays = &r->residency[i][j];
            *stays = m->groups;
            if (m->must_stay)
                *(stays->split ? &stays->n_planes[0] : &stays->n_pinned) = stays->n_groups;
        }
    }
}

/* The plane with a weight's bit of this number, counted from 1; 0: none after the first plane. */
static int plane_of_bit(const plan_matrix *m, int32_t bit)
{
    int32_t plane = bit - m->first_bits;
    return m->groups.split && plane > 0 && plane < N_PLANES ? plane : 0;
}

/* Takes an equal share of the planes of this bit; all bits before it are in memory. Groups whose
 * last plane is in memory are pinned. Returns whether there was room for all. */
static bool pin_bit(const plan_model *target, plan_result *r, int32_t bit, uint64_t *room)
{
    uint64_t all = 0;
    for (int32_t i = 0; i < target->n_matrices; i++) {
        const plan_matrix *m = &target->matrix[i];
        int plane = plane_of_bit(m, bit);
        all += plane ? (uint64_t)m->groups.n_groups * m->groups.plane_bytes[plane] : 0;
    }
    bool whole = *room >= all;
    double share = whole ? 1.0 : (double)*room / (double)all;
    for (int32_t i = 0; i < target->n_matrices; i++) {
        residency *stays = &r->residency[PLAN_TARGET][i];
        int plane = plane_of_bit(&target->matrix[i], bit);
        if (!plane)
            continue;
        int32_t n = (int32_t)(share * stays->n_groups);
        *(plane < N_PLANES - 1 ? &stays->n_planes[plane] : &stays->n_pinned) = n;
        *room -= (uint64_t)n * stays->plane_bytes[plane];
    }
    return whole;
}

static uint64_t unpinned_bytes(const residency *m)
{
    return (uint64_t)(m->n_groups - m->n_pinned) * m->group_bytes;
}

/* Pins up to `most` more groups, as far as there is room. */
static void pin_more(residency *m, int32_t most, uint64_t *room)
{
    uint64_t n =
        min_u64((uint64_t)min_i32(most, m->n_groups - m->n_pinned), *room / m->group_bytes);
    m->n_pinned += (int32_t)n;
    *room -= n * m->group_bytes;
}

static void pin_whole(residency *m, uint64_t *room)
{
    if (unpinned_bytes(m) <= *room)
        pin_more(m, m->n_groups, room);
}

/* stays: [n]. */
static void pin_share(residency *stays, int32_t n, uint64_t *room)
{
    uint64_t rest = 0;
    for (int32_t i = 0; i < n; i++)
        rest += stays[i].in_pass ? unpinned_bytes(&stays[i]) : 0;
    if (rest == 0)
        return;
    double share = *room >= rest ? 1.0 : (double)*room / (double)rest;
    for (int32_t i = 0; i < n; i++)
        if (stays[i].in_pass)
            pin_more(&stays[i], (int32_t)(share * (stays[i].n_groups - stays[i].n_pinned)), room);
    for (int32_t i = 0; i < n; i++)
        if (stays[i].in_pass)
            pin_more(&stays[i], 1, room);
}

/* Pins this share of each matrix, in the order of a pass, of as many as there is room for. */
static void pin_front(residency *stays, int32_t n, double share, uint64_t *room)
{
    for (int32_t i = 0; i < n; i++) {
        int32_t more = (int32_t)(share * stays[i].n_groups) - stays[i].n_pinned;
        if (stays[i].in_pass && more > 0)
            pin_more(&stays[i], more, room);
    }
}

/* Bytes that a pass of the target streams. */
static uint64_t streamed_bytes(const plan_inputs *in, const plan_result *r)
{
    uint64_t total = 0;
    for (int32_t i = 0; i < in->model[PLAN_TARGET].n_matrices; i++)
        total += residency_streamed_bytes(&r->residency[PLAN_TARGET][i]);
    return total;
}

static void pin_lookups(const plan_inputs *in, plan_result *r, uint64_t *room)
{
    for (int i = PLAN_MODELS - 1; i >= 0; i--)
        for (int32_t j = 0; j < in->model[i].n_matrices; j++)
            if (!r->residency[i][j].in_pass && !in->model[i].matrix[j].of_experts)
                pin_whole(&r->residency[i][j], room);
}

/* More slots for the target's experts, as far as there is room. */
static void add_slots(const plan_inputs *in, plan_result *r, uint64_t *room)
{
    const plan_experts *e = &in->model[PLAN_TARGET].experts;
    if (e->most == 0)
        return;
    int32_t more = e->most - e->least;
    if (*room / e->slot_bytes < (uint64_t)more)
        more = (int32_t)(*room / e->slot_bytes);
    r->expert_slots[PLAN_TARGET] += more;
    *room -= (uint64_t)more * e->slot_bytes;
}

static void pin_bits(const plan_model *target, plan_result *r, uint64_t *room)
{
    enum { MOST_BITS = 8 };
    for (int32_t bit = 1; bit <= MOST_BITS && pin_bit(target, r, bit, room); bit++)
        ;
}

/* Pins the head, small matrices, and of the others an equal share, or (front_share) this share of
 * the first ones. Returns the remaining room. */
static uint64_t pin_groups(const plan_inputs *in, uint64_t room, double front_share, plan_result *r)
{
    residency *stays = r->residency[PLAN_TARGET];
    int32_t n = in->model[PLAN_TARGET].n_matrices;
    pin_least(in, r);
    pin_more(&stays[n - 1], stays[n - 1].n_groups, &room);
    for (int32_t i = 0; i < n; i++)
        if (stays[i].in_pass && is_small(&in->model[PLAN_TARGET].matrix[i].groups))
            pin_whole(&stays[i], &room);
    if (front_share > 0)
        pin_front(stays, n, front_share, &room);
    pin_share(stays, n, &room); /* all of it, or what a share rounds off */
    return room;
}

/* The share of the first layers that makes the mean pass the shortest; 0: an equal share of all is
 * better. */
static double best_front_share(const plan_inputs *in, uint64_t room, plan_result *r)
{
    const double least_gain =
        USUAL_FRONT_GAIN; /* prompts' passes, which go to their end, lose a little */
    double best = 0;
    if (in->exit_layers <= 0)
        return best;
    pin_groups(in, room, best, r);
    double best_s = (1 - least_gain) * plan_expected_pass_s(in, r);
    for (int percent = 100; percent >= 60; percent -= 2) {
        pin_groups(in, room, 0.01 * percent, r);
        double s = plan_expected_pass_s(in, r);
        if (s < best_s) {
            best_s = s;
            best = 0.01 * percent;
        }
    }
    return best;
}

static void pin(const plan_inputs *in, uint64_t room, plan_result *r)
{
    double front_share = is_viewed(in) ? 0 : best_front_share(in, room, r);
    if (is_viewed(in))
        pin_bits(&in->model[PLAN_TARGET], r, &room);
    else
        room = pin_groups(in, room, front_share, r);
    add_slots(in, r, &room);
    if (streamed_bytes(in, r) == 0)
        pin_lookups(in, r, &room);
    r->report.front_layers = front_share > 0 ? plan_leading_layers(in, r) : 0;
}

uint64_t plan_step_bytes(const plan_inputs *in, const plan_result *r)
{
    return is_viewed(in) ? r->report.pinned_bytes : r->report.draft_bytes;
}

static void pin_share_of_each(const plan_inputs *in, plan_result *r)
{
    const plan_experts *e = &in->model[PLAN_TARGET].experts;
    r->expert_slots[PLAN_TARGET] = max_i32(e->least, (int32_t)(in->share * e->most));
    for (int32_t i = 0; i < in->model[PLAN_TARGET].n_matrices; i++) {
        residency *stays = &r->residency[PLAN_TARGET][i];
        if (stays->in_pass)
            stays->n_pinned = max_i32(stays->n_pinned, (int32_t)(in->share * stays->n_groups));
    }
}

/* Weights that are in memory, whatever they are. */
static uint64_t side_bytes(const plan_inputs *in, const plan_result *r, int model)
{
    const plan_model *m = &in->model[model];
    return m->resident_bytes + model_pinned_bytes(in, r, model) +
           experts_bytes_of(&m->experts, r->expert_slots[model]);
}

/* ---- The report ---- */

static void begin_report(const plan_inputs *in, uint64_t budget_bytes, drey_plan *t)
{
    *t = (drey_plan){.budget_bytes = budget_bytes,
                     .budget_is_estimate = in->facts.budget_is_estimate,
                     .target_bytes = in->facts.target_bytes,
                     .held_bytes = in->process.held_bytes,
                     .prefix_bytes = in->process.prefix_bytes,
                     .program_bytes = in->process.program_bytes,
                     .tokenizer_bytes = in->process.tokenizer_bytes,
                     .stack_bytes = in->process.stack_bytes,
                     .reserve_bytes = in->process.reserve_bytes,
                     .kv = in->facts.kv_name,
                     .draft_ids = in->draft.n_ids,
                     .n_context = in->n_context,
                     .n_sessions = in->n_sessions,
                     .tree_rows = in->draft.tree_nodes + 1,
                     .n_threads = in->n_threads,
                     .sidecar = in->facts.sidecar};
    snprintf(t->sidecar_refused, sizeof t->sidecar_refused, "%s", in->facts.sidecar_refused);
}

static void report_experts(const plan_inputs *in, plan_result *r)
{
    drey_plan *t = &r->report;
    const plan_experts *e = &in->model[PLAN_TARGET].experts;
    if (e->most == 0)
        return;
    t->n_experts = e->most;
    t->expert_slots = r->expert_slots[PLAN_TARGET];
    t->expert_layers = e->n_layers;
    t->experts_used = e->least / e->n_layers;
    t->expert_bytes = experts_bytes_of(e, t->expert_slots);
    t->expert_hits = plan_expert_hits(in, t->expert_slots);
    t->route_tokens = in->routes ? in->routes->n_tokens : 0;
    t->streamed_bytes_per_pass += (uint64_t)((1 - t->expert_hits) * (double)e->token_bytes);
}

static void report_window(const plan_inputs *in, plan_result *r)
{
    drey_plan *t = &r->report;
    t->kv_window = r->window;
    if (r->window == 0)
        return;
    /* Half of a window stays when it is full; it has grown again before it is. */
    uint64_t away = (uint64_t)max_i32(in->n_context - r->window / 2, 0);
    t->kv_read_bytes = away * position_bytes(in);
    t->kv_file_bytes = (uint64_t)in->n_sessions * t->kv_read_bytes;
}

/* fixed: of it `stays` bytes are pinned weights. */
static void end_report(const plan_inputs *in, uint64_t fixed, uint64_t stays, plan_result *r)
{
    drey_plan *t = &r->report;
    t->pinned_bytes = model_pinned_bytes(in, r, PLAN_TARGET);
    t->streamed_bytes_per_pass = streamed_bytes(in, r);
    report_experts(in, r);
    for (int i = PLAN_TARGET + 1; i < PLAN_MODELS; i++)
        t->draft_bytes += side_bytes(in, r, i);
    for (int32_t i = 0; i < in->model[PLAN_TARGET].n_matrices; i++) {
        const residency *m = &r->residency[PLAN_TARGET][i];
        if (in->model[PLAN_TARGET].matrix[i].of_experts)
            continue;
        if (!m->in_pass)
            t->lookup_bytes += residency_rest_bytes(m);
        else if (residency_is_whole(m))
            t->n_tensors_pinned++;
        else
            t->n_tensors_streamed++;
    }
    t->prompt_chunk = r->chunk;
    report_window(in, r);
    uint64_t used =
        fixed + with_page_tables(t->pinned_bytes + t->expert_bytes + t->draft_bytes - stays);
    uint64_t named = t->pinned_bytes + t->expert_bytes + t->draft_bytes + t->ring_bytes +
                     t->kv_bytes + t->work_bytes + t->held_bytes + t->prefix_bytes +
                     t->encoder_bytes + t->process_bytes;
    t->reserve_bytes += used - named;
    t->process_bytes += used - named;
    t->spare_bytes = t->budget_bytes == DREY_MEMORY_UNLIMITED ? 0 : t->budget_bytes - used;
}

static drey_status too_small(const plan_inputs *in, const drey_plan *t, drey_error *err)
{
    const plan_model *draft = &in->model[PLAN_DRAFT];
    char least[16];
    FAIL_HINT(err, DREY_ERR_MEMORY, DREY_HINT_MEMORY_BYTES,
              "a budget of %s is too small; the smallest that works here is %s %s, for a context "
              "of %d",
              SIZE_TEXT(t->budget_bytes), format_bytes_up(least, (double)t->smallest_budget_bytes),
              has_passes(draft) || draft->resident_bytes ? "with this draft (less without one)"
                                                         : "without a draft",
              t->n_context);
}

/* Makes the plan with the result's window. */
static drey_status make_with_window(const plan_inputs *in, uint64_t budget_bytes, plan_result *r,
                                    drey_error *err)
{
    drey_plan *t = &r->report;
    r->tree_nodes = in->draft.tree_nodes;
    begin_report(in, budget_bytes, t);
    choose(in, &settings[N_SETTINGS - 1], 0, r);
    uint64_t least = fixed_bytes(in, r);
    /* A budget that a message gives in one run must work in the next. */
    t->smallest_budget_bytes = (least + mib / 2 + mib - 1) / mib * mib;
    if (budget_bytes < least)
        return too_small(in, t, err);
    uint64_t fixed = choose_within(in, budget_bytes, least, r);
    uint64_t room = budget_bytes - fixed, stays = 0;
    pin_least(in, r);
    for (int i = 0; i < PLAN_MODELS; i++)
        stays += side_bytes(in, r, i);
    if (in->set_share)
        pin_share_of_each(in, r);
    else
        pin(in, room - room / 512, r);
    end_report(in, fixed, stays, r);
    r->report.expected_tokens_per_s = plan_expect(in, r);
    return DREY_OK;
}

/* Positions of a window of that many bytes in all sessions; 0: all of them have room. */
static int32_t window_of(const plan_inputs *in, uint64_t bytes)
{
    uint64_t n = bytes / (uint64_t)in->n_sessions / position_bytes(in) / ATTEND_BLOCK;
    uint64_t all = (uint64_t)in->n_context / ATTEND_BLOCK;
    return n >= all ? 0 : max_i32((int32_t)n * ATTEND_BLOCK, KV_LEAST_WINDOW);
}

static bool reads_no_weights(const plan_inputs *in, const plan_result *r)
{
    return streamed_bytes(in, r) == 0 &&
           r->expert_slots[PLAN_TARGET] == in->model[PLAN_TARGET].experts.most;
}

/* The largest window that takes no memory from weights, from one that works. */
static drey_status grow_window(const plan_inputs *in, uint64_t budget_bytes, plan_result *r,
                               drey_error *err)
{
    int32_t good = r->window / ATTEND_BLOCK, bad = in->n_context / ATTEND_BLOCK + 1;
    bool whole = reads_no_weights(in, r);
    while (whole && bad - good > 1) {
        int32_t n = good + (bad - good) / 2;
        r->window = n * ATTEND_BLOCK;
        bool fits = make_with_window(in, budget_bytes, r, NULL) == DREY_OK;
        fits = fits && reads_no_weights(in, r);
        *(fits ? &good : &bad) = n;
    }
    r->window = good * ATTEND_BLOCK;
    return make_with_window(in, budget_bytes, r, err);
}

/* The least window with reads of the usual size. */
static int32_t least_window(const plan_inputs *in)
{
    const store_shape shape = target_kv(in);
    int32_t usual = kv_default_window(&shape);
    return max_i32(min_i32(usual, in->n_context / ATTEND_BLOCK * ATTEND_BLOCK), KV_LEAST_WINDOW);
}

/* All keys and values in memory if that leaves room for all weights, else a window of them. */
static drey_status make_either(const plan_inputs *in, uint64_t budget_bytes, plan_result *r,
                               drey_error *err)
{
    r->window = least_window(in);
    TRY(make_with_window(in, budget_bytes, r, err));
    const uint64_t smallest = r->report.smallest_budget_bytes;
    const int32_t window = r->window;
    r->window = 0;
    drey_status status = make_with_window(in, budget_bytes, r, NULL);
    if (status != DREY_OK || !reads_no_weights(in, r)) {
        r->window = window;
        TRY(make_with_window(in, budget_bytes, r, err));
        status = grow_window(in, budget_bytes, r, err);
    }
    r->report.smallest_budget_bytes = smallest;
    return status;
}

drey_status plan_make(const plan_inputs *in, uint64_t budget_bytes, plan_result *r, drey_error *err)
{
    if (in->process.offload.may_be && in->process.offload.memory_bytes == 0 &&
        in->n_context > KV_LEAST_WINDOW)
        return make_either(in, budget_bytes, r, err);
    r->window = in->process.offload.may_be && in->process.offload.memory_bytes
                    ? window_of(in, in->process.offload.memory_bytes)
                    : 0;
    return make_with_window(in, budget_bytes, r, err);
}
