/* Keys of the file that is made, under its architecture's prefix. Internal to this folder. */
#pragma once

#include "convert/family.h"

typedef struct keys {
    new_gguf *file;
    const hub_folder *folder;
    const family *family;
} keys;

void keys_u32(const keys *k, const char *suffix, uint32_t value);
void keys_f32(const keys *k, const char *suffix, double value);
void keys_bool(const keys *k, const char *suffix, bool value);

/* All keys of a model with an encoder: encoder_keys.c. */
drey_status encoder_keys(const keys *k, drey_error *err);
/* The rotation: rope_keys.c. */
drey_status rope_keys(const keys *k, rope_factors factors[MOST_ROPE_FACTORS], drey_error *err);
