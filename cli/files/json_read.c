/* Values of JSON files: see json_read.h. */
#include "cli/files/json_read.h"

#include "cli/files/input.h"
#include "cli/terminal/terminal.h"

#include <math.h>
#include <stdlib.h>

const char *json_text(const cJSON *in, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(in, key);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

double json_number(const cJSON *in, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(in, key);
    return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? item->valuedouble : NAN;
}

int json_numbers(const cJSON *in, const char *key, double *out, int most)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(in, key), *item;
    int n = 0;
    if (!cJSON_IsArray(list))
        return -1;
    cJSON_ArrayForEach(item, list)
    {
        if (n == most || !cJSON_IsNumber(item) || !isfinite(item->valuedouble))
            return -1;
        out[n++] = item->valuedouble;
    }
    return n;
}

drey_status json_read(cJSON **out, const char *path, const char *what, drey_error *err)
{
    char *text = NULL;
    size_t n = 0;
    const input_limit limit = {.n_bytes = 1 << 20, .reason = "it is no file of this kind"};
    *out = NULL;
    drey_status status = input_read(path, what, &limit, &text, &n, err);
    if (status != DREY_OK)
        return status;
    *out = cJSON_ParseWithLengthOpts(text, n + 1, NULL, true);
    free(text);
    return *out ? DREY_OK : fail(err, DREY_ERR_FORMAT, "%s is no JSON", path);
}
