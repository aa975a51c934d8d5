/* The machines of drey plan --ranks: a line each, the first being rank 0,
 *
 *    # name  memory  its disk
 *    one     6G      1.5G/s
 *    two     3G
 *
 * with blanks or tabs between. Empty lines and what follows a # do not count. */
#pragma once

#include "drey/drey_engine.h"

enum { RANKS_FILE_MOST = 64 };

/* machines: [RANKS_FILE_MOST]; a disk that is not given is 0. DREY_ERR_USAGE, with the file's name
 * and the line: it is not such a file. */
drey_status ranks_file_read(const char *path, drey_rank_machine *machines, int32_t *n,
                            drey_error *err);
/* Reads "0,12,16", the layers of each rank, of which the library says whether they fit. layers:
 * [RANKS_FILE_MOST]. DREY_ERR_USAGE. */
drey_status rank_layers_read(const char *text, int32_t *layers, uint64_t *n, drey_error *err);
