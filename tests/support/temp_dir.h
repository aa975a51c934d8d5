/* A directory of a test's own that goes away with it. */
#pragma once

/* Makes a new directory under $TMPDIR or /tmp; the path is valid until temp_dir_remove. Aborts when
 * there is no room for tests. One at a time. */
const char *temp_dir(void);
/* PATH/name in its own buffer, in a new directory where there is none: the last 16 results are
 * valid. */
const char *temp_path(const char *name);
/* Removes the directory and all that is in it. */
void temp_dir_remove(void);

/* Setup and teardown of a group of tests that needs no more than the directory. */
int temp_dir_set_up(void **state);
int temp_dir_tear_down(void **state);
