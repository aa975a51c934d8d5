/* See checkpoint.h. */
#include "train/checkpoint.h"

#include <string.h>

#include "common/new_file.h"
#include "os/file.h"

typedef struct checkpoint_head {
    checkpoint_about about;
    int64_t step;
    double power1, power2;
} checkpoint_head;

drey_status checkpoint_save(const char *path, const checkpoint_about *about, int64_t step,
                            const float *parameters, const adam *o, drey_error *err)
{
    const checkpoint_head head = {*about, step, o->power1, o->power2};
    size_t n = (size_t)about->n_parameters * sizeof(float);
    const float *parts[] = {parameters, o->first, o->second};
    new_file f;
    TRY(new_file_open(&f, path, err));
    drey_status status = new_file_write(&f, 0, &head, sizeof head, err);
    for (uint64_t i = 0; i < 3 && status == DREY_OK; i++)
        status = new_file_write(&f, sizeof head + i * n, parts[i], n, err);
    return new_file_end(&f, status, err);
}

bool checkpoint_restore(const char *path, const checkpoint_about *about, int64_t *step,
                        float *parameters, adam *o)
{
    checkpoint_head head;
    size_t n = (size_t)about->n_parameters * sizeof(float);
    float *parts[] = {parameters, o->first, o->second};
    file f;
    if (file_open(&f, path, false, NULL) != DREY_OK)
        return false;
    bool good = f.n_bytes == sizeof head + 3 * n &&
                file_read(&f, path, 0, sizeof head, &head, NULL, 0, NULL) == DREY_OK &&
                memcmp(&head.about, about, sizeof *about) == 0 && head.step >= 0 &&
                head.step <= about->n_steps;
    for (uint64_t i = 0; i < 3 && good; i++)
        good = file_read(&f, path, sizeof head + i * n, n, parts[i], NULL, 0, NULL) == DREY_OK;
    file_close(&f);
    if (good) {
        *step = head.step;
        o->power1 = head.power1;
        o->power2 = head.power2;
    }
    return good;
}
