/* Property: any bytes are refused as a machine with one sentence that says what to do, or every
 * strategy can be simulated on it, at every width, in finite time. */
#include "cli/files/simulation_file.h"
#include "fuzz/fuzz.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_sentence(const drey_error *err, drey_status status)
{
    FUZZ_CHECK(err->code == status && err->message[0]);
    for (const char *c = err->message; *c; c++)
        FUZZ_CHECK((uint8_t)*c >= 0x20 && *c != 0x7f);
}

static void check_taken(const simulation_file *f)
{
    drey_error err = {0};
    drey_sim_pass pass;
    FUZZ_CHECK(f->attention_width >= 0 && f->attention_width < f->machine.n_widths);
    FUZZ_CHECK(f->n_contexts <= SIMULATION_CONTEXTS && f->n_claims <= SIMULATION_CLAIMS);
    for (int i = 0; i <= DREY_SIM_DYNAMIC; i++)
        for (int32_t w = 0; w < f->machine.n_widths; w++) {
            drey_status status =
                drey_simulate(&f->machine, (drey_sim_strategy)i, w, f->context, &pass, &err);
            if (status == DREY_OK)
                FUZZ_CHECK(isfinite(pass.seconds) && pass.seconds > 0);
            else
                check_sentence(&err, status);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    simulation_file file;
    drey_error err = {0};
    char path[64];
    int fd = memfd_create("machine", 0);
    FUZZ_CHECK(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    drey_status status = simulation_read(&file, path, &err);
    if (status == DREY_OK)
        check_taken(&file);
    else
        check_sentence(&err, status);
    simulation_free(&file);
    close(fd);
    return 0;
}
