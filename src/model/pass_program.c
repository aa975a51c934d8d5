/* Writing the steps of a pass: see pass_program.h. */
#include "model/pass_program.h"

#include <assert.h>

#include "model/block/block.h"
#include "model/layout.h"
#include "model/pass_steps.h"

enum {
    STEPS_PER_LAYER = 40,
    STEPS_PER_READER = 2,
    STEPS_AROUND = 16 /* in front of the layers and after them */
};

static size_t n_steps(int32_t n_layers, int32_t n_readers)
{
    return (size_t)n_layers * STEPS_PER_LAYER + (size_t)n_readers * STEPS_PER_READER + STEPS_AROUND;
}

size_t program_bytes(int32_t n_layers, int32_t n_readers)
{
    return arena_size(n_steps(n_layers, n_readers) * sizeof(program_step)) +
           arena_size((size_t)(n_layers + 1) * sizeof(int32_t));
}

void program_init(program *p, int32_t n_layers, int32_t n_readers, arena *a)
{
    p->step = arena_take(a, n_steps(n_layers, n_readers) * sizeof *p->step);
    p->begin = arena_take(a, (size_t)(n_layers + 1) * sizeof *p->begin);
    p->most = (int32_t)n_steps(n_layers, n_readers);
    p->n = 0;
}

static program_step *add(program_writer *w, step_kind kind)
{
    assert(w->program->n < w->program->most);
    program_step *s = &w->program->step[w->program->n++];
    *s = (program_step){.kind = kind, .layer = w->layer, .first_buffer = w->first_buffer};
    return s;
}

void write_as(program_writer *w, const block_class *block)
{
    int32_t i = 0;
    while (w->layout->program.blocks.class[i] != block)
        i++;
    w->first_buffer = i * BLOCK_BUFFERS;
}

static int32_t buffer_of(const program_writer *w, int32_t buffer)
{
    return buffer < BUFFER_OWN ? buffer : w->first_buffer + buffer;
}

void write_rows(program_writer *w, step_rows_fn *rows)
{
    add(w, STEP_ROWS)->rows = rows;
}

void write_columns(program_writer *w, step_columns_fn *columns)
{
    add(w, STEP_COLUMNS)->columns = columns;
}

void write_mix(program_writer *w, step_mix_fn *mix)
{
    add(w, STEP_MIX)->mix = mix;
}

void write_reads(program_writer *w, int32_t from, int64_t k)
{
    w->reading = &w->program->step[w->program->n - 1];
    w->reading->reads.from = buffer_of(w, from);
    w->reading->reads.k = k;
}

void write_reads_by_heads(program_writer *w, int32_t from, int64_t k, int32_t n_heads,
                          int32_t head_ld)
{
    write_reads(w, from, k);
    w->reading->reads.n_heads = n_heads;
    w->reading->reads.head_ld = head_ld;
}

/* Multiplies the results of the product before it with their matrices' scales. */
static void scale_products(model_pass *p, const program_step *s, int32_t from, int32_t to,
                           int32_t thread)
{
    (void)thread;
    const program_step *step = s - 1;
    for (int32_t i = 0; i < step->product.n; i++) {
        const weight *m = &p->r->layout->bound[step->product.of[i].matrix];
        const workspace_buffer *b = &p->r->ws->buffer[step->product.of[i].to];
        for (int32_t row = from; m->scale && row < to; row++)
            pass_scale((float *)b->at + row * b->ld, *m->scale, m->form.n_rows);
    }
}

void write_product(program_writer *w, const written_product *products, int32_t n)
{
    w->reading->reads.last = w->program->n;
    program_step *s = add(w, STEP_PRODUCT);
    bool scaled = false;
    for (int32_t i = 0; i < n; i++) {
        if (!products[i].matrix)
            continue;
        scaled = scaled || products[i].matrix->scale;
        s->product.of[s->product.n].matrix = (int32_t)(products[i].matrix - w->layout->matrix);
        s->product.of[s->product.n++].to = buffer_of(w, products[i].to);
    }
    assert(s->product.n > 0);
    if (scaled)
        write_rows(w, scale_products);
}

static void write_layer(program_writer *w)
{
    const block_class *const *blocks = w->layout->layer[w->layer].blocks;
    w->program->begin[w->layer] = w->program->n;
    add(w, STEP_BEGIN_LAYER);
    for (; *blocks; blocks++) {
        write_as(w, *blocks);
        (*blocks)->write(w);
    }
    add(w, STEP_END_LAYER);
}

void program_write(program *p, const model_layout *l)
{
    program_writer w = {.program = p, .layout = l};
    const int32_t n_layers = l->shape.n_layers;
    p->n = 0;
    write_beginning(&w);
    for (w.layer = 0; w.layer < n_layers; w.layer++)
        write_layer(&w);
    p->begin[n_layers] = p->n;
    add(&w, STEP_BEGIN_LAYER);
    write_ending(&w);
    add(&w, STEP_END);
}
