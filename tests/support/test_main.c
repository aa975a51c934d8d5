/* main() of a folder's tests, which are written as TEST: runs those of the file that is named
 * (test_tree, without .c), or those of each file one after another.
 *   PROGRAM [FILE [PATTERN]]
 * PATTERN: those whose names match, with * and ?. */

#include "support/temp_dir.h"
#include "support/test.h"

enum { MAX_FILES = 40, MAX_TESTS = 64 };

/* The tests of one file, and what runs before the first and after the last: NULL where nothing. */
typedef struct test_file {
    const char *path;
    CMFixtureFunction set_up, tear_down;
    struct CMUnitTest tests[MAX_TESTS];
    int lines[MAX_TESTS];
    size_t n_tests;
} test_file;

static test_file files[MAX_FILES];
static size_t n_files;

static test_file *file_of(const char *path)
{
    for (size_t i = 0; i < n_files; i++)
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
    assert_true(n_files < MAX_FILES);
    files[n_files].path = path;
    return &files[n_files++];
}

void register_test(struct CMUnitTest test, const char *path, int line)
{
    test_file *f = file_of(path);
    assert_true(f->n_tests < MAX_TESTS);
    size_t at = f->n_tests++;
    for (; at > 0 && f->lines[at - 1] > line; at--) { /* constructors run in any order */
        f->tests[at] = f->tests[at - 1];
        f->lines[at] = f->lines[at - 1];
    }
    f->tests[at] = test;
    f->lines[at] = line;
}

void register_group(const char *path, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    test_file *f = file_of(path);
    f->set_up = set_up;
    f->tear_down = tear_down;
}

void test_near(double got, double want, double off)
{
    if (!(fabs(got - want) <= off))
        fail_msg("%.9g instead of %.9g", got, want);
}

/* The file's name without its folder and its ending, which is the test's name in ctest. */
static int name_of(const test_file *f, const char **name)
{
    const char *slash = strrchr(f->path, '/');
    *name = slash ? slash + 1 : f->path;
    return (int)strcspn(*name, ".");
}

static int run_file(test_file *f)
{
    for (size_t i = 0; i < f->n_tests && !f->set_up; i++)
        if (!f->tests[i].teardown_func)
            f->tests[i].teardown_func = temp_dir_tear_down;
    return _cmocka_run_group_tests("tests", f->tests, f->n_tests, f->set_up, f->tear_down);
}

int main(int n_arguments, char **arguments)
{
    int n_failed = 0;
    size_t n_run = 0;
    if (n_arguments > 2)
        cmocka_set_test_filter(arguments[2]);
    for (size_t i = 0; i < n_files; i++) {
        const char *name;
        int n = name_of(&files[i], &name);
        if (n_arguments > 1 && (strncmp(arguments[1], name, (size_t)n) != 0 || arguments[1][n]))
            continue;
        n_failed += run_file(&files[i]);
        n_run++;
    }
    if (!n_run)
        fprintf(stderr, "%s has no such file of tests\n", arguments[0]);
    return n_failed != 0 || !n_run;
}
