/* Files of EAGLE layers for tests: architecture "eagle3", for a toy. */
#pragma once

#include "model/arch.h"
#include "support/toy.h"

typedef struct eagle_file {
    const toy_options *toy; /* the target's */
    const gguf *target;
    tap_shape taps; /* n_ids below the vocabulary's: with d2t */
    int32_t n_embd, n_heads, n_heads_kv, head_dim, n_ff;
    /* The layer knows what follows a token in a target whose layers add little: it adds the token's
     * embedding, takes off what it was fed, and has the target's head. Otherwise it is random. */
    bool knows;
    bool own_embedding; /* the file has one */
    bool old_name;      /* the state's norm has its old name */
    bool differences;   /* d2t holds them, as early converters wrote */
    int32_t first_id;   /* first id that d2t holds */
    uint64_t seed;
} eagle_file;

/* A random layer for this toy, of its width, with taps before layers 1 and 2 and after the last,
 * and the whole vocabulary. */
void eagle_file_init(eagle_file *e, const toy_options *toy, const gguf *target,
                     const model_shape *shape);
/* The same, which knows. */
void eagle_file_init_knowing(eagle_file *e, const toy_options *toy, const gguf *target,
                             const model_shape *shape);
/* The layers whose logits tests/data/logits holds: a target in F32, and a random layer after it.
 * Returns the name of layer i's file there. */
enum { N_EAGLE_TOYS = 2 };
const char *eagle_toy(int i, toy_options *target);
void eagle_toy_layer(int i, eagle_file *e, const toy_options *toy, const gguf *target,
                     const model_shape *shape);
/* Aborts where it cannot. */
void eagle_file_write(const char *path, const eagle_file *e);
