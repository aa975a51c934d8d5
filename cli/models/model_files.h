/* The models of a folder: its *.gguf files, of split ones the first part. A model has the name of
 * its file without that end; a split one without its part's number, if no other file has that
 * name. */
#pragma once

#include "common/error.h"

#include <stddef.h>

/* Returns how many bytes of a file's name are the model's name; 0: it is no model's, or a further
 * part of one, or that of a file that drey keeps next to a model (MODEL.gguf.eagle.gguf). */
size_t model_name_length(const char *file);

/* One model of a folder; name[0..n_name). Both are good during the call. Another status than
 * DREY_OK ends the scan. */
typedef drey_status model_visit(void *user, const char *path, const char *name, size_t n_name,
                                drey_error *err);
/* Calls visit for each model, in the order of their files' names. DREY_ERR_IO: the folder cannot be
 * read. */
drey_status model_files_visit(const char *folder, model_visit *visit, void *user, drey_error *err);
