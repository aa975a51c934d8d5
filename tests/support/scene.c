/* See scene.h. */
#include "support/scene.h"

#include <unistd.h>

#include "session/session.h"

const drey_research looked_up = {.with = DREY_WITH(DREY_PART_LOOKUP)},
                    not_looked_up = {.without = DREY_WITHOUT(DREY_PART_LOOKUP)};

void must(drey_status status, const drey_error *err)
{
    if (status != DREY_OK)
        fail_msg("%s", err->message);
}

void must_refuse(drey_status got, drey_status want, const char *says, const drey_error *err)
{
    if (got != want || !strstr(err->message, says) || strchr(err->message, '\n'))
        fail_msg("%d, \"%s\"; wanted %d, \"%s\"", got, err->message, want, says);
}

void must_refuse_engine(const drey_engine_options *o, const engine_hooks *hooks,
                        drey_status expected, const char *words)
{
    drey_engine *e = NULL;
    drey_error err = {0};
    must_refuse(engine_open(&e, o, hooks, &err), expected, words, &err);
    assert_null(e);
}

const char *real_model(const char *name)
{
    static char path[4096];
    const char *models = getenv("DREY_MODELS"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (models)
        snprintf(path, sizeof path, "%s/%s", models, name);
    else if (cache && *cache)
        snprintf(path, sizeof path, "%s/drey/models/%s", cache, name);
    else
        snprintf(path, sizeof path, "%s/.cache/drey/models/%s", home ? home : "", name);
    if (access(path, R_OK) != 0)
        NOT_RUN("no %s; scripts/get-models.sh fetches it", path);
    return path;
}

drey_model *toy_open(const char *name, const toy_options *toy)
{
    drey_model *m = NULL;
    drey_error err = {0};
    toy_write(temp_path(name), toy);
    must(drey_model_open(&m, temp_path(name), &err), &err);
    return m;
}

drey_engine_options plain_options(const drey_model *m, int32_t n_context, int32_t n_threads)
{
    drey_engine_options o;
    drey_engine_options_init(&o);
    o.target = m;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_context = n_context;
    o.n_threads = n_threads;
    return o;
}

drey_generate_options greedy(int32_t n)
{
    drey_generate_options g;
    drey_generate_options_init(&g);
    g.n_predict = n;
    g.ignore_eos = true;
    return g;
}

uint64_t smallest_budget(const drey_engine_options *o, const engine_hooks *hooks)
{
    drey_planner planner = {0};
    MUST(engine_configure, &planner.engine, o, hooks);
    MUST(engine_gather, &planner.engine);
    MUST(planner_make, &planner, 0);
    uint64_t bytes = planner.engine.plan.report.smallest_budget_bytes;
    engine_release(&planner.engine);
    return bytes;
}

void toy_prepare(const drey_model *m, const char *output, bool planes)
{
    const drey_prepare_options o = {.model = m, .output = output, .planes = planes, .force = true};
    MUST(drey_prepare, &o, NULL);
}

engine_place place_open(const drey_engine_options *o, const engine_hooks *hooks)
{
    engine_place p = {.engine = NULL};
    MUST(engine_open, &p.engine, o, hooks);
    for (int32_t i = 0; i == 0 || i < o->n_sessions; i++)
        MUST(drey_session_open, &p.session[i], p.engine);
    return p;
}

void place_close(engine_place *p)
{
    for (int i = 0; i < PLACE_SESSIONS; i++)
        drey_session_close(&p->session[i]);
    drey_engine_close(&p->engine);
}

drey_session *open_alone(const drey_engine_options *o, const engine_hooks *hooks)
{
    return place_open(o, hooks).session[0];
}

void close_alone(drey_session **s)
{
    drey_engine *e = (*s)->engine;
    drey_session_close(s);
    drey_engine_close(&e);
}
