/* Texts of tests in files of cases, a line each. */
#pragma once

/* Puts characters in place of their signs: ␤ ␍ ␉ for a line feed, a carriage return and a tab, ⟦ff⟧
 * for a byte in hexadecimal, ε for nothing. */
void case_decode(char *text);
