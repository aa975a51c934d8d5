/* Paths in messages: the file's name, the reason and what to do are all there, however long the
 * path is. */
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "os/file.h"
#include "support/bytes_file.h"
#include "support/scene.h"

TEST(short_paths_stay)
{
    char path[ERROR_PATH_BYTES + 1];
    assert_string_equal(SHOWN_PATH("model.gguf"), "model.gguf");
    assert_string_equal(SHOWN_PATH(""), "");
    memset(path, 'x', sizeof path);
    path[ERROR_PATH_BYTES - 1] = 0;
    assert_ptr_equal(SHOWN_PATH(path), path);
}

TEST(long_paths_keep_both_ends)
{
    char path[2000];
    for (size_t n = ERROR_PATH_BYTES; n < sizeof path; n += 97) {
        memset(path, 'x', n);
        memcpy(path, "/front/", 7);
        memcpy(path + n - 11, "/model.gguf", 12);
        const char *shown = SHOWN_PATH(path);
        assert_int_equal(strlen(shown), ERROR_PATH_BYTES - 1);
        assert_memory_equal(shown, "/front/x", 8);
        assert_non_null(strstr(shown, "x...x"));
        assert_string_equal(shown + strlen(shown) - 11, "/model.gguf");
    }
}

/* No character is cut in two, wherever the cuts fall. */
TEST(characters_stay_whole)
{
    for (int shift = 0; shift < 4; shift++) {
        char path[600];
        int n = snprintf(path, sizeof path, "%.*s", shift, "abcd");
        while (n < 500)
            n += snprintf(path + n, sizeof path - (size_t)n, "\xe2\x82\xac"); /* a euro sign */
        const char *shown = SHOWN_PATH(path) + shift, *gap = strstr(shown, "...");
        assert_non_null(gap);
        assert_int_equal((gap - shown) % 3, 0);
        assert_int_equal(strlen(gap + 3) % 3, 0);
        assert_memory_equal(gap + 3, "\xe2\x82\xac", 3);
    }
}

TEST(files_are_put_in_front)
{
    drey_error err = {.code = DREY_ERR_FORMAT, .message = "it is broken"};
    assert_int_equal(error_in_file(NULL, "m", DREY_ERR_FORMAT), DREY_ERR_FORMAT);
    assert_int_equal(error_in_file(&err, "m", DREY_OK), DREY_OK);
    assert_string_equal(err.message, "it is broken");
    assert_int_equal(error_in_file(&err, "m.gguf", DREY_ERR_FORMAT), DREY_ERR_FORMAT);
    assert_string_equal(err.message, "m.gguf: it is broken");
    memset(err.message, 'x', sizeof err.message);
    err.message[sizeof err.message - 1] = 0;
    error_in_file(&err, "m.gguf", DREY_ERR_FORMAT);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_memory_equal(err.message, "m.gguf: x", 9);
}

/* A folder whose path is some 900 bytes long. */
static void deep_path(char out[2048], const char *name)
{
    char level[226];
    memset(level, 'd', sizeof level);
    level[sizeof level - 1] = 0;
    int n = snprintf(out, 2048, "%s", temp_dir());
    for (int i = 0; i < 4; i++) {
        n += snprintf(out + n, 2048 - (size_t)n, "/%s", level);
        assert_int_equal(mkdir(out, 0700), 0);
    }
    snprintf(out + n, 2048 - (size_t)n, "/%s", name);
}

static void says(const drey_error *err, const char *reason, const char *advice)
{
    if (!strstr(err->message, "/m.gguf") || !strstr(err->message, reason) ||
        !strstr(err->message, advice) || strlen(err->message) > sizeof err->message - 2)
        fail_msg("\"%s\"", err->message);
}

TEST(messages_about_deep_files_are_whole)
{
    char path[2048];
    deep_path(path, "m.gguf");
    drey_error err = {0};
    drey_model *m = NULL;
    file f;
    assert_int_equal(file_open(&f, path, true, &err), DREY_ERR_IO);
    says(&err, "No such file", "check its name and permissions");
    assert_int_equal(drey_model_open(&m, path, &err), DREY_ERR_IO);
    says(&err, "No such file", "check its name and permissions");
    bytes_file_write(path, "none", 4);
    assert_int_equal(drey_model_open(&m, path, &err), DREY_ERR_FORMAT);
    says(&err, "is not a GGUF file", "fetch or convert");
    toy_options toy = toy_default();
    toy.n_layers = 1;
    toy.more_tensor = "output.bias";
    toy_write(path, &toy);
    MUST(drey_model_open, &m, path);
    drey_engine_options o = plain_options(m, 64, 0);
    drey_engine *e = NULL;
    assert_int_equal(drey_engine_open(&e, &o, &err), DREY_ERR_UNSUPPORTED);
    says(&err, "tensor output.bias is not supported", "would be wrong");
    drey_model_close(&m);
    toy.architecture = "other";
    toy_write(path, &toy);
    assert_int_equal(drey_model_open(&m, path, &err), DREY_ERR_UNSUPPORTED);
    says(&err, "architecture \"other\"", "docs/reference/models.md");
    MUST(file_open, &f, path, false);
    file_stamp since = f.stamp;
    since.n_bytes++;
    assert_int_equal(file_check(&f, path, &since, &err), DREY_ERR_IO);
    says(&err, "it is shorter now", "leave the file alone while drey runs");
    file_close(&f);
    file_read_failed(path, 4096, 5, &err);
    says(&err, "at byte 4096", "or copy the file again");
}
