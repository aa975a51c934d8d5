/* Names of those public enums that need only names. */
#include <string.h>

#include "drey/research.h"
#include "drey/tune.h"

/* drey_WHAT_name: a value's name, NULL for none. */
#define NAMES(what, ...)                                                                           \
    static const char *const what##_names[] = {__VA_ARGS__, NULL};                                 \
    const char *drey_##what##_name(drey_##what value)                                              \
    {                                                                                              \
        return (unsigned)value < sizeof what##_names / sizeof *what##_names ? what##_names[value]  \
                                                                            : NULL;                \
    }

/* Defines drey_WHAT_name, and drey_WHAT_parse: false, *value unchanged, for a name that none
 * has. */
#define PARSED_NAMES(what, ...)                                                                    \
    NAMES(what, __VA_ARGS__)                                                                       \
    bool drey_##what##_parse(const char *name, drey_##what *value)                                 \
    {                                                                                              \
        for (int i = 0; name && what##_names[i]; i++)                                              \
            if (strcmp(name, what##_names[i]) == 0) {                                              \
                *value = (drey_##what)i;                                                           \
                return true;                                                                       \
            }                                                                                      \
        return false;                                                                              \
    }

PARSED_NAMES(io, "auto", "uring", "pread", "buffered")
PARSED_NAMES(kv, "f16", "q8_0")
PARSED_NAMES(pooling, "model", "none", "mean", "cls", "last", "rank")
PARSED_NAMES(fallback, "mean", "printed")
PARSED_NAMES(fetch, "sparse", "near", "far")
PARSED_NAMES(tile, "halves", "lines", "chains")
PARSED_NAMES(part, "tree", "fallback", "batching", "provisional", "slice", "schedule", "predictors",
             "hyper", "lookup")
PARSED_NAMES(exit, "off", "fast", "exact")
NAMES(progress, "load target", "load draft", "prompt", "prepare", "check", "train", "measure")
NAMES(units_side, "static", "dynamic")
NAMES(boundary_side, "whole heads", "dense and sparse", "searched", "searched, dynamic")
