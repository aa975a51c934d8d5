/* Keys of clients: see server_keys.h. */
#include "cli/serve/server_keys.h"

#include "cli/files/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char variable[] = "DREY_API_KEY";

/* A key that no client can send would be a server that refuses everybody. from: whose they are. */
static drey_status check(const char *keys, const char *from, drey_error *err)
{
    for (const char *key = keys; key; key = *key ? key + 1 : NULL) {
        size_t n = strcspn(key, ",");
        if (n == 0)
            FAIL(err, DREY_ERR_USAGE,
                 "%s has an empty key, with which nobody could ask: give clients a key, or leave "
                 "%s",
                 from, from == variable ? "the variable unset" : "the option out");
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)key[i] <= ' ' || key[i] == 0x7F)
                FAIL(err, DREY_ERR_USAGE,
                     "%s has a key with a blank or a control character, which no client can send",
                     from);
        key += n;
    }
    return DREY_OK;
}

/* Puts commas between lines; empty ones, and blanks around keys, are left out. */
static drey_status join_lines(char *text, const char *path, drey_error *err)
{
    static const char blanks[] = " \t\r";
    size_t n_out = 0;
    for (char *line = text, *next; line; line = next) {
        size_t n = strcspn(line, "\n");
        next = line[n] ? line + n + 1 : NULL;
        for (; n > 0 && strchr(blanks, *line); n--)
            line++;
        while (n > 0 && strchr(blanks, line[n - 1]))
            n--;
        if (memchr(line, ',', n))
            FAIL(err, DREY_ERR_USAGE,
                 "a key in %s has a comma, which separates keys: write one key on each line",
                 SHOWN_PATH(path));
        if (n > 0 && n_out > 0)
            text[n_out++] = ',';
        memmove(text + n_out, line, n);
        n_out += n;
    }
    text[n_out] = '\0';
    if (n_out == 0)
        FAIL(err, DREY_ERR_USAGE, "%s has no key: write one on each line", SHOWN_PATH(path));
    return DREY_OK;
}

static drey_status read_file(const char *path, char **keys, drey_error *err)
{
    const input_limit limit = {.n_bytes = 64 << 10,
                               .reason = "files of keys are read up to 64 KiB"};
    size_t n;
    TRY(input_read(path, "the keys", &limit, keys, &n, err));
    TRY(join_lines(*keys, path, err));
    return check(*keys, "--api-key-file", err);
}

static drey_status read_all(const cli_settings *s, char **keys, drey_error *err)
{
    const char *given = s->serve.api_key, *path = s->serve.api_key_file;
    const char *from = given ? "--api-key" : variable;
    char *both;
    if (!given && !path)
        given = getenv(variable);
    TRY(check(given, from, err));
    if (path)
        TRY(read_file(path, keys, err));
    if (!given)
        return DREY_OK;
    if (asprintf(&both, "%s%s%s", given, path ? "," : "", path ? *keys : "") < 0)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for keys");
    free(*keys);
    *keys = both;
    return DREY_OK;
}

drey_status server_keys_read(const cli_settings *s, char **keys, drey_error *err)
{
    *keys = NULL;
    drey_status status = read_all(s, keys, err);
    if (status == DREY_OK)
        return DREY_OK;
    free(*keys);
    *keys = NULL;
    return status;
}
