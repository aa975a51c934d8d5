/* See case_text.h. */
#include "support/grammar/case_text.h"

#include "support/test.h"

void case_decode(char *text)
{
    static const char *const signs[][2] = {{"␤", "\n"}, {"␍", "\r"}, {"␉", "\t"}, {"ε", ""}};
    char *to = text;
    while (*text) {
        unsigned byte;
        size_t i = 0;
        while (i < 4 && strncmp(text, signs[i][0], strlen(signs[i][0])) != 0)
            i++;
        if (i < 4) {
            to = stpcpy(to, signs[i][1]);
            text += strlen(signs[i][0]);
        } else if (sscanf(text, "⟦%2x⟧", &byte) == 1) {
            *to++ = (char)byte;
            text += strlen("⟦00⟧");
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
}

void case_file_read(const char *path, void (*take)(void *user, char *line), void *user,
                    const char *sign, int least)
{
    static char line[16384];
    int n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || !line[0])
            continue;
        n += strstr(line, sign) != NULL;
        take(user, line);
    }
    fclose(f);
    assert_true(n >= least);
}
