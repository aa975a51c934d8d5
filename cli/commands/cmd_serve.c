/* drey serve: an HTTP server over one engine, in the forms of OpenAI's API and of llama.cpp's
 * server. Runs until SIGINT or SIGTERM, then lets texts end and exits with 0. */
#include "cli/commands/commands.h"
#include "cli/commands/models.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/report.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include "common/path.h"
#include "serve/server.h"

#include <stdlib.h>
#include <string.h>

enum {
    USUAL_SESSIONS = 4,
    USUAL_CONTEXT = 4096,
    USUAL_PORT = 8080,
    USUAL_QUEUE = 32,
    USUAL_CONNECTIONS = 64,
    LEAST_BODY = 128 << 10,
    MOST_BODY = 1 << 20,
    BODY_PER_TOKEN = 32,
    USUAL_TIMEOUT_S = 30,
    USUAL_GRACE_S = 8 /* containers are killed after 10 */
};

typedef struct serving {
    cli_settings settings;
    models models;
    server *server;
    progress progress;
    char name[128];
} serving;

/* The file's name without its end, unless --alias says another: its first one. */
static void name_model(serving *v)
{
    const char *name = path_name(v->settings.common.model);
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".gguf") == 0)
        n -= 5;
    const char *alias = v->settings.serve.alias;
    if (alias)
        snprintf(v->name, sizeof v->name, "%.*s", (int)strcspn(alias, ","), alias);
    else
        snprintf(v->name, sizeof v->name, "%.*s", (int)n, name);
}

/* A conversation that fills the context is far shorter: what is longer cannot be used. */
static uint64_t choose_body(const serving *v, int32_t n_context)
{
    uint64_t n = (uint64_t)n_context * BODY_PER_TOKEN;
    if (v->settings.serve.body_bytes)
        return v->settings.serve.body_bytes;
    return n < LEAST_BODY ? LEAST_BODY : n > MOST_BODY ? MOST_BODY : n;
}

static int32_t given_or(const cli_settings *s, const char *name, int32_t value, int32_t usual)
{
    return option_given(s, name) ? value : usual;
}

static void say(void *user, const char *line)
{
    const serving *v = user;
    if (!v->settings.quiet)
        complain("%s", line);
}

static drey_status open_server(serving *v, int32_t n_context, drey_error *err)
{
    const cli_settings *s = &v->settings;
    const serve_options options = {
        .model = v->models.target,
        .name = v->name,
        .host = s->serve.host ? s->serve.host : "127.0.0.1",
        .port = given_or(s, "port", s->serve.port, USUAL_PORT),
        .aliases = s->serve.alias ? strchr(s->serve.alias, ',') : NULL,
        .api_keys = s->serve.api_key,
        .origins = s->serve.cors_origin,
        .n_sessions = s->n_sessions,
        .n_context = n_context,
        .n_queue = given_or(s, "queue", s->serve.n_queue, USUAL_QUEUE),
        .n_connections = given_or(s, "connections", s->serve.n_connections, USUAL_CONNECTIONS),
        .body_bytes = choose_body(v, n_context),
        .timeout_s = given_or(s, "timeout", s->serve.timeout_s, USUAL_TIMEOUT_S),
        .grace_s = given_or(s, "grace", s->serve.grace_s, USUAL_GRACE_S),
        .n_predict = given_or(s, "predict", s->text.n_predict, 0),
        .sampling = s->sampling,
        .go_on = signals_go_on,
        .log = say,
        .user = v,
    };
    return server_open(&v->server, &options, err);
}

static drey_status serve_all(serving *v, drey_error *err)
{
    TRY(models_open(&v->models, &v->settings, err));
    int32_t n_context = models_context(&v->models, &v->settings, USUAL_CONTEXT);
    name_model(v);
    TRY(open_server(v, n_context, err));
    v->models.held_bytes = server_bytes(v->server);
    TRY(models_start(&v->models, &v->settings, n_context, MODELS_ENGINE, &v->progress, err));
    signals_note();
    models_show_plan(&v->models, v->settings.quiet);
    /* Standard output has this line alone: whatever started the server reads the address there. */
    printf("%s\n", server_address(v->server));
    fflush(stdout);
    return server_run(v->server, v->models.engine, err);
}

int serve_main(const cli_settings *settings)
{
    serving v = {.settings = *settings, .progress.quiet = settings->quiet};
    drey_error err = {0};
    if (!v.settings.n_sessions)
        v.settings.n_sessions = USUAL_SESSIONS;
    drey_status status = serve_all(&v, &err);
    progress_clear(&v.progress);
    models_stop(&v.models);
    server_close(&v.server);
    models_close(&v.models);
    return exit_with(status, &err);
}
