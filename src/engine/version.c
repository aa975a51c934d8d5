/* The version, as the build says. */
#include "drey/drey.h"

const char *drey_version(void)
{
    return DREY_VERSION;
}
