/* Reading from web servers: see transfer.h.
 *
 * curl writes a reply's body to its standard output, and the heads of all replies, those of
 * redirects as well, to its standard error, where its own errors follow. A head is complete there
 * before the first byte of its body comes.
 *
 * curl's own retries are not used: they begin again where the first one began. Its settings file is
 * not read, because options there could change what is written where; its variables for proxies
 * and certificates count. Brackets and braces in a URL are characters like others. The token is
 * given to it on its standard input, where no list of processes shows it; curl sends it to no other
 * host. */
#include "cli/pull/transfer.h"

#include "cli/pull/program.h"
#include "cli/terminal/signals.h"
#include "common/size_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WORDS = 40, MOST_TEXT = 8 << 20, MOST_SAID = 64 << 10, MOST_TRIES = 6 };
enum { PIECE_BYTES = 64 << 10 };
/* No file is longer, so that sums of lengths do not overflow. */
static const uint64_t longest_file = (uint64_t)1 << 50;

/* curl's exit code for a reply that says that there is no file. */
enum { CURL_HTTP = 22 };

typedef enum asking { ASK_TEXT, ASK_BEGINNING, ASK_REST } asking;

typedef struct request {
    asking what;
    const transfer *transfer;
    const char *url;
    new_file *to;
    uint64_t first, end; /* range of bytes to ask for; both 0: all, whatever their number */
    remote_file file;    /* as it is known, for ASK_REST */
    transfer_progress *show;
    void *user;
    const char *words[MOST_WORDS];
    int n_words;
    char seconds[16], range[64];
    /* The reply. */
    char said[MOST_SAID]; /* heads and errors, NUL-terminated */
    size_t n_said;
    bool has_head, is_enough;
    int code; /* curl's exit code */
    /* positions where its body begins, the next byte belongs, and it has to end */
    uint64_t from, at, limit;
} request;

static void add(request *r, const char *word)
{
    r->words[r->n_words++] = word;
    r->words[r->n_words] = NULL;
}

static void add_words(request *r)
{
    static const char *const usual[] = {"curl",
                                        "-q",
                                        "-sS",
                                        "-L",
                                        "-N",
                                        "--globoff",
                                        "--fail",
                                        "--suppress-connect-headers",
                                        "-D",
                                        "/dev/stderr",
                                        "--proto",
                                        "=http,https",
                                        "--proto-redir",
                                        "=http,https",
                                        "--max-redirs",
                                        "8",
                                        "--connect-timeout",
                                        "20",
                                        "--speed-limit",
                                        "1",
                                        "-K",
                                        "-"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        add(r, usual[i]);
    snprintf(r->seconds, sizeof r->seconds, "%d", r->transfer->timeout_s);
    add(r, "--speed-time");
    add(r, r->seconds);
    if (r->what == ASK_BEGINNING)
        snprintf(r->range, sizeof r->range, "0-%llu", (unsigned long long)r->end - 1);
    else
        snprintf(r->range, sizeof r->range, "%llu-", (unsigned long long)r->first);
    if (r->what == ASK_BEGINNING || r->first > 0) {
        add(r, "-r");
        add(r, r->range);
    }
    add(r, "--url");
    add(r, r->url);
}

static drey_status start(program *c, request *r, drey_error *err)
{
    add_words(r);
    TRY(program_start(c, (char *const *)r->words, -1, err));
    if (r->transfer->token)
        dprintf(c->input, "header = \"Authorization: Bearer %s\"\n", r->transfer->token);
    close(c->input);
    c->input = -1;
    return DREY_OK;
}

/* ---- Heads ---- */

/* Returns the status of the last reply; 0: there is none. */
static int status_of(const char *said)
{
    int status = 0;
    for (const char *line = said; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "HTTP/", 5) == 0 && sscanf(line, "%*s %3d", &status) != 1)
            status = 0;
    }
    return status;
}

/* The value of a header's line of the last reply, "" if it has none. */
static void header_value(const char *said, const char *name, char *out, size_t room)
{
    size_t n = strlen(name);
    *out = '\0';
    for (const char *line = said; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "HTTP/", 5) == 0)
            *out = '\0';
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        const char *value = line + n + 1 + strspn(line + n + 1, " \t");
        snprintf(out, room, "%.*s", (int)strcspn(value, "\r\n"), value);
    }
}

/* Reads digits, and moves the place after them. False: there are none, or it is no length. */
static bool read_length(const char **at, uint64_t *n)
{
    const char *digit = *at;
    *n = 0;
    for (; *digit >= '0' && *digit <= '9' && *n <= longest_file; digit++)
        *n = *n * 10 + (uint64_t)(*digit - '0');
    bool good = digit > *at && *n <= longest_file;
    *at = digit;
    return good;
}

/* Reads "bytes FIRST-LAST/TOTAL". *n_bytes: 0 if the total is not said, "*". */
static bool read_range(const char *value, uint64_t *first, uint64_t *end, uint64_t *n_bytes)
{
    const char *at = value + 6;
    *n_bytes = 0;
    if (strncasecmp(value, "bytes ", 6) != 0 || !read_length(&at, first) || *at++ != '-' ||
        !read_length(&at, end) || *at++ != '/' || *end < *first)
        return false;
    (*end)++;
    return strcmp(at, "*") == 0 || (read_length(&at, n_bytes) && !*at && *end <= *n_bytes);
}

/* Reads from the head what the file is, and which of its bytes follow. */
static drey_status read_head(request *r, remote_file *file, drey_error *err)
{
    char value[128];
    const char *at = value;
    int status = status_of(r->said);
    *file = (remote_file){.in_parts = status == 206};
    header_value(r->said, "etag", file->version, sizeof file->version);
    r->at = 0;
    if (status < 200 || status > 299)
        FAIL(err, DREY_ERR_IO, "%.200s: the server answers with the status %d", r->url, status);
    if (status == 206) {
        header_value(r->said, "content-range", value, sizeof value);
        if (!read_range(value, &r->at, &r->limit, &file->n_bytes) || r->at != r->first ||
            r->limit > r->end)
            FAIL(err, DREY_ERR_IO, "%.200s: the server sends other bytes than were asked for",
                 r->url);
        return DREY_OK;
    }
    header_value(r->said, "content-length", value, sizeof value);
    if (!read_length(&at, &file->n_bytes) || *at)
        file->n_bytes = 0;
    return DREY_OK;
}

/* Compares versions, of which none may be known. A weak ETag differs by its mark alone. */
static bool differ(const char *a, const char *b)
{
    a += strncmp(a, "W/", 2) == 0 ? 2 : 0;
    b += strncmp(b, "W/", 2) == 0 ? 2 : 0;
    return *a && *b && strcmp(a, b) != 0;
}

/* Takes the head, before the body or at the end of a reply without one. */
static drey_status take_head(request *r, drey_error *err)
{
    remote_file file;
    r->has_head = true;
    TRY(read_head(r, &file, err));
    if (r->what == ASK_TEXT) {
        r->limit = MOST_TEXT;
    } else if (r->what == ASK_BEGINNING) {
        r->file = file;
        r->is_enough = !file.in_parts;
    } else {
        if ((file.n_bytes && file.n_bytes != r->file.n_bytes) ||
            differ(file.version, r->file.version))
            FAIL(err, DREY_ERR_IO, "%.200s: the file on the server has just changed; try again",
                 r->url);
        if (!file.in_parts)
            r->limit = r->file.n_bytes;
        if (!file.in_parts && r->first > 0 && ftruncate(r->to->fd, 0) != 0)
            FAIL(err, DREY_ERR_IO, "what has come cannot be removed: %s", strerror(errno));
    }
    r->from = r->at;
    return DREY_OK;
}

/* ---- Requests ---- */

static uint64_t bytes_in(const new_file *f)
{
    struct stat s;
    return fstat(f->fd, &s) == 0 ? (uint64_t)s.st_size : 0;
}

static drey_status take_said(request *r, program *c, drey_error *err)
{
    for (size_t n = 1; n > 0;) {
        n = program_read(&c->said, r->said + r->n_said, MOST_SAID - 1 - r->n_said);
        r->n_said += n;
        r->said[r->n_said] = '\0';
        if (r->n_said == MOST_SAID - 1)
            FAIL(err, DREY_ERR_IO, "%.200s: the server's head is longer than %s", r->url,
                 SIZE_TEXT(MOST_SAID));
    }
    return DREY_OK;
}

/* Writes some of the body. What an answer that is too long has brought is removed. */
static drey_status take_body(request *r, program *c, drey_error *err)
{
    char piece[PIECE_BYTES];
    size_t n = program_read(&c->out, piece, sizeof piece);
    if (n > 0 && !r->has_head)
        TRY(take_head(r, err));
    if (n == 0 || r->is_enough)
        return DREY_OK;
    if (n > r->limit - r->at) {
        if (ftruncate(r->to->fd, (off_t)r->from) != 0)
            FAIL(err, DREY_ERR_IO, "what has come cannot be removed: %s", strerror(errno));
        FAIL(
            err, DREY_ERR_IO,
            "%.200s: the server sends more than the %llu bytes that were expected, and was stopped",
            r->url, (unsigned long long)(r->limit - r->from));
    }
    TRY(new_file_write(r->to, r->at, piece, n, err));
    r->at += n;
    if (r->show)
        r->show(r->user, r->at);
    return DREY_OK;
}

static drey_status take_all(request *r, program *c, drey_error *err)
{
    bool has_out;
    while (!r->is_enough && program_wait(c, &has_out)) {
        if (signals_exit_code())
            return DREY_ERR_CANCELLED;
        TRY(take_said(r, c, err));
        if (has_out)
            TRY(take_body(r, c, err));
    }
    return signals_exit_code() ? DREY_ERR_CANCELLED : DREY_OK;
}

/* DREY_OK: curl has ended with r->code, or enough has come. DREY_ERR_CANCELLED: a signal came. */
static drey_status ask(request *r, drey_error *err)
{
    program c;
    TRY(start(&c, r, err));
    drey_status status = take_all(r, &c, err);
    if (status != DREY_OK || r->is_enough) {
        program_stop(&c);
        return status;
    }
    r->code = program_end(&c);
    return r->code || r->has_head ? DREY_OK : take_head(r, err);
}

/* Copies curl's own sentence. */
static void find_sentence(const request *r, char *out, size_t room)
{
    const char *why = NULL;
    for (const char *at = r->said; (at = strstr(at, "curl: (")); at++)
        if ((at == r->said || at[-1] == '\n') && strstr(at, ") "))
            why = strstr(at, ") ") + 2;
    if (why)
        snprintf(out, room, "%.*s", (int)strcspn(why, "\r\n"), why);
    else
        snprintf(out, room, "curl ended with the code %d", r->code);
}

/* Reports why a request failed. */
static drey_status failed(const request *r, drey_error *err)
{
    char why[200];
    int status = r->code == CURL_HTTP ? status_of(r->said) : 0;
    find_sentence(r, why, sizeof why);
    if (status == 401 || status == 403)
        FAIL(err, DREY_ERR_IO, "%.200s: %.120s; %s", r->url, why,
             r->transfer->token
                 ? "the token in HF_TOKEN may not read it"
                 : "if a model has conditions, accept them there and put a token into HF_TOKEN");
    FAIL(err, DREY_ERR_IO, "%.200s: %s", r->url, why);
}

/* ---- What is asked for ---- */

static drey_status take_text(const transfer *t, const char *url, new_file *to, char **text,
                             drey_error *err)
{
    request r = {.what = ASK_TEXT, .transfer = t, .url = url, .to = to};
    TRY(ask(&r, err));
    if (r.code)
        return failed(&r, err);
    *text = malloc(r.at + 1);
    if (!*text)
        FAIL(err, DREY_ERR_MEMORY, "out of memory");
    ssize_t n = pread(to->fd, *text, r.at, 0);
    (*text)[n > 0 ? n : 0] = '\0';
    return DREY_OK;
}

drey_status transfer_text(const transfer *t, const char *url, char **text, drey_error *err)
{
    char name[] = "the list";
    new_file to = {.fd = memfd_create("list", MFD_CLOEXEC), .path = name};
    *text = NULL;
    if (to.fd < 0)
        FAIL(err, DREY_ERR_MEMORY, "no memory to read %.200s: %s", url, strerror(errno));
    drey_status status = take_text(t, url, &to, text, err);
    close(to.fd);
    return status;
}

drey_status transfer_beginning(const transfer *t, const char *url, new_file *to, uint64_t n,
                               remote_file *about, drey_error *err)
{
    request r = {.what = ASK_BEGINNING, .transfer = t, .url = url, .to = to, .end = n};
    TRY(ask(&r, err));
    if (r.code)
        return failed(&r, err);
    *about = r.file;
    return DREY_OK;
}

/* Returns whether another try may succeed. */
static bool may_pass(const request *r)
{
    static const int passing[] = {408, 425, 429, 500, 502, 503, 504};
    for (size_t i = 0; r->code == CURL_HTTP && i < sizeof passing / sizeof *passing; i++)
        if (status_of(r->said) == passing[i])
            return true;
    return r->code != CURL_HTTP;
}

/* Waits before another try: seconds that double, up to the transfer's; false: a signal came. */
static bool wait_for_try(const transfer *t, int i)
{
    for (int k = 0; k < 5 << i && k < 10 * t->timeout_s && !signals_exit_code(); k++)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    return !signals_exit_code();
}

drey_status transfer_rest(const transfer *t, const char *url, new_file *to,
                          const remote_file *about, transfer_progress *show, void *user,
                          drey_error *err)
{
    int n_tries = 0;
    uint64_t has = bytes_in(to), had = has;
    while (has < about->n_bytes) {
        request r = {.what = ASK_REST,
                     .transfer = t,
                     .url = url,
                     .to = to,
                     .first = has,
                     .end = about->n_bytes,
                     .file = *about,
                     .show = show,
                     .user = user};
        TRY(ask(&r, err));
        has = bytes_in(to);
        if (has >= about->n_bytes)
            break;
        n_tries = has > had ? 0 : n_tries + 1;
        had = has;
        if (r.code && (!may_pass(&r) || n_tries == MOST_TRIES))
            return failed(&r, err);
        if (!r.code && n_tries == MOST_TRIES)
            FAIL(err, DREY_ERR_IO, "%.200s: the server sends %llu of its %llu bytes", url,
                 (unsigned long long)has, (unsigned long long)about->n_bytes);
        if (!wait_for_try(t, n_tries))
            return DREY_ERR_CANCELLED;
    }
    show(user, has);
    return DREY_OK;
}
