/* The version, from the build. */
#include "drey/drey.h"

const char *drey_version(void)
{
    return DREY_VERSION;
}
