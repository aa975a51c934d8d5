/* Each request for memory is refused once: what was asked for then works without it or fails with
 * DREY_ERR_MEMORY, crashes never, and leaks nothing (the run under ASan sees that). */
#include "support/scene.h"
#include "support/faults/starve.h"

enum { most_requests = 5000 };

static const char *whole_path, *split_path, *sidecar_path;

/* Refuses the first request of `attempt`, then the second, until it gets all that it wants. */
static void starve(drey_status (*attempt)(drey_error *err))
{
    int n_refused = 0;
    for (int n = 0; n < most_requests; n++) {
        drey_error err = {0};
        starve_after(n);
        drey_status status = attempt(&err);
        bool refused = starve_end();
        if (!refused) {
            assert_int_equal(status, DREY_OK);
            assert_true(n_refused > 0); /* or else the linking is wrong */
            return;
        }
        n_refused += status != DREY_OK;
        if (status != DREY_OK && status != DREY_ERR_MEMORY)
            fail_msg("request %d: %d \"%s\"", n, status, err.message);
        if (status != DREY_OK && strlen(err.message) < 20)
            fail_msg("request %d: \"%s\" says too little", n, err.message);
    }
    fail_msg("more than %d requests", most_requests);
}

static drey_status inspect_split(drey_error *err)
{
    drey_inspector nothing = {0};
    return drey_inspect(split_path, &nothing, err);
}

static drey_status open_model(drey_error *err)
{
    drey_model *model = NULL;
    drey_status status = drey_model_open(&model, whole_path, err);
    drey_model_close(&model);
    return status;
}

static drey_model *model;

static drey_status tokenize(drey_error *err)
{
    int32_t ids[64];
    size_t n;
    static const char text[] = "def hello(): return the token tree <|im_end|>";
    return drey_tokenize(model, text, sizeof text - 1, DREY_TOKENIZE_SPECIAL, ids, 64, &n, err);
}

static drey_status format_chat(drey_error *err)
{
    char *text = NULL;
    int32_t ids[64];
    size_t n;
    drey_status status = drey_chat_format(model, NULL, "hello", &text, err);
    drey_free(text);
    if (status == DREY_OK)
        status = drey_chat_tokenize(model, NULL, "hello", 0, ids, 64, &n, err);
    return status;
}

static drey_status open_session(drey_error *err)
{
    drey_engine_options options = plain_options(model, 64, 2);
    options.draft = model;
    options.drafter = DREY_DRAFTER_MODEL;
    drey_engine *engine = NULL;
    drey_session *session = NULL;
    drey_status status = drey_engine_open(&engine, &options, err);
    if (status == DREY_OK)
        status = drey_session_open(&session, engine, err);
    drey_session_close(&session);
    drey_engine_close(&engine);
    return status;
}

static drey_status write_sidecar(drey_error *err)
{
    drey_prepare_options options;
    drey_prepare_options_init(&options);
    options.model = model;
    options.output = sidecar_path;
    options.force = true;
    return drey_prepare(&options, NULL, err);
}

/* The one that was named, so that a refusal is an error and not a run without it. */
static drey_status plan_with_sidecar(drey_error *err)
{
    drey_engine_options options = plain_options(model, 64, 0);
    drey_plan plan;
    options.sidecar = sidecar_path;
    return drey_plan_make(&options, 0, &plan, err);
}

TEST(starved)
{
    starve(inspect_split);
    starve(open_model);
    starve(format_chat);
    starve(tokenize);
    starve(open_session);
    starve(write_sidecar);
    starve(plan_with_sidecar);
}

static int set_up(void **state)
{
    toy_options o = toy_default();
    whole_path = temp_path("toy.gguf");
    sidecar_path = temp_path("packed.drey");
    split_path = temp_path("toy-00001-of-00003.gguf");
    toy_write(whole_path, &o);
    o.n_parts = 3;
    toy_write(split_path, &o);
    MUST(drey_model_open, &model, whole_path);
    return 0;
}

static int tear_down(void **state)
{
    drey_model_close(&model);
    temp_dir_remove();
    return 0;
}

TEST_GROUP(set_up, tear_down)
