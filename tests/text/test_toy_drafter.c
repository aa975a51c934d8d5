/* Example of a new drafter: this file, whose kind an engine is given as a row of the table is. The
 * toy remembers which token last came after each one. Texts are those of plain decoding under every
 * policy; with lookup next to it; for several sessions; sampled; and the plan counts its memory. */
#include "engine/engine.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { TABLE = 4096, WORK_BYTES = 40000 };

static int n_opened, n_closed, n_loaded; /* since the test began */

/* ---- The drafter ---- */

typedef struct toy_drafter {
    drafter base;
    int32_t n_ids;
    int32_t next[TABLE]; /* by token; 0: none was seen */
} toy_drafter;

static void remember(toy_drafter *d, int32_t token, int32_t next)
{
    d->next[token % TABLE] = next;
}

static drey_status toy_begin(drafter *base, const int32_t *tokens, int32_t n, drey_error *err)
{
    for (int32_t i = 1; i < n; i++)
        remember((toy_drafter *)base, tokens[i - 1], tokens[i]);
    return DREY_OK;
}

static drey_status toy_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                              drey_error *err)
{
    const toy_drafter *d = (const toy_drafter *)base;
    for (int32_t i = 0; i < n; i++) {
        tree_node *node = &tree->nodes[nodes[i]];
        int32_t next = d->next[node->token % TABLE];
        node->expanded = true;
        node->n_guesses = next > 0 && next < d->n_ids;
        node->guess[0] = (candidate){next, 0.9f};
    }
    return DREY_OK;
}

static void toy_reroot(drafter *base, const token_tree *tree, const int32_t *path, int32_t n_path,
                       int32_t next, const int32_t *moved)
{
    int32_t last = tree->nodes[0].token;
    for (int32_t i = 0; i < n_path; i++) {
        remember((toy_drafter *)base, last, tree->nodes[path[i]].token);
        last = tree->nodes[path[i]].token;
    }
    remember((toy_drafter *)base, last, next);
}

static const drafter_class toy_class = {
    .begin = toy_begin, .expand = toy_expand, .reroot = toy_reroot};

/* ---- Its row ---- */

static drey_status toy_source_open(draft_source *src, drey_error *err)
{
    n_opened++;
    src->out.own = malloc(1);
    src->out.work_bytes = WORK_BYTES;
    return src->out.own ? DREY_OK : error_set(err, DREY_ERR_MEMORY, "no memory for a toy");
}

static drey_status toy_source_load(draft_source *src, drey_error *err)
{
    n_loaded++;
    memset(arena_take(&src->memory, WORK_BYTES), 1, WORK_BYTES);
    return arena_check(&src->memory, err);
}

static void toy_source_close(draft_source *src)
{
    n_closed++;
    free(src->out.own);
}

static size_t session_bytes(const draft_source *src)
{
    return sizeof(toy_drafter);
}

static drafter *make(draft_source *src, const drafter_context *seat, void *memory)
{
    toy_drafter *d = memory;
    assert_null(seat->run);
    d->base.class = &toy_class;
    d->n_ids = src->in.n_ids;
    return &d->base;
}

static const drafter_kind toy_kind = {.name = "toy",
                                      .with = "a toy",
                                      .open = toy_source_open,
                                      .load = toy_source_load,
                                      .close = toy_source_close,
                                      .session_bytes = session_bytes,
                                      .make = make};

/* ---- Texts ---- */

static const int32_t prompt[] = {65, 66, 67, 68, 65, 66, 67};

static drey_engine_options options_of(drey_policy policy)
{
    drey_engine_options o = plain_options(target, 160, 2);
    o.policy = policy;
    return o;
}

static void write_text(writing *out, const drey_engine_options *o, const drafter_kind *kind,
                       const drey_sampling *sampling)
{
    const engine_hooks hooks = {.set_share = true, .share = 0.5, .drafter = kind};
    writing_run_tuned(out, o, &hooks, prompt, 7, 100, sampling);
    must(out->status, &out->error);
}

TEST(writes_the_text_of_plain_decoding)
{
    static writing plain, drafted;
    const drey_sampling sampled = {.temperature = 0.8f, .top_p = 1, .seed = 5};
    int64_t n_accepted = 0;
    for (int i = 0; i < 2; i++) {
        const drey_sampling *sampling = i ? &sampled : NULL;
        drey_engine_options o = options_of(DREY_POLICY_NONE);
        write_text(&plain, &o, NULL, sampling);
        for (int p = 0; drey_policy_name((drey_policy)p); p++) {
            if (drey_policy_is_lossy((drey_policy)p))
                continue;
            o = options_of((drey_policy)p);
            write_text(&drafted, &o, &toy_kind, sampling);
            must_be_same(&plain, &drafted, drey_policy_name((drey_policy)p));
            n_accepted += drafted.stats.accepted;
        }
    }
    assert_true(n_accepted > 50); /* of policies that do not look at the clock alone: 79 */
    assert_true(n_opened > 0 && n_opened == n_closed && n_opened == n_loaded);
}

TEST(goes_with_lookup)
{
    static writing plain, drafted;
    drey_engine_options o = options_of(DREY_POLICY_NONE);
    write_text(&plain, &o, NULL, NULL);
    o = options_of(DREY_POLICY_OPTIMAL);
    o.research = &looked_up;
    write_text(&drafted, &o, &toy_kind, NULL);
    must_be_same(&plain, &drafted, "with lookup");
}

TEST(the_plan_counts_its_memory)
{
    drey_engine *plain, *drafted;
    drey_engine_options o = options_of(DREY_POLICY_SEQUENCE);
    const engine_hooks hooks = {.drafter = &toy_kind};
    MUST(engine_open, &drafted, &o, &hooks);
    o.drafter = DREY_DRAFTER_LOOKUP;
    MUST(engine_open, &plain, &o, NULL);
    uint64_t of_lookup = drafter_lookup.session_bytes(&plain->source);
    assert_int_equal(drafted->plan.report.session_bytes + arena_size(of_lookup),
                     plain->plan.report.session_bytes + arena_size(sizeof(toy_drafter)));
    assert_int_equal(drafted->inputs.model[PLAN_DRAFT].overhead_bytes, WORK_BYTES);
    drey_engine_close(&plain);
    drey_engine_close(&drafted);
}

TEST_GROUP(toys_open, toys_close)
