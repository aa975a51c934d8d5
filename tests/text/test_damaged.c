/* Numbers that are not finite, wherever they lie: the file and the tensor are named, no text and no
 * figure is made of them, and what was written before stays. */
#include <fcntl.h>
#include <unistd.h>

#include "engine/engine.h"
#include "kernel/packing.h"
#include "support/faults/damage.h"
#include "support/writing.h"
#include "weights/sidecar.h"

enum { N_TEXT = 12, N_PROMPT = 3 };

static const int32_t prompt[N_PROMPT] = {70, 2, 33};
static const double shares[] = {1.0, 0.4, 0.0};
static writing got;

static drey_model *open_model(const char *path)
{
    drey_model *m;
    MUST(drey_model_open, &m, path);
    return m;
}

static drey_engine_options plain(const drey_model *target)
{
    return plain_options(target, 64, 2);
}

static const char *make(const char *name, uint32_t type, bool biases)
{
    const char *path = temp_path(name);
    toy_options toy = toy_default();
    toy.type = type;
    toy.biases = biases;
    toy.n_layers = 2;
    toy.n_embd = toy.n_ff = 256;
    toy_write(path, &toy);
    return path;
}

static void damaged(drey_status status, const drey_error *err, const char *path, const char *what,
                    const char *where)
{
    if (status != DREY_ERR_FORMAT || !strstr(err->message, path) || !strstr(err->message, what) ||
        !strstr(err->message, "not finite: the file is damaged, fetch it again"))
        fail_msg("%s, %s: %d, \"%s\"", where, what, status, err->message);
}

/* Writes a text with that part of the target pinned. */
static void write_text(const drey_engine_options *o, double share)
{
    writing_try(&got, o, share, prompt, N_PROMPT, N_TEXT, NULL);
}

/* ---- Matrices ---- */

static void check_matrix(const char *path, const char *tensor, const char *type)
{
    drey_model *m = open_model(path);
    drey_engine_options o = plain(m);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        char where[64];
        snprintf(where, sizeof where, "%s with %g pinned", type, shares[i]);
        write_text(&o, shares[i]);
        damaged(got.status, &got.error, path, tensor, where);
        assert_int_equal(got.n_ids, 0);
    }
    drey_model_close(&m);
}

/* Every type, its scale and its minimum, in the middle and in a last group with fewer rows. */
TEST(matrices_of_every_type)
{
    static const char *const tensors[] = {"blk.0.attn_q.weight", "blk.1.ffn_down.weight",
                                          "output.weight", "token_embd.weight"};
    static const int64_t rows[] = {40, 255, 380, 33}; /* 33 is in the prompt */
    for (uint32_t type = 0, turn = 0; type < TYPE_LIMIT; type++) {
        if (!type_find(type) || !type_find(type)->runnable)
            continue;
        const type_layout *layout = layout_find(type);
        if (layout->block_k > 1 && layout->n_scales == 0)
            continue; /* every scale is finite */
        for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++, turn++) {
            const char *path = make("m.gguf", type, false);
            int32_t n_scales = layout->block_k > 1 ? layout->n_scales : 1;
            damage(path, tensors[i], rows[i], (int)(turn / 2) % n_scales, turn % 2);
            check_matrix(path, tensors[i], type_find(type)->name);
        }
    }
}

/* Experts come to memory when a layer has chosen them. */
TEST(matrices_of_experts)
{
    static const char *const tensors[] = {"blk.0.ffn_gate_inp.weight", "blk.1.ffn_gate_exps.weight",
                                          "blk.0.ffn_up_exps.weight", "blk.1.ffn_down_exps.weight"};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const char *path = temp_path("experts.gguf");
        toy_options toy = toy_default();
        toy.n_layers = 2;
        toy.experts = (toy_experts){.n = 4, .n_used = 4, .n_ff = 64};
        toy_write(path, &toy);
        damage(path, tensors[i], 3, 0, i % 2);
        check_matrix(path, tensors[i], "experts");
    }
}

TEST(draft_matrices)
{
    drey_model *target = open_model(make("target.gguf", TYPE_Q8_0, false));
    const char *path = make("draft.gguf", TYPE_Q8_0, false);
    damage(path, "blk.0.ffn_up.weight", 7, 0, false);
    drey_model *draft = open_model(path);
    drey_engine_options o = plain(target);
    o.drafter = DREY_DRAFTER_MODEL;
    o.draft = draft;
    write_text(&o, -1);
    damaged(got.status, &got.error, path, "blk.0.ffn_up.weight", "draft");
    drey_model_close(&draft);
    drey_model_close(&target);
}

/* A row of the embedding is looked at when its token comes. */
TEST(text_written_before_stays)
{
    static writing want;
    const char *path = make("m.gguf", TYPE_Q8_0, false);
    drey_model *m = open_model(path);
    drey_engine_options o = plain(m);
    writing_run(&want, &o, 0.4, prompt, N_PROMPT, N_TEXT, NULL);
    drey_model_close(&m);
    int32_t first = 4; /* the first of its token */
    for (int32_t i = 0; i < first; i++)
        assert_int_not_equal(want.ids[i], want.ids[first]);
    damage(path, "token_embd.weight", want.ids[first], 0, true);
    m = open_model(path);
    o = plain(m);
    write_text(&o, 0.4);
    damaged(got.status, &got.error, path, "token_embd.weight", "in the middle of a text");
    assert_int_equal(got.n_ids, first + 1);
    assert_memory_equal(got.ids, want.ids, (size_t)got.n_ids * sizeof *got.ids);
    drey_model_close(&m);
}

/* ---- Vectors ---- */

TEST(norms_and_biases)
{
    static const char *const tensors[] = {"output_norm.weight",     "blk.1.attn_norm.weight",
                                          "blk.0.ffn_norm.weight",  "blk.0.attn_q.bias",
                                          "blk.1.attn_output.bias", "blk.1.ffn_gate.bias"};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        for (int infinite = 0; infinite < 2; infinite++) {
            const char *path = make("m.gguf", TYPE_Q8_0, true);
            damage(path, tensors[i], 0, 0, infinite);
            drey_model *m = open_model(path);
            drey_engine_options o = plain(m);
            drey_engine *e = NULL;
            drey_error err = {0};
            damaged(drey_engine_open(&e, &o, &err), &err, path, tensors[i], "engine");
            drey_model_close(&m);
        }
}

/* Decays and step sizes of a delta net. */
TEST(decays)
{
    static const char *const tensors[] = {"blk.0.ssm_a", "blk.0.ssm_dt.bias",
                                          "blk.0.ssm_conv1d.weight"};
    toy_options toy = toy_default();
    toy.architecture = "qwen35";
    toy.form = TOY_HEAD_NORMS | TOY_POST_IS_FFN_NORM | TOY_GATES_IN_Q;
    toy.delta =
        (toy_delta){.n_key_heads = 2, .n_value_heads = 4, .dim = 16, .period = 2, .decay = 0.3f};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const char *path = temp_path("m.gguf");
        toy_write(path, &toy);
        damage(path, tensors[i], 0, 0, i % 2 == 1);
        drey_model *m = open_model(path);
        drey_engine_options o = plain(m);
        drey_engine *e = NULL;
        drey_error err = {0};
        damaged(drey_engine_open(&e, &o, &err), &err, path, tensors[i], "engine");
        drey_model_close(&m);
    }
}

/* ---- Scores ---- */

/* Tokens are scored with this file. */
static void check_scores(const char *path, const char *tensor)
{
    drey_error err = {0};
    float logprob[N_PROMPT];
    drey_model *m = open_model(path);
    drey_engine_options o = plain(m);
    engine_place p = place_open(&o, NULL);
    drey_status status = drey_session_score(p.session[0], prompt, N_PROMPT, logprob, &err);
    damaged(status, &err, path, tensor, "score");
    place_close(&p);
    drey_model_close(&m);
}

TEST(scores)
{
    const char *path = make("m.gguf", TYPE_Q4_K, false);
    damage(path, "output.weight", 100, 1, true);
    check_scores(path, "output.weight");
}

/* Finite weights whose logits are not. */
TEST(scores_of_numbers_too_large)
{
    const char *path = make("m.gguf", TYPE_F32, false);
    drey_model *m = open_model(path);
    const gguf_tensor *t = gguf_find_tensor(m->file, "output.weight");
    float row[256];
    for (int i = 0; i < 256; i++)
        row[i] = 3e38f;
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, row, sizeof row, (off_t)t->offset), sizeof row);
    assert_int_equal(close(fd), 0);
    drey_model_close(&m);
    check_scores(path, "");
}

/* ---- Sidecars ---- */

TEST(prepare_refuses)
{
    const char *path = make("m.gguf", TYPE_Q6_K, false), *output = temp_path("m.drey");
    damage(path, "blk.1.attn_v.weight", 90, 0, false);
    drey_model *m = open_model(path);
    drey_error err = {0};
    const drey_prepare_options prepare = {.model = m, .output = output};
    damaged(drey_prepare(&prepare, NULL, &err), &err, path, "blk.1.attn_v.weight", "prepare");
    assert_int_not_equal(access(output, F_OK), 0);
    drey_model_close(&m);
}

/* The offset of a matrix in the sidecar of a model in one part. */
static off_t place_in_sidecar(int fd, const char *tensor)
{
    sidecar_head head;
    assert_int_equal(pread(fd, &head, sizeof head, 0), sizeof head);
    off_t at = (off_t)(sizeof head + head.n_parts * sizeof(sidecar_stamp));
    for (uint32_t i = 0; i < head.n_matrices; i++) {
        sidecar_entry e;
        assert_int_equal(pread(fd, &e, sizeof e, at + (off_t)(i * sizeof e)), sizeof e);
        if (strcmp(e.name, tensor) == 0)
            return (off_t)e.offset;
    }
    fail_msg("%s is not there", tensor);
    return 0;
}

/* Packed weights are compared with their hashes before anything computed of them is handed out. */
TEST(sidecars_that_were_damaged)
{
    const char *path = make("m.gguf", TYPE_Q8_0, false), *output = temp_path("m.gguf.drey");
    drey_model *m = open_model(path);
    toy_prepare(m, output, false);
    int fd = open(output, O_RDWR);
    const uint16_t nan = 0x7e00; /* the first scale of the first row */
    assert_int_equal(pwrite(fd, &nan, 2, place_in_sidecar(fd, "blk.1.ffn_down.weight")), 2);
    assert_int_equal(close(fd), 0);
    drey_engine_options o = plain(m);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        write_text(&o, shares[i]);
        if (got.status != DREY_ERR_FORMAT || !strstr(got.error.message, output) ||
            !strstr(got.error.message, "is damaged in matrix blk.1.ffn_down.weight"))
            fail_msg("a damaged sidecar: %d, \"%s\"", got.status, got.error.message);
        assert_int_equal(got.n_ids, 0);
    }
    o.no_sidecar = true;
    write_text(&o, 0.4);
    assert_int_equal(got.status, DREY_OK);
    drey_model_close(&m);
}
