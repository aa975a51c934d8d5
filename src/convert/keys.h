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

void keys_text(const keys *k, const char *suffix, const char *value);
/* The name of a key; out is returned. */
const char *keys_name(const keys *k, const char *suffix, char out[96]);

/* Counts, a whole number or a list of the same ones. *there is false where it is missing. */
drey_status keys_int(const keys *k, const char *names, int64_t least, int64_t *out, bool *there,
                     drey_error *err);
/* Copies a number of config.json; missing: nothing, or an error if it is needed. */
drey_status keys_put_int(const keys *k, const char *names, const char *suffix, int64_t least,
                         bool needed, drey_error *err);

/* Writes what a mixture of experts is: expert_keys.c. */
drey_status expert_keys(const keys *k, drey_error *err);
/* Numbers of xIELU, which are tensors of the folder. */
drey_status activation_keys(const keys *k, drey_error *err);
/* Returns what config.json says of layer i: "full_attention", "sliding_attention" and so on; NULL:
 * nothing (family.c). */
const char *keys_layer_type(const keys *k, int64_t i);
/* All keys of a model with an encoder: encoder_keys.c. */
drey_status encoder_keys(const keys *k, drey_error *err);
/* The rotation: rope_keys.c. */
drey_status rope_keys(const keys *k, rope_factors factors[MOST_ROPE_FACTORS], drey_error *err);
