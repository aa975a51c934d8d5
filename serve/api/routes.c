/* Endpoints: which there are, and what each does with a request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/net/network.h"
#include "serve/page/page.h"

typedef void handler(network *n, connection *c, json_value *body);

typedef struct route {
    const char *path;
    bool get, post, open; /* open: without a key */
    handler *handle;
} route;

static const char json_type_text[] = "application/json; charset=utf-8";

static void begin_scratch(network *n)
{
    n->scratch.n = 0;
    n->scratch.full = false;
}

static void refuse_now(network *n, connection *c, int status, const char *why)
{
    refusal r;
    refuse_with(&r, status, "%s", why);
    respond_refusal(n, c, &r);
}

/* ---- Of the server itself ---- */

static void health(network *n, connection *c, json_value *body)
{
    (void)body;
    pthread_mutex_lock(&n->shared->lock);
    bool ready = n->shared->ready;
    pthread_mutex_unlock(&n->shared->lock);
    if (!ready || n->stopping) {
        refuse_now(n, c, 503, ready ? "The server is being stopped." : "Loading model");
        return;
    }
    static const char good[] = "{\"status\":\"ok\"}";
    respond(n, c, 200, json_type_text, "", good, sizeof good - 1, false);
}

static void metrics(network *n, connection *c, json_value *body)
{
    (void)body;
    begin_scratch(n);
    report_metrics(n, &n->scratch);
    respond(n, c, 200, "text/plain; version=0.0.4; charset=utf-8", "", n->scratch.text,
            n->scratch.n, false);
}

static void slots(network *n, connection *c, json_value *body)
{
    (void)body;
    pthread_mutex_lock(&n->shared->lock);
    bool busy = n->shared->n_running == n->options->n_sessions;
    pthread_mutex_unlock(&n->shared->lock);
    if (busy && http_query(c->head.query, "fail_on_no_slot").text) {
        refuse_now(n, c, 503, "No slot is idle.");
        return;
    }
    begin_scratch(n);
    report_slots(n, &n->scratch);
    respond_json(n, c);
}

static void props(network *n, connection *c, json_value *body)
{
    (void)body;
    begin_scratch(n);
    report_props(n, &n->scratch);
    respond_json(n, c);
}

/* The next of the names, each after a comma; false: there is none. */
static bool next_alias(const char **names, char word[128])
{
    if (!*names || !**names)
        return false;
    size_t n = strcspn(*names + 1, ",");
    snprintf(word, 128, "%.*s", (int)n, *names + 1);
    *names += 1 + n;
    return true;
}

static void models(network *n, connection *c, json_value *body)
{
    (void)body;
    begin_scratch(n);
    out_text(&n->scratch, "{\"object\":\"list\",\"data\":[");
    char word[128];
    const char *names = n->options->aliases;
    report_model(n, n->options->name, &n->scratch);
    while (next_alias(&names, word)) {
        out_text(&n->scratch, ",");
        report_model(n, word, &n->scratch);
    }
    out_text(&n->scratch, "]}");
    respond_json(n, c);
}

static void one_model(network *n, connection *c, http_part name)
{
    char word[128];
    const char *names = n->options->aliases;
    bool known = http_path_is(name, n->options->name);
    snprintf(word, sizeof word, "%s", n->options->name);
    while (!known && next_alias(&names, word))
        known = http_path_is(name, word);
    if (!known) {
        refusal r;
        refuse_with(&r, 404, "The model \"%.*s\" is not here; this server has \"%.100s\".",
                    (int)(name.n < 100 ? name.n : 100), name.text, n->options->name);
        respond_refusal(n, c, &r);
        return;
    }
    begin_scratch(n);
    report_model(n, word, &n->scratch);
    respond_json(n, c);
}

static void page(network *n, connection *c, json_value *body)
{
    (void)body;
    char headers[2048];
    text_out out = {.text = headers, .capacity = sizeof headers};
    out_format(&out,
               "Content-Security-Policy: %s\r\nX-Content-Type-Options: nosniff\r\n"
               "Referrer-Policy: no-referrer\r\nCache-Control: no-cache\r\n",
               page_policy);
    respond(n, c, 200, "text/html; charset=utf-8", out.full ? "" : headers, (const char *)page_html,
            n_page_html_bytes, true);
}

/* ---- Tokens and templates ---- */

static void tokenize(network *n, connection *c, json_value *body)
{
    const serve_options *o = n->options;
    const json_value *content = json_member(body, "content");
    bool add = false, parse = true, pieces = false;
    refusal r;
    size_t n_ids = 0;
    if (!content || content->type != JSON_STRING) {
        refuse_now(n, c, 400, "Field 'content' takes a text.");
        return;
    }
    if (!ask_flag(body, "add_special", &add, &r) || !ask_flag(body, "parse_special", &parse, &r) ||
        !ask_flag(body, "with_pieces", &pieces, &r)) {
        respond_refusal(n, c, &r);
        return;
    }
    int flags = (add ? DREY_TOKENIZE_BOS : 0) | (parse ? DREY_TOKENIZE_SPECIAL : 0);
    drey_error err = {0};
    drey_status status =
        drey_tokenize(o->model, content->text, content->n, flags, n->ids, n->n_ids, &n_ids, &err);
    if (status != DREY_OK) {
        if (n_ids > n->n_ids)
            refuse_with(&r, 400,
                        "The text has %zu tokens, more than the %zu that this server gives "
                        "a request.",
                        n_ids, n->n_ids);
        else
            refuse_error(&r, &err);
        respond_refusal(n, c, &r);
        return;
    }
    begin_scratch(n);
    out_text(&n->scratch, "{\"tokens\":[");
    for (size_t i = 0; i < n_ids; i++) {
        out_text(&n->scratch, i ? "," : "");
        if (!pieces) {
            out_format(&n->scratch, "%d", n->ids[i]);
            continue;
        }
        char bytes[1024];
        size_t n_bytes = 0;
        drey_detokenize(o->model, &n->ids[i], 1, DREY_TOKENIZE_SPECIAL, bytes, sizeof bytes,
                        &n_bytes, NULL);
        out_format(&n->scratch, "{\"id\":%d,\"piece\":", n->ids[i]);
        out_string(&n->scratch, bytes, n_bytes < sizeof bytes ? n_bytes : sizeof bytes);
        out_text(&n->scratch, "}");
    }
    out_text(&n->scratch, "]}");
    respond_json(n, c);
}

/* The text of tokens goes through the half of scratch that the answer does not need yet: escaped it
 * may be longer, and is in the other. */
static void detokenize(network *n, connection *c, json_value *body)
{
    const json_value *tokens = json_member(body, "tokens");
    size_t n_ids = 0, n_bytes = 0, half = n->scratch.capacity / 2;
    bool good = tokens && tokens->type == JSON_ARRAY && tokens->n <= n->n_ids;
    for (const json_value *v = good ? tokens->first : NULL; v && good; v = v->next) {
        good = v->type == JSON_NUMBER && v->is_integer && v->integer >= 0 && v->integer < INT32_MAX;
        if (good)
            n->ids[n_ids++] = (int32_t)v->integer;
    }
    if (!good) {
        refuse_now(n, c, 400, "Field 'tokens' takes an array of token ids.");
        return;
    }
    drey_error err = {0};
    begin_scratch(n);
    drey_status status = drey_detokenize(n->options->model, n->ids, n_ids, DREY_TOKENIZE_SPECIAL,
                                         n->scratch.text + half, half, &n_bytes, &err);
    if (status != DREY_OK) {
        refusal r;
        refuse_error(&r, &err);
        respond_refusal(n, c, &r);
        return;
    }
    text_out out = {.text = n->scratch.text, .capacity = half};
    out_text(&out, "{\"content\":");
    out_string(&out, n->scratch.text + half, n_bytes);
    out_text(&out, "}");
    n->scratch.n = out.n;
    n->scratch.full = out.full;
    respond_json(n, c);
}

static void apply_template(network *n, connection *c, json_value *body)
{
    refusal r;
    char *text = NULL;
    const char *begun;
    size_t n_text = 0;
    if (!ask_template(body, n->options, &n->scratch, &text, &n_text, &begun, &r)) {
        respond_refusal(n, c, &r);
        return;
    }
    begin_scratch(n);
    out_text(&n->scratch, "{\"prompt\":\"");
    out_escaped(&n->scratch, text, n_text);
    out_escaped(&n->scratch, begun, strlen(begun));
    out_text(&n->scratch, "\"}");
    drey_free(text);
    respond_json(n, c);
}

/* ---- Texts ---- */

/* Nobody has a place for it: how many have one, when there may be another, and whether memory would
 * let the server write more at a time. With the lock. */
static void refuse_full(const network *n, int32_t n_choices, refusal *r)
{
    const shared *s = n->shared;
    const serve_options *o = n->options;
    const drey_plan *p = &s->plan;
    double jobs_s = s->totals.job_s > 0 ? s->totals.job_s : 10;
    double wait_s = jobs_s * (double)(s->n_queued + n_choices) / o->n_sessions;
    bool unlimited = p->budget_bytes == DREY_MEMORY_UNLIMITED;
    char left[64] = "memory is not limited";
    if (!unlimited)
        snprintf(left, sizeof left, "the memory budget has %.1f MiB left",
                 (double)p->spare_bytes / 1048576);
    refuse_with(r, 503,
                "%d texts are here: this server writes %d at a time and lets %d wait, and the "
                "request asks for %d. One session more would take %.1f MiB, and %s%s. There may be "
                "room in about %.0f seconds.",
                s->n_running + s->n_queued, o->n_sessions, o->n_queue, n_choices,
                (double)p->session_bytes / 1048576, left,
                unlimited || p->spare_bytes >= p->session_bytes
                    ? ": the server could be started with more"
                    : "",
                wait_s < 1 ? 1 : wait_s);
    r->retry_s = wait_s < 1 ? 1 : wait_s > 3600 ? 3600 : (int32_t)wait_s;
}

static bool take_task(network *n, connection *c, int32_t n_choices, refusal *r)
{
    shared *s = n->shared;
    pthread_mutex_lock(&s->lock);
    /* Among those in the queue are some that an idle session will take in a moment. */
    bool room =
        s->n_queued + s->n_running + n_choices <= n->options->n_queue + n->options->n_sessions;
    task *t = room && !n->stopping ? task_take(s, n_choices) : NULL;
    if (n->stopping)
        refuse_with(r, 503, "The server is being stopped: ask again in a moment.");
    else if (!t)
        refuse_full(n, n_choices, r);
    s->totals.refused += !t;
    pthread_mutex_unlock(&s->lock);
    c->answer = (answer){.task = t};
    return t != NULL;
}

static void begin_task(network *n, connection *c, json_value *body, task_kind kind)
{
    shared *s = n->shared;
    refusal r;
    int32_t n_choices;
    if (!ask_choices(body, n->options, &n_choices, &r) || !take_task(n, c, n_choices, &r)) {
        respond_refusal(n, c, &r);
        return;
    }
    task *t = c->answer.task;
    bool good = ask_task(t, kind, body, n->options, &n->scratch, &r);
    pthread_mutex_lock(&s->lock);
    s->totals.requests++;
    if (good)
        task_queue(s, t);
    else
        task_release(s, t);
    pthread_mutex_unlock(&s->lock);
    if (good)
        return;
    c->answer.task = NULL;
    respond_refusal(n, c, &r);
}

static void chat(network *n, connection *c, json_value *body)
{
    begin_task(n, c, body, TASK_CHAT);
}

static void completion(network *n, connection *c, json_value *body)
{
    begin_task(n, c, body, TASK_COMPLETION);
}

static void native(network *n, connection *c, json_value *body)
{
    begin_task(n, c, body, TASK_NATIVE);
}

/* ---- The table ---- */

static const route routes[] = {
    {"/", true, false, true, page},
    {"/index.html", true, false, true, page},
    {"/health", true, false, true, health},
    {"/v1/health", true, false, true, health},
    {"/metrics", true, false, false, metrics},
    {"/slots", true, false, false, slots},
    {"/props", true, false, false, props},
    {"/models", true, false, false, models},
    {"/v1/models", true, false, false, models},
    {"/tokenize", false, true, false, tokenize},
    {"/detokenize", false, true, false, detokenize},
    {"/apply-template", false, true, false, apply_template},
    {"/completion", false, true, false, native},
    {"/completions", false, true, false, native},
    {"/v1/completions", false, true, false, completion},
    {"/chat/completions", false, true, false, chat},
    {"/v1/chat/completions", false, true, false, chat},
};

static const char model_path[] = "/v1/models/";

/* What follows it: the name of a model. n 0: it is another path. */
static http_part model_name(http_part path)
{
    size_t n = http_path_front(path, model_path);
    return n ? (http_part){path.text + n, path.n - n} : (http_part){"", 0};
}

static const route *find_route(http_part path)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (http_path_is(path, routes[i].path))
            return &routes[i];
    return NULL;
}

static void count_bad(network *n)
{
    pthread_mutex_lock(&n->shared->lock);
    n->shared->totals.bad++;
    pthread_mutex_unlock(&n->shared->lock);
}

bool route_is_health(const connection *c)
{
    const route *r = find_route(c->head.path);
    return r && r->handle == health;
}

bool route_head(network *n, connection *c)
{
    const http_head *h = &c->head;
    const route *r = find_route(h->path);
    bool model = model_name(h->path).n > 0, reads = h->method == HTTP_GET || h->method == HTTP_HEAD;
    refusal why;
    if (!respond_allows(n, c, h->method != HTTP_OPTIONS && !(r && r->open), &why)) {
        count_bad(n);
        respond_refusal(n, c, &why);
        return true;
    }
    if (h->method == HTTP_OPTIONS) {
        respond(n, c, 204, NULL, "Allow: GET, POST, OPTIONS\r\n", "", 0, false);
        return true;
    }
    if (!r && !model) {
        refuse_now(n, c, 404, "File Not Found");
        return true;
    }
    if (model ? !reads : !((reads && r->get) || (h->method == HTTP_POST && r->post))) {
        refuse_with(&why, 405, "%s",
                    model || r->get ? "This endpoint takes GET." : "This endpoint takes POST.");
        respond_refusal(n, c, &why);
        return true;
    }
    return false;
}

void route_request(network *n, connection *c)
{
    const route *r = find_route(c->head.path);
    if (!r) {
        one_model(n, c, model_name(c->head.path));
        return;
    }
    if (!r->post) {
        r->handle(n, c, NULL);
        return;
    }
    static const char mark[] = "\xEF\xBB\xBF"; /* which some editors put in front of UTF-8 */
    json_values values = {.values = n->values, .capacity = n->n_values};
    size_t n_mark = c->n_body >= 3 && memcmp(c->body, mark, 3) == 0 ? 3 : 0;
    json_value *body = json_parse(&values, c->body + n_mark, c->n_body - n_mark);
    if (body && body->type == JSON_OBJECT) {
        r->handle(n, c, body);
        return;
    }
    refusal why;
    count_bad(n);
    if (!body)
        refuse_with(&why, 400, "The request's body is no JSON: at byte %zu %s.", values.at,
                    values.why);
    else
        refuse_with(&why, 400, "The request's body has to be a JSON object.");
    respond_refusal(n, c, &why);
}
