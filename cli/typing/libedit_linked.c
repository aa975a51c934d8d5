/* libedit in a static program, which can load no library: see libedit.h. */
#include "cli/typing/libedit.h"

bool libedit_find(editing *e)
{
    *e = (editing){.init = el_init,
                   .end = el_end,
                   .set = el_set,
                   .gets = el_gets,
                   .source = el_source,
                   .wgetc = el_wgetc,
                   .wline = el_wline,
                   .winsertstr = el_winsertstr,
                   .history_init = history_init,
                   .history_end = history_end,
                   .history = history};
    return true;
}
