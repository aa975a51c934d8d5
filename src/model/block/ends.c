/* Steps before and after the layers: see block.h. */
#include "common/num.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "state/kv.h"
#include "weights/row_table.h"

/* Numbers of a row of BUFFER_WIDE. */
static int64_t wide_numbers(const model_shape *s)
{
    if (shape_has_form(s, FORM_PARALLEL | FORM_BESIDE) || s->lookup.width > 0)
        return s->n_embd;
    if (s->streams.n > 0)
        return s->streams.n;
    return s->taps.n ? max_i64(2 * s->n_embd, tapped_numbers(s)) : 0;
}

static void needs(buffer_needs *n)
{
    const model_shape *s = n->shape;
    const int64_t wide = wide_numbers(s);
    need_rows(n, BUFFER_X, n->n_rows, shape_width(s));
    need_rows(n, BUFFER_Y, n->n_rows * max_i32(s->streams.n, 1), s->n_embd);
    need_rows(n, BUFFER_WIDE, wide > 0 ? n->n_rows : 0, wide);
    const size_t n_looked_up = (size_t)n->n_rows * (size_t)s->lookup.n;
    need_lasting(n, ENDS_ROWS, n_looked_up * sizeof(int64_t));
    need_lasting(n, ENDS_RAW, n_looked_up * (size_t)s->lookup.row_bytes);
    need_acts(n, n->n_rows, max_i64(s->n_embd, wide), 1);
}

const block_class ends_block = {.name = "ends", .needs = needs};

/* ---- In front of the layers ---- */

/* Rows of a layer after a target: its states, one below the other, become one of this model; of an
 * MTP block each token with the state before it. */
static drey_status fuse(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    (void)err;
    weight *fuse = p->r->layout->after.fuse;
    if (pass_take_tapped(p))
        pass_open_product(p, &(product){fuse, p->r->ws->x, pass_embd_ld(p)}, 1);
    else if (!weights_loaded(p->r->weights))
        pass_open_loading(p, fuse);
    return DREY_OK;
}

static drey_status embed(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    TRY(pass_embed(p, err));
    pass_take_taps(p);
    return DREY_OK;
}

void write_beginning(program_writer *w)
{
    if (w->layout->after.fuse)
        write_mix(w, fuse);
    write_mix(w, embed);
}

/* ---- An encoder's output ---- */

static void output_norm(model_pass *p, const program_step *s, int32_t from, int32_t to,
                        int32_t thread)
{
    (void)s;
    (void)thread;
    block_norm(p, p->r->layout->last.norm, NULL, from, to);
}

/* Keys and values of the output, as a decoder's layer reads it, to the cross cache. */
static void store_output(model_pass *p, const program_step *at, int32_t from, int32_t to,
                         int32_t thread)
{
    const kv_store *kv = kv_of(p->r->cross);
    const reader_layout *reader = &p->r->layout->readers[at->layer];
    const attention_shape *a = layer_attention(&p->r->layout->shape, 0);
    for (int32_t i = from; i < to; i++) {
        if (reader->k_bias)
            p->r->kernels->add(block_row(p, at, ATTEND_K, i), reader->k_bias, attention_keys(a));
        if (reader->v_bias)
            p->r->kernels->add(block_row(p, at, ATTEND_V, i), reader->v_bias, attention_values(a));
        block_store_heads(p, at, kv, at->layer, i, i, attend_scratch(p, at, thread));
    }
}

static void write_readers(program_writer *w)
{
    const model_layout *l = w->layout;
    write_as(w, &attention_block); /* in its buffers */
    write_rows(w, output_norm);
    write_reads(w, BUFFER_Y, l->shape.n_embd);
    for (w->layer = 0; w->layer < l->shape.encoder.n_readers; w->layer++) {
        const reader_layout *y = &l->readers[w->layer];
        write_product(w, (written_product[]){{y->k, ATTEND_K}, {y->v, ATTEND_V}}, 2);
        write_rows(w, store_output);
    }
}

/* ---- Logits ---- */

static drey_status leave(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    return pass_send_remote(p, err);
}

static drey_status head(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    runner *r = p->r;
    weight *head = r->layout->head;
    if (p->n_logits > 0) {
        if (r->layout->shape.streams.n == 0)
            TRY(pass_take_head(p, err));
        pass_norm_head(p);
        row_table *table = r->layout->table;
        product products[] = {{head, r->ws->logits, pass_logits_stride(r)},
                              {table ? &table->matrix : NULL, r->ws->logits + head->form.n_rows,
                               pass_logits_stride(r)}};
        pass_open_product(p, products, table && row_table_places(table) > 0 ? 2 : 1);
    } else if (!weights_loaded(r->weights) && residency_any(&head->residency)) {
        pass_open_loading(p, head);
    }
    return DREY_OK;
}

static drey_status finish(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    (void)err;
    if (p->n_logits > 0)
        pass_finish_logits(p);
    return DREY_OK;
}

void write_ending(program_writer *w)
{
    write_as(w, &ends_block);
    if (shape_encodes(&w->layout->shape)) {
        write_readers(w);
    } else if (!w->layout->inner) {
        write_mix(w, leave);
        if (w->layout->shape.streams.n > 0)
            write_hyper_head(w);
        write_as(w, &ends_block);
        write_mix(w, head);
        write_mix(w, finish);
    }
}
