/* The inputs of a plan, gathered once: the models' tensors, their sidecar, the process. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "base/usual.h"
#include "draft/model_drafter.h"
#include "engine/engine.h"
#include "exit/exit.h"
#include "exit/exit_file.h"
#include "exit/exit_open.h"
#include "os/memory.h"
#include "os/pool.h"
#include "state/cache_room.h"
#include "text/tokenizer.h"
#include "unit/units.h"
#include "weights/experts.h"

/* More than any budget, and small enough that sums with it do not overflow. */
static const uint64_t most_held_bytes = (uint64_t)1 << 60;

/* The draft's head over a slice of its vocabulary. In vocabularies that are made by merging pairs,
 * low ids were merged first: they are the frequent ones. Of the others, those that the text or its
 * prompt has used are loaded. (base/usual.h: how many stay.) */
enum {
    SLICE_IDS = USUAL_SLICE_IDS,
    SINGLE_SLICE_IDS = USUAL_SINGLE_SLICE_IDS,
    SLICE_ROOM = USUAL_SLICE_ROOM
};

static void slice_head(drey_engine *e)
{
    const engine_hooks *hooks = &e->hooks;
    const policy_class *policy = e->config.policy;
    int32_t usual = policy && policy->alone ? SINGLE_SLICE_IDS : SLICE_IDS;
    int32_t n_ids = hooks->slice_ids ? hooks->slice_ids : usual;
    int32_t room = hooks->slice_room ? hooks->slice_room : SLICE_ROOM;
    int32_t n_vocab = e->draft.layout.shape.n_vocab;
    bool whole = e->config.research.without & DREY_WITHOUT(DREY_PART_SLICE);
    whole = whole || e->draft.layout.after.fuse;
    if (!whole && n_ids + room <= n_vocab - n_vocab / 4)
        model_layout_slice(&e->draft.layout, n_ids, room);
}

static drey_status bind(drey_engine *e, engine_side *side, const drey_model *m, drey_error *err)
{
    TRY(arena_init(&side->layout_memory, model_layout_bytes(&m->shape, m->file), false, err));
    TRY(model_layout_of(&side->layout, &m->shape, m->file, e->kernels, &side->layout_memory, err));
    if (side == &e->draft)
        slice_head(e);
    uint64_t read_bytes = e->config.reads.bytes;
    for (int32_t i = 0; read_bytes && i < side->layout.n_matrices; i++)
        weight_set_read(&side->layout.matrix[i], (int64_t)read_bytes);
    const encoder_needs needs = engine_encoder_needs(e);
    return encoder_bind(&side->encoder, m, &needs, err);
}

/* ---- Inputs ---- */

static uint64_t header_bytes(const drey_model *m)
{
    return gguf_header_bytes(m->file) + tokenizer_bytes(m->tokenizer);
}

/* The memory of the process, whatever the budget is. The draft is counted later. */
static void count_process(drey_engine *e)
{
    plan_process *p = &e->inputs.process;
    uint64_t held = memory_program();
    p->tokenizer_bytes = header_bytes(e->config.target);
    p->program_bytes = held > p->tokenizer_bytes ? held - p->tokenizer_bytes : 0;
    p->stack_bytes = (uint64_t)e->config.n_threads * pool_thread_bytes();
}

/* Its header and tokenizer are in memory, so program_bytes has counted them. */
static void count_draft(drey_engine *e)
{
    plan_process *p = &e->inputs.process;
    if (e->config.draft->file == e->config.target->file)
        return;
    uint64_t n_bytes = header_bytes(e->config.draft);
    p->tokenizer_bytes += n_bytes;
    p->program_bytes -= min_u64(n_bytes, p->program_bytes);
}

void engine_without_header(drey_engine *e, const drey_model *m)
{
    plan_process *p = &e->inputs.process;
    p->program_bytes -= min_u64(header_bytes(m), p->program_bytes);
}

/* Files that cannot be read directly: reads that are in the page cache. The amount of one stream is
 * reserved in any case: kernel structures and libraries may need as much. */
static void count_cached(drey_engine *e)
{
    const drey_model *models[] = {e->config.target, e->config.draft};
    uint64_t cached = 0;
    for (int i = 0; i < 2 && models[i]; i++) {
        const gguf *g = models[i]->file;
        const char *sidecar = i == 0 ? e->sidecar.path : NULL;
        size_t most = sidecar ? stream_cached_bytes(&sidecar, 1, e->config.reads.io) : 0;
        for (int32_t part = 0; part < gguf_n_shards(g); part++) {
            const char *path = gguf_shard_path(g, part);
            most = max_size(most, stream_cached_bytes(&path, 1, e->config.reads.io));
        }
        cached += most;
    }
    e->inputs.process.reserve_bytes =
        (uint64_t)USUAL_SLACK_BYTES + max_u64(cached, (uint64_t)USUAL_LEAST_CACHED_BYTES);
}

static bool views_target(const drey_engine *e)
{
    return engine_draft_side(e) == DRAFT_SIDE_VIEW;
}

static uint64_t slots_bytes(const drey_engine *e, const model_layout *l, int32_t n_slots)
{
    return weights_experts_bytes(l->experts, l->shape.n_layers, n_slots, e->config.n_threads,
                                 e->units);
}

/* Bytes are made a straight line that nowhere is too low: layers' slots differ in size. */
static plan_experts gather_experts(const drey_engine *e, const model_layout *l, bool all)
{
    const router_shape *r = &l->shape.experts.router;
    int32_t n = l->shape.n_layers;
    if (!l->experts)
        return (plan_experts){0};
    int32_t n_with = experts_layers(l->experts, n), most = n_with * r->n_experts;
    plan_experts x = {.n_layers = n_with, .least = all ? most : n_with * r->n_used, .most = most};
    uint64_t least_bytes = slots_bytes(e, l, x.least);
    x.slot_bytes =
        (slots_bytes(e, l, most) - least_bytes) / (uint64_t)max_i32(most - x.least, 1) + 1;
    for (int32_t i = x.least; i <= most; i++) {
        uint64_t bytes = slots_bytes(e, l, i), slots = (uint64_t)i * x.slot_bytes;
        x.fixed_bytes = max_u64(x.fixed_bytes, bytes > slots ? bytes - slots : 0);
    }
    for (int32_t i = 0; i < n; i++)
        for (int m = 0; m < EXPERT_MATRICES && l->experts[i].n_experts > 0; m++) {
            const expert_matrix *of = &l->experts[i].matrix[m];
            uint64_t groups = (uint64_t)r->n_used * (uint64_t)of->n_groups;
            x.token_bytes += groups * of->all->residency.group_read_bytes;
            x.token_numbers += (double)(groups * GROUP_ROWS) * (double)of->all->form.k;
        }
    return x;
}

static bool is_of_experts(const model_layout *l, const weight *m)
{
    return l->experts && !m->residency.in_pass && m != l->embedding;
}

static plan_matrix describe(const weight *m, bool must_stay, bool of_experts)
{
    return (plan_matrix){.groups = m->residency,
                         .numbers = (double)m->form.n_rows * (double)m->form.k,
                         .must_stay = must_stay && m->residency.in_pass,
                         .of_experts = of_experts,
                         .first_bits = m->form.planes ? m->form.planes->bits : 0};
}

/* Memory of the table of a sliced head; 0 for a whole one. */
static size_t head_table_bytes(const model_layout *l)
{
    return model_layout_is_sliced(l) ? row_table_bytes(l->head, model_layout_room(l)) : 0;
}

static void gather_model(drey_engine *e, int model, const engine_side *side, const drey_model *m)
{
    const model_layout *l = &side->layout;
    int32_t n = l->n_matrices, n_parts = gguf_n_shards(m->file);
    bool is_draft = model == PLAN_DRAFT;
    size_t table_bytes = head_table_bytes(l);
    const encoder_needs needs = engine_encoder_needs(e);
    plan_matrix *matrix = arena_take(&e->memory.plan, (size_t)n * sizeof *matrix);
    bool all_stay = is_draft || views_target(e) || l->experts;
    for (int32_t i = 0; i < n; i++)
        matrix[i] = describe(&l->matrix[i], all_stay || (e->inputs.deferred_rows > 0 && i == n - 1),
                             is_of_experts(l, &l->matrix[i]));
    e->plan.residency[model] = arena_take(&e->memory.plan, (size_t)n * sizeof(residency));
    e->inputs.model[model] = (plan_model){
        .shape = &l->shape,
        .blocks = &l->program.blocks,
        .matrix = matrix,
        .n_matrices = n,
        .overhead_bytes = weights_overhead_bytes(l->matrix, n, l->embedding, n_parts,
                                                 e->config.n_threads, e->units) +
                          weights_lookup_bytes(l->looked_up, e->config.n_threads) +
                          side->layout_memory.size_bytes + table_bytes,
        .queue_bytes = weights_stream_bytes(l->matrix, n, n_parts),
        .ring_least_bytes = max_u64(weights_ring_least(l->matrix, n),
                                    is_draft ? (uint64_t)USUAL_DRAFT_RING_BYTES : 0),
        .n_logits = l->n_logits,
        .encoder_bytes = encoder_bytes(&side->encoder, m, &needs),
        .experts = gather_experts(e, l, is_draft),
    };
}

static bool verifies_roots_alone(const drey_engine *e)
{
    return !e->config.policy || e->config.policy->alone;
}

/* The drafter's own files, once the target's layout is bound. */
static drey_status open_source(drey_engine *e, drey_error *err)
{
    const engine_config *c = &e->config;
    int32_t n_ids = tokenizer_n_vocab(c->target->tokenizer);
    if (!c->drafter)
        return DREY_OK;
    e->source = (draft_source){.kind = c->drafter};
    e->source.in = (source_in){
        .target = c->target->file,
        .layout = &e->target.layout,
        .path = c->files.draft,
        .side = c->draft ? c->draft->file : NULL,
        .side_shape = c->draft ? &c->draft->shape : NULL,
        .sidecar_refused = e->sidecar.refused,
        .kernels = e->kernels,
        .n_ids = c->draft ? min_i32(n_ids, tokenizer_n_vocab(c->draft->tokenizer)) : n_ids,
        .capacity = c->n_context + 1,
        .looked_up = c->n_context + 1 + (encoder_is_there(&e->target.encoder) ? c->n_context : 0),
        .for_exits = c->exit != DREY_EXIT_OFF && verifies_roots_alone(e)};
    return c->drafter->open ? c->drafter->open(&e->source, err) : DREY_OK;
}

/* Gathers a side without its own matrices, and what else the drafter keeps. */
static void gather_source(drey_engine *e)
{
    plan_inputs *in = &e->inputs;
    const draft_source *src = &e->source;
    plan_model *side = &in->model[PLAN_DRAFT];
    if (views_target(e))
        *side = (plan_model){.shape = &e->target.layout.shape,
                             .blocks = &e->target.layout.program.blocks,
                             .is_view = true,
                             .overhead_bytes = engine_view_bytes(e)};
    in->tapped_layers = src->out.taps ? src->out.taps->n : 0;
    side->resident_bytes = src->out.resident_bytes;
    side->overhead_bytes += src->out.work_bytes + src->out.file_bytes;
    if (src->out.most_steps)
        in->draft.steps = min_i32(in->draft.steps, src->out.most_steps);
    if (!in->draft.trees && src->out.has_trees)
        in->draft.trees = &src->out.trees;
}

/* The memory of prefixes depends on the target and the context. */
static drey_status gather_prefixes(drey_engine *e, drey_error *err)
{
    const drey_prefix_options *o = &e->config.prefixes;
    /* A decoder's keys and values depend on the encoder's input: none serves another text. */
    if (o->memory_bytes == 0 || encoder_is_there(&e->target.encoder))
        return DREY_OK;
    const cache_spec spec = model_cache_spec(&e->target.layout.shape, engine_kv_format(e));
    const prefix_sizes sizes = prefix_sizes_of(&spec, e->config.n_context);
    const size_t ids = (size_t)sizes.n_context * sizeof(int32_t);
    const size_t file_bytes = prefix_file_bytes(&sizes);
    e->inputs.process.prefix_bytes = prefix_memory(o, &sizes);
    if (!e->inputs.process.prefix_bytes && sizes.state)
        FAIL(err, DREY_ERR_USAGE,
             "%" PRIu64
             " bytes are too little to keep prefixes; half of them has to have room for a state of "
             "%zu, the rest for blocks of %d tokens, %zu each",
             o->memory_bytes, sizes.state + ids, PREFIX_POSITIONS, sizes.block + ids);
    if (!e->inputs.process.prefix_bytes)
        FAIL(err, DREY_ERR_USAGE,
             "%" PRIu64 " bytes are too little to keep prefixes; a block of %d tokens takes %zu",
             o->memory_bytes, PREFIX_POSITIONS, sizes.block + ids);
    if (o->folder && o->disk_bytes < file_bytes)
        FAIL(err, DREY_ERR_USAGE,
             "%" PRIu64
             " bytes of disk are too little to keep prefixes; a block of %d tokens takes "
             "%zu",
             o->disk_bytes, PREFIX_POSITIONS, file_bytes);
    return DREY_OK;
}

static size_t plan_memory_bytes(const drey_engine *e)
{
    size_t total = 0, per_matrix = sizeof(plan_matrix) + sizeof(residency);
    const engine_side *sides[] = {&e->target, &e->draft};
    for (int i = 0; i < 2; i++)
        total += (size_t)sides[i]->layout.n_matrices * per_matrix + 2 * ARENA_ALIGN;
    return total;
}

/* ---- Early exits ---- */

static drey_status open_predictors(drey_engine *e, drey_error *err)
{
    const engine_config *c = &e->config;
    if (c->exit == DREY_EXIT_OFF || e->hooks.exit_here)
        return DREY_OK;
    const exit_user user = {.path = c->files.exit,
                            .target = c->target->file,
                            .n_layers = c->target->shape.n_layers,
                            .drafter = c->drafter ? c->drafter->name : NULL,
                            .guesses = c->drafter ? c->drafter->exit_source : DREY_EXIT_FROM_TARGET,
                            .draft = c->draft ? c->draft->file : NULL,
                            .draft_name = c->draft ? c->draft->name : NULL};
    return exit_open_for(&e->predictors, &user, err);
}

static void gather_exits(drey_engine *e)
{
    plan_inputs *in = &e->inputs;
    in->exit_layers = exit_mean_layers(&e->predictors, verifies_roots_alone(e));
    in->exit_shares = in->exit_layers > 0 ? e->predictors.passes : NULL;
    if (e->hooks.exit_layers > 0) {
        in->exit_layers = e->hooks.exit_layers;
        in->exit_shares = NULL;
    }
}

/* ---- All of it ---- */

static void gather_options(drey_engine *e)
{
    const engine_config *c = &e->config;
    plan_inputs *in = &e->inputs;
    in->n_units = 1;
    in->n_attending = e->units ? e->units->n_clusters + units_n_attending(e->units) : 1;
    in->n_devices = e->units ? e->units->n - e->units->n_clusters : 0;
    in->n_sessions = c->n_sessions;
    in->n_context = c->n_context;
    in->n_threads = c->n_threads;
    in->draft = (plan_drafting){.kind = c->drafter,
                                .profile = config_known(c),
                                .trees = c->profile.is_known ? c->profile.known.trees : NULL,
                                .tree_nodes = max_i32(c->drafted.nodes, c->part.tree_nodes),
                                .steps = c->drafted.steps,
                                .cache_nodes = TREE_MAX_NODES};
    in->routes = c->profile.has_routes ? &c->profile.routes : NULL;
    in->spare_rows = CATCH_UP;
    in->prompt_chunk = c->prompt_chunk;
    in->process.held_bytes = min_u64(c->memory.held_bytes, most_held_bytes);
    in->least_logit_rows = max_i32(e->hooks.least_logit_rows, c->part.logit_rows);
    in->deferred_rows =
        max_i32(e->hooks.deferred_rows, exit_most_deferred(c->exit, verifies_roots_alone(e)));
    in->tap_rows = e->hooks.tap_rows;
    in->set_share = e->hooks.set_share;
    in->share = e->hooks.share;
    in->kv = engine_kv_format(e);
    in->kv_plain = e->kernels->kv_plain;
    in->facts.kv_name = c->memory.kv;
    in->process.offload = (plan_offload){c->memory.kv_folder != NULL, c->memory.kv_bytes};
}

/* Rows of a table for the last tokens are asked for by those who have the tokens. */
static drey_status check_part(const drey_engine *e, const engine_part *part, drey_error *err)
{
    const ngram_shape *n = &e->target.layout.shape.ngram;
    if (!e->ranks && n->n_heads > 0 && n->layer >= part->first &&
        n->layer < part->first + part->n_layers)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "layer %d reads a table by the text's tokens, which rank 0 alone has: give that one "
             "at least %d layers",
             n->layer, n->layer + 1);
    return DREY_OK;
}

drey_status engine_gather_target(drey_engine *e, drey_error *err)
{
    plan_facts *facts = &e->inputs.facts;
    const drey_model *target = e->config.target;
    count_process(e);
    TRY(bind(e, &e->target, target, err));
    TRY(engine_find_sidecar(e, err));
    const engine_part *part = &e->config.part;
    if (part->is_part)
        TRY(check_part(e, part, err));
    if (part->is_part)
        model_layout_keep(&e->target.layout, part->first, part->n_layers, !e->ranks);
    for (uint64_t i = 0; i < gguf_n_tensors(target->file); i++)
        facts->target_bytes += gguf_tensor_at(target->file, i)->n_bytes;
    facts->sidecar = e->sidecar.path != NULL;
    facts->sidecar_refused = e->sidecar.refused;
    return DREY_OK;
}

drey_status engine_gather_draft(drey_engine *e, drey_error *err)
{
    plan_inputs *in = &e->inputs;
    const engine_config *c = &e->config;
    gather_options(e);
    TRY(open_predictors(e, err));
    gather_exits(e);
    TRY(open_source(e, err));
    if (c->draft) {
        count_draft(e);
        TRY(bind(e, &e->draft, c->draft, err));
    }
    count_cached(e);
    TRY(arena_init(&e->memory.plan, plan_memory_bytes(e), false, err));
    gather_model(e, PLAN_TARGET, &e->target, c->target);
    in->model[PLAN_TARGET].overhead_bytes +=
        e->memory.plan.size_bytes + engine_trace_bytes(e) + e->hooks.more_bytes +
        engine_ranks_bytes(e) + exit_memory_bytes(&e->predictors) + engine_units_bytes(e);
    if (c->draft)
        gather_model(e, PLAN_DRAFT, &e->draft, c->draft);
    gather_source(e);
    if (model_layout_is_sliced(&e->draft.layout))
        in->draft.n_ids = (int32_t)e->draft.layout.head->form.n_rows;
    TRY(gather_prefixes(e, err));
    in->session_state_bytes = engine_session_state_bytes(e);
    return arena_check(&e->memory.plan, err);
}

drey_status engine_gather(drey_engine *e, drey_error *err)
{
    TRY(engine_gather_target(e, err));
    return engine_gather_draft(e, err);
}
