/* An EAGLE layer as a drafter: its logits against an independent implementation; a layer that knows
 * what its target says is believed; a file that does not belong to the model is refused in a
 * sentence. Its texts with all policies are in test_matrix.c. */
#include "draft/eagle_drafter.h"
#include "session/session.h"
#include "support/drafts/eagle_file.h"
#include "support/writing.h"

enum { N_CONTEXT = 128, MOST_IDS = 64, N_TEXT = 60 };

static drey_model *make_target(const toy_options *toy)
{
    temp_dir();
    return toy_open("target.gguf", toy);
}

static drey_model *make_layer(const eagle_file *e)
{
    drey_model *m;
    drey_engine_options o;
    eagle_file_write(temp_path("layer.gguf"), e);
    MUST(drey_draft_open, &m, &o, temp_path("layer.gguf"));
    assert_true(o.drafter == DREY_DRAFTER_EAGLE && o.draft == m);
    return m;
}

static drey_engine_options options_of(const drey_model *target, const drey_model *layer)
{
    drey_engine_options o = plain_options(target, N_CONTEXT, 2);
    o.drafter = DREY_DRAFTER_EAGLE;
    o.draft = layer;
    return o;
}

/* ---- What it says ---- */

static const float *logits_of(const eagle_drafter *d, int32_t i)
{
    return d->run->ws->logits + i * pass_logits_stride(d->run);
}

/* The place of a token among the rows of its head. */
static int32_t row_of_token(const eagle_drafter *d, int32_t token)
{
    for (int32_t i = 0; i < d->n_ids; i++)
        if ((d->ids ? d->ids[i] : i) == token)
            return i;
    fail_msg("token %d is not in the layer's vocabulary", token);
    return -1;
}

/* Reads a node and its logits. Returns the largest difference. */
static double compare_node(FILE *f, const eagle_drafter *d, const float *logits)
{
    double worst = 0, want;
    for (int i = 0; i < 70; i++) {
        int32_t token;
        assert_int_equal(fscanf(f, "%*s %d %lf", &token, &want), 2);
        worst = fmax(worst, fabs(want - (double)logits[row_of_token(d, token)]));
    }
    return worst;
}

/* Expands the nodes of the golden tree one by one, all but the root by their own states. */
static void compare_tree(FILE *f, drey_session *s)
{
    eagle_drafter *d = (eagle_drafter *)s->drafter;
    static token_tree tree;
    int32_t root, token, parent;
    assert_int_equal(fscanf(f, " root %d", &root), 1);
    assert_int_equal(s->timeline[s->n_timeline - 1], root);
    tree_reset(&tree, root);
    for (int32_t n = 0; fscanf(f, " node %d %d", &token, &parent) == 2; n++) {
        int32_t node = n == 0 ? 0 : tree_push(&tree, parent, token, 0.5f);
        assert_int_equal(node, n);
        assert_true(s->drafter->class->can_guess(s->drafter, &tree, node));
        MUST(s->drafter->class->expand, s->drafter, &tree, &node, 1);
        assert_int_equal(tree.nodes[node].n_guesses, TREE_MAX_GUESSES);
        double worst = compare_node(f, d, logits_of(d, 0));
        if (!(worst < 1e-3))
            fail_msg("node %d is off by %g", node, worst);
    }
    assert_int_equal(tree.n_nodes, 6);
}

static void check_golden(int i, int32_t chunk)
{
    toy_options toy;
    eagle_file e;
    char path[512];
    int32_t ids[MOST_IDS], n;
    const char *name = eagle_toy(i, &toy);
    drey_model *target = make_target(&toy);
    eagle_toy_layer(i, &e, &toy, target->file, &target->shape);
    drey_model *layer = make_layer(&e);
    drey_engine_options o = options_of(target, layer);
    o.cpu_tier = "float";
    o.prompt_chunk = chunk;
    snprintf(path, sizeof path, TEST_DATA "/logits/%s.txt", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "model %*s %*d prompt %d", &n), 1);
    assert_true(n <= MOST_IDS);
    for (int32_t at = 0; at < n; at++)
        assert_int_equal(fscanf(f, "%d", &ids[at]), 1);
    drey_session *s = open_alone(&o, NULL);
    drey_generate_options g = greedy(4);
    drey_statistics stats;
    MUST(drey_session_sync, s, ids, (size_t)n, NULL);
    MUST(drey_session_begin, s, &g, &stats);
    for (bool done = false; s->n_timeline == n;)
        MUST(drey_session_step, s, &done);
    MUST(s->drafter->class->begin, s->drafter, s->timeline, s->n_timeline);
    compare_tree(f, s);
    drey_session_end(s);
    close_alone(&s);
    fclose(f);
    drey_model_close(&layer);
    drey_model_close(&target);
    temp_dir_remove();
}

TEST(golden)
{
    for (int i = 0; i < N_EAGLE_TOYS; i++) {
        check_golden(i, 0);
        check_golden(i, 7); /* the last token of a chunk is followed by one of the next */
    }
}

/* ---- What it is worth ---- */

static const int32_t prompt[] = {72, 101, 108, 108, 111, 32, 116, 104, 101, 114, 101};
enum { N_PROMPT = sizeof prompt / sizeof *prompt };

/* A target that says nearly what its last token alone suggests. */
static toy_options simple_toy(void)
{
    toy_options toy = toy_default();
    toy.layer_gain = 0.0005f;
    toy.n_embd = 256;
    return toy;
}

static void check_worth(const drey_model *target, const drey_model *layer, drey_policy policy,
                        int32_t n_sampled, double least)
{
    static writing want, got;
    const drey_sampling sampled = {.temperature = 0.7f, .top_p = 1, .seed = 3};
    const drey_sampling *how = n_sampled ? &sampled : NULL;
    drey_engine_options o = plain_options(target, N_CONTEXT, 2);
    writing_run(&want, &o, -1, prompt, N_PROMPT, N_TEXT, how);
    o = options_of(target, layer);
    o.policy = policy;
    writing_run(&got, &o, -1, prompt, N_PROMPT, N_TEXT, how);
    must_be_same(&want, &got, drey_policy_name(policy));
    double per_pass = (double)N_TEXT / (double)got.stats.n_passes;
    print_message("%s: %.2f tokens per pass, %d of %d accepted in %d\n", drey_policy_name(policy),
                  per_pass, (int)got.stats.accepted, (int)got.stats.drafted,
                  (int)got.stats.n_passes);
    if (!(per_pass > least))
        fail_msg("%s: %g tokens per pass", drey_policy_name(policy), per_pass);
}

TEST(is_believed)
{
    toy_options toy = simple_toy();
    drey_model *target = make_target(&toy);
    eagle_file e;
    eagle_file_init_knowing(&e, &toy, target->file, &target->shape);
    drey_model *layer = make_layer(&e);
    check_worth(target, layer, DREY_POLICY_SEQUENCE, 0, 6);
    check_worth(target, layer, DREY_POLICY_SPECINFER, 0, 6);
    check_worth(target, layer, DREY_POLICY_LLMCAD, 0, 2);
    check_worth(target, layer, DREY_POLICY_EDGELLM, 0, 2);
    check_worth(target, layer, DREY_POLICY_OPTIMAL, 0, 2);
    check_worth(target, layer, DREY_POLICY_OPTIMAL, 1, 1.5);
    drey_model_close(&layer);
    drey_model_close(&target);
    temp_dir_remove();
}

/* The drafter "model" with such a file is the same. A text is cut, and continued in another way. */
TEST(cut_texts_continue)
{
    static writing want, got;
    toy_options toy = simple_toy();
    drey_model *target = make_target(&toy);
    eagle_file e;
    eagle_file_init_knowing(&e, &toy, target->file, &target->shape);
    drey_model *layer = make_layer(&e);
    drey_engine_options o = options_of(target, layer);
    o.drafter = DREY_DRAFTER_MODEL;
    o.policy = DREY_POLICY_SEQUENCE;
    drey_session *s = open_alone(&o, NULL);
    int32_t other[N_PROMPT + 6];
    memcpy(other, prompt, sizeof prompt);
    writing_continue(&got, s, prompt, N_PROMPT, 20, NULL);
    for (int32_t i = 0; i < 6; i++)
        other[N_PROMPT + i] = i < 3 ? got.ids[i] : 80 + i;
    got = (writing){.n_ids = 0};
    MUST(drey_session_sync, s, other, N_PROMPT + 6, NULL);
    writing_continue(&got, s, NULL, 0, 30, NULL);
    eagle_drafter *d = (eagle_drafter *)s->drafter;
    assert_int_equal(d->first, 1); /* nothing was forgotten but what was cut */
    assert_true(got.stats.accepted > 15);
    close_alone(&s);
    o = plain_options(target, N_CONTEXT, 2);
    writing_run(&want, &o, -1, other, N_PROMPT + 6, 30, NULL);
    must_be_same(&want, &got, "a text after a cut");
    drey_model_close(&layer);
    drey_model_close(&target);
    temp_dir_remove();
}

/* ---- What is refused ---- */

static void refuse(const drey_model *target, const eagle_file *e, drey_status status,
                   const char *words)
{
    drey_model *layer = make_layer(e);
    drey_engine_options o = options_of(target, layer);
    must_refuse_engine(&o, NULL, status, words);
    drey_model_close(&layer);
}

static void refuse_file(const eagle_file *e, drey_status status, const char *words)
{
    drey_model *m = NULL;
    eagle_file_write(temp_path("layer.gguf"), e);
    REFUSED(status, words, drey_model_open, &m, temp_path("layer.gguf"));
}

TEST(refused)
{
    toy_options toy = toy_default(), other = toy_default();
    drey_model *target = make_target(&toy);
    eagle_file usual, e;
    eagle_file_init(&usual, &toy, target->file, &target->shape);
    usual.taps.n_ids = 200;
    e = usual;
    e.taps.width = 96;
    refuse(target, &e, DREY_ERR_MISMATCH, "is for a model of width 96, and this one has 64");
    e = usual;
    e.taps.layer[2] = 28;
    refuse(target, &e, DREY_ERR_MISMATCH,
           "looks at what comes after 28 layers, and this model has 3");
    e = usual;
    e.n_embd = 96;
    refuse(target, &e, DREY_ERR_MISMATCH, "has width 96 and no embedding");
    e = usual;
    e.first_id = target->shape.n_vocab - 50;
    refuse(target, &e, DREY_ERR_MISMATCH, "guesses token");
    e = usual;
    e.differences = true;
    refuse(target, &e, DREY_ERR_FORMAT, "twice: it may hold differences");
    e = usual;
    other.pre = NULL;
    e.toy = &other;
    refuse(target, &e, DREY_ERR_MISMATCH, "different kinds of tokenizer");
    e = usual;
    e.taps.layer[1] = 0;
    e.taps.layer[0] = 1;
    refuse_file(&e, DREY_ERR_FORMAT, "no rising list of layers");
    drey_model *layer = make_layer(&usual);
    drey_engine_options o = options_of(target, target);
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "is a model of its own and no EAGLE layer");
    o = plain_options(layer, N_CONTEXT, 2);
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "cannot write alone");
    o = options_of(target, layer);
    o.policy = DREY_POLICY_DRAFT;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "cannot write alone");
    drey_model_close(&layer);
    drey_model_close(&target);
    temp_dir_remove();
}
