/* Answers taken apart: each family's calls and reasoning, wherever the text is cut; and what the
 * form's grammar allows is what its reader finds. */
#include "grammar/grammar.h"
#include "reply/reply_forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/grammar/grammar_text.h"
#include "support/test.h"

#define WEATHER                                                                                    \
    "{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"description\":\"Of a city\","     \
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\","           \
    "\"description\":\"Its name\"}},\"required\":[\"city\"]}}}"
#define TIME "{\"type\":\"function\",\"function\":{\"name\":\"get_time\"}}"
static const char tools[] = "[" WEATHER "," TIME "]";
#define PARIS "{\"city\": \"Paris\"}"
#define ROME  "{\"city\": \"Ro\\\"me}\"}"

typedef struct shown {
    char text[4000];
    size_t n;
    int kind;
} shown;

static void show(void *user, const drey_reply_part *p)
{
    static const char letters[] = "CRKAE";
    shown *s = user;
    if (s->kind != (int)p->kind || p->kind == DREY_REPLY_CALL)
        s->n += (size_t)snprintf(s->text + s->n, sizeof s->text - s->n, "|%c", letters[p->kind]);
    assert_true(s->n + p->n_bytes < sizeof s->text);
    memcpy(s->text + s->n, p->bytes, p->n_bytes);
    s->n += p->n_bytes;
    s->text[s->n] = 0;
    s->kind = (int)p->kind;
}

/* In pieces of `step` bytes. */
static const char *parts(const reply_form *form, const char *text, size_t step, shown *out)
{
    drey_reply_reader r;
    size_t n = strlen(text);
    *out = (shown){.kind = -1};
    drey_reply_begin(&r, reply_form_out(form));
    for (size_t at = 0; at < n; at += step)
        drey_reply_read(&r, text + at, n - at < step ? n - at : step, show, out);
    drey_reply_end(&r, show, out);
    return out->text;
}

static void check_parts(const reply_form *form, const char *text, const char *wanted)
{
    shown got;
    for (size_t step = 1; step < 40; step += 3)
        assert_string_equal(parts(form, text, step, &got), wanted);
    assert_string_equal(parts(form, text, 100000, &got), wanted);
}

static bool nothing_hidden(const void *user, const char *text, size_t n)
{
    (void)user;
    return n > 8 && text[0] == '[';
}

static reply_form form_of(const char *template, const drey_reply_options *o)
{
    reply_form form;
    drey_error err = {0};
    if (reply_form_of(&form, template, tools, o, nothing_hidden, NULL, &err) != DREY_OK)
        fail_msg("%s", err.message);
    return form;
}

static test_grammar *grammar_of(const reply_form *form, const drey_reply_options *o)
{
    char *text = NULL;
    size_t n;
    drey_error err = {0};
    assert_int_equal(reply_grammar_of(form, tools, o, NULL, &text, &n, &err), DREY_OK);
    test_grammar *g = text ? test_grammar_of(DREY_GRAMMAR_GBNF, text) : NULL;
    free(text);
    return g;
}

/* Whether the grammar's texts are such. */
static bool takes(test_grammar *g, const char *text)
{
    bool whole;
    size_t n = test_grammar_takes(g, text, strlen(text), &whole);
    return n == strlen(text) && whole;
}

#define XML(name, city)                                                                            \
    "<function" name "\n<parameter=city>\n" city "\n</parameter>\n</function>\n</tool_call>"
#define ONE "|Kweather|A" PARIS "|E"
#define TWO ONE "|Kweather|A" ROME "|E"
static const struct {
    const char *name, *template, *one, *two; /* two: NULL: there is one call at most */
} families[] = {
    {"hermes", "tools <tool_call>",
     "<tool_call>\n{\"name\": \"weather\", \"arguments\": " PARIS "}\n</tool_call>",
     "<tool_call>\n{\"name\": \"weather\", \"arguments\": " PARIS "}\n</tool_call>\n<tool_call>\n"
     "{\"name\": \"weather\", \"arguments\": " ROME "}\n</tool_call>"},
    {"llama-3", "tools <|python_tag|> \"parameters\": dictionary",
     "{\"name\": \"weather\", \"parameters\": " PARIS "}", NULL},
    {"mistral", "tools [TOOL_CALLS]",
     "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": " PARIS ", \"id\": \"a1b2c3d4e\"}]",
     "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": " PARIS
     ", \"id\": \"a1b2c3d4e\"}, {\"name\": \"weather\", \"arguments\": " ROME
     ", \"id\": \"000000001\"}]"},
    {"mistral-arguments", "tools [TOOL_CALLS] [ARGS]", "[TOOL_CALLS]weather[ARGS]" PARIS,
     "[TOOL_CALLS]weather[ARGS]" PARIS "[TOOL_CALLS]weather[ARGS]" ROME},
    {"mistral-ids", "tools [TOOL_CALLS] [CALL_ID] [ARGS]",
     "[TOOL_CALLS]weather[CALL_ID]a1b2c3d4e[ARGS]" PARIS,
     "[TOOL_CALLS]weather[CALL_ID]a1b2c3d4e[ARGS]" PARIS
     "[TOOL_CALLS]weather[CALL_ID]000000001[ARGS]" ROME},
    {"command-r7b", "tools <|START_ACTION|>",
     "<|START_ACTION|>[\n{\"tool_call_id\": \"0\", \"tool_name\": \"weather\", "
     "\"parameters\": " PARIS "}\n]<|END_ACTION|>",
     "<|START_ACTION|>[\n{\"tool_call_id\": \"0\", \"tool_name\": \"weather\", "
     "\"parameters\": " PARIS
     "},\n{\"tool_call_id\": \"1\", \"tool_name\": \"weather\", \"parameters\": " ROME
     "}\n]<|END_ACTION|>"},
    {"command-r", "tools Action: \"tool_name\"",
     "Action:\n```json\n[\n{\n\"tool_name\": \"weather\",\n\"parameters\": " PARIS "\n}\n]```",
     "Action:\n```json\n[\n{\n\"tool_name\": \"weather\",\n\"parameters\": " PARIS
     "\n},\n{\n\"tool_name\": \"weather\",\n\"parameters\": " ROME "\n}\n]```"},
    {"deepseek-r1", "tools <｜tool▁calls▁begin｜> ```json",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n" PARIS
     "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n" PARIS
     "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n" ROME
     "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    {"deepseek-v3.1", "tools <｜tool▁calls▁begin｜>",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>" PARIS
     "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>" PARIS
     "<｜tool▁call▁end｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>" ROME
     "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    {"functionary-3.1", "tools start_tag => `<function`", "<function=weather>" PARIS "</function>",
     "<function=weather>" PARIS "</function><function=weather>" ROME "</function>"},
    {"functionary-3.2", "tools >>>all >>>${recipient}", "weather\n" PARIS,
     "weather\n" PARIS ">>>weather\n" ROME},
    {"firefunction", " functools[ functions",
     "functools[{\"name\": \"weather\", \"arguments\": " PARIS "}]",
     "functools[{\"name\": \"weather\", \"arguments\": " PARIS
     "}, {\"name\": \"weather\", \"arguments\": " ROME "}]"},
    {"granite", "available_tools <|tool_call|> <|end_of_role|>",
     "<|tool_call|>[{\"name\": \"weather\", \"arguments\": " PARIS "}]",
     "<|tool_call|>[{\"name\": \"weather\", \"arguments\": " PARIS
     "}, {\"name\": \"weather\", \"arguments\": " ROME "}]"},
    {"phi-4-mini", "tools <|/tool|>",
     "<|tool_call|>[{\"name\": \"weather\", \"arguments\": " PARIS "}]<|/tool_call|>",
     "<|tool_call|>[{\"name\": \"weather\", \"arguments\": " PARIS
     "}, {\"name\": \"weather\", \"arguments\": " ROME "}]<|/tool_call|>"},
    {"gpt-oss", "tools <|channel|> functions.",
     "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>" PARIS, NULL},
    {"kimi-k2", "tools <|tool_calls_section_begin|>",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|"
     ">" PARIS "<|tool_call_end|><|tool_calls_section_end|>",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|"
     ">" PARIS
     "<|tool_call_end|><|tool_call_begin|>functions.weather:1<|tool_call_argument_begin|>" ROME
     "<|tool_call_end|><|tool_calls_section_end|>"},
    {"nemotron", "tools <TOOLCALL>",
     "<TOOLCALL>[{\"name\": \"weather\", \"arguments\": " PARIS "}]</TOOLCALL>",
     "<TOOLCALL>[{\"name\": \"weather\", \"arguments\": " PARIS "}, {\"name\": \"weather\", "
     "\"arguments\": " ROME "}]</TOOLCALL>"},
    {"apriel", "tools <tool_calls>[",
     "<tool_calls>[{\"name\": \"weather\", \"arguments\": " PARIS "}]</tool_calls>",
     "<tool_calls>[{\"name\": \"weather\", \"arguments\": " PARIS "}, {\"name\": \"weather\", "
     "\"arguments\": " ROME "}]</tool_calls>"},
    {"qwen3-coder", "tools <tool_call> <parameter=", "<tool_call>\n" XML("=weather>", "Paris"),
     "<tool_call>\n" XML("=weather>", "Paris") "\n<tool_call>\n" XML("=weather>", "Ro\"me}")},
    {"seed-oss", "tools <seed:tool_call> <parameter=",
     "<seed:tool_call>\n<function=weather>\n<parameter=city>Paris</parameter>\n</function>\n"
     "</seed:tool_call>",
     NULL},
    {"glm-4.5", "tools <tool_call> <arg_key>",
     "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
     NULL},
    {"minimax-m2", "tools <minimax:tool_call> <parameter name=",
     "<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Paris</parameter>\n"
     "</invoke>\n</minimax:tool_call>",
     "<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Paris</parameter>\n"
     "</invoke>\n<invoke name=\"weather\">\n<parameter name=\"city\">Ro\"me}</parameter>\n"
     "</invoke>\n</minimax:tool_call>"},
    {"described", "a template of messages",
     "<tool_call>\n{\"name\": \"weather\", \"arguments\": " PARIS "}\n</tool_call>", NULL}};
enum { N_FAMILIES = sizeof families / sizeof *families };

TEST(every_family_has_its_calls)
{
    for (int i = 0; i < N_FAMILIES; i++) {
        drey_reply_options o = {.choice = DREY_TOOLS_REQUIRED};
        reply_form form = form_of(families[i].template, &o);
        assert_string_equal(reply_family_at(form.family)->name, families[i].name);
        assert_true(form.described == (strcmp(families[i].name, "described") == 0));
        check_parts(&form, families[i].one, ONE);
        test_grammar *g = grammar_of(&form, &o);
        if (!takes(g, families[i].one))
            fail_msg("%s: not of the grammar", families[i].name);
        assert_false(takes(g, "Hello."));
        assert_false(takes(g, "<|channel|>final<|message|>Hello."));
        if (families[i].two) {
            check_parts(&form, families[i].two, TWO);
            if (!takes(g, families[i].two))
                fail_msg("%s: two calls are not of the grammar", families[i].name);
        }
        free(g);
    }
}

TEST(tools_are_described_in_the_templates_own_form)
{
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    drey_error err = {0};
    static const struct {
        const char *template, *has, *has_not;
        bool in_words;
    } cases[] = {
        {"<｜tool▁calls▁begin｜> ```json tool_calls 'tool'",
         "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>name\n```json\n{}",
         "<tool_response>", false},
        {"<｜tool▁calls▁begin｜> ```json", "<tool_call>\n{\"name\": \"name\"",
         "<｜tool▁calls▁begin｜>", true},
        {"messages", "and </tool_response>.", "<｜tool▁calls▁begin｜>", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        reply_form form = form_of(cases[i].template, &o);
        char *text;
        size_t n;
        assert_true(form.described && form.in_words == cases[i].in_words);
        assert_int_equal(drey_reply_tools_text(reply_form_out(&form), tools, &text, &n, &err),
                         DREY_OK);
        assert_non_null(strstr(text, "\"get_time\""));
        assert_non_null(strstr(text, cases[i].has));
        assert_null(strstr(text, cases[i].has_not));
        free(text);
    }
}

TEST(text_may_come_before_calls)
{
    for (int i = 0; i < N_FAMILIES; i++) {
        drey_reply_options o = {.choice = DREY_TOOLS_AUTO, .one_call = true};
        reply_form form = form_of(families[i].template, &o);
        const reply_family *f = reply_family_at(form.family);
        test_grammar *g = grammar_of(&form, &o);
        bool all = strcmp(f->name, "functionary-3.2") == 0;
        const char *front = all ? "all\n" : f->headers ? "<|channel|>final<|message|>" : "";
        const char *remark = f->headers ? "<|channel|>commentary<|message|>" : front;
        const char *sign = all ? ">>>" : f->headers ? "<|end|><|start|>assistant" : "";
        char text[2000];
        snprintf(text, sizeof text, "%sI look < that > [up] Ac.", front);
        check_parts(&form, text, "|CI look < that > [up] Ac.");
        assert_true(takes(g, text));
        assert_true(takes(g, families[i].one));
        assert_false(families[i].two && takes(g, families[i].two));
        if (f->begin) {
            snprintf(text, sizeof text, "%sI look. \n%s%s", remark, sign, families[i].one);
            check_parts(&form, text, f->headers ? "|CI look. \n" ONE : "|CI look." ONE);
            if (!takes(g, text))
                fail_msg("%s: %s", f->name, text);
        }
        free(g);
    }
}

TEST(an_answer_may_begin_with_the_object_of_a_call)
{
    static const char *const texts[] = {"{}",         "{\"name\": \"Bob\", \"arguments\": {}}",
                                        "{",          "{\"name\": \"weath",
                                        "{\"a\": 1}", "<b>",
                                        "<<b>",       "{ \"name\" : \"weathers\"}",
                                        "  Yes."};
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form = form_of("tools <tool_call>", &o);
    test_grammar *g = grammar_of(&form, &o);
    check_parts(&form, "{\"name\": \"weather\", \"arguments\": " PARIS "}", ONE);
    assert_true(takes(g, "{\"name\": \"weather\", \"arguments\": " PARIS "}"));
    assert_false(takes(g, "{\"name\": \"weather\", \"arguments\": {}}"));
    assert_false(takes(g, " {\"name\":\"weather\"}"));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!takes(g, texts[i]))
            fail_msg("%s", texts[i]);
    static const char *const calls[] = {
        "{\n  \"name\": \"weather\",\n  \"arguments\": {\"city\": \"Paris\"}\n}",
        "```json\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n```",
        "```json\n{\n  \"name\" : \"weather\",\n  \"arguments\": {\"city\": \"Paris\"}\n}\n```"};
    static const char *const code[] = {"```",
                                       "```json\n{\"name\": \"Bob\"}\n```",
                                       "```python\nx\n```",
                                       "```json\n{\"a\": 1}\n```",
                                       "`x` < y",
                                       "```json```",
                                       "```json\n<b>"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        check_parts(&form, calls[i], ONE);
        if (strstr(calls[i], "\" :") == NULL && !takes(g, calls[i]))
            fail_msg("%s", calls[i]);
    }
    for (size_t i = 0; i < sizeof code / sizeof *code; i++) {
        char wanted[100];
        snprintf(wanted, sizeof wanted, "|C%s", code[i]);
        check_parts(&form, code[i], wanted);
        if (!takes(g, code[i]))
            fail_msg("%s", code[i]);
    }
    assert_false(takes(g, "```json\n{\"name\": \"weather\", \"arguments\": {}}\n```"));
    check_parts(&form, "{\"name\": \"Bob\", \"arguments\": {}}",
                "|C{\"name\": \"Bob\", \"arguments\": {}}");
    check_parts(&form, "{\"name\": 5} yes", "|C{\"name\": 5} yes");
    check_parts(&form, "Text {\"name\": \"weather\"", "|CText {\"name\": \"weather\"");
    free(g);
}

/* As many as there may be, whose names differ at their ends alone: a grammar that looked at each
 * pair of names for each of their characters would not be made today. */
TEST(many_tools_with_long_names)
{
    static char list[REPLY_MOST_TOOLS * 200] = "[";
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form = form_of("tools <tool_call>", &o);
    drey_error err = {0};
    char *text = NULL;
    size_t n = 1;
    for (int i = 0; i < REPLY_MOST_TOOLS; i++)
        n += (size_t)snprintf(list + n, sizeof list - n,
                              "%s{\"type\":\"function\",\"function\":{\"name\":\"%0100d\"}}",
                              i ? "," : "", i);
    snprintf(list + n, sizeof list - n, "]");
    assert_int_equal(reply_grammar_of(&form, list, &o, NULL, &text, &n, &err), DREY_OK);
    assert_non_null(strstr(text, "call-511"));
    free(text);
}

TEST(arguments_are_held_to_schemas)
{
    drey_reply_options o = {.choice = DREY_TOOLS_REQUIRED, .tool = "weather"};
    reply_form form = form_of("tools <tool_call>", &o);
    test_grammar *g = grammar_of(&form, &o);
    assert_true(takes(g, families[0].one));
    assert_false(takes(g, "<tool_call>\n{\"name\": \"weather\", \"arguments\": {}}\n</tool_call>"));
    assert_false(
        takes(g, "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>"));
    free(g);
    o.tool = "nobody";
    drey_error err = {0};
    assert_int_equal(reply_form_of(&form, "tools", tools, &o, nothing_hidden, NULL, &err),
                     DREY_ERR_USAGE);
}

TEST(an_answer_is_of_the_schema_or_a_call)
{
    drey_reply_options o = {.schema_json = "{\"enum\": [1, 2]}"};
    reply_form form = form_of("tools <tool_call>", &o);
    test_grammar *g = grammar_of(&form, &o);
    assert_true(takes(g, "1"));
    assert_false(takes(g, "one"));
    assert_true(takes(g, families[0].one));
    free(g);
}

TEST(reasoning_is_taken_apart)
{
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form = form_of("tools <tool_call> </think>", &o);
    test_grammar *g = grammar_of(&form, &o);
    char text[1000];
    snprintf(text, sizeof text, "<think>\nA < b.\n\n</think>\n\n%s", families[0].one);
    check_parts(&form, text, "|RA < b." ONE);
    assert_true(takes(g, text));
    check_parts(&form, " No thought.", "|C No thought.");
    check_parts(&form, "<think>\n\n</think>\n\nHello.\n", "|CHello.\n");
    drey_reply_form_prompt(reply_form_out(&form), "<|im_start|>assistant\n<think>\n", 30);
    assert_true(form.thinks);
    check_parts(&form, "So.</think> Hi", "|RSo.|CHi");
    check_parts(&form, "So</thi", "|RSo</thi");
    free(g);
    g = grammar_of(&form, &o);
    assert_true(takes(g, "So.</think> Hi"));
    assert_false(takes(g, "So."));
    free(g);
    o.choice = DREY_TOOLS_REQUIRED; /* a model that could think to the end of its tokens */
    form = form_of("tools <tool_call> </think>", &o);
    form.unreasoned = 1;
    g = grammar_of(&form, &o);
    assert_true(takes(g, families[0].one));
    assert_false(takes(g, text));
    free(g);
    drey_reply_form_prompt(reply_form_out(&form), "<|im_start|>assistant\n<think>\n", 30);
    g = grammar_of(&form, &o);
    snprintf(text, sizeof text, "\n</think>\n\n%s", families[0].one);
    assert_true(takes(g, text));
    check_parts(&form, text, ONE);
    assert_false(takes(g, families[0].one));
    snprintf(text, sizeof text, "So.</think>%s", families[0].one);
    assert_false(takes(g, text));
    free(g);
    o = (drey_reply_options){.choice = DREY_TOOLS_AUTO, .keep_reasoning = true};
    form = form_of("tools <tool_call> </think>", &o);
    check_parts(&form, "<think>A</think>B", "|C<think>A</think>B");
    drey_reply_form_prompt(reply_form_out(&form), "<|im_start|>assistant\n<think>\n", 30);
    check_parts(&form, "A</think>B", "|C<think>\nA</think>B");
    check_parts(&form, "", "|C<think>\n");
}

/* Marks that are words, and a channel of one side. */
TEST(reasoning_between_other_marks)
{
    drey_reply_options o = {.choice = DREY_TOOLS_NONE};
    reply_form form = form_of("[BEGIN FINAL RESPONSE]", &o);
    check_parts(&form, "Hello.", "|CHello.");
    check_parts(&form, "Here are my reasoning steps:\nA\n[BEGIN FINAL RESPONSE]\nB", "|RA|CB");
    static const char steps[] = "Here are my reasoning steps:\n";
    drey_reply_form_prompt(reply_form_out(&form), steps, strlen(steps));
    check_parts(&form, "A\n[BEGIN FINAL RESPONSE]\nB", "|RA|CB");
    o.keep_reasoning = true;
    form = form_of("[BEGIN FINAL RESPONSE]", &o);
    drey_reply_form_prompt(reply_form_out(&form), steps, strlen(steps));
    check_parts(&form, "A", "|CHere are my reasoning steps:\nA");
    o.keep_reasoning = false;
    form = form_of("<|channel>thought", &o);
    check_parts(&form, "<|channel>thought\nA\n<channel|>B", "|RA|CB");
    form = form_of("<mm:think>", &o);
    check_parts(&form, "<mm:think>A</mm:think>B", "|RA|CB");
}

TEST(answers_that_have_begun)
{
    static const char prompt[] = "<|im_start|>assistant\n<think>\nOne";
    drey_reply_options o = {.begun = DREY_BEGUN_REASONING};
    reply_form form = form_of("tools <tool_call> </think>", &o);
    drey_reply_form_prompt(reply_form_out(&form), prompt, strlen(prompt));
    check_parts(&form, " two.</think> Hi", "|R two.|CHi");
    o.begun = DREY_BEGUN_CONTENT;
    form = form_of("tools <tool_call> </think>", &o);
    drey_reply_form_prompt(reply_form_out(&form), prompt, strlen(prompt));
    form.calls = false;
    check_parts(&form, " <think>two", "|C <think>two");
    o.keep_reasoning = true;
    form = form_of("</think>", &o);
    drey_reply_form_prompt(reply_form_out(&form), "<think>\n", 8);
    check_parts(&form, "A", "|CA");
    o = (drey_reply_options){.begun = DREY_BEGUN_CONTENT};
    form = form_of("tools <|channel|>analysis functions.", &o);
    drey_reply_form_prompt(reply_form_out(&form), "<|message|>Hel", 14);
    check_parts(&form, "lo<|end|>", "|Clo");
}

#define ANALYSIS(text) "<|channel|>analysis<|message|>" text "<|end|><|start|>assistant"
#define FINAL(text)    "<|channel|>final<|message|>" text

TEST(channels_are_reasoning_and_text)
{
    static const struct {
        const char *text, *parts;
        bool of_grammar;
    } cases[] = {
        {ANALYSIS("Think.") FINAL("Hello."), "|RThink.|CHello.", true},
        {FINAL("a < b <| c"), "|Ca < b <| c", true},
        {ANALYSIS("One.") ANALYSIS("Two.") FINAL("x"), "|ROne.\n\nTwo.|Cx", true},
        {"<|channel|>commentary<|message|>I look.<|end|><|start|>assistant" FINAL("Yes."),
         "|CI look.\n\nYes.", true},
        {ANALYSIS("So") "<|channel|>commentary to=functions.weather "
                        "<|constrain|>json<|message|>" PARIS,
         "|RSo" ONE, true},
        {ANALYSIS("So") " to=functions.weather<|channel|>commentary json<|message|>" PARIS
                        "<|call|>",
         "|RSo" ONE, false},
        {" to=functions.weather<|channel|>analysis<|message|>" PARIS, ONE, true},
        {"<|channel|>commentary to=functions.get_time<|message|>{}", "|Kget_time|A{}|E", true},
        {"<|channel|>final <|constrain|>json<|message|>{}", "|C{}", true},
        {"<|channel|>commentary to=python<|message|>print(1)<|end|><|start|>assistant" FINAL("1"),
         "|C1", false},
        {"<|channel|>commentary to=assistant" FINAL("1"), "|C1", false},
        {"Without a header", "|CWithout a header", false},
        {"toward", "|Ctoward", false},
        {"<|channel|>analysis<|message|>Brok", "|RBrok", false},
        {"<|channel|>fin", "", false},
        {"<|channel|>commentary to=functions.weather<|message|>{\"ci", "|Kweather|A{\"ci", false},
        {"<|channel|>commentary to=functions.weather<|message|>no", "|Kweather|Cno", false}};
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form = form_of("tools <|channel|>analysis functions.", &o);
    test_grammar *g = grammar_of(&form, &o);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_parts(&form, cases[i].text, cases[i].parts);
        if (takes(g, cases[i].text) != cases[i].of_grammar)
            fail_msg("%s", cases[i].text);
    }
    free(g);
    o.keep_reasoning = true;
    form = form_of("tools <|channel|>analysis functions.", &o);
    check_parts(&form, ANALYSIS("Think.") FINAL("Hello."),
                "|C<|channel|>analysis<|message|>Think.<|end|>Hello.");
    o = (drey_reply_options){.choice = DREY_TOOLS_NONE, .schema_json = "{\"enum\": [1, 2]}"};
    form = form_of("tools <|channel|>analysis functions.", &o);
    g = grammar_of(&form, &o);
    assert_true(takes(g, ANALYSIS("Think.") FINAL("1")));
    assert_false(takes(g, FINAL("3")) || takes(g, "1"));
    free(g);
}

/* Values between marks: texts are escaped, others are JSON, as the schema says. */
static const char many_kinds[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"s\":{\"type\":\"string\"},\"i\":{\"type\":\"integer\"},\"e\":{\"enum\":"
    "[\"up\",\"down\"]},\"sn\":{\"type\":[\"string\",\"null\"]},\"a\":{\"anyOf\":[{\"type\":"
    "\"array\",\"items\":{\"$ref\":\"#/$defs/"
    "P\"}},{\"type\":\"null\"}]},\"x\":{\"anyOf\":[{\"type\":"
    "\"string\"},{\"type\":\"integer\"}]},\"r\":{\"$ref\":\"#/$defs/"
    "P\"}},\"$defs\":{\"P\":{\"type\":"
    "\"object\",\"properties\":{\"n\":{\"type\":\"number\"}},\"required\":[\"n\"]}},\"required\":"
    "[\"s\"]}}}]";
#define P(key, value) "\n<parameter=" key ">\n" value "\n</parameter>"
#define F(parameters) "<tool_call>\n<function=f>" parameters "\n</function>\n</tool_call>"

TEST(values_between_marks)
{
    static const struct {
        const char *parameters, *json;
        bool of_grammar;
    } cases[] = {
        {P("s", "a \"b\"\n\t\\ \xC3\xA9 </p>\x01"),
         "{\"s\": \"a \\\"b\\\"\\n\\t\\\\ \xC3\xA9 </p>\\u0001\"}", true},
        {P("s", "42") P("i", "42"), "{\"s\": \"42\", \"i\": 42}", true},
        {P("s", "") P("e", "up"), "{\"s\": \"\", \"e\": \"up\"}", true},
        {P("s", "{}") P("e", "left"), "{\"s\": \"{}\", \"e\": \"left\"}", false},
        {P("s", "null") P("sn", "null"), "{\"s\": \"null\", \"sn\": null}", true},
        {P("s", "x") P("sn", "1"), "{\"s\": \"x\", \"sn\": \"1\"}", true},
        {P("s", "x") P("a", "[{\"n\": 1.5}]"), "{\"s\": \"x\", \"a\": [{\"n\": 1.5}]}", true},
        {P("s", "x") P("a", "null"), "{\"s\": \"x\", \"a\": null}", true},
        {P("s", "x") P("x", "12") P("r", "{\"n\": 1}"),
         "{\"s\": \"x\", \"x\": 12, \"r\": {\"n\": 1}}", true},
        {P("s", "x") P("x", "12 of"), "{\"s\": \"x\", \"x\": \"12 of\"}", true},
        {P("s", "x") P("r", "{}"), "{\"s\": \"x\", \"r\": {}}", false},
        {P("i", "1"), "{\"i\": 1}", false},
        {P("s", "x") P("unknown", "true"), "{\"s\": \"x\", \"unknown\": true}", false},
        {"", "{}", false},
        {"<parameter=s>x</parameter>", "{\"s\": \"x\"}", false}};
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form;
    drey_error err = {0};
    char *gbnf, text[2000], wanted[2000];
    size_t n;
    assert_int_equal(reply_form_of(&form, "tools <tool_call> <parameter=", many_kinds, &o,
                                   nothing_hidden, NULL, &err),
                     DREY_OK);
    assert_int_equal(reply_grammar_of(&form, many_kinds, &o, NULL, &gbnf, &n, &err), DREY_OK);
    test_grammar *g = test_grammar_of(DREY_GRAMMAR_GBNF, gbnf);
    free(gbnf);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, F("%s"), cases[i].parameters);
        snprintf(wanted, sizeof wanted, "|Kf|A%s|E", cases[i].json);
        check_parts(&form, text, wanted);
        if (takes(g, text) != cases[i].of_grammar)
            fail_msg("%s", text);
    }
    free(g);
}

/* Each of many alternatives is all of them again: following them all would take for ever. */
TEST(schemas_that_go_in_circles)
{
    static const char front[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{"
        "\"properties\":{\"x\":{\"$ref\":\"#/$defs/a\"}},\"$defs\":{\"a\":{"
        "\"anyOf\":[",
                      end[] = "]}}}}}]", again[] = "{\"$ref\":\"#/$defs/a\"}";
    char list[sizeof front + 100 * sizeof again + sizeof end];
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form;
    drey_error err = {0};
    shown got;
    size_t n = (size_t)snprintf(list, sizeof list, "%s", front);
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? "," : "", again);
    snprintf(list + n, sizeof list - n, "%s", end);
    assert_int_equal(
        reply_form_of(&form, "tools <tool_call> <parameter=", list, &o, nothing_hidden, NULL, &err),
        DREY_OK);
    assert_string_equal(parts(&form,
                              "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n"
                              "</function>\n</tool_call>",
                              7, &got),
                        "|Kf|A{\"x\": 1}|E");
}

/* Each parameter's schema brings the definitions: all of them together are more than there is
 * memory for, and than a grammar may be. */
TEST(many_parameters_with_long_definitions)
{
    enum { N = 2000, DEFINITION = 50000 };
    static char list[N * 40 + DEFINITION + 200];
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form;
    drey_error err = {0};
    char *gbnf;
    size_t n =
        (size_t)snprintf(list, sizeof list,
                         "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{"
                         "\"$defs\":{\"a\":{\"enum\":[\"%0*d\"]}},\"properties\":{",
                         DEFINITION, 1);
    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s\"x%d\":{\"type\":\"integer\"}",
                              i ? "," : "", i);
    snprintf(list + n, sizeof list - n, "}}}}]");
    assert_int_equal(
        reply_form_of(&form, "tools <tool_call> <parameter=", list, &o, nothing_hidden, NULL, &err),
        DREY_OK);
    assert_int_equal(reply_grammar_of(&form, list, &o, NULL, &gbnf, &n, &err), DREY_OK);
    assert_true(n > GRAMMAR_MOST_BYTES && n < 4 * DEFINITION);
    free(gbnf);
}

TEST(a_forgotten_mark_and_values_broken_off)
{
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form = form_of("tools <tool_call> <parameter=", &o);
    test_grammar *g = grammar_of(&form, &o);
    check_parts(&form, XML("=weather>", "Paris"), ONE);
    check_parts(&form, "So.\n" XML("=weather>", "Paris"), "|CSo." ONE);
    assert_true(takes(g, XML("=weather>", "Paris")));
    assert_true(takes(g, "So.\n" XML("=weather>", "Paris")));
    assert_true(takes(g, "So <function=no>"));
    check_parts(&form, "So <function=no>", "|CSo <function=no>");
    check_parts(&form, "<tool_call>\n<function=weather>\n<parameter=ci", "|Kweather");
    check_parts(&form, "<tool_call>\n<function=weather>\n<parameter=city>\nPa\n</para",
                "|Kweather|A{\"city\": \"Pa");
    check_parts(&form, "<tool_call>\n<function=weather>\n</function>\n</tool_call>After",
                "|Kweather|A{}|E|CAfter");
    free(g);
    bool loose[2] = {true, true};
    char *gbnf;
    size_t n;
    drey_error err = {0};
    assert_int_equal(reply_grammar_of(&form, tools, &o, loose, &gbnf, &n, &err), DREY_OK);
    g = test_grammar_of(DREY_GRAMMAR_GBNF, gbnf);
    free(gbnf);
    assert_true(takes(g, "<tool_call>\n<function=weather>" P("any", "[1]")
                             P("b", "") "\n"
                                        "</function>\n</tool_call>"));
    assert_false(takes(g, "<tool_call>\n<function=weather>" P("any", "[1") "\n</function>\n"
                                                                           "</tool_call>"));
    free(g);
}

TEST(what_is_broken_off_is_no_text)
{
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form = form_of("tools <tool_call>", &o);
    check_parts(&form, "<tool_call>\n{\"name\": \"wea", "");
    check_parts(&form, "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"ci",
                "|Kweather|A{\"ci");
    check_parts(&form, "Yes <tool_", "|CYes <tool_");
    check_parts(&form, "<tool_call>no call</tool_call>", "|C<tool_call>no call</tool_call>");
    form = form_of("tools >>>all >>>${recipient}", &o);
    check_parts(&form, "weather\nno", "|Cweather\nno");
}

/* ---- What models write ---- */

#define HERMES "<tool_call>\n{\"name\": \"weather\", \"arguments\": " PARIS "}\n</tool_call>"
#define DEEPSEEK                                                                                   \
    "<｜tool▁call▁begin｜>weather<｜tool▁sep｜>" PARIS "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
#define GLM                                                                                        \
    "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>"
#define SEED                                                                                       \
    "<seed:tool_call>\n<function=weather>\n<parameter=city>Paris</parameter>\n</function>\n"       \
    "</seed:tool_call>"
#define INVOKE                                                                                     \
    "<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Paris</parameter>\n" \
    "</invoke>\n</minimax:tool_call>"
#define LLAMA                "tools <|python_tag|> \"parameters\": dictionary"
#define GRANITE              "available_tools <|tool_call|> <|end_of_role|> </think>"
#define CODER                "tools <tool_call> <parameter= </think>"
#define IN_QUOTES(arguments) "{\"name\": \"weather\", \"arguments\": " arguments "}"

typedef struct spelling {
    const char *template, *text, *parts;
    bool of_grammar;
} spelling;

/* The reasoning is open, if the template has any. */
static void check_spellings(const spelling *all, size_t n, bool thinks)
{
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    for (size_t i = 0; i < n; i++) {
        reply_form form = form_of(all[i].template, &o);
        form.thinks = thinks && form.thinking;
        test_grammar *g = grammar_of(&form, &o);
        check_parts(&form, all[i].text, all[i].parts);
        if (takes(g, all[i].text) != all[i].of_grammar)
            fail_msg("%s: the grammar %s this", all[i].text,
                     all[i].of_grammar ? "refuses" : "allows");
        free(g);
    }
}
#define CHECK(all, thinks) check_spellings(all, sizeof all / sizeof *(all), thinks)

TEST(a_call_begins_within_the_reasoning)
{
    static const spelling cases[] = {
        {"tools <tool_call> </think>", "I call.\n" HERMES, "|RI call." ONE, true},
        {"tools <tool_call> </think>", HERMES, ONE, true},
        {"tools <tool_call> </think>", "<think>\nI call.\n\n" HERMES, "|RI call." ONE, true},
        {"tools <tool_call> </think>", "<think>\nhm\n</think>\n\nHi", "|Rhm|CHi", true},
        {"tools <tool_call> </think>", "A `<tool_call>` or a <tool_call>\nthere.\n</think>Hi",
         "|RA `<tool_call>` or a <tool_call>\nthere.|CHi", true},
        {"tools <tool_call> </think>", "I write <tool_call>{\"name\": 1}\n</think>Hi",
         "|RI write <tool_call>{\"name\": 1}|CHi", true},
        {"tools <tool_call> </think>", "So\n</think>\n</think>\n\nHi", "|RSo|CHi", true},
        {"tools <seed:tool_call> <parameter= <seed:think>", "So.\n" SEED, "|RSo." ONE, true},
        {"tools <tool_call> <arg_key> </think>", "So.\n" GLM, "|RSo." ONE, true},
        {"tools <tool_call> <arg_key> </think>", "So <tool_call>weather fits.</think>Hi",
         "|RSo <tool_call>weather fits.|CHi", true},
        {"tools <minimax:tool_call> <parameter name= </think>", "So.\n" INVOKE, "|RSo." ONE, true},
        {CODER, "So.\n<tool_call>\n" XML("=weather>", "Paris"), "|RSo." ONE, true},
        {CODER, "So.\n" XML("=weather>", "Paris"), "|RSo." ONE, true},
        {"tools <｜tool▁calls▁begin｜> </think>", "So.<｜tool▁calls▁begin｜>" DEEPSEEK, "|RSo." ONE,
         true},
        {"tools <｜tool▁calls▁begin｜> </think>", "So `<｜tool▁calls▁begin｜>`.</think>Hi",
         "|RSo `<｜tool▁calls▁begin｜>`.|CHi", true},
        {"tools <TOOLCALL> </think>", "So.\n<TOOLCALL>[" IN_QUOTES(PARIS) "]</TOOLCALL>",
         "|RSo." ONE, true},
        {"tools <|START_ACTION|> <|START_THINKING|>", "So.<|START_RESPONSE|>Hi<|END_RESPONSE|>",
         "|RSo.|CHi", true}};
    CHECK(cases, true);
    static const spelling closed[] = {
        {"tools <tool_call> </think>", "Hm\n</think>\n\nHi", "|CHm\n\nHi", true},
        {"tools <tool_call> </think>", "</think>\n\nHi", "|CHi", true},
        {"tools <|channel|>analysis functions.",
         "<|channel|>analysis<|message|>So<|channel|>commentary to=functions.weather "
         "json<|message|>" PARIS,
         "|RSo" ONE, true}};
    CHECK(closed, false);
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form = form_of("tools <tool_call> </think>", &o);
    drey_reply_form_prompt(reply_form_out(&form), "<think>\n\n</think>\n\n", 19);
    assert_int_equal(form.thinking, 0);
    check_parts(&form, "<think>\nhm\n</think>\n\nHi", "|Rhm|CHi");
}

TEST(marks_are_named_in_texts)
{
    static const struct {
        const char *template, *text;
    } cases[] = {
        {"tools <tool_call>", "Models write `<tool_call>` before a call."},
        {"tools <tool_call>", "The <tool_call> and </tool_call> marks: `<tool_call>{\"name\": 1}`"},
        {"tools <tool_call>", "It ends with <tool_call>"},
        {"tools <tool_call> <parameter=", "Use <function=name> or `<function=weather>` so."},
        {"tools <tool_call> <arg_key>", "Write <tool_call>weather first, <tool_call>."},
        {"tools >>>all >>>${recipient}", "all\n>>> print(1)\n1, all of it: shall >>>weather do?"},
        {"tools start_tag => `<function`", "It is <function=name>, and `<function=weather>`"},
        {" functools[ functions", "It is functools[0] or functools[ here"},
        {"tools [TOOL_CALLS] [ARGS]", "It is `[TOOL_CALLS]` or [TOOL_CALLS]weather here"},
        {"tools Action: \"tool_name\"", "Action: none"},
        {GRANITE, "Use <tool_call>, `<|tool_call|>`, <response> and </response> so"},
        {LLAMA, "{\"answer\": 42}"},
        {LLAMA, "{"},
        {LLAMA, "[1, 2]"},
        {LLAMA, "\n {\"name\": \"Bob\", \"parameters\": {}}"},
        {LLAMA, "```json\n{\"a\": 1}\n```"},
        {LLAMA, "It is `{\"name\": \"weather\"}`"}};
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        reply_form form = form_of(cases[i].template, &o);
        test_grammar *g = grammar_of(&form, &o);
        char wanted[200];
        const char *text = cases[i].text;
        snprintf(wanted, sizeof wanted, "|C%s", strncmp(text, "all\n", 4) == 0 ? text + 4 : text);
        check_parts(&form, text, wanted);
        if (!takes(g, text))
            fail_msg("the grammar refuses %s", text);
        free(g);
    }
}

TEST(calls_are_spelled_in_other_ways)
{
    static const spelling cases[] = {
        {LLAMA, "{\"name\": \"weather\", \"parameters\": " PARIS "}\n", ONE, true},
        {LLAMA, "\n{\"name\":\"weather\",\"parameters\":" PARIS "}", ONE, true},
        {LLAMA, IN_QUOTES(PARIS), ONE, true},
        {LLAMA, "{\"type\": \"function\", \"name\": \"weather\", \"parameters\": " PARIS "}", ONE,
         true},
        {LLAMA, "```json\n{\"name\": \"weather\", \"parameters\": " PARIS "}\n```", ONE, true},
        {LLAMA, "```\n" IN_QUOTES(PARIS) "\n```", ONE, true},
        {LLAMA, "<|python_tag|>{\"name\": \"weather\", \"parameters\": " PARIS "}", ONE, true},
        {LLAMA, "{\"name\": \"get_time\"}", "|Kget_time|A{}|E", true},
        {LLAMA, "{\"name\": \"weather\"}", "|Kweather|A{}|E", false},
        {GRANITE, "<tool_call>[" IN_QUOTES(PARIS) "]", ONE, true},
        {GRANITE, "<|tool_call|> [" IN_QUOTES(PARIS) ",\n" IN_QUOTES(ROME) "]", TWO, true},
        {GRANITE, "I look.\n<tool_call>" IN_QUOTES(PARIS), "|CI look." ONE, true},
        {"tools <|/tool|>", "functools[" IN_QUOTES(PARIS) "]", ONE, true},
        {"tools <tool_call>", "<tool_call>" IN_QUOTES(PARIS) "</tool_call>\n\n" HERMES, ONE ONE,
         true},
        {"tools <tool_call>",
         "<tool_call>\n\n{\"name\":\"weather\",\"parameters\":" PARIS "}\n"
         "</tool_call>\n",
         ONE, true},
        {"tools <tool_call>", "<tool_call> <tool_call>" IN_QUOTES(PARIS) "</tool_call>",
         "|C<tool_call>" ONE, true},
        {"tools <tool_call>",
         "<tool_call>" IN_QUOTES("\"{\\\"city\\\": \\\"Paris\\\"}\"") "</tool_call>", ONE, false},
        {"tools <tool_call>",
         "<tool_call>{\"name\": \"weather\", \"arguments\": " PARIS "\n</tool_call>", ONE, false},
        {"tools Action: \"tool_name\"",
         "Action: ```json\n[\n  {\n    \"tool_name\": \"weather\",\n    \"parameters\": " PARIS
         "\n  }\n]\n```",
         ONE, true},
        {"tools <｜tool▁calls▁begin｜>", "<｜tool▁calls｜>" DEEPSEEK, ONE, true},
        {"tools <｜tool▁calls▁begin｜>", "<｜tool_calls_begin｜>" DEEPSEEK, ONE, true},
        {"tools <｜tool▁calls▁begin｜>", DEEPSEEK, ONE, true},
        {"tools <tool_call> <arg_key>",
         "<tool_call>weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>", ONE,
         true},
        {"tools <tool_call> <arg_key>", "<tool_call>get_time</tool_call>", "|Kget_time|A{}|E",
         true},
        {"tools <minimax:tool_call> <parameter name=", INVOKE "\n" INVOKE, ONE ONE, true}};
    CHECK(cases, false);
}

/* Of "f", whose parameters are path, text and n; path is required. */
static const char three[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"path\":{\"type\":\"string\"},\"text\":{\"type\":\"string\"},\"n\":{\"type\":"
    "\"integer\"}},\"required\":[\"path\"]}}}]";
#define CALL(parameters) "<tool_call>\n<function=f>" parameters "\n</function>\n</tool_call>"

static void check_calls_of(const char *list, const spelling *all, size_t n)
{
    for (int32_t choice = DREY_TOOLS_AUTO; choice <= DREY_TOOLS_REQUIRED; choice += 2)
        for (size_t i = 0; i < n; i++) {
            drey_reply_options o = {.choice = (drey_tool_choice)choice};
            reply_form form;
            char *gbnf, wanted[400];
            size_t n_gbnf;
            assert_int_equal(
                reply_form_of(&form, all[i].template, list, &o, nothing_hidden, NULL, NULL),
                DREY_OK);
            assert_int_equal(reply_grammar_of(&form, list, &o, NULL, &gbnf, &n_gbnf, NULL),
                             DREY_OK);
            test_grammar *g = test_grammar_of(DREY_GRAMMAR_GBNF, gbnf);
            free(gbnf);
            if (all[i].parts) {
                snprintf(wanted, sizeof wanted, "|Kf|A%s|E", all[i].parts);
                check_parts(&form, all[i].text, wanted);
            }
            if (takes(g, all[i].text) != all[i].of_grammar)
                fail_msg("%s: the grammar %s this", all[i].text,
                         all[i].of_grammar ? "refuses" : "allows");
            free(g);
        }
}

TEST(parameters_come_in_any_order)
{
    static const char json[] = "tools <tool_call>", coder[] = "tools <tool_call> <parameter=";
    static const spelling cases[] = {
        {json,
         "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1, \"path\": \"a\"}}\n"
         "</tool_call>",
         "{\"n\": 1, \"path\": \"a\"}", true},
        {json, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n</tool_call>",
         "{\"n\": 1}", false},
        {json,
         "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"path\": \"a\", \"path\": \"b\"}}\n"
         "</tool_call>",
         "{\"path\": \"a\", \"path\": \"b\"}", false},
        {json, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"path\": \"a\", }}\n</tool_call>",
         "{\"path\": \"a\", }", false},
        {coder, CALL(P("text", "x") P("n", "1") P("path", "a")),
         "{\"text\": \"x\", \"n\": 1, \"path\": \"a\"}", true},
        {coder, CALL(P("text", "x") P("n", "1")), "{\"text\": \"x\", \"n\": 1}", false},
        {coder, CALL(P("path", "x") P("path", "y")), "{\"path\": \"x\", \"path\": \"y\"}", false}};
    check_calls_of(three, cases, sizeof cases / sizeof *cases);
}

TEST(ends_are_missing_or_part_of_values)
{
    static const char coder[] = "tools <tool_call> <parameter=";
    static const char glm[] = "tools <tool_call> <arg_key>";
    static const char minimax[] = "tools <minimax:tool_call> <parameter name=";
    static const spelling cases[] = {
        {coder, CALL("\n<parameter=path>\na\n<parameter=n>\n3\n</parameter>"),
         "{\"path\": \"a\", \"n\": 3}", true},
        {coder, CALL("\n<parameter=path>\na"), "{\"path\": \"a\"}", true},
        {coder, "<tool_call>\n<function=f>" P("path", "a") "\n</tool_call>", "{\"path\": \"a\"}",
         true},
        {coder, "<tool_call>\n<function=f>" P("path", "a") "\n</function>", "{\"path\": \"a\"}",
         true},
        {coder, "<function=f>" P("path", "a") "\n</function>\n</tool_call>", "{\"path\": \"a\"}",
         true},
        {coder, "<tool_call>\n<function=f>\n<parameter=path>\na\n</function>", "{\"path\": \"a\"}",
         true},
        {coder, CALL(P("path", "<a>\n  <parameter=x>1</parameter>\n</a>")),
         "{\"path\": \"<a>\\n  <parameter=x>1</parameter>\\n</a>\"}", true},
        {coder, CALL(P("path", "a\n</parameter>\nb\n</function>\nc")),
         "{\"path\": \"a\\n</parameter>\\nb\\n</function>\\nc\"}", true},
        {coder, CALL(P("path", "</parameter>") P("text", "`<parameter=n>`")),
         "{\"path\": \"</parameter>\", \"text\": \"`<parameter=n>`\"}", true},
        {coder, CALL(P("path", "<x>\n<parameter=y>1</parameter>\n<parameter=z>2</parameter>")),
         "{\"path\": \"<x>\\n<parameter=y>1</parameter>\\n<parameter=z>2</parameter>\"}", true},
        {glm,
         "<tool_call>f<arg_key>path</arg_key><arg_value>a<arg_key>n</arg_key>"
         "<arg_value>3</arg_value></tool_call>",
         "{\"path\": \"a\", \"n\": 3}", true},
        {glm,
         "<tool_call>f\n<arg_key>path</arg_key>\n<arg_value>a </arg_value> <b></arg_value>\n"
         "</tool_call>",
         "{\"path\": \"a </arg_value> <b>\"}", true},
        {minimax,
         "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"path\">a"
         "</parameter>\n</minimax:tool_call>",
         "{\"path\": \"a\"}", true},
        {minimax, "<invoke name=\"f\">\n<parameter name=\"path\">a</parameter>\n</invoke>",
         "{\"path\": \"a\"}", true}};
    check_calls_of(three, cases, sizeof cases / sizeof *cases);
}

TEST(values_between_marks_are_held_to_the_schema)
{
    static const struct {
        const char *schema, *right[3], *wrong[3];
    } cases[] = {
        {"{\"type\":\"string\",\"maxLength\":3}", {"", "abc", "\xC3\xA9\xC3\xA9"}, {"abcd"}},
        {"{\"type\":\"string\",\"minLength\":2}", {"ab", "abcdef"}, {"", "a"}},
        {"{\"type\":\"string\",\"pattern\":\"^[a-z]+$\",\"maxLength\":3}", {"abc"}, {"a1", "abcd"}},
        {"{\"type\":\"string\",\"format\":\"date\"}", {"2024-02-29"}, {"2023-02-29", "x"}},
        {"{\"anyOf\":[{\"type\":\"string\",\"maxLength\":3},{\"type\":\"null\"}]}",
         {"abc", "null"},
         {"abcd"}},
        {"{\"allOf\":[{\"enum\":[\"up\",\"down\"]}]}", {"up"}, {"left"}},
        {"{\"const\":\"up\"}", {"up"}, {"upp"}},
        {"{\"type\":\"integer\",\"maximum\":9}", {"9"}, {"10", "x"}},
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"maxItems\":2}",
         {"[1, 2]"},
         {"[1, 2, 3]", "1"}}};
    static const char *const forms[][2] = {
        {"tools <tool_call> <parameter=", CALL("\n<parameter=x>\n%s\n</parameter>")},
        {"tools <tool_call> <arg_key>",
         "<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>%s</arg_value>\n</tool_call>"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < 2 * 3 * 2; k++) {
            char list[400], text[200];
            const char *value = k < 6 ? cases[i].right[k % 3] : cases[i].wrong[k % 3];
            const size_t form = k / 3 % 2;
            if (!value)
                continue;
            snprintf(
                list, sizeof list,
                "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":"
                "\"object\",\"properties\":{\"x\":%s},\"required\":[\"x\"]}}}]",
                cases[i].schema);
            snprintf(text, sizeof text, forms[form][1], value);
            check_calls_of(list, &(spelling){forms[form][0], text, NULL, k < 6}, 1);
        }
}

TEST(no_calls_are_read_where_there_are_none)
{
    drey_reply_options o = {.choice = DREY_TOOLS_NONE};
    reply_form form = form_of("tools <tool_call>", &o);
    check_parts(&form, "<tool_call> a ", "|C<tool_call> a ");
    assert_null(grammar_of(&form, &o));
}

TEST(broken_tools_are_refused)
{
    static const char *const bad[] = {
        "{}",
        "[1]",
        "[{\"type\":\"function\"}]",
        "[",
        "[{\"type\":\"function\",\"function\":{\"name\":\"a b\"}}]",
        "[{\"type\":\"function\",\"function\":{\"name\":\"a\",\"parameters\":1}}]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        reply_form form;
        drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
        drey_error err = {0};
        assert_int_equal(reply_form_of(&form, "", bad[i], &o, nothing_hidden, NULL, &err),
                         DREY_ERR_USAGE);
        assert_true(strlen(err.message) > 10);
    }
}
