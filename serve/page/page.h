/* The page that `drey serve` gives out: the sources in this folder, as cmake/embed_page.cmake puts
 * it into the program. */
#pragma once

#include <stddef.h>

extern const unsigned char page_html[];
extern const size_t n_page_html_bytes;
/* The value of its Content-Security-Policy: scripts and styles but its own do not run, and nothing
 * is asked of another server. */
extern const char page_policy[];
