/* Models by name, and messages about models that are no file that drey reads: they say what to
 * do. */
#pragma once

#include "cli/args/options.h"
#include "common/error.h"

/* Puts the paths of models of the folder (model_store.h) in the place of their names in -m, -d and
 * the operand. A path that exists is left as it is, and a word that names nothing as well: who
 * opens it says so. The paths are good to the end of the program. DREY_ERR_USAGE: a name may mean
 * several models, which the message lists. */
drey_status model_path_resolve(cli_settings *s, drey_error *err);

/* After a model could not be opened: where its path is a folder or file as hubs publish models, a
 * name on a hub, or a name that no model here has, *err says which command makes, fetches or lists
 * models. Returns status. */
drey_status model_path_explain(const char *path, drey_status status, drey_error *err);
