/* Measurements as JSON: contents of the files that drey/tune.h keeps in a cache folder. */
#pragma once

#include <limits.h>

#include "drey/drey_model.h"

typedef struct drey_boundaries_report drey_boundaries_report;
typedef struct drey_engine_options drey_engine_options;
typedef struct drey_pair_report drey_pair_report;
typedef struct drey_routes drey_routes;
typedef struct drey_units_report drey_units_report;
typedef struct json_value json_value;
typedef struct json_writer json_writer;

/* Path of the model's file: borrowed. */
static inline const char *model_path(const drey_model *model)
{
    drey_model_info info;
    drey_model_describe(model, &info);
    return info.path;
}

/* Returns whether other programs want to compute: one does now, and in the last minute more than
 * half of the cores were at work. What is measured then is theirs as well. *load: the mean of that
 * minute; 0: not known. */
bool machine_is_busy(double *load);

/* Members of an object. */
void profile_put(json_writer *w, const drey_engine_options *options,
                 const drey_pair_report *report);
void routes_put(json_writer *w, const drey_model *target, const drey_routes *routes);
void units_put(json_writer *w, const drey_engine_options *options,
               const drey_units_report *products, const drey_boundaries_report *attention);

/* False if any of it is missing or odd. */
bool routes_parse(const json_value *root, drey_routes *routes);
/* The same. report->profile.trees point to report->trees. */
bool profile_parse(const json_value *root, drey_pair_report *report);

/* drey_profile_load for a target that is known: many drafts may be looked up. */
drey_status profile_find(const drey_engine_options *options, uint64_t target, const char *folder,
                         drey_pair_report *report, drey_error *err);
/* Calls visit for each file of the folder that drey/tune.h keeps of the target, whatever the draft,
 * the tier and the units; target NULL: the one of the machine alone. */
typedef void measured_file_fn(void *user, const char *path);
drey_status measured_files(const drey_model *target, const char *folder, measured_file_fn *visit,
                           void *user, drey_error *err);
/* Returns whether the folder has profiles. To know which model a file is takes some reading. */
bool profile_any(const char *folder);
/* The usual path of a drafter's file, after the target's; false: it is too long. */
bool draft_file_path(char out[PATH_MAX], const drey_model *target, const char *ending);
