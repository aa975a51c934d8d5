/* Medusa heads as a drafter: what they say against sums written out here, the same on every tier; a
 * file that does not belong to the model is refused in a sentence. Their texts are in
 * test_matrix.c. */
#include <unistd.h>

#include "base/fmath.h"
#include "session/session.h"
#include "support/faults/damage.h"
#include "support/heads_file.h"
#include "support/scene.h"

enum { N_CONTEXT = 128, SLICE = 250, ABSENT = 5 };

static const int32_t prompt[] = {72, 101, 108, 108, 111, 32, 116, 104, 101, 114, 101};
enum { N_PROMPT = sizeof prompt / sizeof *prompt };

static drey_model *make(const char *name, uint32_t type, bool tied)
{
    toy_options toy = toy_default();
    toy.type = type;
    toy.tied = tied;
    toy.n_embd = toy.n_ff = 256;
    temp_dir();
    return toy_open(name, &toy);
}

static drey_engine_options options_of(const drey_model *m, drey_drafter which)
{
    drey_engine_options o = plain_options(m, N_CONTEXT, 2);
    o.drafter = which;
    return o;
}

static heads_file heads_for(const drey_model *m)
{
    heads_file h;
    heads_file_init(&h, m->file, &m->shape);
    return h;
}

/* All but every sixth, of which ABSENT is the first. */
static const int32_t *some_ids(void)
{
    static int32_t ids[SLICE];
    for (int32_t i = 0; i < SLICE; i++)
        ids[i] = i + i / 5;
    return ids;
}

static void cut_to_slice(heads_file *h)
{
    h->shape.n_ids = SLICE;
    h->ids = some_ids();
}

static void put_next_to_model(const heads_file *h)
{
    heads_file_write(temp_path("model.gguf.drey-medusa"), h);
}

/* ---- What they say ---- */

/* An engine whose weights are loaded, this share of them for good. */
static engine_place loaded(const drey_engine_options *o, double share)
{
    engine_place p = place_open(o, &(engine_hooks){.set_share = true, .share = share});
    MUST(pass_prompt, &p.session[0]->target, prompt, N_PROMPT, 8, HEAD_LAST, NULL, NULL);
    return p;
}

static void read_rows(const gguf *g, const char *name, float *out, size_t n)
{
    const gguf_tensor *t = gguf_find_tensor(g, name);
    file f;
    assert_int_equal(t->type, TYPE_F32);
    const char *path = gguf_shard_path(g, 0);
    MUST(file_open, &f, path, false);
    MUST(file_read, &f, path, t->offset, n * sizeof *out, out, NULL, 0);
    file_close(&f);
}

static float dot(const float *w, const float *x, int32_t n)
{
    float sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum = fmaf(w[i], x[i], sum);
    return sum;
}

/* [h; e(token)] by the formulas of medusa_heads.h and kernel.h. */
static void input_by_hand(float *out, const float *hidden, const float *row, int32_t d)
{
    float lane[16] = {0};
    memcpy(out, hidden, (size_t)d * sizeof *out);
    for (int32_t i = 0; i < d; i++)
        lane[i % 16] = fmaf(row[i], row[i], lane[i % 16]);
    for (int32_t half = 8; half; half /= 2)
        for (int32_t i = 0; i < half; i++)
            lane[i] += lane[i + half];
    float scale = 1.0f / sqrtf(lane[0] / (float)d + 1e-6f);
    for (int32_t i = 0; i < d; i++)
        out[d + i] = row[i] * scale * 1.0f;
}

enum { D = 256, HEADS = 2, NODES = 4, MOST_VOCABULARY = 512 };

/* Nodes of one step, of both heads and of a token that is not guessed. */
static void check_by_hand(drey_engine *e)
{
    static const medusa_node nodes[NODES] = {{1, 7}, {0, 250}, {1, ABSENT}, {0, 7}};
    static float hidden[D], w[HEADS][D * 2 * D], b[HEADS * D], v[MOST_VOCABULARY * D];
    medusa_heads *heads = e->source.out.own;
    rng r = rng_from(9);
    for (int32_t i = 0; i < D; i++)
        hidden[i] = (float)rng_normal(&r);
    read_rows(heads->file, "blocks.0.weight", w[0], D * 2 * D);
    read_rows(heads->file, "blocks.1.weight", w[1], D * 2 * D);
    read_rows(heads->file, "blocks.bias", b, HEADS * D);
    const int32_t n_vocab = e->config.target->shape.n_vocab;
    assert_true(n_vocab > some_ids()[SLICE - 1] && n_vocab <= MOST_VOCABULARY);
    read_rows(e->config.target->file, "output.weight", v, (size_t)(n_vocab * D));
    MUST(medusa_compute, heads, hidden, nodes, NODES);
    for (int32_t at = 0; at < NODES; at++) {
        const int32_t k = nodes[at].head;
        float x[D], input[2 * D];
        input_by_hand(input, hidden, v + nodes[at].token * D, D);
        for (int32_t i = 0; i < D; i++) {
            float gate = dot(w[k] + i * 2 * D, input, 2 * D) + b[k * D + i];
            x[i] = hidden[i] + gate / (1 + exp_f32(-gate)) * 0.5f;
        }
        for (int32_t i = 0; i < SLICE; i++)
            assert_true(heads->logits[at * heads->logits_ld + i] ==
                        dot(v + some_ids()[i] * D, x, D));
    }
}

/* Of weights in float, where the target's head is in memory and where it is not. */
TEST(by_hand)
{
    drey_model *m = make("model.gguf", TYPE_F32, false);
    heads_file h = heads_for(m);
    cut_to_slice(&h);
    h.shape.scale = 0.5f;
    h.spread = 0.1f;
    put_next_to_model(&h);
    for (int i = 0; i < 2; i++) {
        drey_engine_options o = options_of(m, DREY_DRAFTER_MEDUSA);
        engine_place p = loaded(&o, 1 - i);
        drey_engine *e = p.engine;
        const weight *head = e->target.layout.head;
        assert_int_equal(head->residency.n_pinned == head->residency.n_groups, i == 0);
        assert_int_equal(e->config.policy_id, DREY_POLICY_OPTIMAL); /* which nobody asked for */
        e->cost.draft_s = 1; /* a turn's second step takes as long as its first */
        assert_true(cost_step(&e->cost, 1) > 0);
        check_by_hand(e);
        place_close(&p);
    }
    drey_model_close(&m);
}

/* What tune measured are the heads' own confidences: mixtures with lookup's are judged without. */
TEST(confidences_of_a_profile)
{
    drey_model *m = make("model.gguf", TYPE_F32, false);
    heads_file h = heads_for(m);
    cut_to_slice(&h);
    put_next_to_model(&h);
    drey_profile never;
    drey_profile_init(&never);
    for (int r = 0; r < DREY_PROFILE_RANKS; r++)
        for (int bin = 0; bin < DREY_PROFILE_BINS; bin++)
            never.guessed[r][bin] = 1000;
    float worth[2][2]; /* [without lookup][of the profile] */
    for (int i = 0; i < 4; i++) {
        drey_engine_options o = options_of(m, DREY_DRAFTER_MEDUSA);
        o.research = i / 2 ? &not_looked_up : NULL;
        o.profile = i % 2 ? &never : NULL;
        engine_place p = loaded(&o, 1);
        worth[i / 2][i % 2] = policy_calibrate(p.session[0]->policy, 0, 0.6f);
        place_close(&p);
    }
    assert_true(worth[0][0] > 0.1f && worth[0][0] == worth[0][1]);
    assert_true(worth[1][0] > 0.1f && worth[1][1] < 0.2f * worth[1][0]);
    drey_model_close(&m);
}

static bool never(void *user, int32_t layer, int32_t position)
{
    return false;
}

/* For candidates of early exits only the first head is kept, and rows of the target's head are the
 * slice: less memory, the same guesses. */
static void check_for_exits(const drey_engine_options *options, const medusa_node *root,
                            const float *hidden, const float *want, uint64_t usual_bytes)
{
    drey_engine_options o = *options;
    o.exit = DREY_EXIT_EXACT;
    o.policy = DREY_POLICY_SINGLE;
    engine_place p =
        place_open(&o, &(engine_hooks){.set_share = true, .share = 1, .exit_here = never});
    MUST(pass_prompt, &p.session[0]->target, prompt, N_PROMPT, 8, HEAD_LAST, NULL, NULL);
    medusa_heads *heads = p.engine->source.out.own;
    assert_true(heads->for_roots && p.engine->source.out.resident_bytes < usual_bytes);
    MUST(medusa_compute, heads, hidden, root, 1);
    assert_memory_equal(heads->logits, want, SLICE * sizeof *want);
    place_close(&p);
}

static void check_tiers(uint32_t type, bool tied, uint32_t blocks)
{
    static float hidden[256], want[2 * SLICE];
    drey_model *m = make("model.gguf", type, tied);
    heads_file h = heads_for(m);
    h.type = blocks;
    cut_to_slice(&h);
    put_next_to_model(&h);
    drey_engine_options o = options_of(m, DREY_DRAFTER_MEDUSA);
    const char *const *tiers = drey_cpu_tiers();
    rng r = rng_from(type);
    for (int32_t i = 0; i < 256; i++)
        hidden[i] = (float)rng_normal(&r);
    for (int t = 0; strcmp(tiers[t], "float") != 0; t++) {
        o.cpu_tier = tiers[t];
        o.n_threads = 1 + t % 3;
        engine_place p = loaded(&o, 1);
        const medusa_node nodes[] = {{0, 3}, {1, 100}};
        MUST(medusa_compute, p.engine->source.out.own, hidden, nodes, 2);
        for (int32_t k = 0; k < 2; k++) {
            const medusa_heads *heads = p.engine->source.out.own;
            const float *got = heads->logits + k * heads->logits_ld;
            if (t == 0)
                memcpy(want + k * SLICE, got, SLICE * sizeof *got);
            assert_memory_equal(got, want + k * SLICE, SLICE * sizeof *got);
        }
        uint64_t n_bytes = p.engine->source.out.resident_bytes;
        place_close(&p);
        check_for_exits(&o, &nodes[0], hidden, want, n_bytes);
    }
    drey_model_close(&m);
    temp_dir_remove();
}

TEST(tiers_agree)
{
    check_tiers(TYPE_Q6_K, true, TYPE_Q8_0);
    check_tiers(TYPE_Q4_0, false, TYPE_Q8_0);
    check_tiers(TYPE_F32, false, TYPE_F32);
}

/* Blocks that add nothing repeat the target's own logits: every depth has the guesses that the
 * root's place had, and there are as many depths as heads. */
TEST(guesses_by_depth)
{
    drey_model *m = make("model.gguf", TYPE_Q8_0, false);
    heads_file h = heads_for(m);
    h.shape.n_heads = 3;
    h.spread = 0;
    put_next_to_model(&h);
    drey_engine_options o = options_of(m, DREY_DRAFTER_MEDUSA);
    o.research = &not_looked_up; /* which would weigh them */
    engine_place p = loaded(&o, 1);
    drey_engine *e = p.engine;
    drey_session *s = p.session[0];
    drafter *d = s->drafter;
    token_tree tree;
    int32_t tokens[N_PROMPT + 1], top[TREE_MAX_GUESSES], node = 0;
    const float *hidden = e->target.ws.y;
    drey_sampling greedy = {.top_p = 1};
    MUST(sampler_init, &s->sampler, &greedy, m->shape.n_vocab, e->kernels, &s->memory.arena);
    memcpy(tokens, prompt, sizeof prompt);
    sampler_top(&s->sampler, e->target.ws.logits, top, TREE_MAX_GUESSES);
    tokens[N_PROMPT] = top[0];
    for (int seen = 0; seen < 2; seen++) {
        if (seen)
            d->class->listener->take_hidden(d, N_PROMPT - 1, hidden);
        MUST(d->class->begin, d, tokens, N_PROMPT + 1);
        tree_reset(&tree, top[0]);
        for (node = 0; node < 4; node++) {
            MUST(d->class->expand, d, &tree, &node, 1);
            const tree_node *n = &tree.nodes[node];
            assert_int_equal(n->n_guesses, seen && node < 3 ? TREE_MAX_GUESSES : 0);
            for (int32_t i = 0; i < n->n_guesses; i++)
                assert_int_equal(n->guess[i].token, top[i]);
            tree_push(&tree, node, 7, 0.5f);
        }
    }
    place_close(&p);
    drey_model_close(&m);
}

/* ---- The plan ---- */

TEST(plan_counts_them)
{
    drey_model *m = make("model.gguf", TYPE_Q8_0, false);
    heads_file h = heads_for(m);
    cut_to_slice(&h);
    h.shape.n_heads = 4;
    put_next_to_model(&h);
    drey_engine_options o = options_of(m, DREY_DRAFTER_MEDUSA);
    drey_planner *planner;
    drey_plan plan;
    const uint64_t blocks = 4 * 256 * 512 * sizeof(float) + 4 * 256 * sizeof(float);
    const uint64_t slice = 8 * 32 * 256 * 34 / 32, ids = 1024; /* 1000, aligned */
    MUST(drey_planner_open, &planner, &o);
    MUST(drey_planner_make, planner, smallest_budget(&o, NULL), NULL, &plan);
    assert_int_equal(plan.draft_bytes, blocks + slice + ids);
    uint64_t parts = plan.pinned_bytes + plan.draft_bytes + plan.ring_bytes + plan.kv_bytes +
                     plan.work_bytes + plan.process_bytes + plan.spare_bytes;
    assert_int_equal(parts, plan.budget_bytes);
    /* Named in whole MiB. */
    const drey_engine_options plain = options_of(m, DREY_DRAFTER_NONE);
    assert_true(smallest_budget(&o, NULL) > smallest_budget(&plain, NULL) + blocks / 2);
    drey_planner_close(&planner);
    drey_model_close(&m);
}

/* ---- What is refused ---- */

/* h: written first; NULL: the file is what it is. */
static void refused(const drey_model *m, const heads_file *h, drey_status status, const char *says)
{
    if (h)
        put_next_to_model(h);
    drey_engine_options o = options_of(m, DREY_DRAFTER_MEDUSA);
    must_refuse_engine(&o, NULL, status, says);
}

static void cut_short(const char *path)
{
    file f;
    MUST(file_open, &f, path, false);
    file_close(&f);
    assert_int_equal(truncate(path, (off_t)f.n_bytes - 64), 0);
}

TEST(bad_lists_of_ids)
{
    drey_model *m = make("model.gguf", TYPE_Q8_0, false);
    const heads_file good = heads_for(m);
    heads_file h;
    const int32_t n_vocab = m->shape.n_vocab;
    const struct {
        int32_t ids[4], n;
        drey_status status;
        const char *says;
    } lists[] = {{{0}, 0, DREY_ERR_FORMAT, "list of token ids"},
                 {{0, 1, 1, 2}, 4, DREY_ERR_FORMAT, "rising"},
                 {{7, 3}, 2, DREY_ERR_FORMAT, "rising"},
                 {{0, n_vocab}, 2, DREY_ERR_MISMATCH, "train others"},
                 {{0, -1}, 2, DREY_ERR_MISMATCH, "token 4294967295"}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        h = good;
        h.ids = lists[i].ids;
        h.shape.n_ids = lists[i].n;
        refused(m, &h, lists[i].status, lists[i].says);
    }
    h = good; /* longer than the vocabulary */
    h.shape.n_ids = n_vocab + 1;
    refused(m, &h, DREY_ERR_MISMATCH, "train others");
    drey_model_close(&m);
}

TEST(bad_files)
{
    drey_model *m = make("model.gguf", TYPE_Q8_0, false);
    const heads_file good = heads_for(m);
    const char *path = temp_path("model.gguf.drey-medusa");
    assert_false(drey_is_heads_file(path));
    refused(m, NULL, DREY_ERR_IO, "drey-medusa");
    put_next_to_model(&good);
    assert_true(drey_is_heads_file(path));
    assert_false(drey_is_heads_file(temp_path("model.gguf")));
    drey_engine_options o = options_of(m, DREY_DRAFTER_MODEL);
    drey_model *draft;
    MUST(drey_draft_open, &draft, &o, path);
    assert_true(!draft && !o.draft && o.heads == path && o.drafter == DREY_DRAFTER_MEDUSA);
    MUST(drey_draft_open, &draft, &o, temp_path("model.gguf"));
    assert_true(draft && o.draft == draft && !o.heads && o.drafter == DREY_DRAFTER_MODEL);
    drey_model_close(&draft);
    heads_file h = good;
    h.target++;
    refused(m, &h, DREY_ERR_MISMATCH, "another model");
    h = good;
    h.shape.n_embd = 128;
    refused(m, &h, DREY_ERR_MISMATCH, "width 128");
    h = good;
    h.shape.accuracy[1][3] = NAN;
    refused(m, &h, DREY_ERR_FORMAT, "accuracy");
    h = good;
    h.shape.scale = INFINITY;
    refused(m, &h, DREY_ERR_FORMAT, "scale");
    h = good;
    h.version--;
    refused(m, &h, DREY_ERR_UNSUPPORTED, "train them again");
    h = good;
    h.architecture = "llama";
    refused(m, &h, DREY_ERR_FORMAT, "no file of Medusa heads");
    assert_false(drey_is_heads_file(path));
    put_next_to_model(&good);
    cut_short(path);
    refused(m, NULL, DREY_ERR_FORMAT, path);
    static const char *const tensors[] = {"blocks.1.weight", "blocks.bias"};
    for (int i = 0; i < 2; i++) {
        put_next_to_model(&good);
        damage(path, tensors[i], 0, 0, i == 1);
        refused(m, NULL, DREY_ERR_FORMAT, "not finite");
    }
    o = options_of(m, DREY_DRAFTER_LOOKUP);
    drey_plan plan;
    o.heads = path;
    assert_int_equal(drey_plan_make(&o, NULL, &plan, NULL), DREY_ERR_USAGE);
    drey_model_close(&m);
}
