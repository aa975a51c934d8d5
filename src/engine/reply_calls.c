/* The public functions of answers that need a model: see drey/reply.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "grammar/grammar.h"
#include "reply/reply_forms.h"
#include "text/tokenizer.h"

static bool is_hidden(const void *user, const char *text, size_t n)
{
    const drey_model *m = user;
    int32_t id = -1;
    size_t n_ids = 0;
    drey_status status =
        tokenizer_encode(m->tokenizer, text, n, DREY_TOKENIZE_SPECIAL, &id, 1, &n_ids, NULL);
    return status == DREY_OK && n_ids == 1 && tokenizer_is_special(m->tokenizer, id);
}

static bool wants_no_reasoning(const char *variables_json)
{
    json_document json;
    const json_value *wants =
        variables_json ? json_member(json_load(&json, variables_json, strlen(variables_json)),
                                     "enable_thinking")
                       : NULL;
    const bool none = wants && wants->type == JSON_FALSE;
    if (variables_json)
        json_free(&json);
    return none;
}

drey_status drey_reply_form_find(drey_reply_form *form, const drey_model *model,
                                 const drey_chat_request *request,
                                 const drey_reply_options *options, drey_error *err)
{
    char *own = NULL;
    *form = (drey_reply_form){0};
    if (!request->chat_template)
        TRY(model_chat_template(model, request->tools_json, &own, err));
    reply_form *inside = reply_form_in(form);
    drey_status status = reply_form_of(inside, own ? own : request->chat_template,
                                       request->tools_json, options, is_hidden, model, err);
    free(own);
    inside->unreasoned =
        wants_no_reasoning(request->variables_json) && options->begun != DREY_BEGUN_REASONING;
    return status;
}

/* Finds the tools whose schemas grammars do not hold; all of them, if each alone can be held. */
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

/* loose[]: the tools that are held to no more than being objects. */
static drey_status fitting_grammar(const drey_reply_form *form, drey_model *model,
                                   const drey_chat_request *request,
                                   const drey_reply_options *options, bool *loose, char **gbnf,
                                   size_t *n_bytes, drey_error *err)
{
    TRY(reply_grammar_of(reply_form_in(form), request->tools_json, options, loose, gbnf, n_bytes,
                         err));
    for (int round = 0; *gbnf; round++) {
        drey_status status = try_grammar(model, *gbnf, *n_bytes, err);
        if (status != DREY_ERR_USAGE || !form->calls || round == 2)
            return status == DREY_OK ? DREY_OK : (free(*gbnf), *gbnf = NULL, status);
        free(*gbnf);
        *gbnf = NULL;
        if (round == 0)
            TRY(find_loose(model, request->tools_json, loose, err));
        else
            memset(loose, true, REPLY_MOST_TOOLS * sizeof *loose);
        TRY(reply_grammar_of(reply_form_in(form), request->tools_json, options, loose, gbnf,
                             n_bytes, err));
    }
    return DREY_OK;
}

/* ---- What it does not hold ---- */

static void put_places(FILE *out, const char *before, const char *places)
{
    while (*places) {
        const size_t n = strcspn(places, ",");
        fprintf(out, "%s%s%.*s", ftell(out) > 0 ? ", " : "", *places == '/' ? before : "", (int)n,
                places);
        places += n + strspn(places + n, ", ");
    }
}

/* Refuses a strict tool of which something is not held. why: its schema is wrong, or "". */
static drey_status check_strict(const json_value *function, const char *name, const char *why,
                                const char *places, drey_error *err)
{
    bool strict = false;
    json_member_bool(function, "strict", &strict);
    if (strict && why[0])
        FAIL(err, DREY_ERR_USAGE,
             "the tool \"%.60s\" is strict, and its schema cannot be held: %.300s; change the "
             "schema, "
             "or leave strict out",
             name, why);
    if (strict && places[0])
        FAIL(
            err, DREY_ERR_USAGE,
            "the tool \"%.60s\" is strict, and no grammar can hold this of its parameters: %.300s; "
            "leave it out, or leave strict out",
            name, strcmp(places, "/") == 0 ? "all of them" : places);
    return DREY_OK;
}

/* places: of GRAMMAR_NOT_HELD_BYTES. */
static drey_status note_tool(FILE *out, const json_value *function, const char *name, bool loose,
                             char *places, drey_error *err)
{
    char before[160];
    drey_error why = {0};
    char *schema = reply_tool_schema(function, false);
    *places = 0;
    if (!schema || grammar_schema_not_held(schema, strlen(schema), places, GRAMMAR_NOT_HELD_BYTES,
                                           &why) != DREY_OK)
        loose = true;
    free(schema);
    if (loose)
        snprintf(places, GRAMMAR_NOT_HELD_BYTES, "/");
    TRY(check_strict(function, name, why.message, places, err));
    snprintf(before, sizeof before, "/tools/%.100s/parameters", name);
    put_places(out, before, places);
    return DREY_OK;
}

static drey_status note_all(FILE *out, const drey_reply_form *form,
                            const drey_chat_request *request, const drey_reply_options *options,
                            const bool *loose, drey_error *err)
{
    char places[GRAMMAR_NOT_HELD_BYTES] = "";
    reply_tools tools = {.n = 0};
    drey_status status = DREY_OK;
    const char *schema = options->schema_json;
    if (schema &&
        grammar_schema_not_held(schema, strlen(schema), places, sizeof places, NULL) == DREY_OK)
        put_places(out, "", places);
    if (form->calls)
        status = reply_tools_read(&tools, request->tools_json, err);
    for (int32_t i = 0; i < tools.n && status == DREY_OK; i++)
        if (!options->tool || json_member_is(tools.functions[i], "name", options->tool))
            status =
                note_tool(out, tools.functions[i], tools.names[i]->text, loose[i], places, err);
    reply_tools_free(&tools);
    return status;
}

drey_status drey_reply_grammar_held(const drey_reply_form *form, drey_model *model,
                                    const drey_chat_request *request,
                                    const drey_reply_options *options, char **gbnf, size_t *n_bytes,
                                    char **not_held, drey_error *err)
{
    bool loose[REPLY_MOST_TOOLS] = {0};
    size_t n;
    *not_held = NULL;
    TRY(fitting_grammar(form, model, request, options, loose, gbnf, n_bytes, err));
    FILE *out = open_memstream(not_held, &n);
    drey_status status = out ? note_all(out, form, request, options, loose, err)
                             : error_set(err, DREY_ERR_MEMORY, "not enough memory for a grammar");
    if (out && fclose(out) != 0 && status == DREY_OK)
        status = error_set(err, DREY_ERR_MEMORY, "not enough memory for a grammar");
    if (status != DREY_OK) {
        free(*gbnf);
        *gbnf = NULL;
    }
    if (status != DREY_OK || !*not_held || !**not_held) {
        free(*not_held);
        *not_held = NULL;
    }
    return status;
}

drey_status drey_reply_grammar(const drey_reply_form *form, drey_model *model,
                               const drey_chat_request *request, const drey_reply_options *options,
                               char **gbnf, size_t *n_bytes, drey_error *err)
{
    char *not_held;
    drey_status status =
        drey_reply_grammar_held(form, model, request, options, gbnf, n_bytes, &not_held, err);
    free(not_held);
    return status;
}
