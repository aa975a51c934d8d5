/* HTTP/1.1: see http.h. RFC 9112, what a server of small requests needs of it. */
#include "serve/net/http.h"

#include <string.h>
#include <strings.h>

#include "common/hex.h"

/* ---- Characters ---- */

static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_text(char c)
{
    unsigned char u = (unsigned char)c;
    return c == '\t' || (u >= 0x20 && u != 0x7F);
}

bool http_span_is(http_span part, const char *text)
{
    return part.text && part.n == strlen(text) && memcmp(part.text, text, part.n) == 0;
}

static bool is_word(http_span part, const char *word)
{
    return part.n == strlen(word) && strncasecmp(part.text, word, part.n) == 0;
}

/* ---- The request line ---- */

typedef struct reading {
    http_head *head;
    int *status;
    const char **why;
    bool has_length;
    http_span connection, authority; /* authority: of the request line */
} reading;

static bool refuse(reading *r, int status, const char *why)
{
    *r->status = status;
    *r->why = why;
    return false;
}

static http_span next_word(http_span *line)
{
    const char *blank = memchr(line->text, ' ', line->n);
    http_span word = {line->text, blank ? (size_t)(blank - line->text) : line->n};
    size_t used = word.n + (blank != NULL);
    *line = (http_span){line->text + used, line->n - used};
    return word;
}

static http_method method_of(http_span word)
{
    static const char *const names[] = {"GET", "POST", "OPTIONS", "HEAD", "DELETE"};
    for (int i = 0; i < HTTP_OTHER; i++)
        if (http_span_is(word, names[i]))
            return (http_method)i;
    return HTTP_OTHER;
}

/* "http://host/path": the target follows the host. */
static bool read_authority(reading *r, http_span *target)
{
    static const char *const schemes[] = {"http://", "https://"};
    size_t n = 0, end;
    for (int i = 0; i < 2; i++)
        if (target->n >= strlen(schemes[i]) &&
            strncasecmp(target->text, schemes[i], strlen(schemes[i])) == 0)
            n = strlen(schemes[i]);
    if (n == 0)
        return refuse(r, 400, "The request's target has to begin with \"/\".");
    for (end = n; end < target->n && !strchr("/?", target->text[end]); end++)
        if (target->text[end] == '@')
            return refuse(r, 400, "The request's target holds a user's name.");
    if (end == n)
        return refuse(r, 400, "The request's target names no host.");
    r->authority = (http_span){target->text + n, end - n};
    *target = (http_span){target->text + end, target->n - end};
    return true;
}

static bool read_target(reading *r, http_span target)
{
    http_head *h = r->head;
    for (size_t i = 0; i < target.n; i++)
        if ((unsigned char)target.text[i] <= 0x20 || target.text[i] == 0x7F)
            return refuse(r, 400, "The request's target holds a control character.");
    bool everything = h->method == HTTP_OPTIONS && http_span_is(target, "*");
    if (!everything && (target.n == 0 || target.text[0] != '/') && !read_authority(r, &target))
        return false;
    const char *mark = memchr(target.text, '?', target.n);
    h->path = (http_span){target.text, mark ? (size_t)(mark - target.text) : target.n};
    if (h->path.n == 0) /* a host alone: the last "/" in front of it */
        h->path = (http_span){r->authority.text - 1, 1};
    if (mark)
        h->query = (http_span){mark + 1, (size_t)(target.text + target.n - mark) - 1};
    return true;
}

static bool read_request_line(reading *r, http_span line)
{
    http_span method = next_word(&line), target = next_word(&line), version = line;
    if (method.n == 0)
        return refuse(r, 400, "The request line has no method.");
    for (size_t i = 0; i < method.n; i++)
        if (!is_token(method.text[i]))
            return refuse(r, 400, "This is no HTTP request.");
    r->head->method = method_of(method);
    if (!read_target(r, target))
        return false;
    r->head->http_1_0 = http_span_is(version, "HTTP/1.0");
    if (r->head->http_1_0 || http_span_is(version, "HTTP/1.1"))
        return true;
    if (version.n > 5 && memcmp(version.text, "HTTP/", 5) == 0)
        return refuse(r, 505, "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
    return refuse(r, 400, "The request line has no HTTP version.");
}

/* ---- Headers ---- */

static bool read_length(reading *r, http_span value)
{
    uint64_t n = 0;
    if (value.n == 0 || value.n > 18)
        return refuse(r, 400, "Content-Length is no number of bytes.");
    for (size_t i = 0; i < value.n; i++) {
        if (value.text[i] < '0' || value.text[i] > '9')
            return refuse(r, 400, "Content-Length is no number of bytes.");
        n = n * 10 + (uint64_t)(value.text[i] - '0');
    }
    if (r->has_length)
        return refuse(r, 400, "Content-Length is given twice.");
    r->has_length = true;
    r->head->n_body = n;
    return true;
}

static bool take_once(reading *r, http_span *place, http_span value)
{
    if (place->text)
        return refuse(r, 400, "A header that is allowed once is given twice.");
    *place = value;
    return true;
}

static bool take_header(reading *r, http_span name, http_span value)
{
    http_head *h = r->head;
    if (is_word(name, "Content-Length"))
        return read_length(r, value);
    if (is_word(name, "Transfer-Encoding")) {
        if (h->chunked || !is_word(value, "chunked"))
            return refuse(r, 501, "Of transfer encodings only \"chunked\" is known here.");
        h->chunked = true;
        return true;
    }
    if (is_word(name, "Connection")) {
        r->connection = value;
        return true;
    }
    if (is_word(name, "Expect")) {
        h->expects = is_word(value, "100-continue");
        return true;
    }
    if (is_word(name, "Host"))
        return take_once(r, &h->host, value);
    if (is_word(name, "Origin"))
        return take_once(r, &h->origin, value);
    if (is_word(name, "Authorization"))
        return take_once(r, &h->authorization, value);
    if (is_word(name, "X-Api-Key"))
        return take_once(r, &h->api_key, value);
    if (is_word(name, "X-Conversation-Id"))
        return take_once(r, &h->conversation, value);
    if (is_word(name, "Access-Control-Request-Headers"))
        return take_once(r, &h->asked_headers, value);
    return true;
}

static bool read_header(reading *r, http_span line)
{
    const char *colon = memchr(line.text, ':', line.n);
    if (!colon || colon == line.text)
        return refuse(r, 400, "A header line has no name.");
    http_span name = {line.text, (size_t)(colon - line.text)};
    http_span value = {colon + 1, line.n - name.n - 1};
    for (size_t i = 0; i < name.n; i++)
        if (!is_token(name.text[i]))
            return refuse(r, 400, "A header's name holds a character that names have not.");
    for (size_t i = 0; i < value.n; i++)
        if (!is_text(value.text[i]))
            return refuse(r, 400, "A header's value holds a control character.");
    while (value.n && (*value.text == ' ' || *value.text == '\t'))
        value = (http_span){value.text + 1, value.n - 1};
    while (value.n && (value.text[value.n - 1] == ' ' || value.text[value.n - 1] == '\t'))
        value.n--;
    return take_header(r, name, value);
}

/* "close" or "keep-alive" among the words between commas. */
static bool names(http_span list, const char *word)
{
    size_t n_word = strlen(word);
    for (size_t i = 0; i + n_word <= list.n; i++) {
        bool begins = i == 0 || strchr(", \t", list.text[i - 1]);
        bool ends = i + n_word == list.n || strchr(", \t", list.text[i + n_word]);
        if (begins && ends && strncasecmp(list.text + i, word, n_word) == 0)
            return true;
    }
    return false;
}

/* A line ends with CR LF; false: none does yet, or (with a status) a lone LF does. */
static bool next_line(reading *r, http_span *rest, http_span *line)
{
    const char *end = memchr(rest->text, '\n', rest->n);
    if (!end)
        return false;
    size_t n = (size_t)(end - rest->text);
    if (n == 0 || end[-1] != '\r')
        return refuse(r, 400, "A line of the request's head does not end with CR LF.");
    *line = (http_span){rest->text, n - 1};
    *rest = (http_span){end + 1, rest->n - n - 1};
    return true;
}

static bool finish_head(reading *r)
{
    http_head *h = r->head;
    if (h->chunked && r->has_length)
        return refuse(r, 400, "The body has both a length and chunks.");
    if (h->chunked && h->http_1_0)
        return refuse(r, 400, "HTTP/1.0 has no chunks.");
    if (!h->host.text && !h->http_1_0)
        return refuse(r, 400, "The header Host is missing.");
    if (r->authority.text)
        h->host = r->authority;
    h->keep_alive = h->http_1_0 ? r->connection.text && names(r->connection, "keep-alive")
                                : !(r->connection.text && names(r->connection, "close"));
    return true;
}

http_result http_read_head(const char *bytes, size_t n, http_head *head, size_t *n_used,
                           int *status, const char **why)
{
    http_span rest = {bytes, n}, line;
    reading r = {.head = head, .status = status, .why = why};
    int n_lines = 0;
    *head = (http_head){.method = HTTP_OTHER};
    *status = 0;
    if (n >= 2 && bytes[0] == 0x16 && bytes[1] == 0x03) { /* the first record of TLS */
        refuse(&r, 400, "This server speaks HTTP without TLS: write http:// in place of https://.");
        return HTTP_BAD;
    }
    /* Some clients send an empty line after a body; one is passed over. */
    if (rest.n >= 2 && memcmp(rest.text, "\r\n", 2) == 0)
        rest = (http_span){bytes + 2, n - 2};
    while (next_line(&r, &rest, &line)) {
        if (line.n == 0) {
            if (n_lines == 0 && !refuse(&r, 400, "The request line is empty."))
                return HTTP_BAD;
            *n_used = (size_t)(rest.text - bytes);
            return finish_head(&r) ? HTTP_DONE : HTTP_BAD;
        }
        if (n_lines > HTTP_MAX_HEADERS && !refuse(&r, 400, "The request has too many headers."))
            return HTTP_BAD;
        if (!(n_lines++ == 0 ? read_request_line(&r, line) : read_header(&r, line)))
            return HTTP_BAD;
    }
    return *status ? HTTP_BAD : HTTP_UNFINISHED;
}

/* ---- Chunks ---- */

enum { /* states: where the next byte stands */
       AT_SIZE,
       IN_SIZE,
       IN_EXTENSION,
       SIZE_LF,
       IN_DATA,
       DATA_CR,
       DATA_LF,
       TRAILER_START,
       IN_TRAILER,
       TRAILER_LF,
       LAST_LF
};

/* Lines of sizes and trailers are not kept, but neither are they endless. */
enum { MOST_LINE_BYTES = 4096 };

static bool size_byte(http_chunks *c, char byte)
{
    int digit = hex_digit(byte);
    if (digit >= 0) {
        c->left = c->left * 16 + (uint64_t)digit;
        c->state = IN_SIZE;
        return c->left < UINT64_C(1) << 48;
    }
    if (c->state == AT_SIZE || (byte != '\r' && byte != ';' && byte != ' ' && byte != '\t'))
        return false;
    c->state = byte == '\r' ? SIZE_LF : IN_EXTENSION;
    return true;
}

/* A byte that is none of the body's. False: it is not allowed there. *done: it was the last. */
static bool frame_byte(http_chunks *c, char byte, bool *done)
{
    if (c->n_line++ > MOST_LINE_BYTES)
        return false;
    switch (c->state) {
    case AT_SIZE:
    case IN_SIZE:
        return size_byte(c, byte);
    case IN_EXTENSION:
        c->state = byte == '\r' ? SIZE_LF : IN_EXTENSION;
        return byte == '\r' || is_text(byte);
    case SIZE_LF:
        c->state = c->left ? IN_DATA : TRAILER_START;
        return byte == '\n';
    case DATA_CR:
        c->state = DATA_LF;
        return byte == '\r';
    case DATA_LF:
        *c = (http_chunks){.state = AT_SIZE};
        return byte == '\n';
    case TRAILER_START:
    case IN_TRAILER:
        c->state = byte != '\r' ? IN_TRAILER : c->state == TRAILER_START ? LAST_LF : TRAILER_LF;
        return byte == '\r' || is_text(byte);
    case TRAILER_LF:
        c->state = TRAILER_START;
        return byte == '\n';
    default: /* LAST_LF */
        *done = true;
        return byte == '\n';
    }
}

http_result http_read_chunks(http_chunks *c, const char *in, size_t n_in, size_t *n_used, char *out,
                             size_t capacity, size_t *n_out, int *status)
{
    size_t i = 0;
    bool done = false;
    *n_out = 0;
    while (i < n_in && !done) {
        if (c->state == IN_DATA) {
            size_t n = n_in - i < c->left ? n_in - i : (size_t)c->left;
            if (n > capacity - *n_out) {
                *status = 413;
                return HTTP_BAD;
            }
            memmove(out + *n_out, in + i, n);
            *n_out += n;
            i += n;
            c->left -= n;
            if (c->left == 0)
                c->state = DATA_CR;
        } else if (!frame_byte(c, in[i++], &done)) {
            *status = 400;
            return HTTP_BAD;
        }
    }
    *n_used = i;
    return done ? HTTP_DONE : HTTP_UNFINISHED;
}

/* ---- The rest ---- */

size_t http_path_front(http_span path, const char *front)
{
    size_t i = 0;
    for (; *front; front++) {
        if (i >= path.n)
            return 0;
        int byte = hex_percent(path.text + i, path.n - i);
        char c = byte < 0 ? path.text[i] : (char)byte;
        if (c != *front)
            return 0;
        i += byte < 0 ? 1 : 3;
    }
    return i;
}

bool http_path_is(http_span path, const char *text)
{
    return http_path_front(path, text) == path.n;
}

bool http_decode(http_span part, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < part.n; n++) {
        int byte = hex_percent(part.text + i, part.n - i);
        if (n + 1 >= room || byte == 0 || !part.text[i])
            return false;
        out[n] = byte < 0 ? part.text[i] : (char)byte;
        i += byte < 0 ? 1 : 3;
    }
    out[n] = '\0';
    return true;
}

http_span http_query(http_span query, const char *key)
{
    size_t n_key = strlen(key);
    for (size_t i = 0; i < query.n;) {
        const char *end = memchr(query.text + i, '&', query.n - i);
        size_t n = end ? (size_t)(end - query.text) - i : query.n - i;
        if (n > n_key && query.text[i + n_key] == '=' && memcmp(query.text + i, key, n_key) == 0)
            return (http_span){query.text + i + n_key + 1, n - n_key - 1};
        i += n + 1;
    }
    return (http_span){NULL, 0};
}

const char *http_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {{200, "OK"},
                 {204, "No Content"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {408, "Request Timeout"},
                 {413, "Content Too Large"},
                 {431, "Request Header Fields Too Large"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {503, "Service Unavailable"},
                 {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "Error";
}
