/* The plan in a line: its parts make up the whole. */
#include <stdio.h>
#include <string.h>

#include "cli/terminal/report.h"
#include "support/test.h"

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
    char told[400] = {0};
    rewind(file);
    assert_true(fread(told, 1, sizeof told - 1, file) > 0);
    fclose(file);
    assert_string_equal(
        told, "memory plan 100M: pinned 30.0M of 500M, draft 20.0M, caches 10.0M, all else 40.0M\n"
              "  the target stays in memory: the disk sets no ceiling\n");
}
