/* Events: see events.h. */
#include "serve/net/events.h"

#include <stdio.h>

/* Bytes of foreign programs, for a terminal. */
static void put_path(http_span path, char *out, size_t n_out)
{
    size_t n = 0;
    for (size_t i = 0; i < path.n && n + 4 < n_out; i++)
        out[n++] = path.text[i] > ' ' && path.text[i] <= '~' ? path.text[i] : '?';
    out[n] = '\0';
    if (n < path.n)
        snprintf(out + n, n_out - n, "...");
    if (n == 0)
        snprintf(out, n_out, "?");
}

static bool repeats(const http_head *h)
{
    static const char *const paths[] = {"/health", "/v1/health", "/metrics", "/slots"};
    bool asks = h->method == HTTP_GET || h->method == HTTP_HEAD;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (asks && http_path_is(h->path, paths[i]))
            return true;
    return h->method == HTTP_OPTIONS || http_path_is(h->path, "/v1/streams/lookup");
}

serve_event event_of_request(const http_head *h, int status, double seconds)
{
    static const char *const methods[] = {"GET", "POST", "OPTIONS", "HEAD", "DELETE", "?"};
    serve_event e = {.kind = SERVE_REQUEST};
    serve_request *r = &e.of.request;
    snprintf(r->method, sizeof r->method, "%s", methods[h->method]);
    put_path(h->path, r->path, sizeof r->path);
    r->status = status;
    r->repeats = repeats(h) && (status < 400 || status == 503); /* 503: it is being loaded */
    r->seconds = seconds;
    return e;
}
