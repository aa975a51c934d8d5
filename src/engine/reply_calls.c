/* The public functions of answers that need a model: see drey/reply.h. */
#include <stdlib.h>
#include <string.h>

#include "drey/drey.h"

#include "engine/engine.h"
#include "reply/reply_forms.h"

static bool is_hidden(const void *user, const char *text, size_t n)
{
    const drey_model *m = user;
    int32_t id = -1;
    size_t n_ids = 0;
    drey_status status =
        tokenizer_encode(m->tokenizer, text, n, DREY_TOKENIZE_SPECIAL, &id, 1, &n_ids, NULL);
    return status == DREY_OK && n_ids == 1 && tokenizer_is_special(m->tokenizer, id);
}

drey_status drey_reply_form_find(drey_reply_form *form, const drey_model *model,
                                 const drey_chat_request *request,
                                 const drey_reply_options *options, drey_error *err)
{
    char *own = NULL;
    *form = (drey_reply_form){0};
    if (!request->chat_template)
        TRY(model_chat_template(model, request->tools_json, &own, err));
    drey_status status = reply_form_of(form, own ? own : request->chat_template,
                                       request->tools_json, options, is_hidden, model, err);
    free(own);
    return status;
}

/* Which tools have schemas that grammars do not hold; all of them, if each alone can be held. */
static drey_status find_loose(drey_model *model, const char *tools_json, bool *loose,
                              drey_error *err)
{
    reply_tools tools;
    bool any = false;
    drey_status status = reply_tools_read(&tools, tools_json, err);
    for (int32_t i = 0; i < tools.n && status == DREY_OK; i++) {
        drey_grammar *g = NULL;
        char *schema = reply_tool_schema(tools.functions[i], false);
        loose[i] = !schema || drey_grammar_open(&g, model, DREY_GRAMMAR_JSON_SCHEMA, schema,
                                                strlen(schema), NULL) != DREY_OK;
        any = any || loose[i];
        drey_grammar_close(&g);
        free(schema);
    }
    for (int32_t i = 0; i < tools.n && !any; i++)
        loose[i] = true;
    reply_tools_free(&tools);
    return status;
}

static drey_status try_grammar(drey_model *model, const char *text, size_t n, drey_error *err)
{
    drey_grammar *g = NULL;
    drey_status status = drey_grammar_open(&g, model, DREY_GRAMMAR_GBNF, text, n, err);
    drey_grammar_close(&g);
    return status;
}

drey_status drey_reply_grammar(const drey_reply_form *form, drey_model *model,
                               const drey_chat_request *request, const drey_reply_options *options,
                               char **gbnf, size_t *n_bytes, drey_error *err)
{
    bool loose[REPLY_MOST_TOOLS] = {0};
    TRY(reply_grammar_of(form, request->tools_json, options, loose, gbnf, n_bytes, err));
    for (int round = 0; *gbnf; round++) {
        drey_status status = try_grammar(model, *gbnf, *n_bytes, err);
        if (status != DREY_ERR_USAGE || !form->calls || round == 2)
            return status == DREY_OK ? DREY_OK : (free(*gbnf), *gbnf = NULL, status);
        free(*gbnf);
        *gbnf = NULL;
        if (round == 0)
            TRY(find_loose(model, request->tools_json, loose, err));
        else
            memset(loose, true, sizeof loose);
        TRY(reply_grammar_of(form, request->tools_json, options, loose, gbnf, n_bytes, err));
    }
    return DREY_OK;
}
