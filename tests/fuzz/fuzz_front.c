/* Property: of any request that is a head, the head that a model's process gets is read as the same
 * request, and nothing comes after it; and the model that any body names is the one that the
 * process would read there, or the body is refused as the process refuses it. */
#include "fuzz/fuzz.h"
#include "serve/router/forwarded.h"

#include <string.h>

enum { MOST_VALUES = 4096, ROOM = 32 << 10, NAME_BYTES = 128 };

static json_value values[MOST_VALUES];

static bool same(http_span a, http_span b)
{
    return (a.text != NULL) == (b.text != NULL) && a.n == b.n &&
           (a.n == 0 || memcmp(a.text, b.text, a.n) == 0);
}

static void check_head(const char *bytes, size_t n, const http_head *h, size_t n_body)
{
    static char room[ROOM];
    text_out out = {.text = room, .capacity = sizeof room};
    forwarded_head(h, bytes, n_body, &out);
    FUZZ_CHECK(!out.full && out.n < n + FORWARDED_MORE);
    char *copy = fuzz_copy(room, out.n);
    http_head again;
    size_t n_used;
    int status;
    const char *why;
    FUZZ_CHECK(http_read_head(copy, out.n, &again, &n_used, &status, &why) == HTTP_DONE);
    FUZZ_CHECK(n_used == out.n && again.method == h->method && again.n_body == n_body);
    FUZZ_CHECK(!again.chunked && !again.keep_alive && again.http_1_0 == h->http_1_0);
    FUZZ_CHECK(same(again.path, h->path) && same(again.query, h->query));
    FUZZ_CHECK(same(again.host, h->host) || !h->host.text);
    FUZZ_CHECK(same(again.origin, h->origin) && same(again.authorization, h->authorization) &&
               same(again.api_key, h->api_key) && same(again.conversation, h->conversation));
    free(copy);
}

static void check_body(const char *bytes, size_t n)
{
    char name[NAME_BYTES] = "";
    const char *why = NULL;
    size_t at = n + 1;
    char *text = fuzz_copy(bytes, n);
    asked_model asked = forwarded_model(text, n, name, sizeof name, &why, &at);
    size_t n_mark = n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    json_values v = {.values = values, .capacity = MOST_VALUES};
    const json_value *body = json_parse(&v, text + n_mark, n - n_mark);
    const json_value *model = json_member(body, "model");
    if (asked == ASKED_BROKEN)
        FUZZ_CHECK(!body && why && strlen(why) > 5 && at <= n);
    else if (asked == ASKED_NAME && body)
        FUZZ_CHECK(model && model->type == JSON_STRING && strcmp(model->text, name) == 0);
    else if (asked == ASKED_OTHER && body)
        FUZZ_CHECK(model && (model->type != JSON_STRING || model->n >= NAME_BYTES ||
                             memchr(model->text, 0, model->n)));
    else if (asked == ASKED_NONE)
        FUZZ_CHECK(!model);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    http_head head;
    size_t n_used = 0;
    int status;
    const char *why;
    char *exact = fuzz_copy(bytes, n_bytes);
    if (n_bytes < ROOM / 2 &&
        http_read_head(exact, n_bytes, &head, &n_used, &status, &why) == HTTP_DONE)
        check_head(exact, n_used, &head, n_bytes - n_used);
    check_body(exact + n_used, n_bytes - n_used);
    free(exact);
    return 0;
}
