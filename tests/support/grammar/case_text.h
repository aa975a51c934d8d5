/* Texts of tests in files of cases, a line each. */
#pragma once

/* Puts characters in place of their signs: ␤ ␍ ␉ for a line feed, a carriage return and a tab, ⟦ff⟧
 * for a byte in hexadecimal, ε for nothing. */
void case_decode(char *text);

/* Calls take with each line of the file but comments (#) and empty ones. Fails the test where fewer
 * than `least` lines have a `sign`. */
void case_file_read(const char *path, void (*take)(void *user, char *line), void *user,
                    const char *sign, int least);
