/* JSON in files: read whole, and put together in memory before any file is touched. */
#ifndef DREY_COMMON_JSON_BUFFER_H
#define DREY_COMMON_JSON_BUFFER_H

#include "common/error.h"
#include "common/json_value.h"

#include <stdio.h>

/* The value that a file of at most `most` bytes holds; NULL: it cannot be read, is longer, or is no
 * JSON. json_free gives it back. */
json_value *json_load_file(json_document *d, const char *path, size_t most);

/* An object in memory that grows, in lines. */
typedef struct json_buffer {
    json_writer writer;
    FILE *file; /* NULL: no memory, and nothing is written */
    char *text;
    size_t n;
} json_buffer;
/* Begins it. The buffer stays where it is. */
json_writer *json_buffer_begin(json_buffer *b);
/* Ends it. The caller frees; NULL: out of memory. */
char *json_buffer_end(json_buffer *b);

#endif
