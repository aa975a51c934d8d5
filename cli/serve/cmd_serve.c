/* drey serve: an HTTP server over one engine, in the forms of OpenAI's API and of llama.cpp's
 * server, or over the models of a folder. Runs until SIGINT or SIGTERM, then lets texts end and
 * exits with 0. */
#include "cli/commands/commands.h"
#include "cli/commands/models.h"
#include "cli/models/verdict.h"
#include "cli/serve/model_folder.h"
#include "cli/serve/serve_lines.h"
#include "cli/serve/server_keys.h"
#include "cli/serve/service_manager.h"
#include "cli/files/chat_templates.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include "common/path.h"
#include "common/size_text.h"
#include "serve/router/model_router.h"
#include "serve/net/access.h"
#include "serve/server.h"
#include "serve/slot_folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    USUAL_SESSIONS = 4,
    USUAL_CONTEXT = 4096,
    USUAL_PORT = 8080,
    USUAL_QUEUE = 32,
    USUAL_CONNECTIONS = 64,
    LEAST_BODY = 128 << 10,
    MOST_BODY = 1 << 20,
    BODY_PER_TOKEN = 32,
    USUAL_SLOT_BYTES = 1 << 30,
    USUAL_TIMEOUT_S = 30,
    USUAL_GRACE_S = 8 /* containers are killed after 10 */
};

typedef struct serving {
    cli_settings settings;
    models models;
    model_folder folder; /* folder of --models */
    lobby *lobby;        /* NULL: clients wait in the socket that systemd has, or outside */
    server *server;
    progress progress;
    serve_lines lines;
    char name[SERVE_MODEL_BYTES];
    const char *one_name; /* name of a folder's model, commas and all; NULL: see name_model */
    char kept[4096];      /* folder where a folder's model keeps beginnings of texts; "": nowhere */
    char *chat_template;  /* owned; NULL: the model's */
    bool new_folder;      /* the folder of beginnings was not there before */
    /* folder where beginnings are kept, for the owner; "": nowhere */
    char beginnings[SERVE_NOTE_BYTES];
    int report; /* a folder's model: its server's end of the pipe (model_process.h) */
} serving;

/* The file's name without its end, unless --alias says another: its first one. */
static void name_model(serving *v)
{
    const char *name = path_name(v->settings.common.model);
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".gguf") == 0)
        n -= 5;
    const char *alias = v->settings.serve.alias;
    if (v->one_name)
        snprintf(v->name, sizeof v->name, "%s", v->one_name);
    else if (alias)
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

static bool has_page(const cli_settings *s)
{
    return !access_lists(s->serve.closed, "page");
}

/* Describes the folder of beginnings before another thread uses the engine. */
static void describe_beginnings(serving *v)
{
    const char *folder = v->settings.prefixes.folder;
    char used[16], most[16];
    drey_prefixes now;
    if (!folder)
        return;
    drey_engine_prefixes(v->models.engine, &now);
    snprintf(v->beginnings, sizeof v->beginnings,
             "beginnings of texts are kept in %.700s%s: %s of %s (--prefix-disk)", folder,
             v->new_folder ? ", a new folder" : "", format_bytes(used, (double)now.disk_bytes),
             format_bytes(most, (double)v->models.prefixes.disk_bytes));
}

static serve_event note_of(const char *text)
{
    serve_event e = {.kind = SERVE_NOTE};
    snprintf(e.of.note, sizeof e.of.note, "%s", text);
    return e;
}

static void say_ready(serving *v)
{
    char what[SERVE_MODEL_BYTES + 80], used[16], budget[16];
    drey_plan plan;
    drey_engine_plan(v->models.engine, &plan);
    const uint64_t rounded = model_bytes(&plan), most = plan.budget_bytes;
    format_bytes(used, (double)(rounded < most ? rounded : most));
    format_bytes(budget, (double)most);
    bool limited = most != DREY_MEMORY_UNLIMITED;
    snprintf(what, sizeof what, "model %s (%s%s%s)", v->name, used, limited ? " of " : "",
             limited ? budget : "");
    serve_lines_ready(&v->lines, server_address(v->server), has_page(&v->settings), what);
    const serve_event beginnings = note_of(v->beginnings);
    if (v->beginnings[0])
        serve_lines_report(&v->lines, &beginnings);
}

/* Takes events of a folder's model, which its server prints. */
static void hear(void *user, const serve_event *event)
{
    serving *v = user;
    if (v->one_name)
        process_report(v->report, event);
    else if (event->kind == SERVE_READY)
        say_ready(v);
    else
        serve_lines_report(&v->lines, event);
}

static void show_loading(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    if (what != DREY_PROGRESS_PROMPT) /* prompts are reported to clients */
        serve_lines_load(user, what, done, total);
}

static drey_status choose_address(const cli_settings *s, listen_address *at, drey_error *err)
{
    at->host = s->serve.host ? s->serve.host : "127.0.0.1";
    at->port = given_or(s, "port", s->serve.port, USUAL_PORT);
    return manager_socket(&at->passed, err);
}

/* mpirun kills its ranks a second after it asked them to end: texts end as they are then. */
static int32_t default_grace_s(const serving *v)
{
    return v->models.ranks ? 0 : USUAL_GRACE_S;
}

static drey_status open_server(serving *v, int32_t n_context, drey_error *err)
{
    const cli_settings *s = &v->settings;
    listen_address at;
    TRY(choose_address(s, &at, err));
    v->lines.grace_s = given_or(s, "grace", s->serve.grace_s, default_grace_s(v));
    const serve_options options = {
        .model = v->models.target,
        .name = v->name,
        .at = at,
        .lobby = v->lobby,
        .aliases = s->serve.alias ? strchr(s->serve.alias, ',') : NULL,
        .api_keys = s->serve.api_key,
        .chat_template = v->chat_template,
        .no_reasoning = s->serve.no_reasoning,
        .slots = {s->serve.slot_folder,
                  s->serve.slot_bytes ? s->serve.slot_bytes : USUAL_SLOT_BYTES},
        .pooling = s->serve.pooling,
        .origins = s->serve.cors_origin,
        .closed = s->serve.closed,
        .n_sessions = s->n_sessions,
        .n_context = n_context,
        .n_queue = given_or(s, "queue", s->serve.n_queue, USUAL_QUEUE),
        .n_connections = given_or(s, "connections", s->serve.n_connections, USUAL_CONNECTIONS),
        .body_bytes = choose_body(v, n_context),
        .timeout_s = given_or(s, "timeout", s->serve.timeout_s, USUAL_TIMEOUT_S),
        .grace_s = v->lines.grace_s,
        .n_predict = given_or(s, "predict", s->text.n_predict, 0),
        .sampling = s->sampling,
        .penalties = s->penalties,
        .keeps_running = signals_may_continue,
        .on_event = hear,
        .user = v,
    };
    return server_open(&v->server, &options, err);
}

/* One that the model has under that name, a usual one, or a file. */
static drey_status choose_template(serving *v, drey_error *err)
{
    const char *name = v->settings.serve.chat_template, *text;
    size_t n = 0;
    if (!name)
        return DREY_OK;
    drey_model_named_template(v->models.target, name, &text, &n);
    if (n == 0)
        return chat_template_read(name, &v->chat_template, err);
    v->chat_template = strndup(text, n);
    if (!v->chat_template)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a chat template");
    return DREY_OK;
}

/* Prepares the models and the server's memory, which is a part of their budget. */
static drey_status prepare(serving *v, int32_t *n_context, drey_error *err)
{
    *n_context = models_context(&v->models, &v->settings, USUAL_CONTEXT);
    name_model(v);
    TRY(choose_template(v, err));
    TRY(open_server(v, *n_context, err));
    v->models.held_bytes = server_bytes(v->server);
    return DREY_OK;
}

/* Writes the verdict of a folder's model without its name, which its server puts before it. */
static void print_verdict(const serving *v)
{
    char hint[VERDICT_HINT_BYTES];
    const char *verdict = v->models.ahead.outlook.verdict;
    size_t n = strlen(v->one_name);
    if (strncmp(verdict, v->one_name, n) == 0 && strncmp(verdict + n, ", ", 2) == 0)
        verdict += n + 2;
    verdict_draft_hint(&v->models, &v->settings, hint, sizeof hint);
    const serve_event notes[] = {note_of(verdict), note_of(hint), note_of(v->beginnings)};
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (notes[i].of.note[0])
            process_report(v->report, &notes[i]);
}

/* Standard output has this line alone: whatever started the server reads the address there. */
static void say_address(const char *address, const char *keys)
{
    serve_lines_warn(address, keys);
    printf("%s\n", address);
    fflush(stdout);
    manager_ready();
}

/* Each session has a cache of as many positions as the context. */
static drey_status start_engine(serving *v, int32_t n_context, drey_error *err)
{
    drey_status status =
        models_start(&v->models, &v->settings, n_context, MODELS_ENGINE, &v->progress, err);
    size_t n = strlen(err->message);
    if (status == DREY_ERR_MEMORY && err->hint == DREY_HINT_MEMORY_BYTES && !v->one_name) {
        snprintf(err->message + n, sizeof err->message - n, "%s; %sa smaller -c needs less",
                 terminal_hint(err->hint), v->settings.n_sessions > 1 ? "--sessions 1 or " : "");
        err->hint = DREY_HINT_NONE;
    }
    return status;
}

/* The port is taken before the model is opened. Not where somebody else has it, the manager of
 * services or the server of a folder, for whom clients wait; nor by several ranks, one of which
 * serves. */
static drey_status open_lobby(serving *v, drey_error *err)
{
    const cli_settings *s = &v->settings;
    lobby_options o = {
        .api_keys = s->serve.api_key, .origins = s->serve.cors_origin, .closed = s->serve.closed};
    TRY(choose_address(s, &o.at, err));
    if (v->one_name || o.at.passed || terminal_ranks() > 1)
        return DREY_OK;
    return lobby_open(&v->lobby, &o, err);
}

static drey_status serve_all(serving *v, drey_error *err)
{
    int32_t n_context;
    const char *folder = v->settings.prefixes.folder;
    v->new_folder = folder && access(folder, F_OK) != 0;
    TRY(open_lobby(v, err));
    TRY(models_open(&v->models, &v->settings, err));
    if (models_serve_rank(&v->models))
        return models_serve(&v->models, &v->settings, err);
    TRY(prepare(v, &n_context, err));
    if (!v->one_name) {
        v->models.loading.fn = show_loading;
        v->models.loading.user = &v->lines;
    }
    TRY(start_engine(v, n_context, err));
    signals_note();
    models_show_plan(&v->models, &v->settings);
    describe_beginnings(v);
    if (v->one_name) {
        print_verdict(v);
        process_listens(v->report);
    } else {
        say_address(server_address(v->server), v->settings.serve.api_key);
    }
    return server_run(v->server, v->models.engine, err);
}

static void close_all(serving *v)
{
    progress_clear(&v->progress);
    models_stop(&v->models);
    server_close(&v->server);
    lobby_close(&v->lobby);
    models_close(&v->models);
    free(v->chat_template);
    v->chat_template = NULL;
}

static serve_lines lines_of(const cli_settings *s, progress *bar)
{
    return (serve_lines){.quiet = s->quiet, .verbose = s->common.verbose, .progress = bar};
}

static int serve_one(const cli_settings *settings)
{
    serving v = {.settings = *settings, .progress.quiet = settings->quiet};
    v.lines = lines_of(settings, &v.progress);
    drey_error err = {0};
    drey_status status = serve_all(&v, &err);
    close_all(&v);
    if (status == DREY_OK && !models_serve_rank(&v.models))
        serve_lines_stopped(&v.lines);
    int code = exit_with(status, &err);
    models_leave_ranks(&v.models);
    return code;
}

/* ---- Several models: each in its own process ---- */

static serving of_folder(const cli_settings *settings, const char *path, uint64_t memory_bytes,
                         const char *socket, const char *name)
{
    serving v = {.settings = *settings, .progress.quiet = true};
    v.settings.quiet = true;
    v.settings.common.model = path;
    v.settings.common.memory_bytes = memory_bytes;
    v.settings.serve.host = socket;
    v.settings.serve.alias = NULL;
    v.one_name = name;
    return v;
}

/* Ignores a warning: it was printed once, when the model was loaded. */
static void hear_nothing(void *user, const char *message)
{
    (void)user;
    (void)message;
}

static void pass_warning(void *user, const char *message)
{
    const serving *v = user;
    serve_event e = note_of(message);
    e.kind = SERVE_WARNING;
    process_report(v->report, &e);
}

/* All of it in memory, and the least that it works with. */
static drey_status measure_model(void *user, const char *path, const char *socket,
                                 process_needs *needs, drey_error *err)
{
    const cli_settings *settings = user;
    serving v = of_folder(settings, path, settings->common.memory_bytes, socket, NULL);
    drey_engine_options options;
    drey_planner *planner = NULL;
    drey_plan plan = {0}, least = {0};
    int32_t n_context;
    terminal_complain_to(hear_nothing, NULL);
    drey_status status = models_open(&v.models, &v.settings, err);
    if (status == DREY_OK)
        status = prepare(&v, &n_context, err);
    if (status == DREY_OK)
        status = models_choose(&v.models, &v.settings, n_context, &options, err);
    if (status == DREY_OK)
        status = drey_planner_open(&planner, &options, err);
    if (status == DREY_OK)
        status = drey_planner_make(planner, DREY_MEMORY_UNLIMITED, NULL, &plan, err);
    if (status == DREY_OK && drey_planner_make(planner, 1, NULL, &least, NULL) == DREY_ERR_MEMORY) {
        drey_plan now = {0}; /* of the options' budget, which "auto" has found out */
        drey_planner_make(planner, 0, NULL, &now, NULL);
        *needs = (process_needs){now.budget_bytes, least.smallest_budget_bytes, model_bytes(&plan)};
    }
    drey_planner_close(&planner);
    close_all(&v);
    return status;
}

/* Each model has its own folder: only one process at a time uses one. */
static void choose_kept(serving *v, const char *name)
{
    const char *folder = v->settings.prefixes.folder;
    if (!folder)
        return;
    mkdir(folder, 0700); /* what cannot be made is reported when it is used */
    snprintf(v->kept, sizeof v->kept, "%s/%s", folder, name);
    v->settings.prefixes.folder = v->kept;
}

static int serve_model(void *user, const model_process *m, uint64_t memory_bytes, int report,
                       drey_error *err)
{
    serving v = of_folder(user, m->path, memory_bytes, m->socket, m->name);
    v.report = report;
    terminal_complain_to(pass_warning, &v);
    choose_kept(&v, m->name);
    drey_status status = serve_all(&v, err);
    close_all(&v);
    return status == DREY_OK ? 0 : 1;
}

static int32_t look_again(void *user)
{
    serving *v = user;
    model_folder_look(&v->folder);
    return v->folder.n;
}

static int32_t mean(void *user, const char *text, int32_t *found, int32_t room, int32_t *near)
{
    const serving *v = user;
    return model_folder_mean(&v->folder, text, found, room, near);
}

/* " a, b, c and 12 more" of those that are broken, or of the others. Returns how many there are. */
static int32_t list_models(const model_folder *f, bool broken, text_out *out)
{
    enum { MOST_NAMED = 8 };
    int32_t n = 0;
    for (int32_t i = 0; i < f->n; i++)
        if ((f->checks[i].why[0] != '\0') == broken && n++ < MOST_NAMED)
            out_format(out, "%s %s", n > 1 ? "," : "", f->models[i].name);
    if (n > MOST_NAMED)
        out_format(out, " and %d more", n - MOST_NAMED);
    return n;
}

/* "models: a, b, c and 12 more (2.00G for all); cannot be loaded: d" */
static void say_models(serving *v, const char *address)
{
    char what[SERVE_NOTE_BYTES], bad[SERVE_NOTE_BYTES / 2], size[16];
    text_out out = {.text = what, .capacity = sizeof what - 1};
    text_out broken = {.text = bad, .capacity = sizeof bad - 1};
    const uint64_t memory = v->settings.common.memory_bytes;
    int32_t n_broken = list_models(&v->folder, true, &broken), n = v->folder.n - n_broken;
    out_text(&out, n == 0 ? "no model" : n == 1 ? "model" : "models:");
    list_models(&v->folder, false, &out);
    if (memory && memory != DREY_MEMORY_UNLIMITED)
        out_format(&out, " (%s for all)", format_bytes(size, (double)memory));
    if (n_broken) {
        out_text(&out, "; cannot be loaded:");
        out_bytes(&out, broken.text, broken.n);
    }
    what[out.n] = '\0';
    serve_lines_ready(&v->lines, address, has_page(&v->settings), what);
}

/* The address first: who asks while models are looked at waits for that moment. */
static drey_status open_folder(serving *v, listen_socket *place, listen_address *at,
                               drey_error *err)
{
    const cli_settings *s = &v->settings;
    TRY(models_check_ranks(s, err));
    TRY(choose_address(s, at, err));
    TRY(listen_open(place, at, err));
    drey_status status = model_folder_open(&v->folder, s->serve.models, err);
    if (status != DREY_OK)
        listen_close(place, at->host);
    return status;
}

static drey_status serve_folder(serving *v, router **r, drey_error *err)
{
    const cli_settings *s = &v->settings;
    listen_address at;
    listen_socket listening;
    TRY(open_folder(v, &listening, &at, err));
    v->lines.grace_s = given_or(s, "grace", s->serve.grace_s, USUAL_GRACE_S);
    const router_options options = {
        .models = v->folder.models,
        .n_models = v->folder.n,
        .look = look_again,
        .mean = mean,
        .n_loaded = s->serve.n_loaded,
        .listening = listening,
        .host = at.host,
        .api_keys = s->serve.api_key,
        .origins = s->serve.cors_origin,
        .closed = s->serve.closed,
        .n_connections = given_or(s, "connections", s->serve.n_connections, USUAL_CONNECTIONS),
        .body_bytes = s->serve.body_bytes ? s->serve.body_bytes : MOST_BODY,
        .timeout_s = given_or(s, "timeout", s->serve.timeout_s, USUAL_TIMEOUT_S),
        .grace_s = v->lines.grace_s,
        .folder = v->folder.sockets,
        .work = {measure_model, serve_model, &v->settings},
        .keeps_running = signals_may_continue,
        .on_event = hear,
        .user = v,
    };
    TRY(router_open(r, &options, err));
    signals_note();
    say_address(router_address(*r), s->serve.api_key);
    say_models(v, router_address(*r));
    router_run(*r);
    serve_lines_stopped(&v->lines);
    return DREY_OK;
}

static int serve_several(const cli_settings *settings)
{
    serving v = {.settings = *settings};
    v.lines = lines_of(settings, NULL);
    router *r = NULL;
    drey_error err = {0};
    drey_status status = serve_folder(&v, &r, &err);
    router_close(&r);
    model_folder_close(&v.folder);
    return exit_with(status, &err);
}

/* ---- What can be wrong before any model is looked at ---- */

static drey_status check_options(const cli_settings *s, char **keys, drey_error *err)
{
    TRY(server_keys_read(s, keys, err));
    if (s->serve.slot_folder)
        TRY(slot_folder_open(s->serve.slot_folder, err));
    return DREY_OK;
}

int serve_main(const cli_settings *settings)
{
    cli_settings s = *settings;
    drey_error err = {0};
    char *keys = NULL;
    drey_status status = check_options(&s, &keys, &err);
    s.serve.api_key = keys;
    if (!s.n_sessions)
        s.n_sessions = USUAL_SESSIONS;
    int code = status != DREY_OK ? exit_with(status, &err)
               : s.serve.models  ? serve_several(&s)
                                 : serve_one(&s);
    free(keys);
    return code;
}
