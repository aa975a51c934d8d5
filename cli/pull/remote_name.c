/* Names of files on a hub: see remote_name.h. */
#include "cli/pull/remote_name.h"

#include "common/hex.h"
#include "common/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME_BYTES = 240, MOST_PATH_BYTES = 2048 };

/* Returns why a part of a path on a hub cannot be a file's name here; NULL: it can. */
static const char *fault_of_part(const char *part, size_t n)
{
    if (n == 0)
        return "a part of its path is empty";
    if (n <= 2 && strncmp(part, "..", n) == 0)
        return "its path has a part that is . or ..";
    if (n > MOST_NAME_BYTES)
        return "it is too long";
    for (size_t i = 0; i < n;) {
        bool plain;
        size_t length = utf8_look(part + i, n - i, &plain);
        if (!plain)
            return "it has control characters or is no UTF-8";
        if (strchr("?#\\", part[i]))
            return "it has a ?, a # or a backslash";
        i += length;
    }
    return NULL;
}

const char *remote_name_fault(const char *path)
{
    if (strlen(path) > MOST_PATH_BYTES)
        return "it is too long";
    for (const char *part = path;; part++) {
        size_t n = strcspn(part, "/");
        const char *fault = fault_of_part(part, n);
        part += n;
        if (fault || !*part)
            return fault;
    }
}

char *remote_name_encode(const char *text, const char *plain)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = malloc(3 * strlen(text) + 1), *to = out;
    for (const char *at = text; out && *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (isalnum(c) || strchr(plain, c)) {
            *to++ = (char)c;
        } else {
            *to++ = '%';
            *to++ = digits[c >> 4];
            *to++ = digits[c & 15];
        }
    }
    if (out)
        *to = '\0';
    return out;
}

bool remote_name_decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        int byte = hex_percent(at, strnlen(at, 3));
        *to = byte < 0 ? *at : (char)byte;
        if (!*to++)
            return false;
        at += byte < 0 ? 0 : 2;
    }
    *to = '\0';
    return true;
}
