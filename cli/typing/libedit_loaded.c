/* libedit, loaded at run time so that no other command needs it: see libedit.h. */
#include "cli/typing/libedit.h"

#include <dlfcn.h>
#include <stddef.h>

bool libedit_find(editing *e)
{
    void *library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    const struct {
        const char *name;
        void **to;
    } wanted[] = {{"el_init", (void **)&e->init},
                  {"el_end", (void **)&e->end},
                  {"el_set", (void **)&e->set},
                  {"el_gets", (void **)&e->gets},
                  {"el_source", (void **)&e->source},
                  {"el_wgetc", (void **)&e->wgetc},
                  {"el_wline", (void **)&e->wline},
                  {"el_winsertstr", (void **)&e->winsertstr},
                  {"history_init", (void **)&e->history_init},
                  {"history_end", (void **)&e->history_end},
                  {"history", (void **)&e->history}};
    bool whole = true;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        *wanted[i].to = dlsym(library, wanted[i].name);
        whole = whole && *wanted[i].to;
    }
    return whole;
}
