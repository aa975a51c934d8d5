/* Settings that a conversation can change: see drey chat's /set and /show. */
#pragma once

#include "cli/args/options.h"

#include <stdio.h>

enum { CHAT_NAME_BYTES = 32, CHAT_VALUE_BYTES = 96 };

/* Takes "NAME VALUE" or "NAME=VALUE" apart: the name, "" for no words, and returns where the value
 * begins, "" if there is none. */
const char *chat_setting_name(const char *words, char name[static CHAT_NAME_BYTES]);
/* Sets what the option of that name sets; without a value nothing. DREY_ERR_USAGE: no such name or
 * value; what was meant is said. */
drey_status chat_set(cli_settings *settings, const char *name, const char *value, drey_error *err);
/* The value of a setting that chat_set knows; returns its name as chat_show_settings writes it. */
const char *chat_setting(const cli_settings *settings, const char *name,
                         char value[static CHAT_VALUE_BYTES]);
/* Writes all of them, a line each. */
void chat_show_settings(FILE *out, const cli_settings *settings);
/* Reads the settings for sampling that the model's file recommends: "temperature 0.7, top-k 20"; ""
 * if nothing. */
void chat_read_recommended(const char *model_path, char *out, size_t capacity);
