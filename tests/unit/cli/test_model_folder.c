/* Names of files become names of models: cli/models/model_files.h. */
#include "cli/models/model_files.h"
#include "cli/serve/model_folder.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void check_name(const char *file, const char *name)
{
    size_t n = model_name_length(file);
    assert_int_equal(n, strlen(name));
    assert_memory_equal(file, name, n);
}

TEST(a_files_name_names_its_model)
{
    check_name("a.gguf", "a");
    check_name("a,b c.gguf", "a,b c");
    check_name("a-00001-of-00003.gguf", "a");
    check_name("a-00002-of-00003.gguf", "");
    check_name("-00001-of-00002.gguf", "-00001-of-00002");
    check_name("a-0000x-of-00002.gguf", "a-0000x-of-00002");
    check_name("a-00001-to-00002.gguf", "a-00001-to-00002");
    check_name("a-00001_of-00002.gguf", "a-00001_of-00002");
    check_name(".gguf", "");
    check_name(".a.gguf", "");
    check_name("gguf", "");
    check_name("a.GGUF", "");
    check_name("a.gguf.part", "");
    check_name("", "");
    check_name("a.gguf.eagle.gguf", "");
}

static void make_file(const char *name)
{
    FILE *f = fopen(temp_path(name), "w");
    assert_non_null(f);
    fclose(f);
}

TEST(names_of_a_folder_differ)
{
    static const char *const files[] = {"a-00001-of-00002.gguf", "a-00002-of-00002.gguf", "a.gguf",
                                        "b-00001-of-00001.gguf", "c.txt"};
    static const char *const names[] = {"a-00001-of-00002", "a", "b"};
    const char *folder = temp_dir();
    model_folder f;
    char long_name[300];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make_file(files[i]);
    snprintf(long_name, sizeof long_name, "%0*d.gguf", FRONT_NAME_BYTES, 7);
    make_file(long_name);
    assert_int_equal(mkdir(temp_path("d.gguf"), 0700), 0);
    assert_int_equal(model_folder_open(&f, folder, NULL), DREY_OK);
    assert_int_equal(f.n, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(f.models[i].name, names[i]);
    model_folder_close(&f);
}
