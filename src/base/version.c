/* The version, from the build. */
#include "drey/drey_error.h"

const char *drey_version(void)
{
    return DREY_VERSION;
}
