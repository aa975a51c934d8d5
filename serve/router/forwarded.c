/* Requests on their way: see forwarded.h. */
#include "serve/router/forwarded.h"

#include <string.h>

/* The string of the last event. False: it does not fit, or holds a NUL. */
static bool copy_text(json_reader *reader, char *name, size_t n_name)
{
    json_part part;
    size_t n = 0;
    while (json_next_part(reader, &part)) {
        if (part.n >= n_name - n || memchr(part.bytes, 0, part.n))
            return false;
        memcpy(name + n, part.bytes, part.n);
        n += part.n;
    }
    name[n] = '\0';
    return true;
}

static asked_model named(json_reader *reader, json_event value, char *name, size_t n_name)
{
    if (value == JSON_NULL)
        return ASKED_NONE;
    return value == JSON_STRING && copy_text(reader, name, n_name) ? ASKED_NAME : ASKED_OTHER;
}

static bool is_model_key(json_reader *reader)
{
    char key[8];
    return reader->n_levels == 1 && copy_text(reader, key, sizeof key) && strcmp(key, "model") == 0;
}

asked_model forwarded_model(const char *body, size_t n, char *name, size_t n_name, const char **why,
                            size_t *at)
{
    static const char mark[] = "\xEF\xBB\xBF"; /* as the server reads past it */
    size_t n_mark = n >= 3 && memcmp(body, mark, 3) == 0 ? 3 : 0;
    asked_model found = ASKED_NONE;
    json_reader reader;
    bool is_key = false;
    json_reader_init(&reader, body + n_mark, n - n_mark, JSON_MOST_DEPTH);
    reader.half_pairs = true; /* as in json_parse */
    for (json_event e = json_next(&reader); e != JSON_DONE; e = json_next(&reader)) {
        if (e == JSON_BROKEN) {
            *why = reader.why;
            *at = reader.why_at;
            return ASKED_BROKEN;
        }
        if (is_key)
            found = named(&reader, e, name, n_name);
        is_key = e == JSON_KEY && is_model_key(&reader);
    }
    return found;
}

static void put_part(text_out *out, const char *key, http_span part)
{
    if (!part.text)
        return;
    out_text(out, key);
    out_bytes(out, part.text, part.n);
    out_text(out, "\r\n");
}

void forwarded_head(const http_head *h, const char *bytes, size_t n_body, text_out *out)
{
    size_t n_method = strcspn(bytes, " ");
    out_bytes(out, bytes, n_method + 1);
    out_bytes(out, h->path.text, h->path.n);
    if (h->query.text) {
        out_text(out, "?");
        out_bytes(out, h->query.text, h->query.n);
    }
    out_text(out, h->http_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    put_part(out, "Host: ", h->host.text ? h->host : (http_span){"localhost", 9});
    put_part(out, "Origin: ", h->origin);
    put_part(out, "Authorization: ", h->authorization);
    put_part(out, "X-Api-Key: ", h->api_key);
    put_part(out, "X-Conversation-Id: ", h->conversation);
    if (n_body > 0 || h->method == HTTP_POST)
        out_format(out, "Content-Length: %zu\r\n", n_body);
    out_text(out, "Connection: close\r\n\r\n");
}
