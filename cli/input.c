/* Reading text and tokenizing it: see input.h. */
#include "cli/input.h"

#include "cli/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char out_of_memory[] = "out of memory while reading %s; give a shorter text";

static drey_status read_all(FILE *file, const char *name, char **out, size_t *n_bytes,
                            drey_error *err)
{
    size_t capacity = (size_t)64 << 10, n = 0;
    char *text = NULL;
    for (;;) {
        char *grown = realloc(text, capacity);
        if (!grown) {
            free(text);
            return fail(err, DREY_ERR_MEMORY, out_of_memory, name);
        }
        text = grown;
        n += fread(text + n, 1, capacity - 1 - n, file);
        if (n < capacity - 1)
            break;
        capacity *= 2;
    }
    if (ferror(file)) {
        free(text);
        return fail(err, DREY_ERR_IO, "cannot read %s: %s", name, strerror(errno));
    }
    text[n] = '\0';
    *out = text;
    *n_bytes = n;
    return DREY_OK;
}

drey_status input_read(const char *path, const char *what, char **out, size_t *n_bytes,
                       drey_error *err)
{
    if (!path) {
        if (isatty(STDIN_FILENO) == 1 && terminal_attended())
            fprintf(stderr, "drey: type %s, then Ctrl-D on a line of its own\n", what);
        return read_all(stdin, "standard input", out, n_bytes, err);
    }
    FILE *file = fopen(path, "rb");
    if (!file)
        return fail(err, DREY_ERR_IO, "cannot open %s: %s", path, strerror(errno));
    drey_status status = read_all(file, path, out, n_bytes, err);
    fclose(file);
    return status;
}

drey_status input_tokens(const drey_model *model, const char *text, size_t n_bytes, int flags,
                         int32_t **ids, size_t *n_ids, drey_error *err)
{
    /* A token stands for a byte at least, but BOS and a leading blank may be added. */
    size_t capacity = n_bytes + 8;
    for (;;) {
        if (capacity > SIZE_MAX / sizeof **ids || !(*ids = malloc(capacity * sizeof **ids)))
            return fail(err, DREY_ERR_MEMORY, out_of_memory, "the text");
        drey_status status = drey_tokenize(model, text, n_bytes, flags, *ids, capacity, n_ids, err);
        if (status == DREY_OK)
            return DREY_OK;
        free(*ids);
        *ids = NULL;
        if (status != DREY_ERR_USAGE || *n_ids <= capacity)
            return status;
        capacity = *n_ids;
    }
}
