/* The version, from the build. */
#include "drey/drey_error.h"
#include "drey/drey_model.h"

const char *drey_version(void)
{
    return DREY_VERSION;
}
