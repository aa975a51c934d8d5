/* Errors: a status for the program, a sentence for the user.
 *
 * TRY forwards a failure, FAIL sets one. A message says what went wrong and what to do about it; it
 * ends up on a terminal as it is. Programmer errors are asserts. */
#pragma once

#include "drey/drey_error.h"
#include "drey/drey_model.h"

/* Formats into *err (may be NULL) and returns code. */
drey_status error_set(drey_error *err, drey_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A path for a message. The middle of a long one is replaced by "...", so that the rest of the
 * message is not cut off. Returns path or out. */
enum { ERROR_PATH_BYTES = 160 };
const char *error_path(char out[ERROR_PATH_BYTES], const char *path);
/* The same in memory of the enclosing block. */
#define SHOWN_PATH(path) error_path((char[ERROR_PATH_BYTES]){0}, (path))

/* Puts "PATH: " before the message, unless status is DREY_OK; returns status. */
drey_status error_in_file(drey_error *err, const char *path, drey_status status);

#define TRY(expression)                                                                            \
    do {                                                                                           \
        drey_status try_status_ = (expression);                                                    \
        if (try_status_ != DREY_OK)                                                                \
            return try_status_;                                                                    \
    } while (0)

/* The same with a hint: which option the sentence is about. */
#define FAIL_HINT(err, code, hint_, ...)                                                           \
    do {                                                                                           \
        drey_error *fail_error_ = (err);                                                           \
        drey_status fail_status_ = error_set(fail_error_, (code), __VA_ARGS__);                    \
        if (fail_error_)                                                                           \
            fail_error_->hint = (hint_);                                                           \
        return fail_status_;                                                                       \
    } while (0)

#define FAIL(err, code, ...) return error_set((err), (code), __VA_ARGS__)
