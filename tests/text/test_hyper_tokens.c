/* Paths of two and more tokens leave a pass early by trained predictors, whatever names the
 * candidates; in `exact` the text is the target's. */
#include "drey/train.h"
#include "session/session.h"
#include "support/heads_file.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { N_LAYERS = 8, N_TEXT = 60, N_PROMPT = 12, N_PROMPTS = 12 };

static const int32_t words[] = {72,  101, 108, 108, 111, 32,  116, 104, 101, 32, 116, 104,
                                101, 114, 101, 32,  119, 105, 108, 108, 32,  98, 101, 32};

static int open_models(void **state)
{
    toy_options t = toy_default();
    temp_dir();
    t.n_layers = N_LAYERS;
    target = toy_open("target.gguf", &t);
    t.n_layers = N_LAYERS - 2; /* is right often, as the last layers change little */
    draft = toy_open("draft.gguf", &t);
    heads_file h;
    heads_file_init(&h, target->file, &target->shape);
    h.spread = 0.002f;
    heads_file_write(temp_path("target.gguf.drey-medusa"), &h);
    return 0;
}

static void train(drey_drafter who, const char *path)
{
    drey_train_prompt prompts[N_PROMPTS];
    drey_engine_options engine = toys_options(who, 128, 2);
    drey_train_exit_options o;
    drey_train_exit_options_init(&o);
    for (int32_t i = 0; i < N_PROMPTS; i++)
        prompts[i] = (drey_train_prompt){words + i, 6 + (size_t)i / 2};
    o.engine = &engine;
    o.prompts = prompts;
    o.n_prompts = N_PROMPTS;
    o.n_predict = N_TEXT;
    o.n_hidden = 8;
    o.output = path;
    MUST(drey_train_exit, &o, NULL);
}

typedef struct leavers {
    int32_t singles, paths; /* stopped passes that wrote one token, and several */
} leavers;

/* Writes on from the prompt step by step; counts the passes that were stopped. */
static leavers write_watched(writing *w, const drey_engine_options *o)
{
    drey_session *s = open_alone(o, NULL);
    leavers n = {0, 0};
    memset(w, 0, sizeof *w);
    drey_generate_options g = writing_into(w, N_TEXT);
    MUST(drey_session_sync, s, words, N_PROMPT, NULL);
    MUST(drey_session_begin, s, &g, &w->stats);
    for (bool done = false; !done;) {
        MUST(drey_session_step, s, &done);
        if (s->observer && s->observer->stopped && s->accepted.n_path > 0)
            n.paths++;
        else if (s->observer && s->observer->stopped)
            n.singles++;
    }
    drey_session_exits(s, &w->exits);
    close_alone(&s);
    return n;
}

typedef struct way {
    drey_drafter drafter, trained; /* NONE: with the target's own candidates */
    drey_policy policy;
} way;

/* Leaves have candidates of lookup; with the target's own all nodes have. What `fast` does, and
 * `exact` with trees of a fixed shape, is the same on every machine. */
TEST(paths_leave_by_trained_predictors)
{
    static const way ways[] = {
        {DREY_DRAFTER_MODEL, DREY_DRAFTER_MODEL, DREY_POLICY_SEQUENCE},
        {DREY_DRAFTER_MODEL, DREY_DRAFTER_MODEL, DREY_POLICY_SPECINFER},
        {DREY_DRAFTER_MODEL, DREY_DRAFTER_MODEL, DREY_POLICY_EDGELLM},
        {DREY_DRAFTER_LOOKUP, DREY_DRAFTER_LOOKUP, DREY_POLICY_OPTIMAL},
        {DREY_DRAFTER_MEDUSA, DREY_DRAFTER_MEDUSA, DREY_POLICY_OPTIMAL},
        {DREY_DRAFTER_MODEL, DREY_DRAFTER_NONE, DREY_POLICY_SPECINFER},
    };
    static writing plainly, got;
    const char *path = temp_path("trained");
    drey_engine_options o = plain_options(target, 128, 1);
    write_watched(&plainly, &o);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char what[100];
        if (i == 0 || ways[i].trained != ways[i - 1].trained)
            train(ways[i].trained, path);
        for (int exact = 0; exact < 2; exact++) {
            o = toys_options(ways[i].drafter, 128, 1);
            o.policy = ways[i].policy;
            o.exit = exact ? DREY_EXIT_EXACT : DREY_EXIT_FAST;
            o.exit_file = path;
            o.exit_threshold = 0.4f;
            leavers n = write_watched(&got, &o);
            snprintf(what, sizeof what, "%s, %s, exits %s", drey_drafter_name(o.drafter),
                     drey_policy_name(o.policy), drey_exit_name(o.exit));
            if (exact)
                must_be_same(&plainly, &got, what);
            /* In `exact` a tree that is sized by times may have a path that leaves, or not. */
            if (n.paths == 0 && (!exact || o.policy != DREY_POLICY_OPTIMAL))
                fail_msg("%s: no path left, and %d single tokens did", what, n.singles);
        }
    }
}

TEST_GROUP(open_models, toys_close)
