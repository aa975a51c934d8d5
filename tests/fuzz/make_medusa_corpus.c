/* Writes the first inputs of fuzz_medusa: good files, and files that say one thing that cannot be.
 * Usage: make_medusa_corpus FOLDER */
#include "support/heads_file.h"

#include <math.h>
#include <stdio.h>

static void save(const heads_file *h, const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    heads_file_write(path, h);
}

int main(int n_args, char **args)
{
    const heads_file good = {.architecture = MEDUSA_ARCHITECTURE,
                             .version = MEDUSA_VERSION,
                             .target = 5,
                             .shape = {.n_heads = 2, .n_embd = 32, .n_ids = 320, .scale = 1},
                             .type = TYPE_Q8_0,
                             .spread = 0.02f,
                             .seed = 5};
    if (n_args != 2)
        return 2;
    save(&good, args[1], "all");
    heads_file h = good;
    h.shape.n_ids = 64;
    h.shape.n_heads = 1;
    h.type = TYPE_F32;
    save(&h, args[1], "slice");
    h.target = 6;
    save(&h, args[1], "foreign");
    static const struct {
        int32_t ids[4], n;
        const char *name;
    } lists[] = {{{3, 64, 65, 319}, 4, "few"}, {{0}, 0, "nobody"},      {{1, 7, 7, 8}, 4, "twice"},
                 {{9, 2}, 2, "falling"},       {{0, 320}, 2, "beyond"}, {{0, -1}, 2, "huge"}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        h = good;
        h.ids = lists[i].ids;
        h.shape.n_ids = lists[i].n;
        save(&h, args[1], lists[i].name);
    }
    h = good;
    h.shape.n_ids = 321;
    save(&h, args[1], "vocabulary");
    h = good;
    h.version = 2;
    save(&h, args[1], "version");
    h = good;
    h.shape.scale = NAN;
    save(&h, args[1], "scale");
    h = good;
    h.shape.accuracy[1][2] = 2;
    save(&h, args[1], "accuracy");
    return 0;
}
