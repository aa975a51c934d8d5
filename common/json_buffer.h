/* JSON in files: read as a whole, and written in memory before any file is touched. */
#pragma once

#include "common/error.h"
#include "common/json_value.h"
#include "common/json_writer.h"

#include <stdio.h>

/* The value in a file of at most `most` bytes; NULL: it cannot be read, is longer, or is no JSON.
 * json_free frees it. */
json_value *json_load_file(json_document *d, const char *path, size_t most);

/* An object in memory that grows, in lines. */
typedef struct json_buffer {
    json_writer writer;
    FILE *file; /* NULL: no memory, and nothing is written */
    char *text;
    size_t n;
} json_buffer;
/* Begins it. The buffer must not be moved. */
json_writer *json_buffer_begin(json_buffer *b);
/* Ends it. The caller frees; NULL: out of memory. */
char *json_buffer_end(json_buffer *b);
