/* Heads of answers, and who may ask: see network.h. */
#include "serve/net/network.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- Who may ask ---- */

/* In a time that does not depend on where they differ. */
static bool same_key(const char *key, size_t n_key, http_part given)
{
    unsigned char differs = n_key != given.n;
    for (size_t i = 0; i < given.n; i++)
        differs |= (unsigned char)(given.text[i] ^ key[n_key ? i % n_key : 0]);
    return !differs;
}

/* One of the words between commas. All are looked at. */
static bool in_list(const char *list, http_part part, bool secret)
{
    bool found = false;
    while (*list) {
        size_t n = strcspn(list, ",");
        if (secret ? n > 0 && same_key(list, n, part)
                   : n == part.n && strncasecmp(list, part.text, n) == 0)
            found = true;
        list += n + (list[n] == ',');
    }
    return found;
}

static bool has_key(const network *n, const connection *c)
{
    static const char bearer[] = "Bearer ";
    http_part given = c->head.authorization;
    if (given.text && given.n >= sizeof bearer - 1 &&
        strncasecmp(given.text, bearer, sizeof bearer - 1) == 0)
        given = (http_part){given.text + sizeof bearer - 1, given.n - (sizeof bearer - 1)};
    else
        given = c->head.api_key;
    return given.text && in_list(n->options->api_keys, given, true);
}

/* Without the port. */
static http_part host_name(http_part host)
{
    size_t n = host.n;
    const char *end = n && host.text[0] == '[' ? memchr(host.text, ']', n) : NULL;
    if (end)
        n = (size_t)(end - host.text) + 1;
    else
        for (size_t i = 0; i < host.n; i++)
            if (host.text[i] == ':')
                n = i;
    return (http_part){host.text, n};
}

static bool is_local_name(http_part name)
{
    static const char local[] = "localhost";
    size_t n = sizeof local - 1;
    return (name.n == n && strncasecmp(name.text, local, n) == 0) ||
           (name.n > n && name.text[name.n - n - 1] == '.' &&
            strncasecmp(name.text + name.n - n, local, n) == 0);
}

/* Four numbers between dots. */
static bool is_address(http_part name)
{
    char text[64];
    struct in_addr v4;
    if (name.n >= sizeof text)
        return false;
    memcpy(text, name.text, name.n);
    text[name.n] = '\0';
    return inet_pton(AF_INET, text, &v4) == 1;
}

/* A page from elsewhere can have its own name point to this machine; it cannot make its name
 * an address. */
static bool is_our_name(const network *n, http_part host)
{
    http_part name = host_name(host);
    if (name.n == 0 || name.text[0] == '[' || is_local_name(name) ||
        http_part_is(name, n->options->host))
        return true;
    return is_address(name);
}

/* A page that this server itself has sent. */
static bool is_own_page(const connection *c)
{
    http_part origin = c->head.origin, host = c->head.host;
    size_t n = strlen("http://");
    return host.text && origin.n == n + host.n && strncasecmp(origin.text, "http://", n) == 0 &&
           strncasecmp(origin.text + n, host.text, host.n) == 0;
}

/* A page of this machine, by its name or by an address. */
static bool is_local_page(http_part name)
{
    static const char v4[] = "127.";
    return is_local_name(name) || http_part_is(name, "[::1]") ||
           (name.n >= sizeof v4 - 1 && memcmp(name.text, v4, sizeof v4 - 1) == 0 &&
            is_address(name));
}

static bool is_foreign_page_allowed(const network *n, const connection *c)
{
    const char *list = n->options->origins;
    http_part origin = c->head.origin, star = {"*", 1}, local = {"localhost", 9};
    if (!list)
        return false;
    const char *slashes = origin.n > 7 ? memmem(origin.text, origin.n, "://", 3) : NULL;
    http_part host = slashes
                         ? (http_part){slashes + 3, origin.n - (size_t)(slashes + 3 - origin.text)}
                         : (http_part){"", 0};
    return in_list(list, star, false) || in_list(list, origin, false) ||
           (in_list(list, local, false) && host.n && is_local_page(host_name(host)));
}

bool respond_allows(network *n, const connection *c, bool needs_key, refusal *r)
{
    const serve_options *o = n->options;
    if (!o->api_keys && !n->is_unix && c->head.host.text && !is_our_name(n, c->head.host))
        return refuse_with(r, 403,
                           "This server answers to its address and to \"localhost\", not to "
                           "\"%.*s\": start it with an API key to let it have other names.",
                           (int)(c->head.host.n < 100 ? c->head.host.n : 100), c->head.host.text);
    if (c->head.origin.text && !is_own_page(c) && !is_foreign_page_allowed(n, c))
        return refuse_with(r, 403,
                           "Pages of \"%.*s\" may not ask this server: name them when it is "
                           "started.",
                           (int)(c->head.origin.n < 100 ? c->head.origin.n : 100),
                           c->head.origin.text);
    if (needs_key && o->api_keys && !has_key(n, c))
        return refuse_with(r, 401, "Invalid API Key");
    return true;
}

/* ---- Heads ---- */

static void put_head(network *n, connection *c, int status, const char *content_type,
                     const char *headers, text_out *out)
{
    const http_head *h = &c->head;
    out_format(out, "HTTP/1.1 %d %s\r\nServer: drey\r\n", status, http_status_text(status));
    if (content_type)
        out_format(out, "Content-Type: %s\r\n", content_type);
    out_text(out, headers);
    if (h->origin.text && !is_own_page(c) && is_foreign_page_allowed(n, c)) {
        out_text(out, "Access-Control-Allow-Origin: ");
        out_bytes(out, h->origin.text, h->origin.n);
        out_text(out, "\r\nVary: Origin\r\n");
        if (h->method == HTTP_OPTIONS) {
            out_text(out, "Access-Control-Allow-Methods: GET, POST, OPTIONS\r\n"
                          "Access-Control-Allow-Headers: ");
            if (h->asked_headers.text)
                out_bytes(out, h->asked_headers.text, h->asked_headers.n);
            out_text(out, "\r\nAccess-Control-Max-Age: 600\r\n");
        }
    }
    if (!c->keeps)
        out_text(out, "Connection: close\r\n");
    else if (h->http_1_0)
        out_text(out, "Connection: keep-alive\r\n");
}

static text_out begin_out(const connection *c)
{
    return (text_out){.text = c->out, .n = c->n_out, .capacity = CONNECTION_OUT_BYTES};
}

void respond(network *n, connection *c, int status, const char *content_type, const char *headers,
             const char *body, size_t n_body, bool constant)
{
    char *large = NULL;
    bool fits = n_body <= CONNECTION_OUT_BYTES / 2;
    if (!fits && !constant && n_body <= n->n_large)
        large = c->large ? c->large : network_take_large(n);
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
    bool silent = c->head.method == HTTP_HEAD;
    if (fits && !silent)
        out_bytes(&out, body, n_body);
    if (large) {
        memmove(large, body, n_body);
        c->large = large;
        body = large;
    }
    c->n_out = out.n;
    c->more = fits || silent ? NULL : body;
    c->n_more = fits || silent ? 0 : n_body;
    c->all_out = true;
    c->state = CONNECTION_ANSWER;
}

void respond_json(network *n, connection *c)
{
    refusal r;
    if (n->scratch.full) {
        refuse_with(&r, 400,
                    "The answer would be longer than the %zu bytes that this server gives "
                    "a request.",
                    n->n_large);
        respond_refusal(n, c, &r);
        return;
    }
    respond(n, c, 200, "application/json; charset=utf-8", "", n->scratch.text, n->scratch.n, false);
}

void respond_refusal(network *n, connection *c, const refusal *r)
{
    char text[4096], headers[64] = "";
    text_out out = {.text = text, .capacity = sizeof text};
    answer_refusal(r, &out);
    if (r->retry_s)
        snprintf(headers, sizeof headers, "Retry-After: %d\r\n", r->retry_s);
    respond(n, c, r->status, "application/json; charset=utf-8", headers, out.text, out.n, false);
}

void respond_task(network *n, connection *c)
{
    const task *t = c->answer.task;
    text_out out = begin_out(c);
    c->framed = !c->head.http_1_0;
    c->keeps = c->keeps && c->framed;
    put_head(n, c, 200, t->stream ? "text/event-stream" : "application/json; charset=utf-8",
             t->stream ? "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n" : "", &out);
    out_format(&out, "X-Request-Id: %s\r\n", t->id.text);
    out_text(&out, c->framed ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    c->n_out = out.n;
    c->head_out = true;
}
