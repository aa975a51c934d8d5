/* A mixture of experts in a memory budget: the same text with any number of slots, no more reads
 * than its router asks for, the smallest budget, and what is refused. */
#include <errno.h>

#include "engine/engine.h"
#include "support/faults/disk.h"
#include "support/toy_models.h"
#include "support/writing.h"
#include "weights/expert_slots.h"
#include "weights/experts.h"

enum { N_TEXT = 40, N_PROMPT = 30, LAYERS = 3, EXPERTS = 16, USED = 3, WIDTH = 256, N_LONG = 90 };

static int32_t prompt[N_PROMPT], long_prompt[N_LONG];

static int make_models(void **state)
{
    toy_options toy = toy_default();
    toy.n_layers = LAYERS;
    toy.n_embd = WIDTH;
    toy.experts = (toy_experts){.n = EXPERTS, .n_used = USED, .n_ff = WIDTH, .n_shared = 32};
    toy.architecture = "qwen2moe";
    toys_open_pair(&toy);
    for (int32_t i = 0; i < N_PROMPT; i++)
        prompt[i] = 60 + i * 7 % 100;
    for (int32_t i = 0; i < N_LONG; i++)
        long_prompt[i] = 40 + i * 11 % 150;
    return 0;
}

static void write_text(writing *w, const drey_engine_options *o, double share)
{
    engine_hooks hooks = {.set_share = share >= 0, .share = share};
    *w = (writing){0};
    writing_run_tuned(w, o, &hooks, prompt, N_PROMPT, N_TEXT, NULL);
    must(w->status, &w->error);
    assert_int_equal(w->n_ids, N_TEXT);
}

/* With a slot for each expert, each is read once, most of them for the prompt. With fewer more are
 * read, never more than are used. */
TEST(any_number_of_slots)
{
    static writing want, got;
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 128, 2);
    o.cpu_tier = "ref";
    write_text(&want, &o, 1);
    uint64_t read_before = want.stats.experts_read;
    assert_true(read_before < LAYERS * EXPERTS);
    o.cpu_tier = NULL;
    for (int32_t n = EXPERTS; n >= USED; n--) {
        write_text(&got, &o, (double)n / EXPERTS);
        must_be_same(&want, &got, "slots");
        assert_int_equal(got.stats.experts_used, got.stats.n_passes * LAYERS * USED);
        assert_true(got.stats.experts_read <= got.stats.experts_used);
        assert_true(n > EXPERTS / 2 || got.stats.experts_read > read_before);
    }
    assert_true(got.stats.experts_read > got.stats.experts_used / 4);
}

/* What the next layer will choose is asked for early where something is missing, in texts and in
 * trees. A disk that is slow at random has some of it arrive too late, or not at all. */
TEST(guesses_about_the_next_layer)
{
    static writing want, got;
    disk d = {.slow_of = 3, .slow_us = 300};
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 128, 2);
    write_text(&want, &o, 1);
    assert_int_equal(want.stats.experts_guessed, 0);
    for (int i = 0; i < 2; i++) {
        drey_engine_options with = toys_options(i ? DREY_DRAFTER_MODEL : DREY_DRAFTER_NONE, 128, 2);
        with.policy = i ? DREY_POLICY_SPECINFER : with.policy;
        for (int32_t n = USED; n <= EXPERTS / 2; n++) {
            engine_hooks hooks = {.set_share = true,
                                  .share = (double)n / EXPERTS,
                                  .fault = disk_read,
                                  .fault_user = &d};
            got = (writing){0};
            writing_run_tuned(&got, &with, &hooks, prompt, N_PROMPT, N_TEXT, NULL);
            must(got.status, &got.error);
            must_be_same(&want, &got, "guesses");
            assert_true(got.stats.guesses_used <= got.stats.experts_guessed);
            assert_true(got.stats.guesses_used <= got.stats.experts_read);
            assert_true(i || got.stats.guesses_used > 0); /* a tree may fill all slots in turns */
        }
    }
}

/* Trees and prompts ask for more experts than there are slots: they take turns. */
TEST(wide_passes_in_few_slots)
{
    static writing want, got;
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 128, 2);
    write_text(&want, &o, 1);
    o = toys_options(DREY_DRAFTER_MODEL, 128, 2);
    o.policy = DREY_POLICY_SPECINFER; /* looks at no clock */
    o.tree_nodes = 24;
    for (int32_t chunk = 1; chunk <= 32; chunk *= 4) {
        o.prompt_chunk = chunk;
        write_text(&got, &o, 0);
        must_be_same(&want, &got, "trees");
        assert_true(got.stats.accepted > 0);
        assert_true((int64_t)got.stats.experts_used < got.stats.drafted * LAYERS * USED);
    }
}

TEST(in_the_smallest_budget)
{
    static writing want, got;
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 128, 2);
    write_text(&want, &o, 1);
    drey_plan plan;
    drey_error err = {0};
    o.memory_bytes = 1 << 20;
    assert_int_equal(drey_plan_make(&o, NULL, &plan, &err), DREY_ERR_MEMORY);
    static const char words[] = "the smallest that works here is ";
    const char *says = strstr(err.message, words);
    assert_non_null(says);
    o.memory_bytes = strtoull(strpbrk(says, "0123456789"), NULL, 10) << 20;
    assert_true(o.memory_bytes >= LAYERS * USED * 3 * WIDTH * WIDTH);
    write_text(&got, &o, -1);
    must_be_same(&want, &got, "the smallest budget");
    o.memory_bytes -= 2 << 20;
    /* By now the process may have written to more, so the number is not compared. */
    must_refuse_engine(&o, NULL, DREY_ERR_MEMORY, words);
}

/* ---- A disk that cannot read one place ---- */

typedef struct bad_sector {
    int32_t part;
    uint64_t at;
} bad_sector;

static int fail_there(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    const bad_sector *bad = user;
    return part == bad->part && offset <= bad->at && bad->at < offset + n_bytes ? EIO : 0;
}

/* A text ends at the first token that needs this expert of layer 1. */
static void read_failing(const drey_engine_options *o, int32_t matrix, int32_t expert,
                         const char *where)
{
    static writing got;
    bad_sector bad = {.part = -1};
    const engine_hooks hooks = {.fault = fail_there, .fault_user = &bad};
    char says[120];
    engine_place at = place_open(o, &hooks);
    const weights *w = &at.engine->target.weights;
    const expert_matrix *m = &at.engine->target.layout.experts[1].matrix[matrix];
    int32_t group = expert * m->n_groups + m->n_groups / 2; /* far from what others read */
    stream_piece place = weight_piece(w, m->all, group, group + 1);
    bad = (bad_sector){place.part, place.offset};
    snprintf(says, sizeof says, "tensor %s, expert %d: cannot read ", m->all->form.tensor->name,
             expert);
    got = (writing){0};
    drey_generate_options g = writing_into(&got, N_TEXT);
    drey_error err = {0};
    assert_int_equal(drey_session_generate(at.session[0], prompt, N_PROMPT, &g, &got.stats, &err),
                     DREY_ERR_IO);
    if (strncmp(err.message, says, strlen(says)) != 0 || !strstr(err.message, where) ||
        !strstr(err.message, "check the disk") || strchr(err.message, '\n'))
        fail_msg("not \"%s\" and %s: %s", says, where, err.message);
    place_close(&at);
}

/* Some that the text uses in layer 1. */
static void find_used(const drey_engine_options *o, int32_t expert[EXPERT_MATRICES])
{
    static writing w;
    engine_place at = place_open(o, NULL);
    drey_generate_options g = writing_into(&w, N_TEXT);
    w = (writing){0};
    MUST(drey_session_generate, at.session[0], prompt, N_PROMPT, &g, &w.stats);
    const expert_slots *slots = &at.engine->target.layout.experts[1].slots;
    int32_t n = 0;
    for (int32_t i = 0; i < EXPERTS && n < EXPERT_MATRICES; i++)
        if (slots->slot_of[i] >= 0)
            expert[n++] = i;
    assert_int_equal(n, EXPERT_MATRICES);
    place_close(&at);
}

TEST(a_bad_sector_names_tensor_expert_and_file)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 128, 2);
    int32_t expert[EXPERT_MATRICES];
    find_used(&o, expert);
    for (int32_t matrix = 0; matrix < EXPERT_MATRICES; matrix++)
        read_failing(&o, matrix, expert[matrix], "target.gguf at byte");
    toy_prepare(target, NULL, false);
    for (int32_t matrix = 0; matrix < EXPERT_MATRICES; matrix++)
        read_failing(&o, matrix, expert[matrix], "target.gguf.drey at byte");
    assert_int_equal(remove(temp_path("target.gguf.drey")), 0);
}

typedef struct company {     /* a text, and the prompt of another session in the middle of it */
    uint64_t after;          /* experts that were read for the text's second half */
    int32_t n_kept, n_slots; /* slots that held a text's expert before, and the same after */
    int32_t expert[LAYERS][EXPERTS]; /* [slot]; -1: no text has used it */
} company;

static void keep_slots(company *c, const drey_engine *e)
{
    const expert_layer *l = e->target.weights.experts->layer;
    for (int32_t i = 0; i < LAYERS; i++)
        for (int32_t j = 0; j < l[i].slots.n_slots; j++) {
            bool used = l[i].slots.used_at[j] > 0;
            c->expert[i][j] = used ? l[i].slots.expert_in[j] : -1;
            c->n_slots += used;
        }
}

static void count_kept(company *c, const drey_engine *e)
{
    const expert_layer *l = e->target.weights.experts->layer;
    for (int32_t i = 0; i < LAYERS; i++)
        for (int32_t j = 0; j < l[i].slots.n_slots; j++)
            c->n_kept += c->expert[i][j] >= 0 && c->expert[i][j] == l[i].slots.expert_in[j];
}

static void steps(drey_engine *e, const writing *w, int32_t until)
{
    for (int32_t n_writing = 1; w->n_ids < until && n_writing > 0;)
        MUST(drey_engine_step, e, &n_writing);
    assert_true(w->n_ids >= until);
}

/* A text of which the second half is written after another session's prompt was read. */
static void write_next_to_a_prompt(company *c, bool comes, writing *w)
{
    static writing of_other;
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 128, 2);
    o.n_sessions = 2;
    o.prompt_chunk = 16;
    engine_hooks hooks = {.set_share = true, .share = 0.5};
    engine_place p = place_open(&o, &hooks);
    const expert_set *set = p.engine->target.weights.experts;
    drey_generate_options mine = writing_into(w, N_TEXT), others = writing_into(&of_other, 1);
    *c = (company){0};
    *w = of_other = (writing){0};
    MUST(drey_session_sync, p.session[0], prompt, N_PROMPT, NULL);
    MUST(drey_session_begin, p.session[0], &mine, NULL);
    steps(p.engine, w, N_TEXT / 2);
    keep_slots(c, p.engine);
    uint64_t before = set->counts.read;
    if (comes) {
        MUST(drey_session_sync, p.session[1], long_prompt, N_LONG, NULL);
        MUST(drey_session_begin, p.session[1], &others, NULL);
        while (drey_session_is_writing(p.session[1])) {
            bool done;
            MUST(drey_session_step, p.session[1], &done);
        }
        assert_true(set->counts.read - before > (uint64_t)c->n_slots); /* it went through all */
    }
    count_kept(c, p.engine);
    before = set->counts.read;
    steps(p.engine, w, N_TEXT);
    c->after = set->counts.read - before;
    place_close(&p);
}

/* A prompt of another session goes through all experts and leaves a text three of four of its
 * slots, less what the first token after it uses. What has to be read again are those alone. */
TEST(a_prompt_leaves_a_text_its_experts)
{
    static writing want, got;
    static company alone, two;
    write_next_to_a_prompt(&alone, false, &want);
    write_next_to_a_prompt(&two, true, &got);
    must_be_same(&want, &got, "next to a prompt");
    assert_int_equal(alone.n_kept, alone.n_slots);
    assert_int_equal(two.n_slots, alone.n_slots);
    print_message("%d of %d stayed; read %d, alone %d\n", two.n_kept, two.n_slots, (int)two.after,
                  (int)alone.after);
    assert_true(two.n_kept < two.n_slots); /* the prompt had no other room */
    assert_true(two.n_kept >= two.n_slots * 3 / 4 - LAYERS * USED);
    assert_true(two.after <= alone.after + (uint64_t)(two.n_slots - two.n_kept));
}

/* Memory that a plan names is what there is: every slot counts, and none is left over. */
TEST(slots_of_a_plan)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 128, 2);
    drey_planner *planner; /* one, since the process may grow before another one is opened */
    drey_plan least, plan;
    MUST(drey_planner_open, &planner, &o);
    assert_int_equal(drey_planner_make(planner, 1, NULL, &least, NULL), DREY_ERR_MEMORY);
    uint64_t smallest = least.smallest_budget_bytes;
    MUST(drey_planner_make, planner, smallest, NULL, &least);
    assert_int_equal(least.n_experts, LAYERS * EXPERTS);
    assert_true(least.expert_slots >= LAYERS * USED);
    assert_true(least.streamed_bytes_per_pass > 0);
    uint64_t slot = 3 * WIDTH * WIDTH; /* about */
    int32_t before = least.expert_slots;
    uint64_t of_passes = least.ring_bytes + least.work_bytes;
    for (uint64_t more = 0; before < least.n_experts; more += 4 * slot) {
        MUST(drey_planner_make, planner, smallest + more, NULL, &plan);
        bool same = plan.ring_bytes + plan.work_bytes == of_passes; /* else passes became larger */
        assert_true(!same || (plan.expert_slots >= before && plan.expert_slots <= before + 8));
        assert_true(plan.expert_slots == plan.n_experts || plan.spare_bytes < 4 * slot);
        before = plan.expert_slots;
        of_passes = plan.ring_bytes + plan.work_bytes;
        assert_true(more < 1 << 26);
    }
    assert_int_equal(plan.streamed_bytes_per_pass, 0);
    drey_planner_close(&planner);
}

TEST(refuses_what_does_not_go_together)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, 64, 1);
    o.exit = DREY_EXIT_EXACT;
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "a mixture of experts");
    o = toys_options(DREY_DRAFTER_SELF, 64, 1);
    must_refuse_engine(&o, NULL, DREY_ERR_USAGE, "which a mixture of experts does not have");
}

TEST_GROUP(make_models, toys_close)
