/* Answers of the router itself: see router_state.h. */
#include "serve/router/router_state.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "serve/adapters/adapter.h"
#include "serve/requests.h"

/* ---- Heads ---- */

void router_report_request(const router *r, const proxied *c, int status, const char *why)
{
    serve_event e =
        event_of_request(&c->http.head, status, serve_clock_s() - c->http.clock.began_s);
    e.of.request.left = status == 0;
    snprintf(e.of.request.why, sizeof e.of.request.why, "%s", why);
    if (status >= 400)
        listen_peer(&r->http.listening, c->http.socket.fd, e.of.request.peer,
                    sizeof e.of.request.peer);
    router_report(r, c->process, &e);
}

void router_refuse(router *r, proxied *c, const refusal *why)
{
    refusal again = *why;
    if (why->status == 503 && !why->retry_s)
        again.retry_s = 1;
    http_refuse(&r->http, &c->http, &again);
}

void router_refuse_now(router *r, proxied *c, int status, const char *sentence)
{
    refusal why;
    refuse_fixed(&why, status, sentence);
    router_refuse(r, c, &why);
}

/* ---- Models ---- */

static const char *state_name(const model_process *m)
{
    switch (m->state) {
    case PROCESS_READY:
        return "loaded";
    case PROCESS_MEASURING:
    case PROCESS_STARTING:
        return "loading";
    case PROCESS_STOPPING:
        return "unloading";
    default:
        return m->why[0] ? "failed" : "unloaded";
    }
}

static void put_model(const router *r, const model_process *m, bool done, text_out *out)
{
    out_json(out, done ? "{success:true" : "{");
    out_json(out,
             "id:%s,object:'model',created:%lld,owned_by:'drey',status:{value:%s},"
             "drey:{memory_bytes:%llu,floor_bytes:%llu,want_bytes:%llu,requests:%d,failed:%s}}",
             m->name, (long long)r->began, state_name(m), (unsigned long long)m->given_bytes,
             (unsigned long long)m->needs.floor_bytes, (unsigned long long)m->needs.want_bytes,
             m->n_users, m->why);
}

void router_answer_model(router *r, proxied *c, const model_process *m, bool done)
{
    text_out body = {.text = r->scratch, .capacity = ROUTER_SCRATCH_BYTES};
    put_model(r, m, done, &body);
    http_respond_json(&r->http, &c->http, &body);
}

/* Its list fits into an answer: see ROUTER_MAX_MODELS. */
static void answer_models(router *r, proxied *c)
{
    text_out body = {.text = r->scratch, .capacity = ROUTER_SCRATCH_BYTES};
    router_look(r);
    out_json(&body, "{object:'list',data:[");
    for (int32_t i = 0; i < r->options.n_models; i++)
        put_model(r, &r->models[i], false, &body);
    out_json(&body, "]}");
    http_respond_json(&r->http, &c->http, &body);
}

/* ollama's lists: of all models, or of those that are loaded. */
static void answer_tags(router *r, proxied *c, bool loaded)
{
    text_out body = {.text = r->scratch, .capacity = ROUTER_SCRATCH_BYTES};
    router_look(r);
    out_json(&body, "{models:[");
    for (int32_t i = 0; i < r->options.n_models; i++) {
        const model_process *m = &r->models[i];
        struct stat file = {0};
        /* Its list has no place for what is wrong with one. */
        bool broken = m->state == PROCESS_NONE && m->used == 0 && m->why[0];
        if (broken || (loaded && m->state != PROCESS_READY))
            continue;
        stat(m->path, &file);
        ollama_put_model(m->name, strlen(m->name), (uint64_t)file.st_size,
                         loaded ? 0 : file.st_mtime, &body);
        ollama_put_details("", "", &body);
        out_json(&body, "}");
    }
    out_json(&body, "]}");
    http_respond_json(&r->http, &c->http, &body);
}

static void answer_named(router *r, proxied *c, http_span name)
{
    refusal why;
    const model_process *m = router_find_part(r, name, &why);
    if (m)
        router_answer_model(r, c, m, false);
    else
        router_refuse(r, c, &why);
}

/* ---- The server ---- */

/* Answers for models while none is loaded: a request that only looks loads nothing. */
static bool answer_unloaded(router *r, proxied *c)
{
    const http_span path = c->http.head.path;
    text_out body = {.text = r->scratch, .capacity = ROUTER_SCRATCH_BYTES};
    if (http_query(c->http.head.query, "model").text || router_loaded_model(r))
        return false;
    if (http_path_is(path, "/props")) {
        out_json(&body,
                 "{role:'router',total_slots:0,models_autoload:true,build_info:'drey %s',"
                 "drey:{version:%s,connections:%d,body_bytes:%llu}}",
                 drey_version(), drey_version(), r->options.n_connections,
                 (unsigned long long)r->options.body_bytes);
        http_respond_json(&r->http, &c->http, &body);
    } else if (http_path_is(path, "/slots")) {
        http_respond_text(&r->http, &c->http, "[]");
    } else if (http_path_is(path, "/metrics")) {
        static const char none[] = "drey:models_loaded 0\n";
        http_respond(&r->http, &c->http,
                     &(http_answer){.status = 200,
                                    .type = "text/plain; version=0.0.4; charset=utf-8",
                                    .body = none,
                                    .n = sizeof none - 1});
    } else {
        router_refuse_now(r, c, 404, "No model is loaded. Name one: ?model=NAME.");
    }
    return true;
}

/* Answers a preflight; false: it is none. */
static bool answer_options(router *r, proxied *c)
{
    if (c->http.head.method != HTTP_OPTIONS)
        return false;
    http_respond(&r->http, &c->http, &(http_answer){.status = 204});
    return true;
}

static bool path_is_one_of(http_span path, const char *a, const char *b)
{
    return http_path_is(path, a) || http_path_is(path, b);
}

bool router_answer_head(router *r, proxied *c)
{
    static const char listed[] = "/v1/models/";
    const http_head *h = &c->http.head;
    size_t n = http_path_front(h->path, listed);
    text_out body = {.text = r->scratch, .capacity = ROUTER_SCRATCH_BYTES};
    if (answer_options(r, c))
        return true;
    if (h->method == HTTP_DELETE)
        return answer_unloaded(r, c);
    if (h->method != HTTP_GET && h->method != HTTP_HEAD)
        return false;
    if (path_is_one_of(h->path, "/health", "/v1/health")) {
        http_respond_text(&r->http, &c->http, "{\"status\":\"ok\"}");
    } else if (path_is_one_of(h->path, "/models", "/v1/models")) {
        answer_models(r, c);
    } else if (path_is_one_of(h->path, "/", "/index.html")) {
        http_respond_page(&r->http, &c->http);
    } else if (path_is_one_of(h->path, "/api/tags", "/api/ps")) {
        answer_tags(r, c, http_path_is(h->path, "/api/ps"));
    } else if (http_path_is(h->path, "/api/version")) {
        out_json(&body, "{version:%s}", drey_version());
        http_respond_json(&r->http, &c->http, &body);
    } else if (n > 0) {
        answer_named(r, c, (http_span){h->path.text + n, h->path.n - n});
    } else {
        return answer_unloaded(r, c);
    }
    return true;
}
