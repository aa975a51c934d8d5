/* Answers that are known: see http_answer.h. */
#include "serve/net/http_answer.h"

#include <stdio.h>
#include <string.h>

#include "serve/net/routes.h"
#include "serve/page/page.h"

static const char json_type[] = "application/json; charset=utf-8";

void http_put_head(const access_rules *rules, const http_head *h, int status,
                   const char *content_type, bool keeps, text_out *out)
{
    out_format(out, "HTTP/1.1 %d %s\r\nServer: drey\r\n", status, http_status_text(status));
    if (content_type)
        out_format(out, "Content-Type: %s\r\n", content_type);
    access_put_headers(rules, h, out);
    if (!keeps)
        out_text(out, "Connection: close\r\n");
    else if (h->http_1_0)
        out_text(out, "Connection: keep-alive\r\n");
}

/* Puts the body where it can be sent from. False: there is no room. */
static bool place_body(http_server *h, http_client *c, const char *body, size_t n, bool constant)
{
    if (!constant) {
        if (!c->large && n <= h->large_bytes)
            c->large = http_take_large(h);
        if (!c->large || n > h->large_bytes)
            return false;
        memmove(c->large, body, n);
        body = c->large;
    }
    c->more = body;
    c->n_more = n;
    return true;
}

static void put_answer(http_server *h, http_client *c, const http_answer *a, const char *why)
{
    text_out out = {.text = c->out, .n = c->n_out, .capacity = HTTP_OUT_BYTES};
    bool silent = c->head.method == HTTP_HEAD, fits = a->n <= HTTP_OUT_BYTES - HTTP_HEAD_BYTES;
    if (!silent && !fits && !place_body(h, c, a->body, a->n, a->constant)) {
        refusal r;
        refuse_with(&r, 503, "This answer has %zu bytes, and there is no room for it now.", a->n);
        r.retry_s = 1;
        http_refuse(h, c, &r);
        return;
    }
    http_put_head(&h->rules, &c->head, a->status, a->type, c->keeps, &out);
    out_text(&out, a->headers ? a->headers : "");
    if (a->status != 204) /* which has no body, and must not say so (RFC 9110, 8.6) */
        out_format(&out, "Content-Length: %zu\r\n", a->n);
    out_text(&out, "\r\n");
    if (fits && !silent && a->n > 0)
        out_bytes(&out, a->body, a->n);
    c->n_out = out.n;
    c->phase = CLIENT_ANSWER;
    h->handler->answered(h->user, c, a->status, why);
}

void http_respond(http_server *h, http_client *c, const http_answer *a)
{
    put_answer(h, c, a, "");
}

void http_respond_text(http_server *h, http_client *c, const char *text)
{
    put_answer(h, c,
               &(http_answer){.status = 200, .type = json_type, .body = text, .n = strlen(text)},
               "");
}

void http_respond_json(http_server *h, http_client *c, const text_out *body)
{
    refusal r;
    if (!body->full) {
        put_answer(
            h, c,
            &(http_answer){.status = 200, .type = json_type, .body = body->text, .n = body->n}, "");
        return;
    }
    refuse_with(&r, 400,
                "The answer would be longer than the %zu bytes that this server gives a request.",
                h->large_bytes);
    http_refuse(h, c, &r);
}

void http_refuse(http_server *h, http_client *c, const refusal *r)
{
    char text[4096], headers[64] = "";
    text_out out = {.text = text, .capacity = sizeof text};
    answer_refusal(c->n_head ? route_serializer(c->head.path) : NULL, r, &out);
    if (r->retry_s)
        snprintf(headers, sizeof headers, "Retry-After: %d\r\n", r->retry_s);
    put_answer(h, c,
               &(http_answer){.status = r->status,
                              .type = json_type,
                              .headers = headers,
                              .body = out.text,
                              .n = out.n},
               r->fixed);
}

void http_respond_page(http_server *h, http_client *c)
{
    char headers[2048];
    text_out out = {.text = headers, .capacity = sizeof headers};
    out_format(&out,
               "Content-Security-Policy: %s\r\nX-Content-Type-Options: nosniff\r\n"
               "Referrer-Policy: no-referrer\r\nCache-Control: no-cache\r\n",
               page_policy);
    put_answer(h, c,
               &(http_answer){.status = 200,
                              .type = "text/html; charset=utf-8",
                              .headers = out.full ? "" : headers,
                              .body = (const char *)page_html,
                              .n = n_page_html_bytes,
                              .constant = true},
               "");
}
