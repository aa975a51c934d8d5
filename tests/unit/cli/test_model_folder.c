/* Names of files become names of models: cli/models/model_files.h. */
#include "cli/models/model_files.h"
#include "cli/serve/model_folder.h"
#include "support/temp_dir.h"
#include "support/test.h"

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
    snprintf(long_name, sizeof long_name, "%0*d.gguf", ROUTER_NAME_BYTES, 7);
    make_file(long_name);
    assert_int_equal(mkdir(temp_path("d.gguf"), 0700), 0);
    assert_int_equal(model_folder_open(&f, folder, NULL), DREY_OK);
    assert_int_equal(f.n, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(f.models[i].name, names[i]);
    model_folder_close(&f);
}

/* n models are meant, first the one `name`; none: it is the near one, or NULL. */
static void check_meant(const model_folder *f, const char *text, int32_t n, const char *name)
{
    int32_t found[2] = {-1, -1}, near = -1;
    assert_int_equal(model_folder_mean(f, text, found, 2, &near), n);
    int32_t which = n > 0 ? found[0] : near;
    assert_int_equal(which >= 0, name != NULL);
    if (name)
        assert_string_equal(f->models[which].name, name);
}

TEST(a_text_may_mean_a_model)
{
    static const char *const files[] = {"Qwen3-8B-Q4_K_M.gguf", "Qwen3-14B-Q8_0.gguf",
                                        "gemma-2b.gguf"};
    const char *folder = temp_dir();
    model_folder f;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make_file(files[i]);
    assert_int_equal(model_folder_open(&f, folder, NULL), DREY_OK);
    check_meant(&f, "GEMMA", 1, "gemma-2b");
    check_meant(&f, "gemma-2b:latest", 1, "gemma-2b");
    check_meant(&f, "qwen3:8b", 1, "Qwen3-8B-Q4_K_M");
    check_meant(&f, "Qwen/Qwen3-14B-GGUF:Q8_0", 1, "Qwen3-14B-Q8_0");
    check_meant(&f, "qwen3", 2, "Qwen3-14B-Q8_0");
    check_meant(&f, "8b-q4", 0, "Qwen3-8B-Q4_K_M");
    check_meant(&f, "gema-2b", 0, "gemma-2b");
    check_meant(&f, "gpt-4o", 0, NULL);
    check_meant(&f, "", 0, NULL);
    check_meant(&f, "../gemma-2b", 0, "gemma-2b");
    model_folder_close(&f);
}
