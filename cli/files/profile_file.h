/* What drey tune -m found about a pair of models, kept in the user's cache folder: a file for each
 * target with each draft, tier and number of threads, named by what the models are. It belongs to
 * one processor and version. */
#ifndef DREY_CLI_PROFILE_FILE_H
#define DREY_CLI_PROFILE_FILE_H

#include "cli/commands/models.h"
#include "common/json_value.h"
#include "drey/tune.h"

/* Where it lies: a name for cache_path; false if a model cannot be read. */
bool profile_name(char *out, size_t capacity, const models *m, const cli_settings *s);

/* True if there is one for these models on this machine, with this tier and as many threads. A file
 * that is broken, of another machine or of another version is passed over with one sentence on
 * standard error; where there is none, or one for another tier or number of threads, nothing is
 * said. */
bool profile_load(const models *m, const cli_settings *settings, drey_pair_report *out);

/* The same without a word. */
bool profile_look(const models *m, const cli_settings *settings, drey_pair_report *out);

/* Lets engines of these models begin with it, where there is one and something drafts: known is
 * where it then lies, as long as the models are used. */
void profile_use(models *m, const cli_settings *settings, drey_pair_report *known);

/* What the file's contents say; false if any of it is missing or odd. out->profile.trees point to
 * out->trees, here and above: it is not to be copied. */
bool profile_parse(const json_value *root, drey_pair_report *out);

/* Writes the file's contents: members of an object. */
void profile_put(json_writer *w, const models *m, const cli_settings *settings,
                 const drey_pair_report *report);

#endif
