/* The keys that clients of drey serve have to send: those of --api-key and --api-key-file, or,
 * where neither is given, of the variable DREY_API_KEY. Every user of a machine can read command
 * lines, but neither the file nor the variable. */
#pragma once

#include "cli/args/options.h"
#include "common/error.h"

/* *keys: with commas between them, or NULL where nobody needs one; the caller frees it.
 * DREY_ERR_USAGE: there is no key in what was given, or one that no client can send. */
drey_status server_keys_read(const cli_settings *settings, char **keys, drey_error *err);
