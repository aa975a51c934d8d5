/* Names of the enums in drey.h that are nothing but names. */
#include <string.h>

#include "drey/drey.h"

static const char *const io_names[] = {"auto", "uring", "pread", "buffered"};
static const char *const kv_names[] = {"f16", "q8_0"};
static const char *const part_names[] = {"tree",        "fallback", "batching",
                                         "provisional", "slice",    "schedule",
                                         "predictors",  "hyper",    "lookup"};
static const char *const exit_names[] = {"off", "fast", "exact"};
static const char *const progress_names[] = {"load target", "load draft", "prompt",
                                             "prepare",     "check",      "train"};
enum {
    N_IO = sizeof io_names / sizeof *io_names,
    N_KV = sizeof kv_names / sizeof *kv_names,
    N_EXITS = sizeof exit_names / sizeof *exit_names,
    N_PARTS = sizeof part_names / sizeof *part_names,
    N_PROGRESS = sizeof progress_names / sizeof *progress_names,
};

/* Index of name, or -1. */
static int find(const char *name, const char *const *names, int n)
{
    for (int i = 0; name && i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

const char *drey_io_name(drey_io io)
{
    return (unsigned)io < N_IO ? io_names[io] : NULL;
}

bool drey_io_parse(const char *name, drey_io *io)
{
    int i = find(name, io_names, N_IO);
    if (i >= 0)
        *io = (drey_io)i;
    return i >= 0;
}

const char *drey_kv_name(drey_kv kv)
{
    return (unsigned)kv < N_KV ? kv_names[kv] : NULL;
}

bool drey_kv_parse(const char *name, drey_kv *kv)
{
    int i = find(name, kv_names, N_KV);
    if (i >= 0)
        *kv = (drey_kv)i;
    return i >= 0;
}

const char *drey_part_name(drey_part part)
{
    return (unsigned)part < N_PARTS ? part_names[part] : NULL;
}

bool drey_part_parse(const char *name, drey_part *part)
{
    int i = find(name, part_names, N_PARTS);
    if (i >= 0)
        *part = (drey_part)i;
    return i >= 0;
}

const char *drey_exit_name(drey_exit exit)
{
    return (unsigned)exit < N_EXITS ? exit_names[exit] : NULL;
}

bool drey_exit_parse(const char *name, drey_exit *exit)
{
    int i = find(name, exit_names, N_EXITS);
    if (i >= 0)
        *exit = (drey_exit)i;
    return i >= 0;
}

const char *drey_progress_name(drey_progress what)
{
    return (unsigned)what < N_PROGRESS ? progress_names[what] : NULL;
}
