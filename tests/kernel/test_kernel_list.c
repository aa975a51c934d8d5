/* The table of docs/reference/kernels.md says which tier's kernel each type runs: every type and
 * tier of this build is in it, and what it says of the tiers that run here is so. */
#include "kernel/packing.h"
#include "support/test.h"

enum { MOST_CELLS = 16, CELL_BYTES = 16 };

typedef struct line {
    int n;
    char cell[MOST_CELLS][CELL_BYTES];
} line;

/* "| a | b |" */
static line split(const char *text)
{
    line l = {0};
    while ((text = strchr(text, '|')) && l.n < MOST_CELLS) {
        if (sscanf(++text, " %15[A-Za-z0-9_?]", l.cell[l.n]) == 1)
            l.n++;
    }
    return l;
}

static int column(const line *head, const char *tier)
{
    for (int i = 1; i < head->n; i++)
        if (strcmp(head->cell[i], tier) == 0)
            return i;
    fail_msg("the page's table has no column for %s; see drey bench kernels --list", tier);
    return 0;
}

static void check(const line *head, const line *row, tensor_type type)
{
    for (const char *const *tier = kernel_all_tiers(); *tier; tier++) {
        const char *own = kernel_owner(*tier, type);
        int at = column(head, *tier);
        assert_true(at < row->n);
        if (own && strcmp(row->cell[at], own) != 0)
            fail_msg("the page says that %s on %s runs the kernel of %s; it is %s's", row->cell[0],
                     *tier, row->cell[at], own);
    }
}

TEST(test_page)
{
    static const struct {
        const char *name;
        tensor_type type;
    } types[] = {
#define ENTRY(TYPE, name, act, block_k, block_bytes) {#TYPE, TYPE_##TYPE},
        KERNEL_TYPES(ENTRY)
#undef ENTRY
    };
    enum { N_TYPES = sizeof types / sizeof *types };
    bool seen[N_TYPES] = {false}, inside = false;
    char text[512];
    line head = {0};
    FILE *page = fopen(TEST_DATA "/../../docs/reference/kernels.md", "r");
    assert_non_null(page);
    while (fgets(text, sizeof text, page)) {
        inside = (inside || strstr(text, "<!-- kernels -->")) && !strstr(text, "<!-- /kernels -->");
        line row = split(text);
        if (!inside || row.n == 0)
            continue;
        if (head.n == 0)
            head = row;
        for (int i = 0; i < N_TYPES; i++)
            if (strcmp(row.cell[0], types[i].name) == 0) {
                check(&head, &row, types[i].type);
                seen[i] = true;
            }
    }
    fclose(page);
    for (int i = 0; i < N_TYPES; i++)
        if (!seen[i])
            fail_msg("the page's table has no line for %s", types[i].name);
}

/* A type's owner is one that runs here, and what every tier has to have is its own. */
TEST(test_owner)
{
    assert_null(kernel_owner("pentium", TYPE_Q4_K));
    assert_string_equal(kernel_owner("ref", TYPE_Q4_K), "ref");
    assert_string_equal(kernel_owner("float", TYPE_Q4_K), "float");
    for (const char *const *tier = kernel_tiers(); *tier; tier++)
        assert_non_null(kernel_select(kernel_owner(*tier, TYPE_F32)));
}
