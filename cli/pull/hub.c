/* Names of models: see hub.h. */
#include "cli/pull/hub.h"

#include "cli/pull/remote_name.h"
#include "common/json_value.h"
#include "common/path.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char default_quant[] = "Q4_K_M";

__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...)
{
    char *out = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&out, format, args) < 0)
        out = NULL;
    va_end(args);
    return out;
}

bool hub_is_url(const char *word)
{
    return strncmp(word, "http://", 7) == 0 || strncmp(word, "https://", 8) == 0;
}

/* Takes url and name, which come from text_of. */
static drey_status put(hub_files *files, char *url, char *name, drey_error *err)
{
    if (!url || !name || files->n == HUB_MOST_PARTS) {
        free(url);
        free(name);
        if (files->n == HUB_MOST_PARTS)
            FAIL(err, DREY_ERR_UNSUPPORTED, "the model has more than %d parts", HUB_MOST_PARTS);
        FAIL(err, DREY_ERR_MEMORY, "out of memory");
    }
    files->file[files->n++] = (hub_file){.url = url, .name = name};
    return DREY_OK;
}

void hub_release(hub_files *files)
{
    for (int32_t i = 0; i < files->n; i++) {
        free(files->file[i].url);
        free(files->file[i].name);
    }
    files->n = 0;
}

/* ---- Parts ---- */

enum { PART_BYTES = sizeof "-00001-of-00003.gguf" - 1 };

/* Bytes before "-00001-of-00003.gguf", and how many parts there are; 0: it is not split. */
static size_t before_part(const char *name, int32_t *n_parts)
{
    int part, of, end = 0;
    size_t n = strlen(name);
    if (n <= PART_BYTES ||
        sscanf(name + n - PART_BYTES, "-%5d-of-%5d.gguf%n", &part, &of, &end) != 2 ||
        end != PART_BYTES || part < 1 || part > of)
        return 0;
    *n_parts = of;
    return n - PART_BYTES;
}

static bool ends_in_gguf(const char *name, size_t n)
{
    return n > 5 && strncasecmp(name + n - 5, ".gguf", 5) == 0;
}

/* ---- URLs ---- */

/* A hub's page of a file, ".../blob/main/F", is not the file, which is ".../resolve/main/F". */
static char *of_page(const char *url)
{
    const char *blob = strstr(url, "/blob/");
    return blob ? text_of("%.*s/resolve/%s", (int)(blob - url), url, blob + 6) : text_of("%s", url);
}

/* The file's own name; DREY_ERR_USAGE: it is none. */
static drey_status name_in_url(const char *url, char **name, drey_error *err)
{
    *name = text_of("%s", path_name(url));
    if (!*name)
        FAIL(err, DREY_ERR_MEMORY, "out of memory");
    bool whole = remote_name_decode(*name);
    const char *fault =
        whole && !strchr(*name, '/') ? remote_name_fault(*name) : "it has an encoded slash or NUL";
    if (fault)
        FAIL(err, DREY_ERR_USAGE, "%s cannot be the name of a file: %s", SHOWN_PATH(*name), fault);
    if (!ends_in_gguf(*name, strlen(*name)))
        FAIL(err, DREY_ERR_USAGE, "%.200s does not end in .gguf: give the URL of a model's file",
             url);
    return DREY_OK;
}

/* url: without its query, which begins with a "?" or is empty. */
static drey_status put_url(hub_files *files, const char *url, const char *query, const char *name,
                           drey_error *err)
{
    int32_t n_parts = 0, as_many = 0;
    size_t before = before_part(path_name(url), &n_parts), named = before_part(name, &as_many);
    if (before == 0 || named == 0 || n_parts != as_many)
        return put(files, text_of("%s%s", url, query), text_of("%s", name), err);
    before += path_folder_bytes(url);
    for (int32_t i = 1; i <= n_parts; i++)
        TRY(put(files, text_of("%.*s-%05d-of-%05d.gguf%s", (int)before, url, i, n_parts, query),
                text_of("%.*s-%05d-of-%05d.gguf", (int)named, name, i, n_parts), err));
    return DREY_OK;
}

static drey_status find_url(hub_files *files, const char *word, drey_error *err)
{
    static const char plain[] = "-._~:/@!$&'()*+,;=%[]?"; /* what a URL is made of */
    size_t n = strcspn(word, "?#"), n_query = word[n] == '?' ? strcspn(word + n, "#") : 0;
    char *address = text_of("%.*s", (int)n, word), *file = address ? of_page(address) : NULL;
    char *asked = text_of("%.*s", (int)n_query, word + n), *name = NULL;
    char *url = file ? remote_name_encode(file, plain) : NULL;
    char *query = asked ? remote_name_encode(asked, plain) : NULL;
    drey_status status = url && query ? name_in_url(url, &name, err)
                                      : error_set(err, DREY_ERR_MEMORY, "out of memory");
    if (status == DREY_OK)
        status = put_url(files, url, query, name, err);
    char *const all[] = {address, file, asked, name, url, query};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    return status;
}

bool hub_has_word(const char *name, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = name; *at; at++)
        if (strncasecmp(at, word, n) == 0 && (at == name || !isalnum((unsigned char)at[-1])) &&
            !isalnum((unsigned char)at[n]) && at[n] != '_')
            return true;
    return false;
}

/* ---- Addresses ---- */

const char *hub_after_address(const char *word)
{
    static const char *const hubs[] = {"https://huggingface.co/",
                                       "http://huggingface.co/",
                                       "https://hf.co/",
                                       "http://hf.co/",
                                       "https://www.huggingface.co/",
                                       "huggingface.co/",
                                       "www.huggingface.co/",
                                       "hf.co/"};
    for (size_t i = 0; i < sizeof hubs / sizeof *hubs; i++)
        if (strncasecmp(word, hubs[i], strlen(hubs[i])) == 0)
            return word + strlen(hubs[i]);
    return word;
}

/* Cuts the path of a hub's page down to OWNER/NAME or OWNER/NAME/FILE, in place. False: it is a
 * page of something else. *is_file: of a file. */
static bool read_page(char *path, bool *is_file)
{
    static const char *const files[] = {"/blob/main/", "/resolve/main/", "/raw/main/"};
    static const char *const others[] = {"/tree/", "/blob/", "/resolve/", "/raw/"};
    char *name = strchr(path, '/'), *page = name ? name + 1 + strcspn(name + 1, "/") : NULL;
    *is_file = false;
    if (!page || strcmp(page, "/") == 0 || strcmp(page, "/tree/main") == 0) {
        if (page)
            *page = '\0';
        return true;
    }
    *is_file = *page != '\0';
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strncmp(page, files[i], strlen(files[i])) == 0) {
            const char *file = page + strlen(files[i]);
            memmove(page + 1, file, strlen(file) + 1);
            return true;
        }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(page, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

drey_status hub_name_of(char out[HUB_WORD_BYTES], const char *hub, const char *word,
                        drey_error *err)
{
    const char *at = hub_after_address(word);
    size_t n = strlen(hub);
    bool own = at == word && strncmp(word, hub, n) == 0 && word[n] == '/', is_file;
    if (own)
        at = word + n + 1;
    if (snprintf(out, HUB_WORD_BYTES, "%s", at) >= HUB_WORD_BYTES - 16)
        FAIL(err, DREY_ERR_USAGE, "the name is too long: %.200s...", word);
    if (at == word)
        return DREY_OK;
    out[strcspn(out, "?#")] = '\0';
    if (!read_page(out, &is_file) || (own && is_file))
        snprintf(out, HUB_WORD_BYTES, "%s%s", hub_is_url(word) ? "" : "https://", word);
    else if (!remote_name_decode(out))
        FAIL(err, DREY_ERR_USAGE, "%.200s has an encoded NUL", word);
    return DREY_OK;
}

/* ---- The hub ---- */

/* "OWNER/NAME", and what the user said more: a quantisation, or a file's path. */
typedef struct hub_name {
    char model[256];
    const char *quant, *path; /* NULL: not said */
} hub_name;

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) || strchr("._-", c);
}

static bool read_name(const char *word, hub_name *out)
{
    const char *at = word;
    for (int part = 0; part < 2; part++) {
        size_t n = 0;
        while (at[n] && is_of_name(at[n]))
            n++;
        if (n == 0 || at[0] == '.' || (part == 0 && at[n] != '/'))
            return false;
        at += n + (part == 0);
    }
    if ((size_t)(at - word) >= sizeof out->model || (*at && *at != ':' && *at != '/') ||
        (*at && !at[1]))
        return false;
    snprintf(out->model, sizeof out->model, "%.*s", (int)(at - word), word);
    out->quant = *at == ':' ? at + 1 : NULL;
    out->path = *at == '/' ? at + 1 : NULL;
    return true;
}

/* A file of the list that is a model: no projector, no matrix of importances. */
static bool is_model(const json_value *file, const char **path)
{
    *path = json_member_text(file, "path");
    if (!*path || !json_member_is(file, "type", "file") || !ends_in_gguf(*path, strlen(*path)) ||
        json_member(file, "path")->n != strlen(*path)) /* it has a NUL */
        return false;
    const char *name = path_name(*path);
    int32_t n_parts;
    size_t before = before_part(name, &n_parts);
    return !hub_has_word(name, "mmproj") && !hub_has_word(name, "imatrix") &&
           (before == 0 || strncmp(name + before, "-00001-", 7) == 0);
}

/* Adds "a, b, c" for a message. */
static void list_name(char *out, size_t room, const char *path)
{
    size_t n = strlen(out);
    snprintf(out + n, room - n, "%s%s", n ? ", " : "", path);
}

/* The first part of the model that is meant; NULL: none, or more than one. *refused: a model whose
 * name cannot be one here. */
static const char *choose(const json_value *list, const hub_name *name, char *known, size_t room,
                          const char **refused)
{
    const char *path, *found = NULL, *alone = NULL;
    int n_found = 0, n = 0;
    *known = '\0';
    *refused = NULL;
    for (const json_value *f = list->first; f; f = f->next) {
        if (!is_model(f, &path))
            continue;
        if (remote_name_fault(path)) {
            *refused = path;
            continue;
        }
        list_name(known, room, path);
        alone = path;
        n++;
        bool meant = name->path
                         ? strcmp(path, name->path) == 0
                         : hub_has_word(path_name(path), name->quant ? name->quant : default_quant);
        if (meant) {
            found = path;
            n_found++;
        }
    }
    if (n == 1 && !name->quant && !name->path)
        return alone;
    return n_found == 1 ? found : NULL;
}

static void take_facts(const json_value *list, const char *path, hub_file *file)
{
    for (const json_value *f = list->first; f; f = f->next) {
        if (!json_member_is(f, "path", path))
            continue;
        const json_value *lfs = json_member(f, "lfs");
        const char *sum = json_member_text(lfs, "oid");
        double bytes = json_member_number(f, "size");
        if (bytes > 0 && bytes < 1e18)
            file->n_bytes = (uint64_t)bytes;
        if (sum && strlen(sum) == 64 && strspn(sum, "0123456789abcdef") == 64)
            memcpy(file->sha256, sum, sizeof file->sha256);
    }
}

static drey_status take_parts(hub_files *files, const json_value *list, const char *hub,
                              const hub_name *name, const char *path, drey_error *err)
{
    int32_t n_parts = 1;
    size_t before = before_part(path, &n_parts);
    for (int32_t i = 1; i <= n_parts; i++) {
        char *part = before ? text_of("%.*s-%05d-of-%05d.gguf", (int)before, path, i, n_parts)
                            : text_of("%s", path);
        if (!part)
            FAIL(err, DREY_ERR_MEMORY, "out of memory");
        char *encoded = remote_name_encode(part, "-._~/");
        drey_status status =
            encoded ? put(files, text_of("%s/%s/resolve/main/%s", hub, name->model, encoded),
                          text_of("%s", path_name(part)), err)
                    : error_set(err, DREY_ERR_MEMORY, "out of memory");
        if (status == DREY_OK)
            take_facts(list, part, &files->file[files->n - 1]);
        free(part);
        free(encoded);
        TRY(status);
    }
    return DREY_OK;
}

static drey_status find_in(hub_files *files, const json_value *list, const char *hub,
                           const hub_name *name, drey_error *err)
{
    char known[400];
    const char *refused, *path = choose(list, name, known, sizeof known, &refused);
    if (path)
        return take_parts(files, list, hub, name, path, err);
    if (refused && !*known)
        FAIL(err, DREY_ERR_IO, "%s has a file %s, which is not downloaded: %s", name->model,
             SHOWN_PATH(refused), remote_name_fault(refused));
    if (!*known)
        FAIL(err, DREY_ERR_USAGE, "%s has no GGUF file", name->model);
    FAIL(err, DREY_ERR_USAGE, "name one of %s's files, as %s:%s or %s/FILE: %s", name->model,
         name->model, default_quant, name->model, known);
}

drey_status hub_find(hub_files *files, const transfer *t, const char *hub, const char *word,
                     drey_error *err)
{
    hub_name name;
    json_document d;
    *files = (hub_files){.n = 0};
    if (hub_is_url(word))
        return find_url(files, word, err);
    if (!read_name(word, &name))
        FAIL(err, DREY_ERR_USAGE,
             "%.200s is no OWNER/NAME, OWNER/NAME:QUANT, OWNER/NAME/FILE.gguf or URL", word);
    if (name.path && remote_name_fault(name.path))
        FAIL(err, DREY_ERR_USAGE, "%s cannot be downloaded: %s", SHOWN_PATH(name.path),
             remote_name_fault(name.path));
    char *url = text_of("%s/api/models/%s/tree/main?recursive=true", hub, name.model), *text = NULL;
    if (!url)
        FAIL(err, DREY_ERR_MEMORY, "out of memory");
    drey_status status = transfer_text(t, url, &text, err);
    free(url);
    TRY(status);
    const json_value *list = json_load(&d, text, strlen(text));
    if (!list || list->type != JSON_ARRAY)
        status = error_set(err, DREY_ERR_IO, "%s does not list files as a hub does", hub);
    else
        status = find_in(files, list, hub, &name, err);
    json_free(&d);
    free(text);
    return status;
}
