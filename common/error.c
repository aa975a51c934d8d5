/* The one place where error messages are written. */
#include "common/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

drey_status error_set(drey_error *err, drey_status code, const char *format, ...)
{
    if (err) {
        err->code = code;
        err->hint = DREY_HINT_NONE;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(err->message, sizeof err->message, format, arguments);
        va_end(arguments);
    }
    return code;
}

/* Returns whether this is the middle of a character of UTF-8. */
static bool inside(const char *at)
{
    return ((unsigned char)*at & 0xc0) == 0x80;
}

const char *error_path(char out[ERROR_PATH_BYTES], const char *path)
{
    static const char gap[] = "...";
    size_t n = strlen(path), head = ERROR_PATH_BYTES / 3;
    if (n < ERROR_PATH_BYTES)
        return path;
    const char *tail = path + n - (ERROR_PATH_BYTES - sizeof gap - head);
    while (head > 0 && inside(path + head))
        head--;
    while (inside(tail))
        tail++;
    snprintf(out, ERROR_PATH_BYTES, "%.*s%s%s", (int)head, path, gap, tail);
    return out;
}

drey_status error_in_file(drey_error *err, const char *path, drey_status status)
{
    if (!err || status == DREY_OK)
        return status;
    char front[ERROR_PATH_BYTES + 2];
    size_t n = (size_t)snprintf(front, sizeof front, "%s: ", SHOWN_PATH(path));
    memmove(err->message + n, err->message, sizeof err->message - n - 1);
    memcpy(err->message, front, n);
    err->message[sizeof err->message - 1] = 0;
    return status;
}
