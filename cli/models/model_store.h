/* The folder of downloaded models: $DREY_MODELS, else the one in the user's cache folder, where
 * drey pull puts them. Commands take a model of it by its name. */
#pragma once

#include "common/error.h"

#include <limits.h>

/* A model of the folder: its *.gguf file, of a split one the first part. */
typedef struct stored_model {
    char *path;
    char name[NAME_MAX + 1]; /* name of the file, without .gguf and a part's number */
    uint64_t n_bytes;        /* bytes of all its parts */
    int32_t n_files;
} stored_model;

typedef struct model_store {
    char folder[PATH_MAX];
    stored_model *models; /* [n], by name */
    size_t n;
} model_store;

/* The folder's path, whether there is one or not. DREY_ERR_USAGE: no variable names one, or it is
 * too long. */
drey_status model_store_folder(char out[PATH_MAX], drey_error *err);
/* Lists its models; a folder that is not there has none. DREY_ERR_IO: it cannot be read.
 * model_store_close frees in any case. */
drey_status model_store_open(model_store *s, drey_error *err);
/* Lists the models of another folder. */
drey_status model_store_list(model_store *s, const char *folder, drey_error *err);
void model_store_close(model_store *s);

/* Copies up to `room` models that a word means into found, and returns how many there are: the one
 * whose file or name it is, else all whose names begin so. After a colon comes a word that the
 * rest of the name has, as a quantisation or a size: "qwen3-8b:q4_k_m", "qwen2.5-coder:0.5b". An
 * owner, a hub's address and "-GGUF" at the end are left out: a name for drey pull means the model
 * that came of it. Large and small letters are the same. */
size_t model_store_find(const model_store *s, const char *word, const stored_model **found,
                        size_t room);
/* Returns the model that was probably meant by a word which means none: a quarter of its letters,
 * four at most, differ from the beginning of the model's name. NULL: none is so near. */
const stored_model *model_store_near(const model_store *s, const char *word);

/* The path of part i, counted from 0, of a model. False: it is too long. */
bool stored_model_part(const stored_model *m, int32_t i, char out[PATH_MAX]);
