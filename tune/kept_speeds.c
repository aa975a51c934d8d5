/* Speeds of this machine in a cache folder: a file for each disk and way of reading, and one for
 * each tensor type, tier and number of threads.
 *
 * They change: another program computes, a disk is replaced. So they count for a day, and where the
 * machine was busy while it was measured for ten minutes only. */
#include "tune/kept_speeds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "common/hash.h"
#include "common/num.h"
#include "engine/engine.h"
#include "gguf/gguf.h"
#include "gguf/types.h"
#include "os/cgroup.h"
#include "os/pool.h"
#include "tune/cache_file.h"
#include "tune/measured.h"

static const double kept_s = 24 * 3600, busy_s = 600;

/* ---- Files ---- */

static bool take_rate(const json_value *root, const char *key, double *out)
{
    const double least = 1, most = 1e18;
    *out = json_member_number(root, key);
    return *out == 0 || (*out >= least && *out <= most);
}

bool kept_speeds_parse(const json_value *root, kept_speeds *k)
{
    drey_speeds *s = &k->speeds;
    bool busy = false;
    *k = (kept_speeds){.until = json_member_number(root, "until")};
    json_member_bool(root, "busy", &busy); /* older files do not say */
    s->measured_busy = busy;
    return take_rate(root, "disk_bytes_per_s", &s->disk_bytes_per_s) &&
           take_rate(root, "memory_bytes_per_s", &s->memory_bytes_per_s) &&
           take_rate(root, "one_ops_per_s", &s->one_ops_per_s) &&
           take_rate(root, "tree_ops_per_s", &s->tree_ops_per_s) && isfinite(k->until);
}

static bool take(const json_value *root, void *out)
{
    return kept_speeds_parse(root, out);
}

static const cache_kind kind = {.format = "drey speeds 1", .take = take};

/* ---- Names ---- */

/* Device numbers are given again after a restart, which the file system's own number survives. */
static bool name_disk(char out[CACHE_NAME_BYTES], const drey_engine *e)
{
    const char *path = gguf_shard_path(e->config.target->file, 0);
    struct stat at;
    struct statvfs system;
    if (stat(path, &at) != 0 || statvfs(path, &system) != 0)
        return false;
    const uint64_t which[] = {(uint64_t)at.st_dev, (uint64_t)system.f_fsid};
    snprintf(out, CACHE_NAME_BYTES, "speeds/disk-%016llx-%s.json",
             (unsigned long long)hash64_of(which, sizeof which), drey_io_name(e->config.reads.io));
    return true;
}

static void name_computing(char out[CACHE_NAME_BYTES], const drey_engine *e, int type)
{
    snprintf(out, CACHE_NAME_BYTES, "speeds/%.16s-%.16s-%d.json", type_find((uint32_t)type)->name,
             cache_tier(e->config.units.tier), e->config.n_threads);
}

/* ---- Reading ---- */

/* False: the folder has none that count now. */
static bool load(const drey_engine *e, const char *folder, const char *name, kept_speeds *k)
{
    double now = (double)time(NULL);
    return cache_read(folder, name, &kind, e->config.units.tier, k, NULL) == DREY_OK &&
           now < k->until && now >= k->until - kept_s;
}

/* Returns whether anything was 0 and is known now. */
static bool fill(drey_speeds *s, const drey_speeds *from)
{
    const drey_speeds before = *s;
    if (s->disk_bytes_per_s <= 0 && from->disk_bytes_per_s > 0) {
        s->disk_bytes_per_s = from->disk_bytes_per_s;
        s->disk_measured = 1;
    }
    if (s->memory_bytes_per_s <= 0)
        s->memory_bytes_per_s = from->memory_bytes_per_s;
    if (s->one_ops_per_s <= 0)
        s->one_ops_per_s = from->one_ops_per_s;
    if (s->tree_ops_per_s <= 0)
        s->tree_ops_per_s = from->tree_ops_per_s;
    bool any = memcmp(s, &before, sizeof before) != 0;
    if (any && from->measured_busy)
        s->measured_busy = 1;
    return any;
}

static void find(const drey_engine *e, const char *folder, const char *name, drey_speeds *s)
{
    kept_speeds kept;
    if (load(e, folder, name, &kept))
        fill(s, &kept.speeds);
}

void kept_speeds_find(const drey_engine *e, int type, const char *folder, drey_speeds *speeds)
{
    char name[CACHE_NAME_BYTES];
    if (name_disk(name, e))
        find(e, folder, name, speeds);
    name_computing(name, e, type);
    find(e, folder, name, speeds);
}

/* ---- Writing ---- */

bool machine_is_busy(double *load)
{
    char text[64];
    long running = 0;
    *load = 0;
    if (!cgroup_read("/proc", "loadavg", text, sizeof text) ||
        sscanf(text, "%lf %*f %*f %ld/", load, &running) != 2)
        return false;
    return running > 1 && *load > 0.5 * pool_default_threads() + 0.25;
}

/* Keeps the speeds. Those of the file that were not measured now stay in it, and count no longer
 * than before. */
static void keep(const drey_engine *e, const char *folder, const char *name, drey_speeds measured)
{
    json_buffer b;
    kept_speeds old;
    double until = (double)time(NULL) + (measured.measured_busy ? busy_s : kept_s);
    if (!folder)
        return;
    if (load(e, folder, name, &old) && fill(&measured, &old.speeds))
        until = min_f64(until, old.until);
    json_writer *w = json_buffer_begin(&b);
    cache_put_origin(w, &kind, e->config.units.tier, 0);
    json_put_number(w, "disk_bytes_per_s", measured.disk_bytes_per_s);
    json_put_number(w, "memory_bytes_per_s", measured.memory_bytes_per_s);
    json_put_number(w, "one_ops_per_s", measured.one_ops_per_s);
    json_put_number(w, "tree_ops_per_s", measured.tree_ops_per_s);
    json_put_number(w, "until", until);
    json_put_bool(w, "busy", measured.measured_busy);
    cache_write(folder, name, &b, NULL);
}

void kept_speeds_keep_disk(const drey_engine *e, const char *folder, double bytes_per_s, bool busy)
{
    char name[CACHE_NAME_BYTES];
    if (name_disk(name, e))
        keep(e, folder, name,
             (drey_speeds){.disk_bytes_per_s = bytes_per_s, .measured_busy = busy});
}

void kept_speeds_keep_computing(const drey_engine *e, int type, const char *folder,
                                const drey_speeds *measured)
{
    char name[CACHE_NAME_BYTES];
    name_computing(name, e, type);
    keep(e, folder, name, *measured);
}
