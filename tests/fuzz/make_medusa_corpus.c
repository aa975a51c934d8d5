/* Writes the first inputs of fuzz_medusa: good files, and files that say one thing that cannot be. Usage:
 * make_medusa_corpus FOLDER */
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
    h = good;
    h.shape.n_ids = 65;
    save(&h, args[1], "vocabulary");
    h = good;
    h.shape.scale = NAN;
    save(&h, args[1], "scale");
    h = good;
    h.shape.accuracy[1][2] = 2;
    save(&h, args[1], "accuracy");
    return 0;
}
