/* The plan of an engine: the least budget works in the next run, an engine
 * lives in it, and the prediction is the ceiling's formula, worked out here by hand. */
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "session/session.h"
#include "common/size_text.h"
#include "os/clock.h"
#include "os/memory.h"
#include "os/reader.h"
#include "support/bytes_file.h"
#include "support/toy_models.h"

static drey_engine_options usual(bool with_draft)
{
    drey_engine_options o =
        toys_options(with_draft ? DREY_DRAFTER_MODEL : DREY_DRAFTER_NONE, 64, 1);
    o.memory_bytes = 0;
    return o;
}

static uint64_t least_budget(drey_engine_options o)
{
    drey_plan plan;
    drey_error err = {0};
    o.memory_bytes = 1;
    assert_int_equal(drey_plan_make(&o, NULL, &plan, &err), DREY_ERR_MEMORY);
    char says[40];
    snprintf(says, sizeof says, "works here is %s with", SIZE_TEXT(plan.smallest_budget_bytes));
    assert_non_null(strstr(err.message, says));
    assert_int_equal(plan.smallest_budget_bytes % (1 << 20), 0);
    return plan.smallest_budget_bytes;
}

static drey_plan plan_of(const drey_engine_options *o, const drey_speeds *speeds)
{
    drey_plan plan;
    MUST(drey_plan_make, o, speeds, &plan);
    return plan;
}

/* Of memory that was used and freed before, an allocator may keep all. */
TEST(what_was_freed_does_not_count)
{
#ifdef TESTS_SANITIZED
    NOT_RUN("a sanitizer keeps what was freed on purpose");
#else
    enum { N = 400, BYTES = 48 << 10 };
    void *block[N];
    drey_engine_options o = usual(false);
    uint64_t before = least_budget(o);
    for (int i = 0; i < N; i++) {
        block[i] = malloc(BYTES);
        assert_non_null(block[i]);
        memset(block[i], 1, BYTES);
    }
    void *last = malloc(BYTES); /* so that they are not at the heap's end */
    for (int i = 0; i < N; i++)
        free(block[i]);
    assert_in_range(least_budget(o), before - (1 << 20), before + (1 << 20));
    free(last);
#endif
}

/* Reads through the page cache wait there for their threads, those of both models at once. */
TEST(buffered_reads_are_counted)
{
    const uint64_t most = READER_MOST_THREADS * READER_CACHED_BYTES;
    for (int with_draft = 0; with_draft < 2; with_draft++) {
        drey_engine_options o = usual(with_draft);
        o.memory_bytes = (uint64_t)1 << 30;
        o.io = DREY_IO_BUFFERED;
        drey_plan p = plan_of(&o, NULL);
        assert_true(p.reserve_bytes >= (with_draft ? 2 : 1) * most + (1 << 20));
        assert_true((p.draft_bytes > 0) == with_draft && (p.draft_kv_bytes > 0) == with_draft);
        assert_true(p.draft_kv_bytes < p.kv_bytes && p.passes_per_s == 0 && p.pass_s == 0);
    }
}

/* The least budget does not only plan: an engine opens and writes in it. */
TEST(the_least_budget_works)
{
    for (int with_draft = 0; with_draft < 2; with_draft++) {
        drey_engine_options o = usual(with_draft);
        o.memory_bytes = least_budget(o);
        /* What the program itself has written to moves by pages, and so across a MiB now and
         * then. */
        assert_in_range(least_budget(o), o.memory_bytes - (1 << 20), o.memory_bytes + (1 << 20));
        drey_session *s = open_alone(&o, NULL);
        drey_plan plan;
        drey_engine_plan(s->engine, &plan);
        assert_true(plan.streamed_bytes_per_pass > 0);
        drey_generate_options g = greedy(12);
        drey_statistics stats;
        const int32_t prompt[] = {3, 4, 5};
        MUST(drey_session_generate, s, prompt, 3, &g, &stats);
        assert_int_equal(stats.generated_tokens, 12);
        close_alone(&s);
    }
}

typedef struct tensor_sum {
    int32_t n;
    uint64_t bytes[DREY_LOOKED_UP + 1];
} tensor_sum;

static void add_tensor(void *user, const char *tensor, uint64_t bytes, drey_residency where)
{
    tensor_sum *sum = user;
    assert_true(tensor[0] != '\0');
    sum->n++;
    sum->bytes[where] += bytes;
}

/* Once a planner is open, its files may be gone: no budget asks for them again. */
TEST(a_planner_reads_once)
{
    toy_options toy = toy_default();
    drey_model *model = toy_open("gone.gguf", &toy);
    drey_engine_options o = usual(false);
    o.target = model;
    o.n_sessions = 2;
    drey_planner *p = NULL;
    drey_plan plan, same;
    drey_error err = {0};
    MUST(drey_prepare, &(drey_prepare_options){.model = model}, NULL);
    o.memory_bytes = least_budget(o) + (1 << 20); /* the process may grow a little meanwhile */
    same = plan_of(&o, NULL);
    assert_true(same.sidecar);
    MUST(drey_planner_open, &p, &o);
    assert_int_equal(unlink(temp_path("gone.gguf")), 0);
    assert_int_equal(unlink(temp_path("gone.gguf.drey")), 0);

    uint64_t before = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        uint64_t budget = o.memory_bytes + (uint64_t)i * (64 << 10);
        MUST(drey_planner_make, p, budget, NULL, &plan);
        assert_int_equal(plan.budget_bytes, budget);
        assert_true(plan.sidecar && plan.n_sessions == 2);
        assert_true(plan.streamed_bytes_per_pass <= before);
        before = plan.streamed_bytes_per_pass;
        tensor_sum sum = {0};
        MUST(drey_planner_visit, p, budget, add_tensor, &sum);
        assert_true(sum.n > 0);
        assert_int_equal(sum.bytes[DREY_STREAMED], plan.streamed_bytes_per_pass);
        assert_int_equal(sum.bytes[DREY_LOOKED_UP], plan.lookup_bytes);
    }
    assert_int_equal(drey_planner_make(p, 1, NULL, &plan, &err), DREY_ERR_MEMORY);
    MUST(drey_planner_make, p, 0, NULL, &plan);
    assert_int_equal(plan.budget_bytes, o.memory_bytes);
    assert_int_equal(plan.target_bytes, same.target_bytes);
    drey_planner_close(&p);
    assert_null(p);
    drey_model_close(&model);
}

/* As many sessions as were planned for, and what they take is what the plan says. */
TEST(sessions_are_counted)
{
    drey_engine_options o = usual(true);
    drey_engine *e = NULL;
    drey_session *s[3] = {NULL};
    drey_error err = {0};
    o.memory_bytes = least_budget(o);
    uint64_t one = plan_of(&o, NULL).session_bytes;
    o.n_sessions = 2;
    uint64_t least = least_budget(o);
    uint64_t more = least + (1 << 20) - o.memory_bytes; /* both are rounded to whole MiB */
    assert_true(more >= one && more <= one + one / 64 + (2 << 20));
    o.memory_bytes = least;
    MUST(drey_engine_open, &e, &o);
    MUST(drey_session_open, &s[0], e);
    MUST(drey_session_open, &s[1], e);
    REFUSED(DREY_ERR_USAGE, "n_sessions", drey_session_open, &s[2], e);
    assert_true(s[0]->memory.arena.used_bytes <= one);
    drey_session_close(&s[0]);
    MUST(drey_session_open, &s[2], e);
    drey_session_close(&s[1]);
    drey_session_close(&s[2]);
    drey_engine_close(&e);
    o.n_sessions = DREY_MAX_SESSIONS + 1;
    assert_int_equal(drey_engine_open(&e, &o, &err), DREY_ERR_USAGE);
    o.n_sessions = -1;
    assert_int_equal(drey_engine_open(&e, &o, &err), DREY_ERR_USAGE);
}

/* A plan that forgot something is reported when memory is laid out; nothing is overrun. */
TEST(a_short_plan_is_an_error)
{
    drey_engine_options o = usual(false);
    drey_engine *e = NULL;
    drey_session *s = NULL;
    MUST(drey_engine_open, &e, &o);
    e->plan.n_slots += 1000; /* the plan was made for fewer */
    REFUSED(DREY_ERR_INTERNAL, "bytes short", drey_session_open, &s, e);
    assert_null(s);
    e->plan.n_slots -= 1000;
    MUST(drey_session_open, &s, e);
    drey_session_close(&s);
    drey_engine_close(&e);
}

typedef struct mapping {
    unsigned long begin, end, resident_kb;
} mapping;

/* The mapping that holds this program's code. */
static mapping code_mapping(void)
{
    unsigned long here = (unsigned long)(uintptr_t)&memory_settle_code, kb;
    mapping m, code = {0};
    char line[512];
    bool inside = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &m.begin, &m.end) == 2) {
            inside = here >= m.begin && here < m.end;
            if (inside)
                code = m;
        } else if (inside && sscanf(line, "Rss: %lu", &kb) == 1) {
            code.resident_kb = kb;
        }
    }
    fclose(f);
    return code;
}

TEST(code_is_brought_in)
{
    mapping code = code_mapping();
    size_t n = code.end - code.begin;
    assert_int_equal(madvise((void *)(uintptr_t)code.begin, n, MADV_DONTNEED), 0);
    assert_true(code_mapping().resident_kb < n / 1024);
    /* An engine leaves that to the program. */
    drey_engine_options o = usual(false);
    drey_engine *e = NULL;
    MUST(drey_engine_open, &e, &o);
    assert_true(code_mapping().resident_kb < n / 1024);
    drey_engine_close(&e);
    drey_settle_memory();
    assert_int_equal(code_mapping().resident_kb, n / 1024);
}

/* Pages of its file that the program itself maps, at most: it is the first of the objects. */
static int add_pages(struct dl_phdr_info *object, size_t size, void *user)
{
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD)
            *(size_t *)user += object->dlpi_phdr[i].p_filesz / 4096 + 2;
    return 1;
}

/* Counts pages in the page cache, once reads that are under way are over. */
static size_t pages_after_reads(const char *path)
{
    nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    return cached_pages(path);
}

/* Pages that are still being read ahead when settling begins are dropped as well, except those that
 * the program maps. */
TEST(the_rest_of_the_file_goes)
{
    const char *path = "/proc/self/exe";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    drey_settle_memory();
    size_t settled = pages_after_reads(path), mapped = 0;
    dl_iterate_phdr(add_pages, &mapped);
    struct stat about;
    fstat(fd, &about);
    if (settled > (size_t)about.st_size / 8192) {
        print_message("not run: this file system does not let go of cached files\n");
        close(fd);
        return;
    }
    /* Settling waits 50 ms at most. Where a busy disk makes it wait as long as that, it may give
     * up, and the round says nothing. */
    int n_rounds = 0;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(readahead(fd, 0, (size_t)about.st_size), 0);
        int64_t start = clock_ns();
        drey_settle_memory();
        bool in_time = clock_ns() - start < 45 * 1000 * 1000;
        size_t left = pages_after_reads(path);
        assert_true(!in_time || left <= mapped);
        n_rounds += in_time;
    }
    if (!n_rounds)
        print_message("not run: the disk was too busy\n");
    close(fd);
}

#define near(got, want) assert_near(got, want, 1e-9 * fabs((double)(want)))

TEST(predicts_the_ceiling)
{
    drey_engine_options o = usual(false);
    o.memory_bytes = least_budget(o) + (1 << 20);
    drey_speeds disk = {.disk_bytes_per_s = 1e6}; /* so slow that nothing else matters */
    drey_plan p = plan_of(&o, &disk);
    double read_s = (double)p.streamed_bytes_per_pass / 1e6;
    near(p.read_s, read_s);
    near(p.alone_pass_s, read_s);
    near(p.ceiling_tokens_per_s, 1 / read_s);
    near(p.expected_tokens_per_s, 1 / read_s);
    assert_int_equal(p.tree_rows, 1);
    drey_engine_options guessing = o;
    guessing.drafter = DREY_DRAFTER_LOOKUP;
    guessing.memory_bytes = least_budget(guessing) + (1 << 20);
    p = plan_of(&guessing, &disk);
    near(p.expected_tokens_per_s, 1.5 / p.read_s); /* of 31 nodes, which cost nothing here */

    /* With kernels at one operation a second, computing is all: two for each weight. The toy's
     * matrices are all but its embedding's look-up, which is the head too. */
    drey_speeds slow = {.disk_bytes_per_s = 1e12, .one_ops_per_s = 1, .tree_ops_per_s = 4};
    p = plan_of(&o, &slow);
    double numbers = p.compute_s / 2;
    drey_model_info info;
    drey_model_describe(target, &info);
    assert_true(numbers > 0.9 * (double)info.n_parameters && numbers <= (double)info.n_parameters);
    near(p.ceiling_tokens_per_s, 1 / p.compute_s);

    o = usual(true);
    o.memory_bytes = least_budget(o) + (1 << 20);
    p = plan_of(&o, &slow);
    assert_int_equal(p.tree_rows, 48);
    near(p.verify_s, 2 * 48 * numbers / 4);
    near(p.alone_pass_s, 2 * numbers);
    near(p.pass_s, p.verify_s + p.draft_s);
    near(p.passes_per_s, 1 / p.pass_s);
    assert_true(p.draft_s > 0);
}

/* What the draft does while the ring fills costs nothing. */
TEST(drafting_hides_behind_reads)
{
    drey_engine_options o = usual(true);
    o.memory_bytes = least_budget(o) + (1 << 20);
    drey_speeds s = {.disk_bytes_per_s = 1e6, .one_ops_per_s = 1e12, .tree_ops_per_s = 1e12};
    drey_plan p = plan_of(&o, &s);
    assert_true(p.draft_s > 0);
    near(p.pass_s, p.read_s);
}

static void measure(const drey_engine_options *o, drey_speeds *s)
{
    drey_planner *p = NULL;
    MUST(drey_planner_open, &p, o);
    MUST(drey_planner_measure, p, 0, s);
    drey_planner_close(&p);
}

TEST(measures_what_is_not_given)
{
    drey_engine_options o = usual(true);
    o.memory_bytes = least_budget(o) + (1 << 20);
    drey_speeds s = {.memory_bytes_per_s = 123};
    measure(&o, &s);
    assert_true(s.memory_bytes_per_s == 123);
    assert_true(s.disk_bytes_per_s > 0 && s.one_ops_per_s > 0 && s.tree_ops_per_s > 0);
    o = usual(false);
    s = (drey_speeds){0};
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    measure(&o, &s);
    assert_true(s.memory_bytes_per_s > 0 && s.one_ops_per_s > 0);
    assert_true(s.disk_bytes_per_s == 0 && s.tree_ops_per_s == 0); /* nothing reads, no tree */
    drey_plan p = plan_of(&o, &s);
    assert_true(p.read_s == 0 && p.pass_s == p.compute_s && p.compute_s > 0);
    assert_int_equal(p.spare_bytes, 0);
}

static int open_models(void **state)
{
    toy_options toy = toy_default();
    toy.n_embd = 256;
    toy.n_ff = 4096;
    toy.n_layers = 5;
    target = toy_open("target.gguf", &toy);
    toy = toy_default();
    draft = toy_open("draft.gguf", &toy);
    return 0;
}

TEST_GROUP(open_models, toys_close)
