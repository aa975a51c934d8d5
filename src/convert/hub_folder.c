/* The files of a folder: see hub_folder.h. */
#include "convert/hub_folder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "common/size_text.h"
#include "gguf/gguf.h"
#include "common/text_encoding.h"

enum { MOST_PARTS = 512 };
static const uint64_t most_json = 256 << 20, most_config = 4 << 20;

/* ---- Small files ---- */

/* PATH/name; the caller frees. */
static drey_status path_in(const hub_folder *f, const char *name, char **out, drey_error *err)
{
    size_t n = strlen(f->path) + strlen(name) + 2;
    *out = malloc(n);
    if (!*out)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the name of a file");
    snprintf(*out, n, "%s/%s", f->path, name);
    return DREY_OK;
}

static drey_status read_open(const file *from, const char *path, uint64_t most, uint8_t **bytes,
                             drey_error *err)
{
    if (from->n_bytes > most)
        FAIL(err, DREY_ERR_FORMAT, "%s has %s, more than such a file ever has", SHOWN_PATH(path),
             SIZE_TEXT(from->n_bytes));
    *bytes = calloc(1, from->n_bytes + 1);
    if (!*bytes)
        FAIL(err, DREY_ERR_MEMORY, "no memory for %s", SHOWN_PATH(path));
    drey_status status = file_read(from, path, 0, from->n_bytes, *bytes, NULL, 0, err);
    if (status != DREY_OK) {
        free(*bytes);
        *bytes = NULL;
    }
    return status;
}

/* All of a file, and a NUL; the caller frees. *bytes is NULL where there is no such file. */
static drey_status read_file(const hub_folder *f, const char *name, uint64_t most, uint8_t **bytes,
                             size_t *n, drey_error *err)
{
    char *path;
    file from;
    drey_status status = DREY_OK;
    *bytes = NULL;
    *n = 0;
    TRY(path_in(f, name, &path, err));
    if (access(path, F_OK) == 0) {
        status = file_open(&from, path, false, err);
        if (status == DREY_OK) {
            status = read_open(&from, path, most, bytes, err);
            *n = from.n_bytes;
            file_close(&from);
        }
    }
    free(path);
    return status;
}

/* The same for a text: in UTF-8, without a byte order mark. */
static drey_status read_text(const hub_folder *f, const char *name, uint64_t most, char **text,
                             size_t *n, drey_error *err)
{
    uint8_t *bytes;
    TRY(read_file(f, name, most, &bytes, n, err));
    *text = (char *)bytes;
    const char *wrong = *text ? text_to_utf8(text, n) : NULL;
    if (wrong)
        FAIL(err, DREY_ERR_FORMAT, "%s/%s %s", SHOWN_PATH(f->path), name, wrong);
    return DREY_OK;
}

/* "line 3, after rope_theta: ": where the text is no JSON. */
static void say_place(const char *text, size_t n, size_t at, char *out, size_t capacity)
{
    json_reader r;
    char key[40] = "";
    size_t line = 1;
    json_reader_init(&r, text, n, JSON_MOST_DEPTH);
    r.half_pairs = r.broken_utf8 = true;
    for (json_event event; (event = json_next(&r)) < JSON_DONE && r.begin < at;)
        if (event == JSON_KEY)
            gguf_printable(key, sizeof key, text + r.begin, r.end - r.begin);
    for (size_t i = 0; i < at && i < n; i++)
        line += text[i] == '\n';
    snprintf(out, capacity, "line %zu%s%s", line, *key ? ", after " : "", key);
}

static drey_status take_json(const hub_folder *f, const char *name, const char *text, size_t n,
                             json_document *out, drey_error *err)
{
    char place[80];
    const json_value *root = json_load(out, text, n);
    if (!root && !out->why)
        FAIL(err, DREY_ERR_MEMORY, "no memory for %s", name);
    if (!root) {
        say_place(text, n, out->at, place, sizeof place);
        FAIL(err, DREY_ERR_FORMAT, "%s/%s is no JSON (%s: %s); fetch it again", SHOWN_PATH(f->path),
             name, place, out->why);
    }
    if (root->type != JSON_OBJECT)
        FAIL(err, DREY_ERR_FORMAT, "%s/%s is no JSON object; fetch it again", SHOWN_PATH(f->path),
             name);
    return DREY_OK;
}

static drey_status read_json(const hub_folder *f, const char *name, uint64_t most,
                             json_document *out, drey_error *err)
{
    char *text;
    size_t n;
    drey_status status = read_text(f, name, most, &text, &n, err);
    if (status == DREY_OK && text)
        status = take_json(f, name, text, n, out, err);
    free(text);
    return status;
}

/* ---- Parts ---- */

static drey_status open_part(hub_folder *f, const char *name, drey_error *err)
{
    folder_part *p = &f->parts[f->n_parts];
    uint8_t length[8], *json;
    TRY(path_in(f, name, &p->path, err));
    f->n_parts++;
    TRY(file_open(&p->file, p->path, false, err));
    if (p->file.n_bytes < sizeof length)
        FAIL(err, DREY_ERR_FORMAT, "%s is cut off; fetch it again", SHOWN_PATH(p->path));
    TRY(file_read(&p->file, p->path, 0, sizeof length, length, NULL, 0, err));
    uint64_t n = 0;
    for (size_t i = 0; i < sizeof length; i++)
        n |= (uint64_t)length[i] << 8 * i;
    if (n > SAFETENSORS_MOST_HEADER || n > p->file.n_bytes - sizeof length)
        FAIL(err, DREY_ERR_FORMAT, "%s has no header of safetensors; fetch it again",
             SHOWN_PATH(p->path));
    json = malloc(n + 1);
    if (!json)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the header of %s", SHOWN_PATH(p->path));
    drey_status status = file_read(&p->file, p->path, sizeof length, n, json, NULL, 0, err);
    if (status == DREY_OK)
        status = error_in_file(
            err, p->path, safetensors_parse(&p->header, (char *)json, n, p->file.n_bytes, err));
    free(json);
    return status;
}

static bool is_part(const hub_folder *f, const char *name)
{
    for (int32_t i = 0; i < f->n_parts; i++)
        if (strcmp(path_name(f->parts[i].path), name) == 0)
            return true;
    return false;
}

/* The files that the index names, and that each tensor is where it says. */
static drey_status open_indexed(hub_folder *f, const json_value *index, drey_error *err)
{
    const json_value *map = json_member(index, "weight_map");
    if (!map || map->type != JSON_OBJECT)
        FAIL(err, DREY_ERR_FORMAT, "the index of %s has no weight_map; fetch it again",
             SHOWN_PATH(f->path));
    for (const json_value *v = map->first; v; v = v->next) {
        if (v->type != JSON_STRING || !*v->text || strchr(v->text, '/') || strlen(v->text) != v->n)
            FAIL(err, DREY_ERR_FORMAT,
                 "the index of %s names a part that is no file; fetch it "
                 "again",
                 SHOWN_PATH(f->path));
        if (is_part(f, v->text))
            continue;
        if (f->n_parts == MOST_PARTS)
            FAIL(err, DREY_ERR_UNSUPPORTED, "the model has more than %d parts", MOST_PARTS);
        TRY(open_part(f, v->text, err));
    }
    for (const json_value *v = map->first; v; v = v->next) {
        int32_t part;
        if (!folder_find(f, v->key, &part) || strcmp(path_name(f->parts[part].path), v->text) != 0)
            FAIL(err, DREY_ERR_FORMAT,
                 "tensor %.100s is not in %.100s, where the index says; "
                 "fetch the model again",
                 v->key, v->text);
    }
    return DREY_OK;
}

static bool has(const hub_folder *f, const char *name)
{
    char *path;
    bool there = path_in(f, name, &path, NULL) == DREY_OK && access(path, F_OK) == 0;
    free(path);
    return there;
}

static drey_status open_parts(hub_folder *f, drey_error *err)
{
    static const char index_name[] = "model.safetensors.index.json";
    json_document index = {.root = NULL};
    f->parts = calloc(MOST_PARTS, sizeof *f->parts);
    if (!f->parts)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a list of files");
    for (int32_t i = 0; i < MOST_PARTS; i++)
        f->parts[i].file.fd = -1;
    if (has(f, "model.safetensors") && !has(f, index_name))
        return open_part(f, "model.safetensors", err);
    TRY(read_json(f, index_name, most_json, &index, err));
    if (!index.root)
        FAIL(err, DREY_ERR_IO,
             "%s has neither model.safetensors nor %s; other forms, such as "
             "pytorch_model.bin, are not read",
             SHOWN_PATH(f->path), index_name);
    drey_status status = open_indexed(f, index.root, err);
    json_free(&index);
    return status;
}

/* ---- The folder ---- */

static drey_status open_all(hub_folder *f, drey_error *err)
{
    struct stat about;
    size_t n;
    if (stat(f->path, &about) != 0)
        FAIL(err, DREY_ERR_IO, "cannot open %s: %s", SHOWN_PATH(f->path), strerror(errno));
    if (!S_ISDIR(about.st_mode))
        FAIL(err, DREY_ERR_USAGE, "%s is no folder: name the one with the model's config.json",
             SHOWN_PATH(f->path));
    TRY(read_json(f, "config.json", most_config, &f->config, err));
    if (!f->config.root)
        FAIL(err, DREY_ERR_IO, "%s has no config.json: it is no folder of a model",
             SHOWN_PATH(f->path));
    TRY(read_json(f, "tokenizer.json", most_json, &f->tokenizer, err));
    TRY(read_json(f, "tokenizer_config.json", most_json, &f->tokenizer_config, err));
    TRY(read_json(f, "generation_config.json", most_config, &f->generation, err));
    TRY(read_json(f, "special_tokens_map.json", most_config, &f->token_map, err));
    TRY(read_text(f, "chat_template.jinja", most_config, &f->chat_template, &n, err));
    if (f->chat_template && strlen(f->chat_template) != n)
        FAIL(err, DREY_ERR_FORMAT, "%s/chat_template.jinja has a NUL byte: it is no text",
             SHOWN_PATH(f->path));
    TRY(read_file(f, "tokenizer.model", most_json, &f->pieces, &f->n_pieces, err));
    if (!f->pieces)
        TRY(read_file(f, "spiece.model", most_json, &f->pieces, &f->n_pieces, err));
    TRY(read_json(f, "added_tokens.json", most_config, &f->added, err));
    if (!f->pieces && !f->tokenizer.root) {
        TRY(read_json(f, "vocab.json", most_json, &f->vocab, err));
        TRY(read_text(f, "merges.txt", most_json, &f->merges, &f->n_merges, err));
    }
    TRY(folder_check(f, err));
    TRY(open_parts(f, err));
    for (int32_t i = 0; i < f->n_parts; i++) /* models that see images have texts as a part */
        safetensors_rename(&f->parts[i].header, "language_model.");
    return DREY_OK;
}

drey_status hub_folder_open(hub_folder *f, const char *path, drey_error *err)
{
    *f = (hub_folder){.path = path};
    drey_status status = open_all(f, err);
    if (status != DREY_OK)
        hub_folder_close(f);
    return status;
}

void hub_folder_close(hub_folder *f)
{
    for (int32_t i = 0; i < f->n_parts; i++) {
        safetensors_free(&f->parts[i].header);
        if (f->parts[i].file.fd >= 0)
            file_close(&f->parts[i].file);
        free(f->parts[i].path);
    }
    free(f->parts);
    free(f->pieces);
    free(f->chat_template);
    free(f->merges);
    json_free(&f->config);
    json_free(&f->tokenizer);
    json_free(&f->tokenizer_config);
    json_free(&f->generation);
    json_free(&f->vocab);
    json_free(&f->added);
    json_free(&f->token_map);
    *f = (hub_folder){0};
}

safetensor *folder_find(const hub_folder *f, const char *name, int32_t *part)
{
    for (int32_t i = 0; i < f->n_parts; i++) {
        safetensor *t = safetensors_find(&f->parts[i].header, name);
        if (t) {
            *part = i;
            return t;
        }
    }
    return NULL;
}

drey_status folder_read(const hub_folder *f, int32_t part, uint64_t offset, size_t n, void *out,
                        drey_error *err)
{
    const folder_part *p = &f->parts[part];
    return file_read(&p->file, p->path, offset, n, out, NULL, 0, err);
}

/* ---- config.json ---- */

const json_value *config_find(const hub_folder *f, const char *names)
{
    const json_value *root = f->config.root, *text = json_member(root, "text_config");
    char name[64];
    while (*names) {
        size_t n = strcspn(names, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, names);
        const json_value *v = json_member(text, name);
        v = v ? v : json_member(root, name);
        if (v)
            return v;
        names += n + (names[n] == '|');
    }
    return NULL;
}

drey_status config_int(const hub_folder *f, const char *names, int64_t low, int64_t high,
                       int64_t *out, bool *there, drey_error *err)
{
    const json_value *v = config_find(f, names);
    *there = v != NULL;
    if (!v)
        return DREY_OK;
    if (v->type != JSON_NUMBER || !v->is_integer || v->integer < low || v->integer > high)
        FAIL(err, DREY_ERR_FORMAT, "%.*s of config.json is no whole number from %lld to %lld",
             (int)strcspn(names, "|"), names, (long long)low, (long long)high);
    *out = v->integer;
    return DREY_OK;
}

drey_status config_require(const hub_folder *f, const char *names, int64_t low, int64_t high,
                           int64_t *out, drey_error *err)
{
    bool there;
    TRY(config_int(f, names, low, high, out, &there, err));
    if (!there)
        FAIL(err, DREY_ERR_FORMAT, "config.json has no %.*s", (int)strcspn(names, "|"), names);
    return DREY_OK;
}

double config_number(const hub_folder *f, const char *names)
{
    const json_value *v = config_find(f, names);
    return v && v->type == JSON_NUMBER ? v->number : (double)NAN;
}

const char *config_text(const hub_folder *f, const char *names)
{
    const json_value *v = config_find(f, names);
    return v && v->type == JSON_STRING ? v->text : NULL;
}

bool config_bool(const hub_folder *f, const char *names, bool fallback)
{
    const json_value *v = config_find(f, names);
    bool known = v && (v->type == JSON_TRUE || v->type == JSON_FALSE);
    return known ? v->type == JSON_TRUE : fallback;
}
