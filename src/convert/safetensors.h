/* Safetensors files: the header, completely validated, and where each tensor is.
 *
 *   bytes of the header, 8, little-endian | the header, JSON | tensors, one after the other
 *
 * Format: the README of huggingface/safetensors. As its reader does, this one accepts neither
 * tensors that overlap, nor bytes that belong to none: a file that was cut off is found before
 * anything is read of it. */
#pragma once

#include "common/error.h"

enum {
    SAFETENSORS_MOST_DIMS = 8,
    SAFETENSORS_MOST_NAME = 240,             /* bytes */
    SAFETENSORS_MOST_HEADER = 16 * (1 << 20) /* bytes; a header of 20,000 tensors has 3 MB */
};

/* Types of numbers in the format; the ones that are converted come first. */
typedef enum number_type { NUMBER_F32, NUMBER_F16, NUMBER_BF16, NUMBER_OTHER } number_type;

typedef struct safetensor {
    char *name; /* in safetensors.names */
    number_type type;
    char type_name[12];                  /* as the file has it */
    int32_t n_dims;                      /* 0: one number */
    int64_t dims[SAFETENSORS_MOST_DIMS]; /* the row length last */
    uint64_t offset;                     /* offset of the first byte, from the start of the file */
    uint64_t n_bytes;
    bool taken; /* the reader's caller has a use for it; false at first */
} safetensor;

typedef struct safetensors {
    safetensor *tensors; /* [n], by name */
    uint64_t n;
    char *names;
} safetensors;

/* Validates the header json[0..n) of a file of file_bytes, in which it begins at byte 8.
 * DREY_ERR_FORMAT with a sentence that does not name the file, DREY_ERR_MEMORY. */
drey_status safetensors_parse(safetensors *s, const char *json, size_t n, uint64_t file_bytes,
                              drey_error *err);
/* Accepts one that is all zero. */
void safetensors_free(safetensors *s);

/* NULL: there is none of that name. */
safetensor *safetensors_find(const safetensors *s, const char *name);

/* Takes the first `part` out of each name that has it. */
void safetensors_rename(safetensors *s, const char *part);

/* Bytes of a number of a type that is converted. */
static inline size_t number_bytes(number_type type)
{
    return type == NUMBER_F32 ? 4 : 2;
}
