/* drey tokenize: text to a JSON array of token ids, and back. */
#include "cli/commands/commands.h"
#include "cli/models/model_path.h"
#include "cli/files/input.h"
#include "cli/commands/models.h"
#include "cli/terminal/terminal.h"
#include "common/json_value.h"

#include <math.h>
#include <stdlib.h>

static drey_status print_ids(const drey_model *model, const cli_settings *s, const char *text,
                             size_t n_bytes, drey_error *err)
{
    int flags =
        (s->text.special ? DREY_TOKENIZE_SPECIAL : 0) | (s->tokens.bos ? DREY_TOKENIZE_BOS : 0);
    int32_t *ids = NULL;
    size_t n_ids = 0;
    TRY(input_tokens(model, text, n_bytes, flags, 0, &ids, &n_ids, err));
    putchar('[');
    for (size_t i = 0; i < n_ids; i++)
        printf("%s%d", i ? ", " : "", ids[i]);
    puts("]");
    free(ids);
    return DREY_OK;
}

/* The numbers of a JSON array; the caller frees *ids, after a failure as well. Whether the model
 * has such ids is the library's to say. */
static drey_status read_ids(const char *json, size_t n_bytes, int32_t **ids, size_t *n_ids,
                            drey_error *err)
{
    const char *wanted = "--ids takes a JSON array of token ids such as [1, 15043]";
    json_document list;
    const json_value *root = json_load(&list, json, n_bytes);
    drey_status status = DREY_OK;
    size_t n = root && root->type == JSON_ARRAY ? root->n : 0;
    *ids = malloc((n + 1) * sizeof **ids);
    *n_ids = 0;
    if (!root || root->type != JSON_ARRAY)
        status = error_set(err, DREY_ERR_FORMAT, "%s", wanted);
    else if (!*ids)
        status = error_set(err, DREY_ERR_MEMORY, "out of memory while reading the ids");
    for (const json_value *item = n ? root->first : NULL; item && status == DREY_OK;
         item = item->next) {
        double id = item->type == JSON_NUMBER ? item->number : -1;
        if (id >= 0 && id <= INT32_MAX && id == floor(id))
            (*ids)[(*n_ids)++] = (int32_t)id;
        else
            status = error_set(err, DREY_ERR_FORMAT, "%s; element %zu is none", wanted, *n_ids + 1);
    }
    json_free(&list);
    return status;
}

static drey_status print_text(const drey_model *model, const cli_settings *s, const char *json,
                              size_t n_json, drey_error *err)
{
    int flags = s->text.special ? DREY_TOKENIZE_SPECIAL : 0;
    int32_t *ids = NULL;
    size_t n_ids = 0, n_bytes = 0;
    char *text = NULL;
    drey_status status = read_ids(json, n_json, &ids, &n_ids, err);
    size_t capacity = 16 * n_ids + 64;
    for (bool again = status == DREY_OK; again;) {
        free(text);
        text = malloc(capacity);
        if (!text) {
            status = error_set(err, DREY_ERR_MEMORY, "out of memory while writing the text");
            break;
        }
        n_bytes = 0;
        status = drey_detokenize(model, ids, n_ids, flags, text, capacity, &n_bytes, err);
        again = status == DREY_ERR_USAGE && n_bytes > capacity;
        capacity = again ? n_bytes : capacity;
    }
    if (status ==
        DREY_ERR_USAGE) /* an id that the model lacks: the input's fault, not the words' */
        status = DREY_ERR_FORMAT;
    if (status == DREY_OK)
        fwrite(text, 1, n_bytes, stdout); /* a failure is seen when main flushes */
    free(text);
    free(ids);
    return status;
}

static drey_status tokenize(models *m, const cli_settings *s, char **input, drey_error *err)
{
    size_t n = 0;
    *m = (models){0};
    TRY(models_check_ranks(s, err));
    TRY(model_path_explain(s->common.model, drey_vocabulary_open(&m->target, s->common.model, err),
                           err));
    input_limit limit =
        input_limit_memory(DREY_MEMORY_AUTO, s->tokens.ids ? INPUT_AS_JSON : INPUT_AS_IDS);
    TRY(input_read(NULL, s->tokens.ids ? "the list of ids" : "the text", &limit, input, &n, err));
    if (n == 0 && !s->tokens.ids && !s->tokens.bos)
        complain("the text is empty: give one on standard input, as in echo Hello | drey "
                 "tokenize -m MODEL");
    return s->tokens.ids ? print_text(m->target, s, *input, n, err)
                         : print_ids(m->target, s, *input, n, err);
}

int tokenize_main(const cli_settings *settings)
{
    models m;
    drey_error err = {0};
    char *input = NULL;
    drey_status status = tokenize(&m, settings, &input, &err);
    free(input);
    models_close(&m);
    return exit_with(status, &err);
}
