/* Memory figures: the parsers on texts of both cgroup versions, limits at any level of a made-up
 * hierarchy, and the real system's figures against what this process does. */
#include "os/memory.h"
#include "support/bytes_file.h"
#include "support/temp_dir.h"
#include "support/test.h"

static void write_text(const char *name, const char *text)
{
    bytes_file_write(temp_path(name), text, strlen(text));
}

/* A source whose files are made of membership and mounts; "%s" in mounts is the directory. */
static cgroup_source make_source(const char *membership, const char *mounts)
{
    char text[4096];
    const char *base = temp_path("fs");
    snprintf(text, sizeof text, mounts, base, base);
    cgroup_source source = {temp_path("membership"), temp_path("mounts")};
    bytes_file_write(source.membership, membership, strlen(membership));
    bytes_file_write(source.mounts, text, strlen(text));
    return source;
}

TEST(limits_parse)
{
    assert_true(memory_parse_limit("max\n") == UINT64_MAX);
    assert_true(memory_parse_limit("9223372036854771712\n") == UINT64_MAX);
    assert_true(memory_parse_limit("99999999999999999999999\n") == UINT64_MAX);
    assert_true(memory_parse_limit("") == UINT64_MAX);
    assert_int_equal(memory_parse_limit("838860800\n"), 838860800);
    assert_int_equal(memory_parse_limit("0\n"), 0);
}

TEST(fields_parse)
{
    const char *text = "MemTotal:       16384 kB\nMemFree:  12 kB\nMemAvailable:   8192 kB\n";
    assert_int_equal(memory_parse_field(text, "MemTotal:"), 16384 * 1024);
    assert_int_equal(memory_parse_field(text, "MemAvailable:"), 8192 * 1024);
    assert_int_equal(memory_parse_field(text, "Available:"), 0);
    assert_int_equal(memory_parse_field("", "MemTotal:"), 0);
    const char *stat = "total_cache 7\ncache_x 8\ncache 9\n";
    assert_int_equal(memory_parse_stat(stat, "cache"), 9);
    assert_int_equal(memory_parse_stat(stat, "cac"), 0);
}

static const char V2_MOUNT[] = "30 23 0:26 / %s/v2 rw,nosuid - cgroup2 cgroup2 rw\n";

TEST(v2_takes_the_least_of_all_levels)
{
    cgroup_source source = make_source("0::/user.slice/run\n", V2_MOUNT);
    write_text("fs/v2/user.slice/run/memory.max", "max\n");
    write_text("fs/v2/user.slice/memory.max", "1000000\n");
    assert_int_equal(memory_cgroup_room_in(&source, 0), 1000000);
    write_text("fs/v2/user.slice/run/memory.max", "400000\n");
    assert_int_equal(memory_cgroup_room_in(&source, 0), 400000);
    write_text("fs/v2/memory.max", "300000\n");
    assert_int_equal(memory_cgroup_room_in(&source, 0), 300000);
}

static const char V1_MOUNTS[] = "25 23 0:22 / %s/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                                "26 23 0:23 / %s/v1 rw,nosuid shared:9 - cgroup cgroup rw,memory\n";

TEST(v1_takes_the_least_of_all_levels)
{
    cgroup_source source = make_source("5:cpu,cpuacct:/\n4:memory:/a/b\n0::/\n", V1_MOUNTS);
    assert_true(memory_cgroup_room_in(&source, 0) == UINT64_MAX);
    write_text("fs/v1/memory.limit_in_bytes", "9223372036854771712\n");
    write_text("fs/v1/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(memory_cgroup_room_in(&source, 0) == UINT64_MAX);
    write_text("fs/v1/a/memory.limit_in_bytes", "2684354560\n");
    assert_int_equal(memory_cgroup_room_in(&source, 0), 2684354560);
}

/* What others hold is out of reach, what they have cached is not; the process' own counts as free.
 */
TEST(room_is_what_others_leave)
{
    cgroup_source source =
        make_source("0::/pod/run\n", "30 23 0:26 / %s/pods rw - cgroup2 cgroup2 rw\n");
    write_text("fs/pods/pod/memory.max", "1000000\n");
    write_text("fs/pods/pod/run/memory.max", "max\n");
    assert_int_equal(memory_cgroup_room_in(&source, 5000), 1000000);
    write_text("fs/pods/pod/memory.current", "700000\n");
    assert_int_equal(memory_cgroup_room_in(&source, 5000), 305000);
    write_text(
        "fs/pods/pod/memory.stat",
        "anon 350000\nfile 350000\nactive_anon 1\ninactive_file 200000\nactive_file 100000\n");
    assert_int_equal(memory_cgroup_room_in(&source, 5000), 605000);
    assert_int_equal(memory_cgroup_room_in(&source, 900000), 1000000);
    write_text("fs/pods/pod/run/memory.high", "400000\n");
    assert_int_equal(memory_cgroup_room_in(&source, 5000), 400000);
    write_text("fs/pods/pod/memory.current", "2000000\n");
    assert_int_equal(memory_cgroup_room_in(&source, 0), 0);
}

TEST(v1_room_counts_the_levels_below)
{
    cgroup_source source = make_source("4:memory:/c/d\n", V1_MOUNTS);
    write_text("fs/v1/c/memory.limit_in_bytes", "500000\n");
    write_text("fs/v1/c/memory.usage_in_bytes", "450000\n");
    write_text("fs/v1/c/memory.stat", "inactive_file 11\nactive_file 12\n"
                                      "total_inactive_file 150000\ntotal_active_file 50000\n");
    assert_int_equal(memory_cgroup_room_in(&source, 0), 250000);
    write_text("fs/v1/memory.limit_in_bytes", "9223372036854771712\n");
    write_text("fs/v1/memory.usage_in_bytes", "9000000\n");
    assert_int_equal(memory_cgroup_room_in(&source, 100000), 350000);
}

TEST(container_mounts_show_their_part)
{
    /* The mount begins at the container's own group: its limit is in the mount's root. */
    cgroup_source source =
        make_source("0::/docker/abc\n", "30 23 0:26 /docker/abc %s/box rw - cgroup2 cgroup2 rw\n");
    write_text("fs/box/memory.max", "555000\n");
    assert_int_equal(memory_cgroup_room_in(&source, 0), 555000);
    /* A group outside of what is mounted: the mount's root is all there is to see. */
    source =
        make_source("0::/elsewhere\n", "30 23 0:26 /docker/abc %s/box rw - cgroup2 cgroup2 rw\n");
    assert_int_equal(memory_cgroup_room_in(&source, 0), 555000);
}

TEST(nothing_mounted_is_no_limit)
{
    cgroup_source source = make_source("0::/x\n4:memory:/x\n", "1 1 0:1 / / rw - ext4 /dev/x rw\n");
    assert_true(memory_cgroup_room_in(&source, 0) == UINT64_MAX);
    cgroup_source missing = {"/nonexistent/a", "/nonexistent/b"};
    assert_true(memory_cgroup_room_in(&missing, 0) == UINT64_MAX);
    source = make_source("broken\n\n:\n", "broken - \n");
    assert_true(memory_cgroup_room_in(&source, 0) == UINT64_MAX);
}

TEST(budgets_follow_from_what_is_known)
{
    bool estimated;
    assert_int_equal(memory_budget_of(UINT64_MAX, 2100, 900, &estimated), 2000);
    assert_false(estimated);
    assert_int_equal(memory_budget_of(1050, 2100, 900, &estimated), 1000);
    assert_false(estimated);
    assert_int_equal(memory_budget_of(UINT64_MAX, 0, 2100, &estimated), 2000);
    assert_true(estimated);
    assert_int_equal(memory_budget_of(1050, 0, 2100, &estimated), 1000);
    assert_true(estimated);
    assert_int_equal(memory_budget_of(1050, 0, 0, &estimated), 1000);
    assert_int_equal(memory_budget_of(UINT64_MAX, 0, 0, &estimated), 0); /* not: no bound */
}

TEST(the_system_answers)
{
    uint64_t total = memory_total(), available = memory_available();
    assert_true(total > 16u << 20);
    assert_true(available > 0 && available <= total);
    bool estimated;
    uint64_t budget = memory_auto_budget(&estimated);
    assert_false(estimated);
    assert_true(budget > 0 && budget < total);

    uint64_t program = memory_program();
    assert_true(program > 100 << 10 && program < total);
    uint64_t again = memory_program(); /* a sanitizer takes memory of its own now and then */
    assert_true(again >= program && again - program <= 256 << 10);

    const size_t n = 48u << 20;
    uint64_t before = memory_resident();
    char *block = malloc(n);
    assert_non_null(block);
    memset(block, 1, n);
    uint64_t during = memory_resident();
    assert_true(during >= before + n / 2);
    assert_true(memory_program() >= program + n / 2);
    free(block);
    assert_true(memory_resident_peak() + (8u << 20) >= during); /* the kernel counts in batches */
    assert_true(memory_major_faults() >= 0);
}
