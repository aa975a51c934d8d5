/* The origin of saved keys and values. Those of another origin are useless even for equal tokens.
 * It is written to files as it is; all numbers are little-endian, as on every machine that drey
 * runs on. */
#pragma once

#include "drey/drey_model.h"
#include "kernel/kernel.h"

typedef struct gguf gguf;
typedef struct model_shape model_shape;

typedef struct saved_origin {
    uint64_t model;      /* model_identity; 0: there is no such model */
    uint32_t arithmetic; /* SAVED_ARITHMETIC, or that of the tier "float" */
    uint32_t format;     /* kv_format */
    int32_t n_layers, n_heads_kv, head_dim;
    int32_t v_dim; /* 0: as wide as keys */
} saved_origin;

/* Raised whenever the numbers in a model's keys and values change (kernel/kernel.h). */
enum { SAVED_ARITHMETIC = 1, SAVED_ARITHMETIC_FLOAT = 0x10001 };

/* Makes the origin for a model's file with this shape, in a cache of this format. float_tier:
 * computed by the tier "float". Reads some MiB of the file: DREY_ERR_IO, DREY_ERR_MEMORY. */
drey_status saved_origin_make(saved_origin *o, const gguf *model, const model_shape *shape,
                              kv_format format, bool float_tier, drey_error *err);
