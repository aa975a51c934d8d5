/* Files of Medusa heads for tests. */
#pragma once

#include "draft/medusa_heads.h"
#include "support/gguf_writer.h"

typedef struct heads_file {
    const char *architecture; /* MEDUSA_ARCHITECTURE */
    uint32_t version;
    uint64_t target;    /* identity */
    medusa_shape shape; /* accuracy: as it is */
    const int32_t *ids; /* [shape.n_ids], as they are; NULL: the first ones */
    uint32_t type;      /* type of the blocks: F32 or Q8_0 */
    float spread;       /* spread of weights and biases, about */
    uint64_t seed;
} heads_file;

/* Two heads with F32 blocks and the whole vocabulary, for this model. */
void heads_file_init(heads_file *h, const gguf *target, const model_shape *shape);
/* Aborts where it cannot. */
void heads_file_write(const char *path, const heads_file *h);
