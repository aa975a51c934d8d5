/* Choice of a request's model, and of the models that are loaded: see router_state.h. */
#include "serve/router/router_state.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/size_text.h"
#include "serve/router/forwarded.h"
#include "serve/router/model_budget.h"
#include "serve/requests.h"

static const double doubt_s = 0.3;

/* ---- Which model ---- */

/* Returns whether a text is the name, as it is or with ollama's usual tag after it. */
static bool is_name(const char *text, const char *name)
{
    size_t n = strlen(name);
    return strncmp(text, name, n) == 0 && (text[n] == '\0' || strcmp(text + n, ":latest") == 0);
}

/* Takes over the result of a look at its file, where that is new. */
static void take_check(model_process *m, const router_model *of)
{
    if (m->state != PROCESS_NONE || m->n_checks == of->n_checks)
        return;
    m->n_checks = of->n_checks;
    snprintf(m->why, sizeof m->why, "%s", of->why);
}

void router_report(const router *r, const model_process *m, serve_event *e)
{
    if (m)
        snprintf(e->model, sizeof e->model, "%s", m->name);
    if (r->options.on_event)
        r->options.on_event(r->options.user, e);
}

static void report_text(const router *r, const model_process *m, serve_event_kind kind,
                        const char *text)
{
    serve_event e = {.kind = kind};
    snprintf(e.of.note, sizeof e.of.note, "%s", text);
    router_report(r, m, &e);
}

void router_note(const router *r, const model_process *m, const char *what)
{
    report_text(r, m, SERVE_NOTE, what);
}

void router_warn(const router *r, const model_process *m, const char *what)
{
    report_text(r, m, SERVE_WARNING, what);
}

/* Notes how much of the memory for all models they have. */
static void note_ready(const router *r, const model_process *m)
{
    uint64_t given = 0;
    char line[120], has[16], all[16];
    for (int32_t i = 0; i < r->options.n_models; i++)
        given += r->models[i].given_bytes;
    bool limited = r->budget_bytes != DREY_MEMORY_UNLIMITED;
    snprintf(line, sizeof line, "is ready: models have %s%s%s", format_bytes(has, (double)given),
             limited ? " of " : "", limited ? format_bytes(all, (double)r->budget_bytes) : "");
    router_note(r, m, line);
}

/* Passes on events but that one stops, which was said for all of them, or why it is unloaded. */
static void pass_on(void *user, model_process *m, const serve_event *event)
{
    const router *r = user;
    serve_event e = *event;
    if (e.kind == SERVE_READY)
        note_ready(r, m);
    else if (e.kind != SERVE_STOPPING)
        router_report(r, m, &e);
}

bool router_name_model(router *r, int32_t i)
{
    const router_model *named = &r->options.models[i];
    model_process *m = &r->models[i];
    *m = (model_process){.name = named->name,
                         .path = named->path,
                         .pipe.fd = -1,
                         .loop = &r->http.loop,
                         .on_event = pass_on,
                         .user = r};
    take_check(m, named);
    int n = snprintf(m->socket, sizeof m->socket, "%s/%d.sock", r->options.folder, i);
    return n >= 0 && (size_t)n < sizeof m->socket;
}

void router_look(router *r)
{
    router_options *o = &r->options;
    for (int32_t n = o->look ? o->look(o->user) : 0;
         o->n_models < n && router_name_model(r, o->n_models);)
        o->n_models++;
    for (int32_t i = 0; i < o->n_models; i++)
        take_check(&r->models[i], &o->models[i]);
}

static model_process *find_name(router *r, const char *name)
{
    int32_t i = 0;
    for (int looks = 0; looks < 2; looks++) {
        for (; i < r->options.n_models; i++)
            if (is_name(name, r->models[i].name))
                return &r->models[i];
        if (looks == 0)
            router_look(r);
    }
    return NULL;
}

enum { MOST_MEANT = 6 };

/* "a, b, c and 4 more" */
static void list_names(const router *r, const int32_t *found, int32_t n, char *out, size_t room)
{
    size_t at = 0;
    *out = '\0';
    for (int32_t i = 0; i < n && i < MOST_MEANT && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%.80s", i ? ", " : "",
                               r->models[found[i]].name);
    if (n > MOST_MEANT && at < room)
        snprintf(out + at, room - at, " and %d more", n - MOST_MEANT);
}

model_process *router_find_model(router *r, const char *name, refusal *why)
{
    const router_options *o = &r->options;
    int32_t found[MOST_MEANT], near = -1;
    char names[MOST_MEANT * 82 + 20];
    model_process *m = find_name(r, name);
    int32_t n = m || !o->mean ? 0 : o->mean(o->user, name, found, MOST_MEANT, &near);
    if (m || n == 1)
        return m ? m : &r->models[found[0]];
    list_names(r, found, n, names, sizeof names);
    if (n > 1)
        refuse_with(why, 400, "The model \"%.60s\" may be %s: write more of its name.", name,
                    names);
    else if (near >= 0)
        refuse_with(why, 404,
                    "The model \"%.100s\" is not in this server's folder; did you mean \"%s\"? GET "
                    "/v1/models lists those that are.",
                    name, r->models[near].name);
    else
        refuse_with(why, 404,
                    "The model \"%.100s\" is not in this server's folder: GET /v1/models lists "
                    "those that are.",
                    name);
    why->code = n > 1 ? "model_ambiguous" : "model_not_found";
    return NULL;
}

model_process *router_find_part(router *r, http_span part, refusal *why)
{
    char name[ROUTER_NAME_BYTES];
    if (!http_decode(part, name, sizeof name)) /* longer than any name */
        name[0] = '\0';
    return router_find_model(r, name, why);
}

model_process *router_loaded_model(const router *r)
{
    model_process *last = NULL;
    for (int32_t i = 0; i < r->options.n_models; i++)
        if (r->models[i].state == PROCESS_READY && (!last || r->models[i].used > last->used))
            last = &r->models[i];
    return last;
}

/* A request that names no model means the one that was used last; before any was, the first that
 * can be run. */
static model_process *default_model(const router *r)
{
    model_process *last = NULL;
    for (int32_t i = 0; i < r->options.n_models; i++) {
        model_process *m = &r->models[i];
        bool can = m->used > 0 || !m->why[0];
        if (can && (!last || m->used > last->used))
            last = m;
    }
    return last ? last : &r->models[0];
}

/* Finds a model for requests that only look. NULL: it has been refused. */
static model_process *loaded_model(router *r, proxied *c)
{
    model_process *found = router_loaded_model(r);
    if (!found)
        router_refuse_now(r, c, 404, "No model is loaded. Name one: ?model=NAME.");
    return found;
}

/* Chooses a model by the body. NULL: the request has been refused. */
static model_process *choose_by_body(router *r, proxied *c)
{
    char name[ROUTER_NAME_BYTES];
    const char *why = NULL;
    size_t at = 0;
    refusal broken;
    model_process *found;
    switch (c->http.n_body
                ? forwarded_model(c->http.body, c->http.n_body, name, sizeof name, &why, &at)
                : ASKED_NONE) {
    case ASKED_NONE:
        return http_path_is(c->http.head.path, "/v1/streams/lookup") ? loaded_model(r, c)
                                                                     : default_model(r);
    case ASKED_NAME:
        found = router_find_model(r, name, &broken);
        if (!found)
            router_refuse(r, c, &broken);
        return found;
    case ASKED_OTHER:
        router_refuse_now(r, c, 400,
                          "Field 'model' takes a text, the name of one that GET /v1/models lists.");
        return NULL;
    default:
        refuse_with(&broken, 400, "The request's body is no JSON: at byte %zu %s.", at, why);
        router_refuse(r, c, &broken);
        return NULL;
    }
}

/* NULL: it has been refused. */
static model_process *choose_model(router *r, proxied *c)
{
    http_span name = http_query(c->http.head.query, "model");
    if (!name.text)
        return c->http.head.method == HTTP_POST ? choose_by_body(r, c) : loaded_model(r, c);
    refusal why;
    model_process *found = router_find_part(r, name, &why);
    if (!found)
        router_refuse(r, c, &why);
    return found;
}

/* ---- Memory ---- */

/* Returns the budget without what this process has or may touch. */
static uint64_t left_for_models(const router *r, uint64_t budget)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%*u %llu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    uint64_t own = pages * (uint64_t)sysconf(_SC_PAGESIZE) + r->n_memory +
                   (uint64_t)r->http.n_clients * SOCKET_KERNEL_BYTES;
    return budget == DREY_MEMORY_UNLIMITED ? budget : own < budget ? budget - own : 1;
}

static void on_report(void *user, void *of, uint32_t events)
{
    router *r = user;
    model_process *m = of;
    bool was_measured = m->measured;
    (void)events;
    process_read_messages(m);
    if (m->measured && !was_measured && !r->budget_bytes)
        r->budget_bytes = left_for_models(r, m->needs.budget_bytes);
    router_advance(r);
}

static void follow(router *r, model_process *m)
{
    m->pipe.on_event = on_report;
    m->pipe.user = r;
    m->pipe.of = m;
    event_loop_watch(m->loop, &m->pipe, EPOLLIN);
}

static budget_answer ask_room(const router *r, const model_process *asks, uint64_t *bytes,
                              int32_t *who)
{
    budget_model models[ROUTER_MAX_MODELS];
    for (int32_t i = 0; i < r->options.n_models; i++) {
        const model_process *m = &r->models[i];
        models[i] = (budget_model){.floor = m->needs.floor_bytes,
                                   .want = m->needs.want_bytes,
                                   .given = m->given_bytes,
                                   .idle = m->state == PROCESS_READY && m->n_users == 0,
                                   .leaving = m->state == PROCESS_STOPPING,
                                   .used = m->used};
    }
    const budget_limits limits = {r->budget_bytes, r->options.n_loaded};
    return budget_ask(models, r->options.n_models, (int32_t)(asks - r->models), limits, bytes, who);
}

static void start(router *r, model_process *m, uint64_t bytes)
{
    char line[120], size[16];
    bool unlimited = r->budget_bytes == DREY_MEMORY_UNLIMITED;
    snprintf(line, sizeof line, "is being loaded, into %s", format_bytes(size, (double)bytes));
    if (!process_start(m, &r->options.work, unlimited ? DREY_MEMORY_UNLIMITED : bytes)) {
        m->n_failures++;
        return;
    }
    m->given_bytes = bytes;
    follow(r, m);
    router_note(r, m, line);
}

/* A model that has to be loaded takes its next step. True: it needs memory that others have. */
static bool load(router *r, proxied *c)
{
    model_process *m = c->process;
    uint64_t bytes;
    int32_t who = 0;
    refusal why;
    char least[16], all[16];
    if (m->state != PROCESS_NONE)
        return m->state == PROCESS_STOPPING;
    if (!m->measured) {
        if (process_measure(m, &r->options.work))
            follow(r, m);
        else
            m->n_failures++;
        return false;
    }
    switch (ask_room(r, m, &bytes, &who)) {
    case BUDGET_GIVE:
        start(r, m, bytes);
        return false;
    case BUDGET_EVICT:
        router_note(r, &r->models[who], "is unloaded to make room");
        process_stop(&r->models[who]);
        return true;
    case BUDGET_WAIT:
        return true;
    default:
        refuse_with(&why, 400,
                    "The model \"%.100s\" needs %s at least, and this server has %s for all its "
                    "models: start it with more (--memory).",
                    m->name, format_bytes(least, (double)m->needs.floor_bytes),
                    format_bytes(all, (double)r->budget_bytes));
        /* The owner's line has the model's name already, and no word of the client's. */
        snprintf(why.fixed, sizeof why.fixed,
                 "needs %s at least, and this server has %s for all its models (--memory)", least,
                 all);
        router_refuse(r, c, &why);
        return false;
    }
}

/* Asking again helps where its process ended, or where memory was short: not with a broken file. */
static void refuse_failed(router *r, proxied *c)
{
    refusal why;
    const model_process *m = c->process;
    bool may_pass =
        m->error == DREY_OK || m->error == DREY_ERR_MEMORY || m->error == DREY_ERR_CANCELLED;
    refuse_with(&why, may_pass ? 503 : 500, "The model \"%.100s\" could not be loaded: %.560s.",
                m->name, m->why);
    snprintf(why.fixed, sizeof why.fixed, "could not be loaded: %.200s", m->why);
    router_refuse(r, c, &why);
}

/* The waiting request that came after request number `after`; NULL: none. */
static proxied *next_waiting(const router *r, int64_t after)
{
    proxied *next = NULL;
    for (int32_t i = 0; i < r->http.n_clients; i++) {
        proxied *c = router_proxied(r, i);
        if (router_waits(c) && c->number > after && (!next || c->number < next->number))
            next = c;
    }
    return next;
}

/* A process that was killed while it was loaded is no fault of the model: once it is loaded
 * again. */
static bool may_again(proxied *c)
{
    if (c->tries.again || !c->process->life.by_signal)
        return false;
    c->tries.again = true;
    c->tries.n_failures = c->process->n_failures;
    return true;
}

/* Returns whether a process may be ending: until that is seen, it is asked now and then. */
static bool is_doubtful(const model_process *m)
{
    return m->life.broken_s > 0 && serve_clock_s() - m->life.broken_s < doubt_s;
}

/* Requests proceed in the order in which they came. While one needs memory that others use, those
 * after it wait too, so that the others come to an end. */
void router_advance(router *r)
{
    bool blocked = false;
    int64_t after = 0;
    for (proxied *c = next_waiting(r, after); c && !blocked; c = next_waiting(r, after)) {
        after = c->number;
        if (c->process->n_failures != c->tries.n_failures && !may_again(c))
            refuse_failed(r, c);
        else if (c->process->state != PROCESS_READY) {
            blocked = load(r, c);
        } else if (http_path_is(c->http.head.path, "/models/load")) {
            c->process->used = ++r->n_requests;
            router_answer_model(r, c, c->process, true);
        } else if (!is_doubtful(c->process) && router_forward(r, c)) {
            c->process->used = ++r->n_requests;
        }
    }
}

/* ---- Requests ---- */

static void wait_for(router *r, proxied *c, model_process *m)
{
    c->process = m;
    c->tries.n_failures = m->n_failures;
    c->number = ++r->n_requests;
    proxy_enter(c, PROXY_WAITS);
}

/* A request may ask for a model only if that is loaded. */
static bool may_load(router *r, proxied *c, const model_process *m)
{
    http_span value = http_query(c->http.head.query, "autoload");
    refusal why;
    if (m->state == PROCESS_READY || m->state == PROCESS_STARTING ||
        !(http_span_is(value, "false") || http_span_is(value, "0")))
        return true;
    refuse_with(&why, 400,
                "The model \"%.100s\" is not loaded, and the request has autoload=false: POST "
                "/models/load loads it.",
                m->name);
    router_refuse(r, c, &why);
    return false;
}

void router_queue(router *r, proxied *c)
{
    model_process *m = choose_model(r, c);
    if (!m)
        return;
    if (http_path_is(c->http.head.path, "/models/unload")) { /* texts end within the grace */
        process_stop(m);
        router_answer_model(r, c, m, true);
    } else if (may_load(r, c, m)) {
        wait_for(r, c, m);
        router_advance(r);
    }
}
