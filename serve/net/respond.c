/* Heads of answers: see network.h. */
#include "serve/net/network.h"

#include <stdio.h>
#include <string.h>

bool respond_allows(network *n, const connection *c, bool needs_key, refusal *r)
{
    return access_allows(&n->http.rules, &c->http.head, needs_key, r);
}

/* ---- Heads ---- */

static void put_head(network *n, connection *c, int status, const char *content_type,
                     const char *headers, text_out *out)
{
    const http_head *h = &c->http.head;
    c->report.status = status;
    c->report.open = true;
    out_format(out, "HTTP/1.1 %d %s\r\nServer: drey\r\n", status, http_status_text(status));
    if (content_type)
        out_format(out, "Content-Type: %s\r\n", content_type);
    out_text(out, headers);
    access_put_headers(&n->http.rules, h, out);
    if (!c->http.keeps)
        out_text(out, "Connection: close\r\n");
    else if (h->http_1_0)
        out_text(out, "Connection: keep-alive\r\n");
}

static text_out begin_out(const connection *c)
{
    return (text_out){.text = c->http.out, .n = c->http.n_out, .capacity = HTTP_OUT_BYTES};
}

void respond(network *n, connection *c, int status, const char *content_type, const char *headers,
             const char *body, size_t n_body, bool constant)
{
    char *large = NULL;
    bool fits = n_body <= HTTP_OUT_BYTES / 2;
    if (!fits && !constant && n_body <= n->http.large_bytes)
        large = c->http.large ? c->http.large : http_take_large(&n->http);
    if (!fits && !constant && !large) {
        refusal r;
        refuse_with(&r, 503, "This answer has %zu bytes, and there is no room for it now.", n_body);
        r.retry_s = 1;
        respond_refusal(n, c, &r);
        return;
    }
    text_out out = begin_out(c);
    put_head(n, c, status, content_type, headers, &out);
    if (status != 204) /* which has no body, and must not say so (RFC 9110, 8.6) */
        out_format(&out, "Content-Length: %zu\r\n", n_body);
    out_text(&out, "\r\n");
    bool silent = c->http.head.method == HTTP_HEAD;
    if (fits && !silent)
        out_bytes(&out, body, n_body);
    if (large) {
        memmove(large, body, n_body);
        c->http.large = large;
        body = large;
    }
    c->http.n_out = out.n;
    c->http.more = fits || silent ? NULL : body;
    c->http.n_more = fits || silent ? 0 : n_body;
    c->all_out = true;
    c->http.phase = CLIENT_ANSWER;
}

void respond_json(network *n, connection *c)
{
    refusal r;
    if (n->scratch.full) {
        refuse_with(&r, 400,
                    "The answer would be longer than the %zu bytes that this server gives "
                    "a request.",
                    n->http.large_bytes);
        respond_refusal(n, c, &r);
        return;
    }
    respond(n, c, 200, "application/json; charset=utf-8", "", n->scratch.text, n->scratch.n, false);
}

void respond_refusal(network *n, connection *c, const refusal *r)
{
    char text[4096], headers[64] = "";
    text_out out = {.text = text, .capacity = sizeof text};
    snprintf(c->report.why, sizeof c->report.why, "%s", r->fixed);
    answer_refusal(c->answer.form, r, &out);
    if (r->retry_s)
        snprintf(headers, sizeof headers, "Retry-After: %d\r\n", r->retry_s);
    respond(n, c, r->status, "application/json; charset=utf-8", headers, out.text, out.n, false);
}

void respond_task(network *n, connection *c)
{
    const answer *a = c->stream.of ? &c->stream.of->answer : &c->answer;
    bool stream = c->stream.of || a->task->stream;
    text_out out = begin_out(c);
    c->framed = !c->http.head.http_1_0;
    c->http.keeps = c->http.keeps && c->framed;
    put_head(n, c, 200, stream ? answer_stream_type(a) : "application/json; charset=utf-8",
             stream ? "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n" : "", &out);
    out_format(&out, "X-Request-Id: %s\r\n",
               c->stream.of ? c->stream.of->task_name : a->task->id.text);
    if (a->task && a->task->grammar.not_held[0])
        out_format(&out, "X-Drey-Not-Held: %s\r\n", a->task->grammar.not_held);
    out_text(&out, c->framed ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    c->http.n_out = out.n;
    c->head_out = true;
}
