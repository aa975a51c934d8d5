/* Property: any bytes are a head (whose parts lie within it), an unfinished one, or refused with a
 * status and a sentence; cut anywhere, a whole head is unfinished or refused before; and the bytes
 * after it, read as a chunked body, give the same result however they are cut, and never more than
 * its room. */
#include "fuzz/fuzz.h"
#include "serve/net/http.h"

#include <string.h>

static void check_part(http_span p, const uint8_t *bytes, size_t n)
{
    const char *from = (const char *)bytes;
    FUZZ_CHECK(!p.text || (p.text >= from && p.text + p.n <= from + n));
}

static void check_head(const uint8_t *bytes, size_t n, const http_head *h)
{
    check_part(h->path, bytes, n);
    check_part(h->query, bytes, n);
    check_part(h->host, bytes, n);
    check_part(h->origin, bytes, n);
    check_part(h->authorization, bytes, n);
    check_part(h->api_key, bytes, n);
    check_part(h->conversation, bytes, n);
    check_part(h->asked_headers, bytes, n);
    FUZZ_CHECK(h->path.n >= 1 && (h->path.text[0] == '/' || http_span_is(h->path, "*")));
    FUZZ_CHECK(http_path_front(h->path, "/a/") <= h->path.n);
    FUZZ_CHECK(!h->chunked || h->n_body == 0);
    http_span value = http_query(h->query, "a");
    check_part(value, bytes, n);
}

enum { ROOM = 300 };

/* The body of in[0..n), read in pieces of at most `piece` bytes. */
static http_result read_body(const uint8_t *in, size_t n, size_t piece, char *body, size_t *n_body,
                             size_t *n_used)
{
    http_chunks chunks = {0};
    http_result result = HTTP_UNFINISHED;
    *n_body = *n_used = 0;
    while (*n_used < n && result == HTTP_UNFINISHED) {
        size_t used, got, left = n - *n_used;
        int status = 0;
        result = http_read_chunks(&chunks, (const char *)in + *n_used, left < piece ? left : piece,
                                  &used, body + *n_body, ROOM - *n_body, &got, &status);
        if (result == HTTP_BAD) {
            FUZZ_CHECK(status == 400 || status == 413);
            return result;
        }
        *n_used += used;
        *n_body += got;
        FUZZ_CHECK(*n_used <= n && *n_body <= ROOM);
    }
    return result;
}

static void check_body(const uint8_t *in, size_t n)
{
    char whole[ROOM], cut[ROOM];
    size_t n_whole, n_cut, used_whole, used_cut;
    http_result a = read_body(in, n, n, whole, &n_whole, &used_whole);
    http_result b = read_body(in, n, 1, cut, &n_cut, &used_cut);
    FUZZ_CHECK(a == b);
    if (a == HTTP_BAD)
        return;
    FUZZ_CHECK(n_whole == n_cut && used_whole == used_cut && memcmp(whole, cut, n_cut) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    http_head head, part;
    size_t n_used = 0, n_part;
    int status;
    const char *why = NULL;
    uint8_t *exact = fuzz_copy(bytes, n_bytes);
    http_result result =
        http_read_head((const char *)exact, n_bytes, &head, &n_used, &status, &why);
    if (result == HTTP_BAD) {
        FUZZ_CHECK((status == 400 || status == 501 || status == 505) && why && strlen(why) > 10);
        FUZZ_CHECK(strcmp(http_status_text(status), "Error") != 0);
    } else if (result == HTTP_DONE) {
        FUZZ_CHECK(n_used <= n_bytes && n_used >= 16);
        check_head(exact, n_used, &head);
        for (size_t n = 0; n < n_used; n++)
            FUZZ_CHECK(http_read_head((const char *)exact, n, &part, &n_part, &status, &why) ==
                       HTTP_UNFINISHED);
    }
    check_body(exact + n_used, n_bytes - n_used);
    free(exact);
    return 0;
}
