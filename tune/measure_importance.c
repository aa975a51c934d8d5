/* drey_imatrix: passes over a text that only an observer of their products looks at.
 *
 * A product's rows come in the order of the text, whatever the chunks, and its sums are made by one
 * thread: so the file depends on neither budget nor threads. Matrices that read the same rows share
 * one sum. */
#include <stdlib.h>
#include <string.h>

#include "common/new_file.h"
#include "drey/quantize.h"
#include "gguf/new_gguf.h"
#include "os/float_mode.h"
#include "quantise/importance.h"
#include "session/session_probe.h"
#include "text/tokenizer.h"
#include "weights/experts.h"

enum { USUAL_WINDOW = 512, LEAST_WINDOW = 2, LAYER_INPUTS = 7, LAYER_MATRICES = 11 };

typedef struct measuring {
    const drey_imatrix_options *o;
    drey_imatrix_report *report;
    const gguf *file;
    drey_session *session;
    importance_input *input; /* [n], in the order of a pass */
    const weight **first;    /* [n]: of the matrices that read it */
    int32_t n, next;         /* next: where the next one is looked for first */
    int32_t window, n_bos;
    int32_t *ids;   /* [window], which begin with n_bos, 1 or 0 */
    size_t n_done;  /* ids of the text before this window */
    uint64_t n_all; /* tokens to read, BOS included */
    arena memory;
} measuring;

void drey_imatrix_options_init(drey_imatrix_options *options)
{
    *options = (drey_imatrix_options){0};
}

/* ---- Options ---- */

static drey_status check_options(measuring *m, drey_error *err)
{
    const drey_imatrix_options *o = m->o;
    if (!o->engine || !o->engine->target || !o->output || !o->ids)
        FAIL(err, DREY_ERR_USAGE, "name a model, a text, and the file to write");
    const model_shape *s = &o->engine->target->shape;
    if (o->n_ids < 1)
        FAIL(err, DREY_ERR_USAGE, "the text is empty; give another one");
    for (size_t i = 0; i < o->n_ids; i++)
        if (o->ids[i] < 0 || o->ids[i] >= s->n_vocab)
            FAIL(err, DREY_ERR_USAGE, "token id %d does not exist; the model has ids 0 to %d",
                 o->ids[i], s->n_vocab - 1);
    if (s->encoder.n_layers > 0 || s->taps.n > 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the importance of columns is measured with decoders that read a text alone, which "
             "this model is not");
    m->window = o->window ? o->window : USUAL_WINDOW;
    if (m->window < LEAST_WINDOW || m->window > DREY_MAX_CONTEXT)
        FAIL(err, DREY_ERR_USAGE, "windows of %d tokens are not possible (%d to %d)", m->window,
             LEAST_WINDOW, DREY_MAX_CONTEXT);
    TRY(new_gguf_check_output(o->output, m->file, NULL, o->force, err));
    return new_file_check(o->output, err);
}

/* ---- What is measured ---- */

/* The name that the file has for the tensor, or for the one that it is a part of. */
static const char *name_in_file(const gguf *g, const gguf_tensor *part)
{
    const gguf_tensor *t = gguf_find_tensor(g, part->name);
    for (uint64_t i = 0; !t && i < gguf_n_tensors(g); i++) {
        const gguf_tensor *of = gguf_tensor_at(g, i);
        if (of->part == part->part && part->offset >= of->offset &&
            part->offset - of->offset < of->n_bytes)
            t = of;
    }
    return t ? t->name : part->name;
}

/* One more, of n rows' sums; matrices: NULL where the layer has none. */
static void add_input(measuring *m, int32_t n, const weight *const matrices[], int32_t n_matrices)
{
    importance_input *in = &m->input[m->n];
    for (int32_t i = 0; i < n_matrices; i++) {
        if (!matrices[i])
            continue;
        if (in->n_names == 0) {
            m->first[m->n] = matrices[i];
            in->k = matrices[i]->form.k;
        }
        const char *name = name_in_file(m->file, matrices[i]->form.tensor);
        if (in->n_names == 0 || strcmp(in->names[in->n_names - 1], name) != 0)
            in->names[in->n_names++] = name;
    }
    if (in->n_names == 0)
        return;
    in->n = n;
    in->squares = arena_take(&m->memory, (size_t)n * (size_t)in->k * sizeof *in->squares);
    in->counts = arena_take(&m->memory, (size_t)n * sizeof *in->counts);
    m->report->n_matrices += in->n_names;
    m->n++;
}

/* Lists inputs in the order of a pass. */
static void list_inputs(measuring *m, const model_layout *l)
{
    for (int32_t i = 0; i < l->shape.n_layers; i++) {
        const layer_layout *y = &l->layer[i];
        const expert_layer *e = y->experts.of;
        add_input(m, 1, (const weight *[]){y->attention.q, y->attention.k, y->attention.v}, 3);
        add_input(m, 1, (const weight *[]){y->attention.q_b}, 1);
        add_input(m, 1, (const weight *[]){y->attention.o}, 1);
        add_input(m, 1, (const weight *[]){y->experts.router, y->ffn.gate, y->ffn.up}, 3);
        add_input(m, 1, (const weight *[]){y->ffn.down}, 1);
        if (!e)
            continue;
        add_input(m, e->n_experts,
                  (const weight *[]){e->matrix[EXPERT_GATE].all, e->matrix[EXPERT_UP].all}, 2);
        add_input(m, e->n_experts, (const weight *[]){e->matrix[EXPERT_DOWN].all}, 1);
        m->report->n_experts += e->n_experts;
    }
}

/* Memory of all that, at most. */
static size_t inputs_bytes(const model_shape *s)
{
    const int64_t n_experts = s->experts.router.n_experts;
    const size_t wide = sizeof(double), layers = (size_t)s->n_layers;
    size_t layer = arena_size((size_t)shape_widest_out(s) * wide) +
                   arena_size((size_t)s->latent.q_rank * wide) +
                   2 * arena_size((size_t)s->n_embd * wide) +
                   arena_size((size_t)shape_widest_ff(s) * wide) + LAYER_INPUTS * ARENA_ALIGN;
    if (n_experts > 0)
        layer += arena_size((size_t)(n_experts * s->n_embd) * wide) +
                 arena_size((size_t)(n_experts * s->experts.n_ff) * wide) +
                 2 * arena_size((size_t)n_experts * sizeof(int64_t));
    return layers * layer + arena_size(layers * LAYER_INPUTS * sizeof(importance_input)) +
           arena_size(layers * LAYER_INPUTS * sizeof(weight *));
}

static drey_status take_memory(measuring *m, const model_shape *s, drey_error *err)
{
    const size_t n = (size_t)s->n_layers * LAYER_INPUTS;
    const size_t ids = arena_size((size_t)m->window * sizeof *m->ids);
    TRY(arena_init(&m->memory, inputs_bytes(s) + ids, false, err));
    m->ids = arena_take(&m->memory, (size_t)m->window * sizeof *m->ids);
    m->input = arena_take(&m->memory, n * sizeof *m->input);
    m->first = arena_take(&m->memory, n * sizeof *m->first);
    return arena_check(&m->memory, err);
}

/* ---- Passes ---- */

static bool may_continue(const measuring *m)
{
    return !m->o->go_on || m->o->go_on(m->o->user);
}

/* A pass_inputs.see. The head's is of no interest. */
static void see(void *user, const weight *matrix, int32_t expert, const float *rows, int64_t ld,
                int32_t n)
{
    measuring *m = user;
    if (!may_continue(m))
        drey_session_cancel(m->session);
    for (int32_t i = 0; i < m->n; i++) {
        const int32_t at = (m->next + i) % m->n;
        if (m->first[at] != matrix)
            continue;
        importance_add(&m->input[at], expert < 0 ? 0 : expert, rows, ld, n);
        m->next = at; /* of several experts the next one's as well */
        return;
    }
}

static void on_chunk(void *user, int32_t done)
{
    const measuring *m = user;
    if (m->o->progress)
        m->o->progress(m->o->user, DREY_PROGRESS_PROMPT,
                       (uint64_t)m->report->n_tokens + (uint64_t)done, m->n_all);
}

static drey_status check_sums(const measuring *m, drey_error *err)
{
    for (int32_t i = 0; i < m->n; i++)
        if (!importance_is_finite(&m->input[i]))
            FAIL(err, DREY_ERR_FORMAT,
                 "%s: what tensor %s is multiplied with is not finite: the file is damaged, fetch "
                 "it again",
                 SHOWN_PATH(gguf_shard_path(m->file, 0)), m->input[i].names[0]);
    return DREY_OK;
}

static drey_status read_window(measuring *m, drey_error *err)
{
    const size_t left = m->o->n_ids - m->n_done, room = (size_t)(m->window - m->n_bos);
    const size_t n = left < room ? left : room;
    memcpy(m->ids + m->n_bos, m->o->ids + m->n_done, n * sizeof *m->ids);
    drey_session_reset(m->session);
    TRY(pass_prompt(probe_target(m->session), m->ids, m->n_bos + (int32_t)n,
                    probe_engine(m->session)->plan.chunk, HEAD_NONE, on_chunk, m, err));
    m->n_done += n;
    m->report->n_tokens += m->n_bos + (int64_t)n;
    m->report->n_windows++;
    return check_sums(m, err);
}

static drey_status read_text(measuring *m, drey_error *err)
{
    runner *target = probe_target(m->session);
    const pass_inputs inputs = {see, m};
    drey_status status = DREY_OK;
    list_inputs(m, target->layout);
    TRY(arena_check(&m->memory, err));
    target->inputs = &inputs;
    float_mode caller = float_mode_enter();
    while (status == DREY_OK && m->n_done < m->o->n_ids)
        status = may_continue(m) ? read_window(m, err) : DREY_ERR_CANCELLED;
    float_mode_leave(caller);
    target->inputs = NULL;
    return status;
}

/* ---- All of it ---- */

static void on_loading(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    const measuring *m = user;
    if (m->o->progress && what != DREY_PROGRESS_PROMPT)
        m->o->progress(m->o->user, what, done, total);
}

static drey_engine_options engine_options(measuring *m)
{
    drey_engine_options options = *m->o->engine;
    options.drafter = DREY_DRAFTER_NONE;
    options.draft = NULL;
    options.policy = DREY_POLICY_AUTO;
    options.exit = DREY_EXIT_OFF;
    options.research = NULL;
    options.profile = NULL;
    options.prefixes = NULL;
    options.n_sessions = 1;
    options.n_context = m->window;
    options.progress = on_loading;
    options.progress_user = m;
    return options;
}

static void begin_windows(measuring *m)
{
    const tokenizer *t = m->o->engine->target->tokenizer;
    m->n_bos = tokenizer_wants_bos(t) && tokenizer_bos(t) >= 0;
    if (m->n_bos)
        m->ids[0] = tokenizer_bos(t);
    const uint64_t n_bos = (uint64_t)m->n_bos, room = (uint64_t)m->window - n_bos, n = m->o->n_ids;
    m->n_all = n + n_bos * ((n + room - 1) / room);
}

/* Measures with the engine, which is closed before the file is written. */
static drey_status measure(measuring *m, drey_error *err)
{
    const model_shape *s = &m->o->engine->target->shape;
    const engine_hooks hooks = {.more_bytes =
                                    inputs_bytes(s) + (size_t)m->window * sizeof *m->ids +
                                    importance_write_bytes((int64_t)s->n_layers * LAYER_MATRICES)};
    const drey_engine_options options = engine_options(m);
    drey_engine *e = NULL;
    TRY(take_memory(m, s, err));
    begin_windows(m);
    TRY(engine_open(&e, &options, &hooks, err));
    drey_status status = drey_session_open(&m->session, e, err);
    if (status == DREY_OK)
        status = read_text(m, err);
    drey_session_close(&m->session);
    drey_engine_close(&e);
    return status;
}

/* Sums over each layer's unused experts, for the last matrix: the others have as many rows. */
static void count_unused(measuring *m)
{
    for (int32_t i = 1; i < m->n; i++)
        for (int32_t e = 0; m->input[i - 1].n > 1 && e < m->input[i].n; e++)
            m->report->n_unused += m->input[i].n > 1 && m->input[i].counts[e] == 0;
}

drey_status drey_imatrix(const drey_imatrix_options *o, drey_imatrix_report *report,
                         drey_error *err)
{
    drey_imatrix_report unused;
    report = report ? report : &unused;
    *report = (drey_imatrix_report){0};
    measuring m = {.o = o, .report = report};
    if (o->engine && o->engine->target)
        m.file = o->engine->target->file;
    TRY(check_options(&m, err));
    drey_status status = measure(&m, err);
    const importance_text text = {o->dataset, report->n_windows, m.window};
    if (status == DREY_OK)
        status = importance_write(o->output, m.input, m.n, &text, err);
    if (status == DREY_OK)
        count_unused(&m);
    arena_free(&m.memory);
    return status;
}
