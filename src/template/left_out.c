/* Parts that templates leave out: see left_out.h. The table has what the models' own descriptions
 * say, as templates of a message's calls. */
#include "template/left_out.h"

#include <string.h>

#include "template/jinja_tree.h"

static const char lfm2[] =
    "<|tool_call_start|>[{% for call in tool_calls %}{{ ', ' if not loop.first }}"
    "{{ call.function.name }}({% if call.function.arguments is mapping %}"
    "{% for key, item in call.function.arguments.items() %}{{ ', ' if not loop.first }}"
    "{{ key }}={{ item | tojson }}{% endfor %}{% endif %}){% endfor %}]<|tool_call_end|>";
static const char hermes[] =
    "{% for call in tool_calls %}{{ '\\n<tool_call>\\n{\"name\": ' }}{{ call.function.name | "
    "tojson }}"
    "{{ ', \"arguments\": ' }}{{ call.function.arguments | tojson }}{{ '}\\n</tool_call>' }}"
    "{% endfor %}";

static const struct {
    const char *sign, *calls; /* a word of the template that writes no calls */
} templates[] = {{"<|tool_list_start|>", lfm2}, {"List of tools: [", lfm2}, {"xml_tools", hermes}};

static void add_calls(heap *r, const node *body, value message, value calls)
{
    capture c = {.end = &c.first};
    jinja j = {.r = r, .out = &c};
    value vars = map_new(r, 1);
    map_set(r, vars, string_of("tool_calls"), calls);
    jinja_run(&j, body, vars);
    const value *content = map_get_text(r, message, "content");
    const size_t at = text_begin(r);
    if (content && content->kind == VALUE_STRING)
        text_put_value(r, *content);
    for (const piece *p = c.first; p && heap_ok(r); p = p->next)
        text_put_value(r, p->text);
    map_set(r, message, string_of("content"), text_end(r, at));
}

void left_out_calls(heap *r, const char *chat_template, value messages)
{
    const char *snippet = NULL;
    for (size_t i = 0; i < sizeof templates / sizeof *templates && !snippet; i++)
        if (strstr(chat_template, templates[i].sign))
            snippet = templates[i].calls;
    if (!snippet || strstr(chat_template, "tool_calls") || !heap_ok(r))
        return;
    const node *body = jinja_parse(r, snippet, strlen(snippet));
    for (uint32_t i = 0; i < messages.list->n && heap_ok(r); i++) {
        value message = messages.list->items[i];
        const value *calls = map_get_text(r, message, "tool_calls");
        if (calls && calls->kind == VALUE_LIST && calls->list->n > 0)
            add_calls(r, body, message, *calls);
    }
}

/* Gemma 4's, whose answers with calls and a text end with that text. */
const char *left_out_turn(const char *chat_template, const char *text, size_t n)
{
    static const char end[] = "<turn|>\n";
    const size_t n_end = sizeof end - 1;
    const bool ends = n >= n_end && memcmp(text + n - n_end, end, n_end) == 0;
    return ends && strstr(chat_template, "<|tool_call>call:") ? "<|turn>model\n" : "";
}
