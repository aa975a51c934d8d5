#include "unit/opencl/opencl_api.h"

#include <dlfcn.h>
#include <string.h>

drey_status opencl_api_open(opencl_api *api, const char *library, const char *kind, drey_error *err)
{
    *api = (opencl_api){.library = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (!api->library)
        FAIL(err, DREY_ERR_UNSUPPORTED, "there is no %s library here: %s", kind, dlerror());
#define OPENCL_LOAD(result, name, arguments)                                                       \
    {                                                                                              \
        void *function = dlsym(api->library, "cl" #name);                                          \
        if (!function)                                                                             \
            FAIL(err, DREY_ERR_UNSUPPORTED, "%s lacks cl" #name ": OpenCL 1.2 is needed",          \
                 SHOWN_PATH(library));                                                             \
        memcpy(&api->name, &function, sizeof function);                                            \
    }
    OPENCL_FUNCTIONS(OPENCL_LOAD)
#undef OPENCL_LOAD
    return DREY_OK;
}

bool opencl_api_is_open(const char *library)
{
    void *open = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (open)
        dlclose(open);
    return open != NULL;
}
