/* Chat templates that have a name. */
#pragma once

#include "drey/drey_error.h"

/* The template of that name, or of the file of that name; the caller frees. */
drey_status chat_template_read(const char *name, char **out, drey_error *err);
