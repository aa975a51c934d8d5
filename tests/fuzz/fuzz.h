/* Tools that fuzz targets share: libFuzzer's entry point, a check that is never compiled out, exact
 * copies, and what every refusal has. */
#pragma once

#include "drey/drey_error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef FUZZ_REPLAY /* one program has all targets, each under its file's name */
#include "fuzz/replay.h"

static int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
__attribute__((constructor)) static void add_target(void)
{
    register_target(__BASE_FILE__, LLVMFuzzerTestOneInput);
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
#endif

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken property: %s\n", __FILE__, __LINE__, #condition);       \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A copy without a byte after it: a sanitizer sees one that is read. The caller frees it. */
static inline void *fuzz_copy(const void *bytes, size_t n)
{
    void *copy = malloc(n ? n : 1);
    FUZZ_CHECK(copy);
    if (n)
        memcpy(copy, bytes, n);
    return copy;
}

static inline void fuzz_check_printable(const char *text)
{
    for (; *text; text++)
        FUZZ_CHECK((uint8_t)*text >= 0x20 && *text != 0x7f);
}

/* The error says the status, in printable characters. */
static inline void fuzz_check_refused(drey_status status, const drey_error *err)
{
    FUZZ_CHECK(status != DREY_OK && err->code == status);
    fuzz_check_printable(err->message);
}
