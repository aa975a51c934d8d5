/* What drafters are called: see drafter.h. */
#include "draft/drafter.h"

const char *drey_drafter_name(drey_drafter which)
{
    static const char *const names[] = {[DREY_DRAFTER_NONE] = "none",
                                        [DREY_DRAFTER_MODEL] = "model",
                                        [DREY_DRAFTER_NGRAM] = "ngram"};
    return (unsigned)which < sizeof names / sizeof *names ? names[which] : NULL;
}
