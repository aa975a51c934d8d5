/* Mixtures of tensor types by the names that they have in llama.cpp, and which type a tensor gets.
 *
 * A file type such as Q4_K_M is a type for most matrices, and others for those that are worth more
 * bits: the head, attention's values and the feed-forward part's second matrix in some layers. */
#pragma once

#include "gguf/gguf.h"
#include "gguf/types.h"

typedef struct file_type {
    const char *name;
    uint32_t number; /* general.file_type */
    tensor_type type;
} file_type;

/* Item i of the table; NULL: there are no more. */
const file_type *file_type_at(int32_t i);
/* Finds a type by its name in small or large letters; NULL: there is none. */
const file_type *file_type_find(const char *name);
/* Returns whether the type is only made with an importance matrix. */
bool file_type_needs_importance(const file_type *as);

/* State on which the choice depends besides the tensor. */
typedef struct file_mix {
    const file_type *as;
    const gguf *source;
    bool important;                         /* with an importance matrix */
    int64_t n_layers, n_sharing, n_experts; /* n_sharing: query heads of a key head */
    bool tied;                              /* the embedding serves as the head */
} file_mix;

void file_mix_init(file_mix *mix, const file_type *as, const gguf *source, bool important);
/* The type that the tensor gets: its own where it is no matrix of weights; one with shorter blocks,
 * or F16, where its rows are no multiple of the blocks of the type that it should have
 * (*fell_back). important: the importance matrix has it; else it gets no type that needs one. */
uint32_t file_mix_choose(const file_mix *mix, const gguf_tensor *t, bool important,
                         bool *fell_back);
