/* Reading text and tokenizing it: see input.h. */
#include "cli/files/input.h"

#include "cli/terminal/terminal.h"
#include "common/size_text.h"
#include "common/text_encoding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char out_of_memory[] = "out of memory while reading %s; give a shorter text";

/* ---- Limits ---- */

static uint64_t machine_bytes(void)
{
    long n_pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return n_pages > 0 && page > 0 ? (uint64_t)n_pages * (uint64_t)page : 1u << 30;
}

input_limit input_limit_memory(uint64_t memory_bytes, uint32_t share)
{
    input_limit limit;
    char size[16];
    const char *reason =
        "a text of that size has no place in a budget of %s; give a shorter one or "
        "raise --memory";
    if (memory_bytes == DREY_MEMORY_AUTO) {
        reason = "the %s of memory that are free are too little for it; give a shorter one";
        memory_bytes = drey_memory_auto();
    }
    if (memory_bytes == 0 || memory_bytes == DREY_MEMORY_UNLIMITED) {
        reason = "this machine's %s of memory are too little for it; give a shorter one";
        memory_bytes = machine_bytes();
    }
    format_bytes(size, (double)memory_bytes);
    limit.n_bytes = memory_bytes / share;
    snprintf(limit.reason, sizeof limit.reason, reason, size);
    return limit;
}

void input_limit_context(input_limit *limit, const drey_model *model, int32_t n_context)
{
    drey_model_info info;
    drey_model_describe(model, &info);
    int32_t n_tokens = n_context ? n_context : info.n_context_train;
    uint64_t n_bytes = (uint64_t)n_tokens * info.token_bytes_most;
    if (n_tokens <= 0 || n_bytes >= limit->n_bytes)
        return;
    limit->n_bytes = n_bytes;
    if (n_context)
        snprintf(limit->reason, sizeof limit->reason,
                 "a context of %d tokens cannot hold it; give a shorter one or raise -c", n_tokens);
    else
        snprintf(limit->reason, sizeof limit->reason,
                 "the %d tokens that the model was made for cannot hold it; give a shorter one, or "
                 "ask for more with -c",
                 n_tokens);
}

drey_status input_too_long(const char *what, const input_limit *limit, drey_error *err)
{
    char size[16];
    FAIL(err, DREY_ERR_CONTEXT, "%s has more than %s%s: %s", what,
         format_bytes(size, (double)limit->n_bytes), limit->n_bytes < 1000 ? " bytes" : "",
         limit->reason);
}

/* ---- Reading ---- */

/* A file that says how long it is need not be read to be refused. */
static bool known_too_long(FILE *file, const input_limit *limit)
{
    struct stat about;
    return fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode) &&
           (uint64_t)about.st_size > limit->n_bytes;
}

static drey_status read_all(FILE *file, const char *name, const char *what,
                            const input_limit *limit, char **out, size_t *n_bytes, drey_error *err)
{
    size_t capacity = (size_t)64 << 10, n = 0;
    char *text = NULL;
    const char *wrong;
    drey_status status;
    if (known_too_long(file, limit))
        return input_too_long(what, limit, err);
    for (;;) {
        char *grown = realloc(text, capacity);
        if (!grown) {
            status = error_set(err, DREY_ERR_MEMORY, out_of_memory, name);
            goto failed;
        }
        text = grown;
        n += fread(text + n, 1, capacity - 1 - n, file);
        if (n > limit->n_bytes) {
            status = input_too_long(what, limit, err);
            goto failed;
        }
        if (n < capacity - 1)
            break;
        capacity += capacity / 2;
    }
    if (ferror(file)) {
        status = error_set(err, DREY_ERR_IO, "cannot read %s: %s", name, strerror(errno));
        goto failed;
    }
    text[n] = '\0';
    if ((wrong = text_to_utf8(&text, &n))) {
        status = error_set(err, DREY_ERR_FORMAT, "%s %s", name, wrong);
        goto failed;
    }
    *out = text;
    *n_bytes = n;
    return DREY_OK;
failed:
    free(text);
    return status;
}

drey_status input_read(const char *path, const char *what, const input_limit *limit, char **out,
                       size_t *n_bytes, drey_error *err)
{
    if (!path) {
        if (isatty(STDIN_FILENO) == 1 && terminal_attended())
            suggest("type %s, then Ctrl-D on an empty line", what);
        return read_all(stdin, "standard input", what, limit, out, n_bytes, err);
    }
    FILE *file = fopen(path, "rb");
    if (!file)
        FAIL(err, DREY_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    drey_status status = read_all(file, path, what, limit, out, n_bytes, err);
    fclose(file);
    return status;
}

/* ---- Tokens ---- */

/* A text, or one turn of a chat. */
typedef struct wording {
    const char *text, *system;
    size_t n_bytes;
    bool chat;
    int flags;
} wording;

static drey_status take_tokens(const drey_model *model, const wording *w, int32_t n_context,
                               int32_t **ids, size_t *n_ids, drey_error *err)
{
    size_t most = n_context ? (size_t)n_context - 1 : SIZE_MAX / sizeof **ids;
    size_t capacity = w->n_bytes / 3 + 8; /* most texts have fewer; the others say how many */
    for (;;) {
        if (capacity > most)
            capacity = most;
        *ids = malloc(capacity * sizeof **ids);
        if (!*ids)
            FAIL(err, DREY_ERR_MEMORY, out_of_memory, "the text");
        drey_status status = w->chat ? drey_chat_tokenize(model, w->system, w->text, w->flags, *ids,
                                                          capacity, n_ids, err)
                                     : drey_tokenize(model, w->text, w->n_bytes, w->flags, *ids,
                                                     capacity, n_ids, err);
        if (status == DREY_OK)
            return DREY_OK;
        free(*ids);
        *ids = NULL;
        if (status != DREY_ERR_USAGE || *n_ids <= capacity)
            return status;
        if (*n_ids > most)
            FAIL(err, DREY_ERR_CONTEXT,
                 "the prompt has %zu tokens, but a context of %d has room for %zu (and one to "
                 "write); shorten the prompt or raise -c",
                 *n_ids, n_context, most);
        capacity = *n_ids;
    }
}

drey_status input_tokens(const drey_model *model, const char *text, size_t n_bytes, int flags,
                         int32_t n_context, int32_t **ids, size_t *n_ids, drey_error *err)
{
    wording w = {.text = text, .n_bytes = n_bytes, .flags = flags};
    return take_tokens(model, &w, n_context, ids, n_ids, err);
}

drey_status input_text_tokens(const drey_model *model, const char *path, uint64_t memory_bytes,
                              int flags, int32_t **ids, size_t *n_ids, drey_error *err)
{
    char *text = NULL;
    size_t n_bytes = 0;
    input_limit limit = input_limit_memory(memory_bytes, INPUT_AS_IDS);
    drey_status status = input_read(path, "the text", &limit, &text, &n_bytes, err);
    if (status == DREY_OK)
        status = input_tokens(model, text, n_bytes, flags, 0, ids, n_ids, err);
    free(text);
    return status;
}

drey_status input_chat_tokens(const drey_model *model, const char *system, const char *text,
                              size_t n_bytes, int flags, int32_t n_context, int32_t **ids,
                              size_t *n_ids, drey_error *err)
{
    wording w = {.text = text, .system = system, .n_bytes = n_bytes, .chat = true, .flags = flags};
    if (strlen(text) != n_bytes)
        FAIL(err, DREY_ERR_USAGE, "the prompt of a chat cannot hold a NUL byte");
    return take_tokens(model, &w, n_context, ids, n_ids, err);
}
