/* Code books of the IQ types: rows of magnitudes that their blocks have the numbers of. */
#pragma once

#include <stdint.h>

/* A row of a book is eight bytes (IQ3: four), that of the first weight the lowest. */
typedef struct code_books {
    uint64_t iq2_xxs[256], iq2_xs[512], iq2_s[1024]; /* 8, 25, 43 */
    uint32_t iq3_xxs[256];                           /* 4, 12, 20 ... 52, 62 */
    uint32_t iq3_s[512];                             /* 1, 3, 5 ... 15 */
    uint64_t iq1[2048];                              /* IQ1_S, IQ1_M: 0, 8, 16 for -1, 0, 1 */
    uint64_t minus[256];      /* bytes 255 where a byte's bit is set, else 0 */
    uint64_t even_minus[128]; /* the same of a number of 7 bits and their parity above them */
} code_books;

/* Constant after code_books_make, which kernel_select calls. */
extern code_books books;
void code_books_make(void);
