/* Settings that a conversation can change: see drey chat's /set and /show. */
#pragma once

#include "cli/args/options.h"

/* "NAME VALUE": a setting by the name of its option. DREY_ERR_USAGE: no such name or value; the
 * names are listed. */
drey_status chat_set(cli_settings *settings, const char *words, drey_error *err);
/* All of them, a line each, on standard error. */
void chat_show_settings(const cli_settings *settings);
