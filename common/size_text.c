/* Sizes as text: see size_text.h. */
#include "common/size_text.h"

#include <stdio.h>

const char *format_bytes(char out[static 16], double bytes)
{
    static const char units[] = " KMGTPE";
    int unit = 0;
    while (bytes >= 999.5 && units[unit + 1]) {
        bytes /= 1024;
        unit++;
    }
    if (unit == 0) {
        snprintf(out, 16, "%.0f", bytes);
        return out;
    }
    int decimals = bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0;
    snprintf(out, 16, "%.*f%c", decimals, bytes, units[unit]);
    return out;
}
