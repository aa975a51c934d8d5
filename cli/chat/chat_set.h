/* Settings that a conversation can change: see drey chat's /set and /show. */
#pragma once

#include "cli/args/options.h"

#include <stdio.h>

/* "NAME VALUE": a setting by the name of its option. DREY_ERR_USAGE: no such name or value; the
 * names are listed. */
drey_status chat_set(cli_settings *settings, const char *words, drey_error *err);
/* Writes all of them, a line each. */
void chat_show_settings(FILE *out, const cli_settings *settings);
/* What the model's file recommends for sampling: "temperature 0.7, top-k 20"; "" if nothing. */
void chat_read_recommended(const char *model_path, char *out, size_t capacity);
