/* Widths: see char_width.h. */
#include "cli/terminal/char_width.h"

#include <locale.h>
#include <pthread.h>
#include <wchar.h>

static locale_t utf8; /* 0: the library has none */

static void find_locale(void)
{
    utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* East Asian characters and emoji, in blocks. */
static int width_by_block(uint32_t code)
{
    static const uint32_t wide[][2] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                                       {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                       {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
    if ((code >= 0x300 && code < 0x370) || code == 0x200D || (code >= 0xFE00 && code < 0xFE10))
        return 0;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (code >= wide[i][0] && code <= wide[i][1])
            return 2;
    return 1;
}

int char_width(uint32_t code)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (code >= 0x20 && code < 0x7F)
        return 1;
    if (code < 0xA0)
        return -1;
    pthread_once(&once, find_locale);
    if (!utf8)
        return width_by_block(code);
    locale_t before = uselocale(utf8);
    int width = wcwidth((wchar_t)code);
    uselocale(before);
    return width;
}

bool char_is_disputed(uint32_t code)
{
    return code == 0x200D || (code >= 0xFE00 && code <= 0xFE0F) ||
           (code >= 0x1F3FB && code <= 0x1F3FF) || (code >= 0x1F1E6 && code <= 0x1F1FF) ||
           (code >= 0xE0000 && code <= 0xE0FFF) || code == 0xAD;
}
