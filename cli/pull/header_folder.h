/* A folder for headers of models, which a plan opens under the names that the models will have. */
#pragma once

#include "common/error.h"

#include <limits.h>

typedef struct header_folder {
    char path[PATH_MAX];
    int fd; /* locked; -1: there is none */
} header_folder;

/* Makes one in the folder, named .headers-XXXXXX, and removes those that killed processes left
 * there. DREY_ERR_IO: nothing can be written. */
drey_status header_folder_open(header_folder *h, const char *folder, drey_error *err);
/* Removes it with what is in it. */
void header_folder_close(header_folder *h);
