/* Takes the place of opencl_api.c in a static program, which can load no library. */
#include "unit/opencl/opencl_api.h"

drey_status opencl_api_open(opencl_api *api, const char *library, const char *kind, drey_error *err)
{
    (void)library;
    *api = (opencl_api){0};
    FAIL(
        err, DREY_ERR_UNSUPPORTED,
        "this drey is one static file, which cannot load the %s library: use a drey that was built "
        "for this system",
        kind);
}

bool opencl_api_is_open(const char *library)
{
    (void)library;
    return false;
}
