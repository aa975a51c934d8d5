/* Replaces transport_load.c in a static program, which can load no library. */
#include "ranks/ranks.h"

#include "common/error.h"

drey_status transport_load(const rank_transport **out, drey_error *err)
{
    *out = NULL;
    FAIL(err, DREY_ERR_UNSUPPORTED,
         "this drey is one static file, which cannot load MPI: use a drey that was built for this "
         "system");
}
