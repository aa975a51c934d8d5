/* Tensor types of GGUF that drey runs, by their number in the file (ggml's enumeration). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum tensor_type {
    TYPE_F32 = 0,
    TYPE_F16 = 1,
    TYPE_Q4_0 = 2,
    TYPE_Q4_1 = 3,
    TYPE_Q5_0 = 6,
    TYPE_Q5_1 = 7,
    TYPE_Q8_0 = 8,
    TYPE_Q2_K = 10,
    TYPE_Q3_K = 11,
    TYPE_Q4_K = 12,
    TYPE_Q5_K = 13,
    TYPE_Q6_K = 14,
    TYPE_IQ2_XXS = 16,
    TYPE_IQ2_XS = 17,
    TYPE_IQ3_XXS = 18,
    TYPE_IQ1_S = 19,
    TYPE_IQ4_NL = 20,
    TYPE_IQ3_S = 21,
    TYPE_IQ2_S = 22,
    TYPE_IQ4_XS = 23,
    TYPE_I64 = 27, /* numbers of things, not of a matrix */
    TYPE_IQ1_M = 29,
    TYPE_BF16 = 30,
    TYPE_TQ1_0 = 34,
    TYPE_TQ2_0 = 35,
    TYPE_MXFP4 = 39,
    TYPE_NVFP4 = 40,
    TYPE_LIMIT = 41 /* one past the largest number; the gaps are types drey does not run */
} tensor_type;

typedef struct type_traits {
    const char *name; /* as llama.cpp prints it: "Q4_K"; NULL for types that drey does not know */
    int32_t block_elements; /* weights per block */
    int32_t block_bytes;    /* bytes per block in the file */
    bool runnable;          /* a kernel exists; others are only shown by inspect */
} type_traits;

/* NULL for a number that no ggml type has. Types known by name and size but not runnable are there
 * for inspect. */
const type_traits *type_find(uint32_t type);

/* Returns whether a number was that of a type which llama.cpp has given up, rows of Q4_0 or IQ4_NL
 * in another order. */
bool type_is_dropped(uint32_t type);

/* F32, F16, BF16. */
static inline bool type_is_float(uint32_t type)
{
    return type == TYPE_F32 || type == TYPE_F16 || type == TYPE_BF16;
}

/* Bytes of one row of n_elements (a multiple of block_elements). */
static inline int64_t type_row_bytes(const type_traits *t, int64_t n_elements)
{
    return n_elements / t->block_elements * t->block_bytes;
}
