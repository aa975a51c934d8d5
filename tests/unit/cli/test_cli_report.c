/* Output of the command: the plan in a line, whose parts make up the whole; progress where there is
 * no terminal. */
#include <unistd.h>

#include "cli/terminal/progress.h"
#include "cli/terminal/report.h"
#include "support/test.h"

/* The file, which is closed, holds this text. */
static void says(FILE *file, const char *wanted)
{
    char got[400] = {0};
    rewind(file);
    assert_true(fread(got, 1, sizeof got - 1, file) > 0);
    fclose(file);
    assert_string_equal(got, wanted);
}

TEST(brief_plan_leaves_nothing_out)
{
    const uint64_t mib = 1 << 20;
    drey_plan plan = {.budget_bytes = 100 * mib,
                      .target_bytes = 500 * mib,
                      .pinned_bytes = 30 * mib,
                      .draft_bytes = 20 * mib,
                      .kv_bytes = 10 * mib,
                      .ring_bytes = 5 * mib,
                      .work_bytes = 6 * mib,
                      .held_bytes = 16 * mib, /* a server's requests */
                      .prefix_bytes = 4 * mib,
                      .process_bytes = 9 * mib};
    FILE *file = tmpfile();
    assert_non_null(file);
    report_plan_briefly(file, &plan);
    says(file, "memory plan 100M: pinned 30.0M of 500M, draft 20.0M, caches 10.0M, all else 40.0M\n"
               "  all of the target stays in memory: a pass reads nothing\n");
    plan.target_bytes = 29 * mib; /* packed it is a little larger */
    file = tmpfile();
    assert_non_null(file);
    report_plan_briefly(file, &plan);
    says(file,
         "memory plan 100M: pinned 30.0M of 30.0M, draft 20.0M, caches 10.0M, all else 40.0M\n"
         "  all of the target stays in memory: a pass reads nothing\n");
}

/* By the disk's own speed where it is known. */
TEST(brief_plan_reads)
{
    const uint64_t gib = 1 << 30;
    drey_plan plan = {.budget_bytes = gib,
                      .target_bytes = 3 * gib,
                      .pinned_bytes = gib,
                      .streamed_bytes_per_pass = 2 * gib};
    FILE *file = tmpfile();
    assert_non_null(file);
    report_plan_briefly(file, &plan);
    says(file, "memory plan 1.00G: pinned 1.00G of 3.00G, caches 0, all else 0\n"
               "  a pass reads 2.00G, which takes 2.00 s on a disk of 1G/s\n");
    plan.speeds.disk_bytes_per_s = 4.0 * (double)gib;
    file = tmpfile();
    assert_non_null(file);
    report_plan_briefly(file, &plan);
    says(file, "memory plan 1.00G: pinned 1.00G of 3.00G, caches 0, all else 0\n"
               "  a pass reads 2.00G, which takes 500 ms on a disk of 4.00G/s\n");
}

/* Each thing is said to begin once, also where two take turns. */
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
    /* The second prompt begins where its count falls. */
    says(file, "load target: 10\nload draft: 10\nprompt: 10 tokens\nprompt: 10 tokens\n");
}
