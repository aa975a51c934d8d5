/* Finds cgroup directories: /proc/self/cgroup names the groups, /proc/self/mountinfo says where
 * their hierarchies are mounted.
 *
 *   4:memory:/a/b                                        membership, v1: id:controllers:path
 *   0::/a/b                                              membership, v2
 *   31 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory            mountinfo
 *
 * The mount's root (fourth field) is the group that its mount point shows: a container's mount may
 * begin below the real root, and that part of the path is left out. */
#include "os/cgroup.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 8192 };

const cgroup_source cgroup_system = {"/proc/self/cgroup", "/proc/self/mountinfo"};

/* Returns whether a comma-separated list has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n) {
        bool starts = at == list || at[-1] == ',';
        if (starts && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

/* The process' group in the v1 hierarchy of controller, or in v2 when controller is NULL. */
static bool find_group(const char *membership, const char *controller, char *group)
{
    FILE *f = fopen(membership, "re");
    if (!f)
        return false;
    char line[LINE_BYTES];
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *controllers++ = '\0';
        *path++ = '\0';
        found = controller ? has_word(controllers, controller)
                           : strcmp(line, "0") == 0 && *controllers == '\0';
        if (found)
            snprintf(group, PATH_BYTES, "%s", path);
    }
    fclose(f);
    return found;
}

/* Finds the mount point of that hierarchy (its first mount), and the group that the mount shows. */
static bool find_mount(const char *mounts, const char *controller, char *point, char *root)
{
    FILE *f = fopen(mounts, "re");
    if (!f)
        return false;
    char line[LINE_BYTES];
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        const char *tail = strstr(line, " - ");
        char kind[64], options[1024];
        if (!tail || sscanf(tail, " - %63s %*s %1023s", kind, options) != 2)
            continue;
        if (strcmp(kind, controller ? "cgroup" : "cgroup2") != 0)
            continue;
        if (controller && !has_word(options, controller))
            continue;
        found = sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2;
    }
    fclose(f);
    return found;
}

static void walk_up(const char *group, const char *point, const char *root, cgroup_visit_fn *visit,
                    void *user)
{
    size_t n_root = strcmp(root, "/") == 0 ? 0 : strlen(root);
    bool below =
        strncmp(group, root, n_root) == 0 && (group[n_root] == '/' || group[n_root] == '\0');
    char directory[2 * PATH_BYTES];
    size_t n_point = strlen(point);
    snprintf(directory, sizeof directory, "%s%s", point, below ? group + n_root : "");
    for (;;) {
        size_t n = strlen(directory);
        while (n > n_point && directory[n - 1] == '/')
            directory[--n] = '\0';
        visit(user, directory);
        if (n <= n_point)
            return;
        *strrchr(directory, '/') = '\0';
    }
}

void cgroup_walk(const cgroup_source *source, const char *controller, cgroup_visit_fn *visit,
                 void *user)
{
    const char *const hierarchies[2] = {controller, NULL};
    for (int i = 0; i < 2; i++) {
        char group[PATH_BYTES], point[PATH_BYTES], root[PATH_BYTES];
        if (find_group(source->membership, hierarchies[i], group) &&
            find_mount(source->mounts, hierarchies[i], point, root))
            walk_up(group, point, root, visit, user);
    }
}

bool cgroup_read(const char *directory, const char *name, char *text, int32_t capacity)
{
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    size_t n = fread(text, 1, (size_t)capacity - 1, f);
    text[n] = '\0';
    fclose(f);
    return n > 0;
}
