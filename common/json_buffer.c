/* JSON in files: see json_buffer.h. */
#include "common/json_buffer.h"

#include <stdlib.h>

#include "common/text_encoding.h"

json_value *json_load_file(json_document *d, const char *path, size_t most)
{
    *d = (json_document){.root = NULL};
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(most + 2) : NULL;
    size_t n = text ? fread(text, 1, most + 1, file) : 0;
    if (n > 0 && n <= most && !ferror(file)) {
        text[n] = '\0';
        if (!text_to_utf8(&text, &n))
            json_load(d, text, n);
    }
    free(text);
    if (file)
        fclose(file);
    return d->root;
}

static void put(void *user, const char *bytes, size_t n, const char *from)
{
    json_buffer *b = user;
    (void)from;
    if (b->file)
        fwrite(bytes, 1, n, b->file);
}

json_writer *json_buffer_begin(json_buffer *b)
{
    *b = (json_buffer){.writer = {.put = put, .user = b, .indent = {"\t", 1}, .key = {":\t", 2}}};
    b->file = open_memstream(&b->text, &b->n);
    json_open(&b->writer, '{');
    return &b->writer;
}

char *json_buffer_end(json_buffer *b)
{
    json_close(&b->writer, '}');
    bool good = b->file && !ferror(b->file);
    if (b->file && fclose(b->file) != 0)
        good = false;
    if (!good) {
        free(b->text);
        b->text = NULL;
    }
    return b->text;
}
