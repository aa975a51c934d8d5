/* Progress where there is no terminal: each thing is said to begin once, also where two
 * take turns. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/terminal/progress.h"
#include "support/test.h"

TEST(lines_do_not_take_turns)
{
    static const struct {
        drey_progress what;
        uint64_t done;
    } reports[] = {{DREY_PROGRESS_LOAD_TARGET, 0},  {DREY_PROGRESS_LOAD_TARGET, 5},
                   {DREY_PROGRESS_LOAD_DRAFT, 0},   {DREY_PROGRESS_LOAD_TARGET, 8},
                   {DREY_PROGRESS_LOAD_DRAFT, 10},  {DREY_PROGRESS_LOAD_TARGET, 10},
                   {DREY_PROGRESS_LOAD_TARGET, 10}, {DREY_PROGRESS_PROMPT, 7},
                   {DREY_PROGRESS_PROMPT, 10},      {DREY_PROGRESS_PROMPT, 2}};
    FILE *file = tmpfile();
    assert_non_null(file);
    int stderr_fd = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    progress p = {.quiet = false};
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        progress_report(&p, reports[i].what, reports[i].done, 10);
    fflush(stderr);
    dup2(stderr_fd, STDERR_FILENO);
    close(stderr_fd);
    char told[400] = {0};
    rewind(file);
    assert_true(fread(told, 1, sizeof told - 1, file) > 0);
    fclose(file);
    /* The second prompt begins where its count falls. */
    assert_string_equal(told,
                        "load target: 10\nload draft: 10\nprompt: 10 tokens\nprompt: 10 tokens\n");
}
