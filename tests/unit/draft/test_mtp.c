/* A block for multi-token prediction as a drafter: its logits against an independent
 * implementation; texts are the same with it, whatever grows the tree and holds memory, and after a
 * cut or a saved text; a block that knows what its target says is believed; what cannot draft is
 * refused in a sentence. */
#include "draft/eagle_drafter.h"
#include "session/session.h"
#include "support/drafts/mtp_toy.h"
#include "support/rng.h"
#include "support/writing.h"

enum { N_CONTEXT = 128, MOST_IDS = 64, N_TEXT = 60, N_PROMPT = 40 };
static int32_t prompt[N_PROMPT];

static int set_up(void **state)
{
    (void)state;
    temp_dir();
    for (int32_t i = 0; i < N_PROMPT; i++)
        prompt[i] = 40 + i * 7 % 90;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    temp_dir_remove();
    return 0;
}

static drey_engine_options options_of(const drey_model *target)
{
    drey_engine_options o = plain_options(target, N_CONTEXT, 2);
    o.drafter = DREY_DRAFTER_MTP;
    return o;
}

/* ---- What it says ---- */

/* Reads a node's logits. Returns the largest difference. */
static double compare_node(FILE *f, const float *logits)
{
    double worst = 0, want;
    for (int i = 0; i < 70; i++) {
        int32_t token;
        assert_int_equal(fscanf(f, "%*s %d %lf", &token, &want), 2);
        worst = fmax(worst, fabs(want - (double)logits[token]));
    }
    return worst;
}

/* Expands the nodes of the golden tree one by one, all but the root by the block's own states. */
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
        double worst = compare_node(f, d->run->ws->logits);
        if (!(worst < 1e-3))
            fail_msg("node %d is off by %g", node, worst);
    }
    assert_int_equal(tree.n_nodes, 6);
}

static void check_golden(int i, int32_t chunk)
{
    toy_options toy;
    char path[512];
    int32_t ids[MOST_IDS], n;
    const char *name = mtp_toy(i, &toy);
    drey_model *target = toy_open("target.gguf", &toy);
    drey_engine_options o = options_of(target);
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
    drey_model_close(&target);
}

TEST(golden)
{
    for (int i = 0; i < N_MTP_TOYS; i++) {
        check_golden(i, 0);
        check_golden(i, 7); /* the last token of a chunk is followed by one of the next */
    }
}

/* ---- The same text ---- */

static const drey_sampling sampled = {.temperature = 0.7f, .top_p = 1, .seed = 3};

/* A toy whose block knows: trees are right often, and wrong. */
static drey_model *open_knowing(int i, const char *name)
{
    toy_options toy;
    (void)mtp_toy(i, &toy);
    toy.layer_gain = 0.02f;
    toy_write(temp_path(name), &toy);
    mtp_toy_teach(temp_path(name));
    drey_model *m;
    MUST(drey_model_open, &m, temp_path(name));
    return m;
}

/* A random case: what must not change a text. */
static void check_case(const drey_model *target, rng *r, const drey_sampling *how)
{
    static const drey_policy policies[] = {DREY_POLICY_SEQUENCE, DREY_POLICY_SPECINFER,
                                           DREY_POLICY_LLMCAD,   DREY_POLICY_EDGELLM,
                                           DREY_POLICY_OPTIMAL,  DREY_POLICY_STATIC};
    static const double shares[] = {-1, 0.6, 0.2, 0};
    static const int32_t chunks[] = {0, 1, 7};
    static writing want, got;
    const drey_research lookup = {.with = DREY_WITH(DREY_PART_LOOKUP)};
    drey_engine_options o = plain_options(target, N_CONTEXT, 2);
    o.kv = rng_below(r, 2) ? DREY_KV_Q8_0 : DREY_KV_F16;
    if (o.kv == DREY_KV_Q8_0 && target->shape.attention[0].head_dim % 32)
        o.kv = DREY_KV_F16;
    writing_run(&want, &o, -1, prompt, N_PROMPT, N_TEXT, how);
    o.drafter = DREY_DRAFTER_MTP;
    o.policy = policies[rng_below(r, 6)];
    o.prompt_chunk = chunks[rng_below(r, 3)];
    o.n_threads = 1 + rng_below(r, 3);
    o.tree_nodes = rng_below(r, 2) ? 24 : 0;
    o.research = o.policy == DREY_POLICY_OPTIMAL && rng_below(r, 2) ? &lookup : NULL;
    writing_run(&got, &o, shares[rng_below(r, 4)], prompt, N_PROMPT, N_TEXT, how);
    must_be_same(&want, &got, drey_policy_name(o.policy));
    assert_true(got.stats.drafted > 0 || o.policy == DREY_POLICY_OPTIMAL);
}

TEST(same_text)
{
    enum { CASES = 5 };
    rng r = rng_from(1);
    for (int i = 0; i < N_MTP_TOYS; i++) {
        drey_model *target = open_knowing(i, "target.gguf");
        for (int c = 0; c < CASES; c++)
            check_case(target, &r, c % 2 ? &sampled : NULL);
        drey_model_close(&target);
    }
}

TEST(is_planned)
{
    drey_model *target = open_knowing(0, "target.gguf");
    drey_engine_options o = options_of(target);
    drey_plan with, without;
    MUST(drey_plan_make, &o, NULL, &with);
    o = plain_options(target, N_CONTEXT, 2);
    MUST(drey_plan_make, &o, NULL, &without);
    assert_true(with.draft_bytes > 0 && without.draft_bytes == 0);
    assert_true(with.smallest_budget_bytes > without.smallest_budget_bytes);
    drey_model_close(&target);
}

/* A text is saved and continued elsewhere. */
TEST(saved_texts_continue)
{
    enum { N_FIRST = 20 };
    static writing want, got;
    for (int i = 0; i < N_MTP_TOYS; i++) {
        drey_model *target = open_knowing(i, "target.gguf");
        drey_engine_options o = plain_options(target, N_CONTEXT, 2);
        writing_run(&want, &o, -1, prompt, N_PROMPT, N_TEXT, NULL);
        o = options_of(target);
        drey_session *s = open_alone(&o, NULL);
        got = (writing){.n_ids = 0};
        writing_continue(&got, s, prompt, N_PROMPT, N_FIRST, NULL);
        MUST(drey_session_save, s, temp_path("saved"), NULL, 0);
        close_alone(&s);
        s = open_alone(&o, NULL);
        MUST(drey_session_load, s, temp_path("saved"), NULL);
        writing_continue(&got, s, NULL, 0, N_TEXT - N_FIRST, NULL);
        close_alone(&s);
        must_be_same_ids(&want, &got, "a saved text");
        drey_model_close(&target);
    }
}

/* ---- What it is worth ---- */

TEST(is_believed)
{
    static writing got;
    drey_model *target = open_knowing(0, "target.gguf");
    drey_engine_options o = options_of(target);
    o.policy = DREY_POLICY_SEQUENCE;
    writing_run(&got, &o, -1, prompt, N_PROMPT, N_TEXT, NULL);
    double per_pass = (double)N_TEXT / (double)got.stats.n_passes;
    print_message("%.2f tokens per pass, %d of %d accepted\n", per_pass, (int)got.stats.accepted,
                  (int)got.stats.drafted);
    assert_true(per_pass > 2);
    drey_model_close(&target);
}

/* A text is cut, and continued in another way. */
TEST(cut_texts_continue)
{
    static writing want, got;
    drey_model *target = open_knowing(0, "target.gguf");
    drey_engine_options o = options_of(target);
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
    assert_true(got.stats.accepted > 0);
    close_alone(&s);
    o = plain_options(target, N_CONTEXT, 2);
    writing_run(&want, &o, -1, other, N_PROMPT + 6, 30, NULL);
    must_be_same(&want, &got, "a text after a cut");
    drey_model_close(&target);
}

/* ---- Its own file, and what is refused ---- */

static drey_model *open_block(const toy_options *of, const char *name)
{
    toy_options toy = *of;
    drey_model *m;
    drey_engine_options o;
    toy.mtp_alone = true;
    toy_write(temp_path(name), &toy);
    MUST(drey_draft_open, &m, &o, temp_path(name));
    assert_true(o.drafter == DREY_DRAFTER_MTP && o.draft == m);
    return m;
}

/* The block drafts the same from its own file. */
TEST(own_file)
{
    static writing want, got;
    for (int i = 0; i < N_MTP_TOYS; i++) {
        toy_options toy;
        (void)mtp_toy(i, &toy);
        drey_model *target = toy_open("target.gguf", &toy), *block = open_block(&toy, "mtp.gguf");
        drey_engine_options o = options_of(target);
        o.policy = DREY_POLICY_SEQUENCE;
        writing_run(&want, &o, -1, prompt, N_PROMPT, N_TEXT, NULL);
        o.drafter = DREY_DRAFTER_MODEL;
        o.draft = block;
        writing_run(&got, &o, -1, prompt, N_PROMPT, N_TEXT, NULL);
        must_be_same(&want, &got, "a block in its own file");
        assert_int_equal(want.stats.accepted, got.stats.accepted);
        o = plain_options(block, N_CONTEXT, 2);
        must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "cannot write alone");
        drey_model_close(&block);
        drey_model_close(&target);
    }
}

static void refuse_block(const drey_model *target, const toy_options *toy, const char *words)
{
    drey_model *block = open_block(toy, "mtp.gguf");
    drey_engine_options o = options_of(target);
    o.draft = block;
    must_refuse_engine(&o, NULL, DREY_ERR_MISMATCH, words);
    drey_model_close(&block);
}

TEST(refused)
{
    static const toy_key cut[] = {{"nextn_predict_layers", GGUF_U32, 1, NULL}, {0}};
    toy_options toys[N_MTP_TOYS], other;
    for (int i = 0; i < N_MTP_TOYS; i++)
        (void)mtp_toy(i, &toys[i]);
    drey_model *target = toy_open("target.gguf", &toys[1]);
    refuse_block(target, &toys[0], "general.architecture is qwen35, and that of the model glm4moe");
    other = toys[1];
    other.n_embd *= 2;
    refuse_block(target, &other, "glm4moe.embedding_length is 128, and that of the model 64");
    other = toys[1];
    other.n_layers++;
    refuse_block(target, &other, "glm4moe.block_count");
    drey_engine_options o = options_of(target);
    o.draft = target;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "is no MTP block");
    drey_model_close(&target);
    other = toy_default();
    target = toy_open("target.gguf", &other);
    o = options_of(target);
    must_refuse_engine(&o, NULL, DREY_ERR_UNSUPPORTED,
                       "has no block for multi-token prediction (llama.nextn_predict_layers)");
    drey_model_close(&target);
    other = toys[0];
    other.n_nextn = 0;
    other.mtp = false;
    other.keys = cut;
    target = toy_open("target.gguf", &other);
    o = options_of(target);
    must_refuse_engine(&o, NULL, DREY_ERR_FORMAT, "its MTP block is cut off");
    drey_model_close(&target);
}

TEST_GROUP(set_up, tear_down)
