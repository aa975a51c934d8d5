/* The columns of drey bench edge's CSV file: see edge_rows.h. */
#include "cli/files/edge_rows.h"

#define COLUMN(name, kind) CSV_COLUMN(edge_row, name, kind)
static const csv_column columns[] = {
    COLUMN(target, CSV_TEXT),
    COLUMN(draft, CSV_TEXT),
    COLUMN(side, CSV_TEXT),
    COLUMN(prompt, CSV_TEXT),
    COLUMN(group, CSV_TEXT),
    COLUMN(budget_mib, CSV_REAL),
    COLUMN(round, CSV_WHOLE),
    COLUMN(n_predict, CSV_WHOLE),
    COLUMN(tokens, CSV_WHOLE),
    COLUMN(tokens_per_s, CSV_REAL),
    COLUMN(tokens_per_pass, CSV_REAL),
    COLUMN(passes, CSV_REAL),
    COLUMN(drafted, CSV_REAL),
    COLUMN(accepted, CSV_REAL),
    COLUMN(decode_s, CSV_REAL),
    COLUMN(first_token_s, CSV_REAL),
    COLUMN(stall_share, CSV_REAL),
    COLUMN(verify_share, CSV_REAL),
    COLUMN(draft_share, CSV_REAL),
    COLUMN(hidden_share, CSV_REAL),
    COLUMN(differed, CSV_REAL),
    COLUMN(lossy, CSV_FLAG),
    COLUMN(head, CSV_TEXT),
    COLUMN(text, CSV_TEXT),
};

const csv_format edge_format = {.command = "drey bench edge",
                                .columns = columns,
                                .n_columns = sizeof columns / sizeof *columns,
                                .n_keys = 8, /* up to n_predict */
                                .row_bytes = sizeof(edge_row)};
