/* Opens libdrey-mpi: see ranks.h. */
#include "ranks/ranks.h"

#include <dlfcn.h>
#include <string.h>

#include "common/error.h"

drey_status transport_load(const rank_transport **out, drey_error *err)
{
    static const char *name = "libdrey-mpi.so." DREY_VERSION;
    void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (!library)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "several ranks need %s, which is built where MPI's headers are (%.200s)", name,
             dlerror());
    void *entry = dlsym(library, TRANSPORT_ENTRY);
    rank_transport_fn *of;
    memcpy(&of, &entry, sizeof of); /* a pointer to data is no pointer to a function */
    if (!entry || of()->version != TRANSPORT_VERSION)
        FAIL(err, DREY_ERR_MISMATCH, "%s is of another version of drey; install both together",
             name);
    *out = of();
    return DREY_OK;
}
