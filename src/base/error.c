/* The one place where error messages are written. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

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
