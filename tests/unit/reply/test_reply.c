/* Answers taken apart: each family's calls and reasoning, wherever the text is cut; and what the
 * form's grammar allows is what its reader finds. */
#include "grammar/grammar.h"
#include "reply/reply_forms.h"

#include "support/grammar/case_text.h"
#include "support/grammar/grammar_text.h"
#include "support/scene.h"

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

/* Reads in pieces of `step` bytes. */
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

/* Returns whether the grammar's texts are such. */
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
enum { MOST_FAMILIES = 64 };
static struct {
    char name[40], template[100], one[400], two[600]; /* two: "": there is one call at most */
} families[MOST_FAMILIES];
static int n_families;

static void take_family(void *user, char *line)
{
    char *fields[4] = {line + strlen("family ")};
    if (strncmp(line, "family ", 7) != 0)
        return;
    fields[1] = strstr(line, ": ");
    fields[2] = strstr(fields[1], " ⇒ ");
    fields[3] = strstr(fields[2] + 1, " ⇒ ");
    for (int i = 3; i > 0; i--)
        if (fields[i]) {
            *fields[i] = '\0';
            fields[i] += strlen(i == 1 ? ": " : " ⇒ ");
            case_decode(fields[i]);
        }
    assert_true(n_families < MOST_FAMILIES);
    strcpy(families[n_families].name, fields[0]);
    strcpy(families[n_families].template, fields[1]);
    strcpy(families[n_families].one, fields[2]);
    strcpy(families[n_families++].two, fields[3] ? fields[3] : "");
}

static int read_families(void **state)
{
    case_file_read(TEST_DATA "/replies.txt", take_family, NULL, "family ", 38);
    return 0;
}
TEST_GROUP(read_families, NULL)

TEST(every_family_has_its_calls)
{
    for (int i = 0; i < n_families; i++) {
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
        if (*families[i].two) {
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
    for (int i = 0; i < n_families; i++) {
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
        assert_false(*families[i].two && takes(g, families[i].two));
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
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form = form_of("tools <|channel|>analysis functions.", &o);
    o.keep_reasoning = true;
    form = form_of("tools <|channel|>analysis functions.", &o);
    check_parts(&form, ANALYSIS("Think.") FINAL("Hello."),
                "|C<|channel|>analysis<|message|>Think.<|end|>Hello.");
    o = (drey_reply_options){.choice = DREY_TOOLS_NONE, .schema_json = "{\"enum\": [1, 2]}"};
    form = form_of("tools <|channel|>analysis functions.", &o);
    test_grammar *g = grammar_of(&form, &o);
    assert_true(takes(g, ANALYSIS("Think.") FINAL("1")));
    assert_false(takes(g, FINAL("3")) || takes(g, "1"));
    free(g);
}

#define P(key, value) "\n<parameter=" key ">\n" value "\n</parameter>"

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

TEST(a_prompt_may_close_the_reasoning)
{
    drey_reply_options o = {.choice = DREY_TOOLS_AUTO};
    reply_form form = form_of("tools <tool_call> </think>", &o);
    drey_reply_form_prompt(reply_form_out(&form), "<think>\n\n</think>\n\n", 19);
    assert_int_equal(form.thinking, 0);
    check_parts(&form, "<think>\nhm\n</think>\n\nHi", "|Rhm|CHi");
}

#define CALL(parameters) "<tool_call>\n<function=f>" parameters "\n</function>\n</tool_call>"

/* A text of a form, and what its reader makes of it. */
typedef struct spelling {
    const char *template, *text, *parts; /* parts NULL: not looked at */
    bool of_grammar, thinks;             /* thinks: the reasoning is open, if there is any */
} spelling;

static void check_spelling(const char *list, drey_tool_choice choice, const spelling *x)
{
    const drey_reply_options o = {.choice = choice};
    reply_form form;
    char *gbnf;
    size_t n;
    MUST(reply_form_of, &form, x->template, list, &o, nothing_hidden, NULL);
    form.thinks = x->thinks && form.thinking;
    MUST(reply_grammar_of, &form, list, &o, NULL, &gbnf, &n);
    test_grammar *g = test_grammar_of(DREY_GRAMMAR_GBNF, gbnf);
    free(gbnf);
    if (x->parts)
        check_parts(&form, x->text, x->parts);
    if (takes(g, x->text) != x->of_grammar)
        fail_msg("%s: the grammar %s this", x->text, x->of_grammar ? "refuses" : "allows");
    free(g);
}

/* Puts what follows the word into rest. False: the line does not begin with it. */
static bool takes_word(const char *line, const char *word, char *rest)
{
    size_t n = strlen(word);
    if (strncmp(line, word, n) != 0)
        return false;
    strcpy(rest, line + n);
    case_decode(rest);
    return true;
}

typedef struct spelling_file { /* settings for the next text */
    char list[1000], template[200];
    bool thinks, required;
} spelling_file;

static void take_line(void *user, char *line)
{
    static char text[2000];
    spelling_file *f = user;
    char *parts = strstr(line, " ⇒ ");
    if (takes_word(line, "tools ", f->list) || takes_word(line, "template ", f->template))
        return;
    if (strncmp(line, "family ", 7) == 0)
        return;
    f->thinks = f->thinks ? strcmp(line, "plain") != 0 : strcmp(line, "thinks") == 0;
    f->required = f->required ? strcmp(line, "plain") != 0 : strcmp(line, "also required") == 0;
    if (!parts)
        return;
    *parts = '\0';
    case_decode(parts += strlen(" ⇒ "));
    const bool of_grammar = takes_word(line, "+ ", text);
    assert_true(of_grammar || takes_word(line, "- ", text));
    const spelling x = {f->template, text, parts, of_grammar, f->thinks};
    check_spelling(f->list, DREY_TOOLS_AUTO, &x);
    if (f->required)
        check_spelling(f->list, DREY_TOOLS_REQUIRED, &x);
}

TEST(spellings)
{
    static spelling_file f;
    case_file_read(TEST_DATA "/replies.txt", take_line, &f, " ⇒ ", 210);
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
            const spelling x = {forms[form][0], text, NULL, k < 6, false};
            check_spelling(list, DREY_TOOLS_AUTO, &x);
            check_spelling(list, DREY_TOOLS_REQUIRED, &x);
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
