/* Reading from web servers: see transfer.h.
 *
 * curl's own retries are not used: they begin again where the first one began. Its settings file is
 * not read, because options there could change what is written where; its variables for proxies
 * and certificates count. The token is given to it on its standard input, where no list of
 * processes shows it; curl sends it to no other host. */
#include "cli/pull/transfer.h"

#include "cli/pull/program.h"
#include "cli/terminal/signals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WORDS = 40, MOST_TEXT = 8 << 20, MOST_HEAD = 64 << 10, MOST_TRIES = 6 };

/* curl's exit codes. */
enum { CURL_HTTP = 22, CURL_WRITE = 23, CURL_NO_PARTS = 33, CURL_TOO_LARGE = 63 };

typedef struct request {
    const char *words[MOST_WORDS];
    int n;
    char seconds[16], range[64], most[32];
} request;

static void add(request *r, const char *word)
{
    r->words[r->n++] = word;
    r->words[r->n] = NULL;
}

/* Errors go to the output as well, a line at the end. */
static void begin_request(request *r, const transfer *t)
{
    static const char *const usual[] = {"curl",
                                        "-q",
                                        "-sS",
                                        "-L",
                                        "--fail",
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
    *r = (request){.n = 0};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        add(r, usual[i]);
    snprintf(r->seconds, sizeof r->seconds, "%d", t->timeout_s);
    add(r, "--speed-time");
    add(r, r->seconds);
}

static drey_status start(program *c, request *r, const transfer *t, const char *url,
                         drey_error *err)
{
    add(r, "--url");
    add(r, url);
    TRY(program_start(c, (char *const *)r->words, -1, err));
    if (t->token)
        dprintf(c->input, "header = \"Authorization: Bearer %s\"\n", t->token);
    close(c->input);
    c->input = -1;
    return DREY_OK;
}

/* The last line of what it wrote: curl's own sentence. */
static const char *last_line(char *said)
{
    size_t n = strlen(said);
    while (n > 0 && (said[n - 1] == '\n' || said[n - 1] == '\r'))
        said[--n] = '\0';
    char *line = strrchr(said, '\n'), *sentence;
    line = line ? line + 1 : said;
    sentence = strncmp(line, "curl: (", 7) == 0 ? strstr(line, ") ") : NULL;
    return sentence ? sentence + 2 : line;
}

/* Why a request failed. */
static drey_status failed(const transfer *t, const char *url, int code, char *said, drey_error *err)
{
    const char *why = last_line(said);
    if (code == CURL_HTTP && (strstr(why, "401") || strstr(why, "403")))
        FAIL(err, DREY_ERR_IO, "%.200s: %.120s; %s", url, why,
             t->token
                 ? "the token in HF_TOKEN may not read it"
                 : "if a model has conditions, accept them there and put a token into HF_TOKEN");
    if (code == CURL_WRITE)
        FAIL(err, DREY_ERR_IO, "%.200s: what came could not be written; is the disk full?", url);
    FAIL(err, DREY_ERR_IO, "%.200s: %.200s", url, *why ? why : "curl failed");
}

static uint64_t bytes_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (uint64_t)s.st_size : 0;
}

/* A file that grows meanwhile, and who wants to know how long it is. */
typedef struct watched_file {
    const char *path;
    transfer_progress *show;
    void *user;
} watched_file;

/* All that a request writes, and curl's exit code. watched: NULL, or what it writes to.
 * DREY_ERR_CANCELLED: a signal came. */
static drey_status take_all(request *r, const transfer *t, const char *url, char *out, size_t most,
                            const watched_file *watched, int *code, drey_error *err)
{
    program c;
    size_t n = 0;
    TRY(start(&c, r, t, url, err));
    out[0] = '\0';
    while (program_read(&c, out, most, &n)) {
        if (watched)
            watched->show(watched->user, bytes_of(watched->path));
        if (signals_exit_code()) {
            program_stop(&c);
            return DREY_ERR_CANCELLED;
        }
    }
    *code = program_end(&c);
    return DREY_OK;
}

drey_status transfer_text(const transfer *t, const char *url, char **text, drey_error *err)
{
    request r;
    int code = 0;
    begin_request(&r, t);
    snprintf(r.most, sizeof r.most, "%d", MOST_TEXT);
    add(&r, "--max-filesize");
    add(&r, r.most);
    char *out = malloc(MOST_TEXT);
    *text = NULL;
    if (!out)
        FAIL(err, DREY_ERR_MEMORY, "out of memory");
    drey_status status = take_all(&r, t, url, out, MOST_TEXT, NULL, &code, err);
    if (status == DREY_OK && code)
        status = failed(t, url, code, out, err);
    if (status == DREY_OK)
        *text = out;
    else
        free(out);
    return status;
}

/* ---- What a file is ---- */

/* The value of a header's line of the last reply, "" if it has none. */
static void header_value(const char *head, const char *name, char *out, size_t room)
{
    size_t n = strlen(name);
    *out = '\0';
    for (const char *line = head; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "HTTP/", 5) == 0)
            *out = '\0';
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        const char *value = line + n + 1 + strspn(line + n + 1, " \t");
        snprintf(out, room, "%.*s", (int)strcspn(value, "\r\n"), value);
    }
}

/* Of a part: "bytes 0-99/TOTAL". */
static void describe(const char *head, remote_file *about)
{
    char value[128];
    *about = (remote_file){.n_bytes = 0};
    header_value(head, "content-range", value, sizeof value);
    const char *total = strchr(value, '/');
    about->in_parts = total != NULL;
    if (!total)
        header_value(head, "content-length", value, sizeof value);
    about->n_bytes = strtoull(total ? total + 1 : value, NULL, 10);
    header_value(head, "etag", about->version, sizeof about->version);
}

drey_status transfer_beginning(const transfer *t, const char *url, const char *path, uint64_t n,
                               remote_file *about, drey_error *err)
{
    request r;
    int code = 0;
    begin_request(&r, t);
    snprintf(r.range, sizeof r.range, "0-%llu", (unsigned long long)n - 1);
    snprintf(r.most, sizeof r.most, "%llu", (unsigned long long)n);
    const char *words[] = {"-r", r.range, "--max-filesize", r.most, "-D", "-", "-o", path};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add(&r, words[i]);
    char *head = malloc(MOST_HEAD);
    if (!head)
        FAIL(err, DREY_ERR_MEMORY, "out of memory");
    drey_status status = take_all(&r, t, url, head, MOST_HEAD, NULL, &code, err);
    if (status == DREY_OK) {
        describe(head, about);
        bool whole = code == CURL_TOO_LARGE && !about->in_parts;
        if (code && !whole)
            status = failed(t, url, code, head, err);
        else if (about->n_bytes == 0)
            status =
                error_set(err, DREY_ERR_IO, "%.200s: the server does not say how long it is", url);
    }
    free(head);
    return status;
}

/* ---- All of it ---- */

/* What another try may mend. */
static bool may_pass(int code, const char *said)
{
    static const char *const passing[] = {" 408", " 425", " 429", " 500", " 502", " 503", " 504"};
    if (code == CURL_WRITE)
        return false;
    for (size_t i = 0; code == CURL_HTTP && i < sizeof passing / sizeof *passing; i++)
        if (strstr(said, passing[i]))
            return true;
    return code != CURL_HTTP;
}

/* One try; *code: curl's, and what it said. */
static drey_status try_rest(const transfer *t, const char *url, const watched_file *file,
                            char *said, size_t most, int *code, drey_error *err)
{
    request r;
    begin_request(&r, t);
    snprintf(r.range, sizeof r.range, "%llu", (unsigned long long)bytes_of(file->path));
    if (bytes_of(file->path) > 0) {
        add(&r, "-C");
        add(&r, r.range);
    }
    add(&r, "-o");
    add(&r, file->path);
    return take_all(&r, t, url, said, most, file, code, err);
}

/* Before another try: seconds that double; false: a signal came. */
static bool wait_for_try(int i)
{
    for (int k = 0; k < 5 << i && !signals_exit_code(); k++)
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    return !signals_exit_code();
}

drey_status transfer_rest(const transfer *t, const char *url, const char *path,
                          const remote_file *about, transfer_progress *show, void *user,
                          drey_error *err)
{
    const watched_file file = {path, show, user};
    char said[1024];
    int n_tries = 0, code = 0;
    uint64_t had = bytes_of(path);
    while (bytes_of(path) < about->n_bytes) {
        TRY(try_rest(t, url, &file, said, sizeof said, &code, err));
        if (code == CURL_NO_PARTS && truncate(path, 0) != 0)
            return failed(t, url, code, said, err);
        uint64_t has = bytes_of(path);
        if (has >= about->n_bytes)
            break;
        n_tries = has > had ? 0 : n_tries + 1;
        had = has;
        if (code && (!may_pass(code, said) || n_tries == MOST_TRIES))
            return failed(t, url, code, said, err);
        if (!code && n_tries == MOST_TRIES)
            FAIL(err, DREY_ERR_IO, "%.200s: the server sends %llu of its %llu bytes", url,
                 (unsigned long long)has, (unsigned long long)about->n_bytes);
        if (!wait_for_try(n_tries))
            return DREY_ERR_CANCELLED;
    }
    show(user, bytes_of(path));
    return DREY_OK;
}
