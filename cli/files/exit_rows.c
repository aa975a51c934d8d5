/* The columns of drey bench exit's CSV file, and layers as a text: see exit_rows.h. */
#include "cli/files/exit_rows.h"

#include <stdlib.h>
#include <string.h>

#define COLUMN(name, kind) CSV_COLUMN(exit_row, name, kind)
static const csv_column columns[] = {
    COLUMN(target, CSV_TEXT),        COLUMN(draft, CSV_TEXT),
    COLUMN(side, CSV_TEXT),          COLUMN(prompt, CSV_TEXT),
    COLUMN(group, CSV_TEXT),         COLUMN(budget_mib, CSV_REAL),
    COLUMN(round, CSV_WHOLE),        COLUMN(n_predict, CSV_WHOLE),
    COLUMN(tokens, CSV_WHOLE),       COLUMN(n_layers, CSV_WHOLE),
    COLUMN(tokens_per_s, CSV_REAL),  COLUMN(tokens_per_pass, CSV_REAL),
    COLUMN(decode_s, CSV_REAL),      COLUMN(counted, CSV_REAL),
    COLUMN(left, CSV_REAL),          COLUMN(layers, CSV_REAL),
    COLUMN(compared, CSV_REAL),      COLUMN(agreed, CSV_REAL),
    COLUMN(taken_back, CSV_REAL),    COLUMN(looks, CSV_REAL),
    COLUMN(candidates, CSV_REAL),    COLUMN(refused, CSV_REAL),
    COLUMN(look_s, CSV_REAL),        COLUMN(head_s, CSV_REAL),
    COLUMN(skipped_bytes, CSV_REAL), COLUMN(vain_bytes, CSV_REAL),
    COLUMN(lossy, CSV_FLAG),         COLUMN(by_layer, CSV_TEXT),
    COLUMN(text, CSV_TEXT),
};

const csv_format exit_format = {.command = "drey bench exit",
                                .columns = columns,
                                .n_columns = sizeof columns / sizeof *columns,
                                .n_keys = 8, /* up to n_predict */
                                .row_bytes = sizeof(exit_row)};

void exit_row_put_layers(exit_row *row, const int64_t *count, int32_t n_layers)
{
    size_t n = 0, size = sizeof row->by_layer;
    row->counted = row->layers = 0;
    row->by_layer[0] = '\0';
    for (int32_t i = 0; i < n_layers && i < EXIT_ROW_LAYERS; i++) {
        row->counted += (double)count[i];
        row->layers += (double)(i + 1) * (double)count[i];
        if (count[i] && n + 24 < size)
            n += (size_t)snprintf(row->by_layer + n, size - n, "%s%d:%lld", n ? ";" : "", i + 1,
                                  (long long)count[i]);
    }
}

void exit_row_add_layers(const exit_row *row, double *sum)
{
    for (const char *at = row->by_layer; *at;) {
        char *end;
        long layer = strtol(at, &end, 10);
        if (*end != ':' || layer < 1 || layer > EXIT_ROW_LAYERS)
            return;
        sum[layer - 1] += strtod(end + 1, &end);
        at = *end == ';' ? end + 1 : "";
    }
}
