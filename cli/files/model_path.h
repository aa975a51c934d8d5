/* Messages about models that are no file that drey reads: they say what to do. */
#pragma once

#include "common/error.h"

/* After a model could not be opened: where its path is a folder or file as hubs publish models, or
 * a name on a hub, *err says which command makes or fetches the file. Returns status. */
drey_status model_path_explain(const char *path, drey_status status, drey_error *err);
