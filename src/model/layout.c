/* A model's tensors and what surrounds its layers: see layout.h. */
#include "model/layout.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "weights/experts.h"

/* Returns whether the head's product has a bias for each number. */
static bool has_head_bias(const model_shape *s, const gguf *g)
{
    return (shape_reads(s) || shape_has_form(s, FORM_HEAD_BIAS)) &&
           gguf_find_tensor(g, "output.bias");
}

static size_t n_expert_layers(const model_shape *s)
{
    return shape_expert_layers(s) > 0 ? (size_t)s->n_layers : 0;
}

/* ---- Binding ---- */

static drey_status find(const binder *b, const char *name, int64_t n, const gguf_tensor **out)
{
    return b->arena ? binder_find(b, name, (int64_t[3]){n, 1, 1}, out) : DREY_OK;
}

/* Binds the embedding in front of the pass's matrices: its rows are looked up, all of it is never
 * multiplied. */
static drey_status bind_embedding(binder *b, const char *name)
{
    const model_shape *s = &b->layout->shape;
    TRY(bind_whole(b, name, s->n_embd, s->n_vocab, &b->layout->embedding));
    if (b->arena)
        b->layout->embedding->residency.in_pass = false;
    b->layout->n_looked_up = 1;
    return DREY_OK;
}

static drey_status bind_layer(binder *b)
{
    layer_layout counted = {0}, *y = b->arena ? &b->layout->layer[b->layer] : &counted;
    y->first = b->arena ? &b->layout->matrix[b->layout->n_matrices] : NULL;
    y->blocks = layer_blocks(&b->layout->shape, b->layer);
    for (int32_t i = 0; y->blocks[i]; i++)
        TRY(y->blocks[i]->bind(b, y));
    return DREY_OK;
}

/* Experts are in front of the layers, as no pass multiplies with all of them. */
static drey_status bind_layers(binder *b)
{
    const model_shape *s = &b->layout->shape;
    layer_layout counted = {0};
    for (b->layer = 0; b->layer < s->n_layers; b->layer++)
        if (layer_has_experts(s, b->layer))
            TRY(block_bind_slots(b, b->arena ? &b->layout->layer[b->layer] : &counted));
    b->layer = 0;
    if (shape_is_mtp(s))
        TRY(bind_matrix(b, "nextn.eh_proj.weight", s->n_embd, 2 * s->n_embd,
                        &b->layout->after.fuse));
    for (; b->layer < s->n_layers; b->layer++)
        TRY(bind_layer(b));
    return DREY_OK;
}

/* The tensor belongs to the other half of a model with an encoder, or to none: what T5's
 * cross-attention has as buckets is used by no implementation. */
static bool is_elsewhere(const model_shape *s, const char *name)
{
    if (s->encoder.n_layers == 0)
        return false;
    bool of_encoder = strncmp(name, "enc.", 4) == 0 || strstr(name, ".cross_attn_k.") ||
                      strstr(name, ".cross_attn_v.");
    return of_encoder != shape_encodes(s) || strstr(name, ".cross_attn_rel_b.");
}

/* A tensor with which a layer would make keys and values. */
static bool is_of_keys_or_values(const char *role)
{
    static const char *const roles[] = {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0)
            return true;
    return false;
}

/* Makers of keys and values in a layer that reads another one's; frequencies of the rotation, which
 * follow from its base, as older files have them for each layer; scales for those who quantise
 * what a matrix reads; blocks for multi-token prediction; and indexers, which choose among more
 * positions than a text may have. */
static bool is_needless(const binder *b, const char *name)
{
    static const char *const endings[] = {".inv_freq", ".attn_rot_embd", ".attn_rot_embd.weight",
                                          ".input_scale"};
    const model_shape *s = &b->layout->shape;
    const int32_t n_mtp = arch_mtp_blocks(s->arch, b->g);
    const size_t n = strlen(name);
    char *end;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (n > strlen(endings[i]) && strcmp(name + n - strlen(endings[i]), endings[i]) == 0)
            return true;
    if (s->context.most_seen > 0 && strstr(name, ".indexer."))
        return true;
    if (shape_is_mtp(s)) /* all others are the target's, or of further blocks */
        return strncmp(name, "blk.", 4) != 0 || strtol(name + 4, &end, 10) != s->taps.mtp_block;
    if (strncmp(name, "blk.", 4) != 0)
        return false;
    long block = strtol(name + 4, &end, 10);
    if (*end == '.' && block >= 0 && block < s->n_layers)
        return s->layer[block].kv_before > 0 && is_of_keys_or_values(end + 1);
    return *end == '.' && block >= s->n_layers && block < (long)s->n_layers + n_mtp;
}

/* A tensor that is not used would be a wrong text without a message. */
static drey_status refuse_unbound(const binder *b)
{
    for (uint64_t i = 0; i < gguf_n_tensors(b->g); i++)
        if (!b->bound[i] && !is_elsewhere(&b->layout->shape, gguf_tensor_at(b->g, i)->name) &&
            !is_needless(b, gguf_tensor_at(b->g, i)->name))
            FAIL(b->err, DREY_ERR_UNSUPPORTED,
                 "tensor %s is not supported by drey for architecture %s: a text computed without "
                 "it would be wrong",
                 gguf_tensor_at(b->g, i)->name, b->layout->shape.arch->name);
    return DREY_OK;
}

/* Binds what a layer after a target has besides a layer: d2t is read by the drafter. */
static drey_status bind_taps(binder *b)
{
    const model_shape *s = &b->layout->shape;
    const gguf_tensor *t = NULL;
    TRY(bind_whole(b, "fc.weight", tapped_numbers(s), s->n_embd, &b->layout->after.fuse));
    if (s->taps.n_ids == s->n_vocab && !gguf_find_tensor(b->g, "d2t"))
        return DREY_OK;
    TRY(find(b, "d2t", s->taps.n_ids, &t));
    if (b->arena && t->type != TYPE_I64)
        FAIL(b->err, DREY_ERR_FORMAT, "tensor d2t has to be of type I64; the file is broken");
    return DREY_OK;
}

/* A norm outside of the layers, of a name after the part's. */
static drey_status bind_norm(binder *b, const char *what, float **norm, float **bias)
{
    const model_shape *s = &b->layout->shape;
    char name[64];
    snprintf(name, sizeof name, "%s%s.weight", binder_half(b), what);
    TRY(bind_whole_vectors(b, name, s->n_embd, 1, norm));
    snprintf(name, sizeof name, "%s%s.bias", binder_half(b), what);
    if (shape_has_form(s, FORM_NORMS_UNBIASED))
        bind_zeros(b, s->n_embd, bias);
    else if (s->arch->layer_norm)
        return bind_whole_vectors(b, name, s->n_embd, 1, bias);
    return DREY_OK;
}

/* Vectors in front of the layers and after them. */
static drey_status bind_ends(binder *b)
{
    model_layout *l = b->layout;
    const model_shape *s = &l->shape;
    char name[64];
    snprintf(name, sizeof name, "%sposition_embd.weight", binder_half(b));
    if (s->arch->rope == ROPE_NONE)
        TRY(bind_whole_vectors(b, name, s->n_embd, s->n_context_train, &l->positions));
    if (s->streams.n > 0)
        return block_bind_hyper(b, "output_hc", &l->last.hyper);
    if (s->arch->norms_sums)
        return bind_norm(b, "token_embd_norm", &l->embd.norm, &l->embd.bias);
    return bind_norm(b, s->arch->embd_norm_is_last ? "token_embd_norm" : "output_norm",
                     &l->last.norm, &l->last.bias);
}

static drey_status bind_rope_factors(const binder *b)
{
    const model_shape *s = &b->layout->shape;
    const gguf_tensor *t;
    const int32_t n_pairs = s->rope[ROPE_OF_ALL].n_rot / 2;
    if (n_pairs > 0 && gguf_find_tensor(b->g, "rope_freqs.weight"))
        TRY(find(b, "rope_freqs.weight", s->arch->local.halved ? 2 * n_pairs : n_pairs, &t));
    if (!s->context.longrope)
        return DREY_OK;
    TRY(find(b, "rope_factors_short.weight", n_pairs, &t));
    return find(b, "rope_factors_long.weight", n_pairs, &t);
}

static drey_status bind_model(binder *b)
{
    model_layout *l = b->layout;
    const model_shape *s = &l->shape;
    const gguf *g = b->g;
    l->tied = gguf_find_tensor(g, "output.weight") == NULL;
    if (!l->tied && !(s->taps.n && !gguf_find_tensor(g, "token_embd.weight")))
        TRY(bind_embedding(b, "token_embd.weight"));
    if (s->taps.n)
        TRY(bind_taps(b));
    TRY(bind_layers(b));
    TRY(bind_rope_factors(b));
    TRY(bind_ends(b));
    if (has_head_bias(s, g))
        TRY(bind_whole_vectors(b, "output.bias", s->n_vocab, 1, &l->head_bias));
    TRY(bind_whole(b, l->tied ? "token_embd.weight" : "output.weight", s->n_embd, l->n_logits,
                   &l->head));
    if (l->tied)
        l->embedding = l->head;
    return b->arena ? refuse_unbound(b) : DREY_OK;
}

/* Binds an MTP block as a layer after the target, whose embedding, norm and head it has unless it
 * brings its own. Its rows are tokens with the states before them. */
static drey_status bind_mtp(binder *b)
{
    static const char embedding[] = "nextn.embed_tokens.weight",
                      head[] = "nextn.shared_head_head.weight",
                      norm[] = "nextn.shared_head_norm.weight";
    model_layout *l = b->layout;
    const model_shape *s = &l->shape;
    char name[64];
    if (binder_has(b, embedding))
        TRY(bind_embedding(b, binder_name(b, name, embedding)));
    TRY(bind_layers(b));
    b->layer = 0;
    TRY(bind_vector(b, "nextn.enorm.weight", s->n_embd, &l->after.token_norm));
    TRY(bind_vector(b, "nextn.hnorm.weight", s->n_embd, &l->after.state_norm));
    TRY(bind_rope_factors(b));
    const bool own_norm = binder_has(b, norm), own_head = binder_has(b, head);
    if (own_norm)
        TRY(bind_vector(b, norm, s->n_embd, &l->last.norm));
    if (!shape_has_form(s, FORM_MTP_UNNORMED))
        TRY(bind_whole_vectors(b, "output_norm.weight", s->n_embd, 1, &l->after.target_norm));
    else if (!own_norm)
        TRY(bind_whole_vectors(b, "output_norm.weight", s->n_embd, 1, &l->last.norm));
    if (!own_norm && l->after.target_norm)
        l->last.norm = l->after.target_norm;
    const char *whole =
        gguf_find_tensor(b->g, "output.weight") ? "output.weight" : "token_embd.weight";
    TRY(bind_whole(b, own_head ? binder_name(b, name, head) : whole, s->n_embd, l->n_logits,
                   &l->head));
    b->layer = s->n_layers;
    return b->arena ? refuse_unbound(b) : DREY_OK;
}

/* Binds what a layer of the decoder reads. */
static drey_status bind_reader(binder *b, reader_layout *reader, int32_t layer)
{
    const model_shape *s = &b->layout->shape;
    const attention_shape *a = layer_attention(s, 0);
    weight **const of[] = {&reader->k, &reader->v};
    float **const bias[] = {&reader->k_bias, &reader->v_bias};
    char name[64];
    for (int32_t i = 0; i < 2; i++) {
        const int64_t n = i ? attention_values(a) : attention_keys(a);
        snprintf(name, sizeof name, "dec.blk.%d.cross_attn_%c.weight", layer, i ? 'v' : 'k');
        TRY(bind_whole(b, name, s->n_embd, n, of[i]));
        snprintf(name, sizeof name, "dec.blk.%d.cross_attn_%c.bias", layer, i ? 'v' : 'k');
        if (gguf_find_tensor(b->g, name))
            TRY(bind_whole_vectors(b, name, n, 1, bias[i]));
    }
    return DREY_OK;
}

/* Binds the encoder in the order of a pass: the layers, then what each of the decoder's layers
 * reads. */
static drey_status bind_encoder(binder *b)
{
    model_layout *l = b->layout;
    reader_layout counted = {0};
    TRY(bind_embedding(b, "token_embd.weight"));
    TRY(bind_layers(b));
    TRY(bind_ends(b));
    for (int32_t i = 0; i < l->shape.encoder.n_readers; i++)
        TRY(bind_reader(b, b->arena ? &l->readers[i] : &counted, i));
    if (!b->arena)
        return DREY_OK;
    l->head = &l->matrix[l->n_matrices - 1];
    return refuse_unbound(b);
}

static drey_status bind_all(binder *b)
{
    const model_shape *s = &b->layout->shape;
    b->layout->n_logits = s->taps.n ? s->taps.n_ids : s->n_vocab;
    return shape_encodes(s) ? bind_encoder(b) : shape_is_mtp(s) ? bind_mtp(b) : bind_model(b);
}

/* Counts of matrices and vectors, and the memory of the latter. */
typedef struct layout_counts {
    size_t n_matrices, n_vectors, n_bytes;
} layout_counts;

static layout_counts count(const model_shape *s, const gguf *g)
{
    model_layout l = {.shape = *s};
    binder b = {.layout = &l, .g = g};
    (void)bind_all(&b); /* what it lacks is found missing again */
    return (layout_counts){(size_t)l.n_matrices, (size_t)l.n_vectors, b.n_bytes};
}

static size_t frequency_bytes(const rope_shape *rope)
{
    return (size_t)rope->n_rot / 2 * sizeof(double);
}

static size_t angles_bytes(const model_shape *s)
{
    size_t total = 0;
    for (int32_t i = 0; i < s->n_ropes; i++)
        total += arena_size(frequency_bytes(&s->rope[i]));
    return total;
}

size_t model_layout_bytes(const model_shape *s, const gguf *g)
{
    const layout_counts n = count(s, g);
    const size_t n_layers = (size_t)s->n_layers, n_readers = (size_t)s->encoder.n_readers;
    return arena_size(gguf_n_tensors(g)) + arena_size(n_layers * sizeof(layer_layout)) +
           arena_size(n.n_matrices * sizeof(weight)) +
           arena_size(n_readers * sizeof(reader_layout)) +
           arena_size(n_expert_layers(s) * sizeof(expert_layer)) +
           arena_size(n.n_vectors * sizeof(layout_vector)) + n.n_bytes + angles_bytes(s) +
           program_bytes(s->n_layers, s->encoder.n_readers);
}

drey_status model_layout_of(model_layout *l, const model_shape *shape, const gguf *g,
                            const kernel_table *kernels, arena *a, drey_error *err)
{
    *l = (model_layout){.shape = *shape};
    const model_shape *s = &l->shape;
    const layout_counts n = count(s, g);
    l->program.blocks = list_blocks(s);
    size_t n_readers = (size_t)s->encoder.n_readers;
    binder b = {.layout = l, .g = g, .kernels = kernels, .arena = a, .err = err};
    b.bound = arena_take(a, gguf_n_tensors(g) * sizeof *b.bound);
    l->layer = arena_take(a, (size_t)s->n_layers * sizeof *l->layer);
    l->bound = l->matrix = arena_take(a, n.n_matrices * sizeof *l->matrix);
    l->readers = arena_take(a, n_readers * sizeof *l->readers);
    if (n_expert_layers(s) > 0)
        l->experts = arena_take(a, n_expert_layers(s) * sizeof *l->experts);
    l->vector = arena_take(a, n.n_vectors * sizeof *l->vector);
    for (int32_t i = 0; i < s->n_ropes; i++)
        l->angles.frequency[i] = arena_take(a, frequency_bytes(&s->rope[i]));
    program_init(&l->program, s->n_layers, s->encoder.n_readers, a);
    TRY(error_in_file(err, gguf_shard_path(g, 0), bind_all(&b)));
    place_layers(l);
    program_write(&l->program, l);
    return DREY_OK;
}

drey_status model_layout_init(model_layout *l, const gguf *g, const kernel_table *kernels, arena *a,
                              drey_error *err)
{
    model_shape shape;
    TRY(model_shape_read(&shape, g, err));
    return model_layout_of(l, &shape, g, kernels, a, err);
}

drey_status encoder_layout_init(model_layout *l, const model_shape *decoder, const gguf *g,
                                const kernel_table *kernels, arena *a, drey_error *err)
{
    model_shape shape = shape_of_encoder(decoder);
    return model_layout_of(l, &shape, g, kernels, a, err);
}

const gguf_tensor *model_head_tensor(const gguf *g)
{
    const gguf_tensor *own = gguf_find_tensor(g, "output.weight");
    return own ? own : gguf_find_tensor(g, "token_embd.weight");
}

void model_layout_slice(model_layout *l, int32_t n_ids, int32_t room)
{
    weight_cut(l->head, n_ids);
    l->n_logits = n_ids + room;
}

static void keep_vectors(model_layout *l, int32_t first, int32_t end, bool inner)
{
    int32_t n = 0, none = l->shape.n_layers;
    for (int32_t i = 0; i < l->n_vectors; i++) {
        int32_t layer = l->vector[i].layer;
        if ((layer >= first && layer < end) || (layer == none && !inner))
            l->vector[n++] = l->vector[i];
    }
    l->n_vectors = n;
}

/* Moves what stays of the matrices in front of a pass's to where those of the first layer begin: of
 * experts those of layers [first, end), and the embedding. Returns the first of them. */
static weight *move_looked_up(model_layout *l, int32_t first, int32_t end, bool inner)
{
    weight *to = l->layer[first].first;
    const weight *from = NULL;
    for (int32_t i = (end - first) * EXPERT_MATRICES - 1; l->experts && i >= 0; i--) {
        expert_layer *layer = &l->experts[first + i / EXPERT_MATRICES];
        expert_matrix *m = &layer->matrix[i % EXPERT_MATRICES];
        if (layer->n_experts == 0)
            continue;
        if (m->all != from) { /* gate and up may be in one */
            from = m->all;
            *--to = *from;
        }
        m->all = to;
    }
    if (!inner && !l->tied) {
        *--to = *l->embedding;
        l->embedding = to;
    }
    return to;
}

/* A mixture's first layers may have none. */
static void keep_experts(model_layout *l, int32_t first, int32_t n)
{
    bool any = l->experts && experts_layers(l->experts + first, n) > 0;
    l->experts = any ? l->experts + first : NULL;
}

void model_layout_keep(model_layout *l, int32_t first, int32_t n, bool inner)
{
    int32_t end = first + n;
    const bool hyper = l->last.hyper.down; /* in front of the head, and moved with it */
    weight *after = end < l->shape.n_layers ? l->layer[end].first
                    : hyper                 ? l->last.hyper.down
                                            : l->head;
    assert(first >= 0 && n >= inner && end <= l->shape.n_layers);
    assert(inner || first == 0);
    keep_vectors(l, first, end, inner);
    l->bound = l->matrix = move_looked_up(l, first, end, inner);
    if (!inner && hyper) {
        after[0] = *l->last.hyper.down;
        after[1] = *l->last.hyper.up;
        l->last.hyper.down = after++;
        l->last.hyper.up = after++;
    }
    if (!inner) { /* the head comes after the last layer that stays */
        if (after != l->head)
            *after = *l->head;
        l->embedding = l->tied ? after : l->embedding;
        l->head = after++;
    } else {
        l->head = after - 1;
        l->embedding = NULL;
        l->n_looked_up = 0;
        l->tied = false;
        l->n_logits = GROUP_ROWS; /* nobody asks for them */
        l->inner = true;
    }
    l->n_matrices = (int32_t)(after - l->matrix);
    keep_experts(l, first, n);
    l->layer += first;
    shape_keep(&l->shape, first, n);
    if (l->shape.ngram.n_heads > 0 &&
        (l->shape.ngram.layer < first || l->shape.ngram.layer >= end)) {
        l->shape.ngram.n_heads = l->shape.lookup.n = 0; /* others need the table's rows */
        l->looked_up = NULL;
    }
    place_layers(l);
    program_write(&l->program, l);
}

void model_layout_view(model_layout *view, const model_layout *of, weight *matrix)
{
    *view = *of;
    view->matrix = matrix;
    view->embedding = matrix + (of->embedding - of->matrix);
    view->head = matrix + (of->head - of->matrix);
}

/* Turns [n][n_taps] into [n_taps][n]. */
static drey_status turn(float *w, int64_t n_taps, int64_t n, drey_error *err)
{
    float *rows = malloc((size_t)(n * n_taps) * sizeof *rows);
    if (!rows)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the weights of a convolution");
    memcpy(rows, w, (size_t)(n * n_taps) * sizeof *rows);
    for (int64_t i = 0; i < n * n_taps; i++)
        w[i] = rows[i % n * n_taps + i / n];
    free(rows);
    return DREY_OK;
}

static drey_status read_vector(const layout_vector *v, const gguf *g, weights *w, drey_error *err)
{
    TRY(v->any_type ? weights_read_floats(w, v->tensor, v->numbers, err)
                    : weights_read_vector(w, v->tensor, v->numbers, err));
    for (int64_t i = 0; i < v->tensor->dims[0] * v->tensor->dims[1]; i++)
        if (!isfinite(v->numbers[i]))
            FAIL(err, DREY_ERR_FORMAT,
                 "%s: tensor %s holds numbers that are not finite: the file is damaged, fetch it "
                 "again",
                 SHOWN_PATH(gguf_shard_path(g, v->tensor->part)), v->tensor->name);
    return v->turned ? turn(v->numbers, v->tensor->dims[0], v->tensor->dims[1], err) : DREY_OK;
}

/* The bucket of a distance d >= 0 of n buckets: the first half are distances, the others are wider
 * the further away. (Raffel et al. 2020, 2.1, with the numbers of their code.) */
static int32_t bucket_of(int32_t d, int32_t n)
{
    const double rounding = 1e-6; /* at a power of two the quotient is a whole number */
    int32_t exact = n / 2;
    if (d < exact)
        return d;
    double wide = log_f64((double)d / exact) / log_f64((double)LAYOUT_BUCKETS_END / exact);
    return min_i32(exact + (int32_t)(wide * (n - exact) + rounding), n - 1);
}

/* A layer's biases by distance. In an encoder what comes after a row has the second half of the
 * buckets. */
static void fill_bias(const model_shape *s, const attention_tensors *y)
{
    const attend_bias *bias = &y->positions.bias;
    const int32_t n_heads = s->attention[0].n_heads;
    int32_t n = shape_encodes(s) ? s->encoder.n_buckets / 2 : s->encoder.n_buckets;
    for (int32_t head = 0; head < n_heads; head++)
        for (int32_t d = -bias->n_after; d <= bias->n_before; d++) {
            int32_t bucket = d < 0 ? n + bucket_of(-d, n) : bucket_of(d, n);
            y->positions.by_distance[head * bias->ld + bias->n_after + d] =
                y->positions.buckets[bucket * n_heads + head];
        }
}

/* Factors of frequencies are not those of local layers. */
static bool has_own_frequencies(const model_shape *s)
{
    return s->arch->local.halved || s->arch->local.unscaled;
}

drey_status model_layout_read(model_layout *l, const gguf *g, weights *w, drey_error *err)
{
    for (int32_t i = 0; i < l->n_vectors; i++)
        TRY(read_vector(&l->vector[i], g, w, err));
    for (int32_t i = 0; i < l->shape.n_layers; i++)
        if (l->layer[i].attention.positions.buckets)
            fill_bias(&l->shape, &l->layer[i].attention);
    float factors[512];
    const char *name =
        l->shape.context.longrope ? "rope_factors_short.weight" : "rope_freqs.weight";
    const int32_t n_pairs = l->shape.rope[ROPE_OF_ALL].n_rot / 2;
    const gguf_tensor *t = n_pairs > 0 ? gguf_find_tensor(g, name) : NULL;
    if (t)
        TRY(weights_read_vector(w, t, factors, err));
    for (int32_t i = 0; t && i < n_pairs; i++)
        if (!(factors[i] >= 1e-6f && factors[i] <= 1e31f))
            FAIL(err, DREY_ERR_FORMAT, "%s: tensor %s holds %g; the file is broken",
                 SHOWN_PATH(gguf_shard_path(g, t->part)), name, (double)factors[i]);
    for (int32_t i = 0; i < l->shape.n_ropes; i++)
        l->angles.scale[i] = rope_frequencies(
            &l->shape, &l->shape.rope[i],
            t && (i == ROPE_OF_ALL || !has_own_frequencies(&l->shape)) ? factors : NULL,
            l->angles.frequency[i]);
    return DREY_OK;
}
