/* The table of drey list: whole in files, as wide as the terminal on one. */
#include "cli/models/model_table.h"
#include "cli/terminal/terminal_page.h"
#include "support/test.h"

static void set(model_row *row, model_column column, const char *text)
{
    snprintf(row->cell[column], sizeof row->cell[column], "%s", text);
}

static char *table(int columns)
{
    static model_row rows[2];
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    for (int i = 0; i < 2; i++) {
        set(&rows[i], MODEL_NAME, i ? "tiny" : "qwen2.5-coder-1.5b-instruct-q4_k_m");
        set(&rows[i], MODEL_SIZE, i ? "94.8M" : "1.04G");
        set(&rows[i], MODEL_TYPE, "Q4_K_M");
        set(&rows[i], MODEL_DRAFT, i ? "" : "qwen2.5-coder-0.5b-instruct-q4_k_m");
        set(&rows[i], MODEL_USED, i ? "" : "5 minutes ago");
    }
    model_table_write(out, rows, 2, columns);
    fclose(out);
    return text;
}

TEST(a_file_has_all)
{
    char *text = table(0);
    assert_non_null(strstr(text,
                           "\nqwen2.5-coder-1.5b-instruct-q4_k_m  1.04G  Q4_K_M       -        -"
                           "  qwen2.5-coder-0.5b-instruct-q4_k_m  -     5 minutes ago\n"));
    assert_non_null(strstr(text, "NAME "));
    assert_non_null(strstr(text, " DRAFT "));
    assert_non_null(strstr(text, " WITH  USED\n"));
    free(text);
}

/* Names keep their sizes, by which they differ, and their types. */
TEST(a_terminal_has_its_width)
{
    for (int columns = 30; columns < 140; columns++) {
        char *text = table(columns), *at = NULL;
        for (char *line = strtok_r(text, "\n", &at); line; line = strtok_r(NULL, "\n", &at)) {
            assert_in_range(page_width(line, strlen(line)), 1, columns);
            assert_null(strstr(line, " WITH"));
        }
        free(text);
    }
    char *text = table(60);
    assert_non_null(strstr(text, "qwen2.5-coder-1.5"));
    assert_non_null(strstr(text, "q4_k_m  1.04G  qwen2.5-coder-0.5"));
    free(text);
}
