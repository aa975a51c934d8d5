/* Prompts for benchmarks: see prompts.h. */
#include "cli/files/prompts.h"

#include "cli/files/input.h"
#include "cli/terminal/terminal.h"
#include "common/json_value.h"

#include <stdlib.h>
#include <string.h>

/* For file names, tables and CSV: letters, digits and a few signs. */
static void put_name(char *out, size_t size, const char *name)
{
    size_t n = 0;
    for (; name[n] && n + 1 < size; n++)
        out[n] = (name[n] >= '0' && name[n] <= '9') || (name[n] >= 'a' && name[n] <= 'z') ||
                         (name[n] >= 'A' && name[n] <= 'Z') || strchr("-_.", name[n])
                     ? name[n]
                     : '_';
    out[n] = '\0';
}

static void name_prompt(bench_prompt *p, const json_value *from, int line)
{
    double number = json_member_number(from, "question_id");
    const char *id = json_member_text(from, "id"), *group = json_member_text(from, "group");
    const char *category = json_member_text(from, "category");
    char text[40];
    snprintf(text, sizeof text, "%d",
             number >= INT32_MIN && number <= INT32_MAX ? (int)number : line);
    put_name(p->id, sizeof p->id, id ? id : text);
    if (!group)
        group = category && strcmp(category, "coding") == 0 ? "code"
                : json_member_text(from, "question")        ? "math"
                                                            : "chat";
    put_name(p->group, sizeof p->group, group);
}

/* *copy: of the text, for the list to free. */
static bool take_prompt(bench_prompt *p, char **copy, const json_value *from, int line)
{
    const json_value *turns = json_member_array(from, "turns"),
                     *first = turns ? turns->first : NULL;
    const char *plain = json_member_text(from, "prompt");
    p->chat = !plain;
    const char *text = plain ? plain : turns ? NULL : json_member_text(from, "question");
    if (!plain && first && first->type == JSON_STRING)
        text = first->text;
    name_prompt(p, from, line);
    p->text = *copy = text ? strdup(text) : NULL;
    return p->text && p->text[0] && p->id[0];
}

static bool is_blank(const char *line, size_t n)
{
    return strspn(line, " \t\r") >= n;
}

/* Only one line at a time is a tree, which may have many times its size. */
static drey_status read_lines(prompt_list *list, const char *text, const char *path,
                              uint64_t memory_bytes, drey_error *err)
{
    input_limit limit = input_limit_memory(memory_bytes, INPUT_AS_JSON);
    char name[40];
    int line = 1;
    for (const char *at = text; *at; line++) {
        size_t n = strcspn(at, "\n");
        if (n > limit.n_bytes) {
            snprintf(name, sizeof name, "line %d of the prompts", line);
            return input_too_long(name, &limit, err);
        }
        if (!is_blank(at, n)) {
            json_document json;
            bool good = take_prompt(&list->prompts[list->n], &list->texts[list->n],
                                    json_load(&json, at, n), line);
            list->n++;
            json_free(&json);
            if (!good)
                FAIL(err, DREY_ERR_FORMAT,
                     "line %d of %s is no prompt: an object with \"turns\", \"prompt\" or "
                     "\"question\" is wanted",
                     line, path);
        }
        at += n + (at[n] == '\n');
    }
    if (list->n == 0)
        FAIL(err, DREY_ERR_FORMAT, "%s holds no prompt", path);
    return DREY_OK;
}

/* path: where the text is from, for messages. */
static drey_status parse(prompt_list *list, const char *text, const char *path,
                         uint64_t memory_bytes, drey_error *err)
{
    size_t n_lines = 1;
    *list = (prompt_list){0};
    for (const char *at = text; *at; at++)
        n_lines += *at == '\n';
    list->prompts = calloc(n_lines, sizeof *list->prompts);
    list->texts = calloc(n_lines, sizeof *list->texts);
    drey_status status = DREY_OK;
    if (!list->prompts || !list->texts)
        status = error_set(err, DREY_ERR_MEMORY, "out of memory while reading %s", path);
    if (status == DREY_OK)
        status = read_lines(list, text, path, memory_bytes, err);
    if (status != DREY_OK)
        prompts_free(list);
    return status;
}

drey_status prompts_read(prompt_list *list, const char *path, const char *usual,
                         uint64_t memory_bytes, drey_error *err)
{
    char *text = NULL;
    size_t n = 0;
    *list = (prompt_list){0};
    if (!path)
        return parse(list, usual, "the usual prompts", DREY_MEMORY_UNLIMITED, err);
    input_limit limit = input_limit_memory(memory_bytes, INPUT_AS_PROMPTS);
    TRY(input_read(path, "the file of prompts", &limit, &text, &n, err));
    drey_status status = parse(list, text, path, memory_bytes, err);
    free(text);
    return status;
}

static drey_status tokenize(bench_prompt *p, const drey_model *model, drey_error *err)
{
    size_t n = strlen(p->text);
    if (p->chat) {
        drey_status status = input_chat_tokens(model, NULL, p->text, n, DREY_TOKENIZE_BOS, 0,
                                               &p->ids, &p->n_ids, err);
        if (status != DREY_ERR_UNSUPPORTED)
            return status;
    }
    return input_tokens(model, p->text, n, DREY_TOKENIZE_BOS, 0, &p->ids, &p->n_ids, err);
}

drey_status prompts_tokenize(prompt_list *list, const drey_model *model, drey_error *err)
{
    for (int i = 0; i < list->n; i++) {
        TRY(tokenize(&list->prompts[i], model, err));
    }
    return DREY_OK;
}

void prompts_free(prompt_list *list)
{
    for (int i = 0; i < list->n; i++) {
        free(list->prompts[i].ids);
        free(list->texts[i]);
    }
    free(list->prompts);
    free(list->texts);
    *list = (prompt_list){0};
}
