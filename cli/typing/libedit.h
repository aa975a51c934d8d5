/* Functions of libedit: loaded when a terminal asks for it, or in a static program linked. */
#pragma once

#include <histedit.h>
#include <stdbool.h>

typedef struct editing {
    __typeof__(el_init) *init;
    __typeof__(el_end) *end;
    __typeof__(el_set) *set;
    __typeof__(el_gets) *gets;
    __typeof__(el_source) *source;
    __typeof__(el_wgetc) *wgetc;
    __typeof__(el_wline) *wline;
    __typeof__(el_winsertstr) *winsertstr;
    __typeof__(history_init) *history_init;
    __typeof__(history_end) *history_end;
    __typeof__(history) *history;
} editing;

/* false: it is not there, or lacks one of them. The library stays loaded. */
bool libedit_find(editing *e);
