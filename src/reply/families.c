/* Families of models by how they write calls: see reply_forms.h. Facts are from the models'
 * templates. The first family whose signs are all in a template is the one. */
#include "reply/reply_forms.h"

#define NAME                    "\1"
#define ARGUMENTS               "\2"
#define ID                      "\3"
#define KEY                     "\4"
#define VALUE                   "\7"
#define TYPE                    "\10"
#define LONG_ID                 "[a-zA-Z0-9]{9}"
#define SHORT_ID                "[0-9]{1,3}"
#define OBJECT(name, arguments) "{\"" name "\": \"" NAME "\", \"" arguments "\": " ARGUMENTS "}"
#define FENCED(arguments)       "```json\n" OBJECT("name", arguments) "\n```"

/* DeepSeek's markup, around `calls`. */
#define DSML "｜DSML｜"
#define DSML_FAMILY(name_, sign, calls)                                                            \
    {                                                                                              \
        .name = name_, .signs = {DSML, sign}, .begin = "<" DSML calls ">",                         \
        .open = "\n<" DSML "invoke name=\"", .call = NAME "\">" ARGUMENTS "\n</" DSML "invoke>",   \
        .next = "\n<" DSML "invoke name=\"", .unmarked = "<" DSML "invoke name=\"",                \
        .close = "\n</" DSML calls ">",                                                            \
        .parameter = "\n<" DSML "parameter name=\"" KEY "\" string=\"" TYPE "\">" VALUE "</" DSML  \
                     "parameter>",                                                                 \
        .types = {"true", "false"}, .tokens = {                                                    \
            DSML                                                                                   \
        }                                                                                          \
    }

/* Templates of LFM2 show calls, or the list of tools in one of two forms. */
#define LFM2_FAMILY(...)                                                                           \
    {                                                                                              \
        .name = "lfm2", .signs = {__VA_ARGS__}, .begin = SPECIAL("<|tool_call_start|>"),           \
        .open = "[", .call = NAME ARGUMENTS, .next = ",",                                          \
        .close = "]" SPECIAL("<|tool_call_end|>"), .literal = {                                    \
            '(',                                                                                   \
            ')',                                                                                   \
            '=',                                                                                   \
            NULL                                                                                   \
        }                                                                                          \
    }

#define HY3(name) "<" name ":opensource>"

#define MINIMAX "]<]minimax[>["

/* Tags of Kimi K3. */
#define OPEN(tag)  SPECIAL("<|open|>") tag SPECIAL("<|sep|>")
#define CLOSE(tag) SPECIAL("<|close|>") tag SPECIAL("<|sep|>")

static const reply_family families[] = {
    {.name = "described",
     .begin = "<tool_call>",
     .call = "\n" OBJECT("name", "arguments") "\n</tool_call>",
     .next = "\n<tool_call>",
     .bare = {OBJECT("name", "arguments"), FENCED("arguments")}},
    {.name = "gpt-oss",
     .signs = {"<|channel|>", "functions."},
     .begin = SPECIAL("<|channel|>"),
     .call = ARGUMENTS,
     .headers = true},
    {.name = "gemma-4",
     .signs = {"<|tool_call>call:"},
     .begin = SPECIAL("<|tool_call>"),
     .call = "call:" NAME ARGUMENTS SPECIAL("<tool_call|>"),
     .next = SPECIAL("<|tool_call>"),
     .literal = {'{', '}', ':', "<|\"|>"},
     .tokens = {"<|\"|>"}},
    {.name = "kimi-k3",
     .signs = {"<|open|>", "<|sep|>"},
     .begin = OPEN("tools"),
     .open = "<|open|>call tool=\"",
     .call = NAME "\" index=\"" ID "\"<|sep|>" ARGUMENTS "<|close|>call<|sep|>",
     .next = "<|open|>call tool=\"",
     .close = "<|close|>tools<|sep|>",
     .parameter = "<|open|>argument key=\"" KEY "\" type=\"" TYPE "\"<|sep|>" VALUE
                  "<|close|>argument<|sep|>",
     .types = {"string", "number|boolean|null|object|array"},
     .tokens = {"<|open|>", "<|close|>", "<|sep|>"},
     .content_open = OPEN("response"),
     .content_close = CLOSE("response"),
     .header = CLOSE("message"),
     .id = SHORT_ID},
    DSML_FAMILY("deepseek-v3.2", "function_calls", "function_calls"),
    DSML_FAMILY("deepseek-v4", NULL, "tool_calls"),
    LFM2_FAMILY("<|tool_call_start|>"),
    LFM2_FAMILY("<|tool_list_start|>"),
    LFM2_FAMILY("List of tools: [", "keep_past_thinking"),
    {.name = "hy3",
     .signs = {"<tool_sep{}>", ":opensource"},
     .begin = SPECIAL(HY3("tool_calls")),
     .open = "\n" HY3("tool_call"),
     .call = NAME HY3("tool_sep") ARGUMENTS "\n" HY3("/tool_call"),
     .next = "\n" HY3("tool_call"),
     .close = "\n" HY3("/tool_calls"),
     .parameter =
         "\n" HY3("arg_key") KEY HY3("/arg_key") "\n" HY3("arg_value") VALUE HY3("/arg_value"),
     .tokens = {HY3("tool_call"), HY3("tool_sep"), HY3("/tool_call"), HY3("/tool_calls"),
                HY3("arg_key"), HY3("/arg_key"), HY3("arg_value"), HY3("/arg_value")}},
    {.name = "solar-open",
     .signs = {"<|tool_call:begin|>"},
     .begin = SPECIAL("<|tool_calls|>"),
     .open = SPECIAL("<|tool_call:begin|>"),
     .call = ID SPECIAL("<|tool_call:name|>") NAME SPECIAL("<|tool_call:args|>")
         ARGUMENTS SPECIAL("<|tool_call:end|>"),
     .next = SPECIAL("<|tool_call:begin|>"),
     .content_open = SPECIAL("<|content|>"),
     .content_close = SPECIAL("<|end|>"),
     .header = SPECIAL("<|begin|>") "assistant",
     .id = "[a-z0-9]{10}"},
    {.name = "apertus",
     .signs = {"<|tools_prefix|>"},
     .begin = SPECIAL("<|tools_prefix|>"),
     .open = "[",
     .call = "{\"" NAME "\": " ARGUMENTS "}",
     .next = ",",
     .close = "]",
     .header = SPECIAL("<|tools_suffix|>")},
    {.name = "gigachat-3.1",
     .signs = {"<|function_call|>"},
     .begin = SPECIAL("<|function_call|>"),
     .call = OBJECT("name", "arguments")},
    {.name = "minicpm-5",
     .signs = {"<function name=\"", "<param name="},
     .begin = "<function name=\"",
     .call = NAME "\">" ARGUMENTS "</function>",
     .next = "\n<function name=\"",
     .parameter = "<param name=\"" KEY "\">" VALUE "</param>",
     .wrapped = "<![CDATA[" VALUE "]]></param>"},
    {.name = "minimax-m3",
     .signs = {MINIMAX, "invoke name="},
     .begin = SPECIAL(MINIMAX) "<tool_call>",
     .open = "\n" MINIMAX "<invoke name=\"",
     .call = NAME "\">" ARGUMENTS MINIMAX "</invoke>",
     .next = "\n" MINIMAX "<invoke name=\"",
     .close = "\n" MINIMAX "</tool_call>",
     .tag = MINIMAX,
     .tokens = {MINIMAX}},
    {.name = "functionary-3.2",
     .signs = {">>>all", ">>>${recipient}"},
     .begin = ">>>",
     .call = NAME "\n" ARGUMENTS,
     .next = ">>>",
     .content_open = "all\n",
     .bare = {NAME "\n" ARGUMENTS},
     .as_text = true},
    {.name = "functionary-3.1",
     .signs = {"start_tag => `<function`"},
     .begin = "<function=",
     .call = NAME ">" ARGUMENTS "</function>",
     .next = "<function="},
    {.name = "firefunction",
     .signs = {" functools["},
     .begin = "functools[",
     .call = OBJECT("name", "arguments"),
     .next = ",",
     .close = "]",
     .variable = "functions"},
    {.name = "deepseek-r1",
     .signs = {"<｜tool▁calls▁begin｜>", "```json"},
     .begin = SPECIAL("<｜tool▁calls▁begin｜>"),
     .others = {"<｜tool_calls_begin｜>", "<｜tool calls begin｜>", "<｜tool▁calls｜>"},
     .unmarked = SPECIAL("<｜tool▁call▁begin｜>"),
     .open = SPECIAL("<｜tool▁call▁begin｜>") "function" SPECIAL("<｜tool▁sep｜>"),
     .call = NAME "\n```json\n" ARGUMENTS "\n```" SPECIAL("<｜tool▁call▁end｜>"),
     .next = "\n" SPECIAL("<｜tool▁call▁begin｜>") "function" SPECIAL("<｜tool▁sep｜>"),
     .close = SPECIAL("<｜tool▁calls▁end｜>")},
    {.name = "deepseek-v3.1",
     .signs = {"<｜tool▁calls▁begin｜>"},
     .begin = SPECIAL("<｜tool▁calls▁begin｜>"),
     .others = {"<｜tool_calls_begin｜>", "<｜tool calls begin｜>", "<｜tool▁calls｜>"},
     .unmarked = SPECIAL("<｜tool▁call▁begin｜>"),
     .open = SPECIAL("<｜tool▁call▁begin｜>"),
     .call = NAME SPECIAL("<｜tool▁sep｜>") ARGUMENTS SPECIAL("<｜tool▁call▁end｜>"),
     .next = SPECIAL("<｜tool▁call▁begin｜>"),
     .close = SPECIAL("<｜tool▁calls▁end｜>")},
    {.name = "cohere2moe",
     .signs = {"<|START_ACTION|>", "<|START_TEXT|>"},
     .begin = SPECIAL("<|START_ACTION|>"),
     .open = "[\n",
     .call = "{\"tool_call_id\": \"" ID "\", \"tool_name\": \"" NAME
             "\", \"parameters\": " ARGUMENTS "}",
     .next = ",",
     .close = "\n]" SPECIAL("<|END_ACTION|>"),
     .id = SHORT_ID,
     .content_open = SPECIAL("<|START_TEXT|>"),
     .content_close = SPECIAL("<|END_TEXT|>")},
    {.name = "command-r7b",
     .signs = {"<|START_ACTION|>"},
     .begin = SPECIAL("<|START_ACTION|>"),
     .open = "[\n",
     .call = "{\"tool_call_id\": \"" ID "\", \"tool_name\": \"" NAME
             "\", \"parameters\": " ARGUMENTS "}",
     .next = ",",
     .close = "\n]" SPECIAL("<|END_ACTION|>"),
     .id = SHORT_ID,
     .content_open = SPECIAL("<|START_RESPONSE|>"),
     .content_close = SPECIAL("<|END_RESPONSE|>")},
    {.name = "command-r",
     .signs = {"Action:", "\"tool_name\""},
     .begin = "Action:",
     .open = "\n```json\n[\n",
     .call = "{\n\"tool_name\": \"" NAME "\",\n\"parameters\": " ARGUMENTS "\n}",
     .next = ",",
     .close = "\n]\n```"},
    {.name = "mistral-ids",
     .signs = {"[TOOL_CALLS]", "[CALL_ID]"},
     .begin = SPECIAL("[TOOL_CALLS]"),
     .call = NAME SPECIAL("[CALL_ID]") ID SPECIAL("[ARGS]") ARGUMENTS,
     .next = SPECIAL("[TOOL_CALLS]"),
     .id = LONG_ID},
    {.name = "mistral-arguments",
     .signs = {"[TOOL_CALLS]", "[ARGS]"},
     .begin = SPECIAL("[TOOL_CALLS]"),
     .call = NAME SPECIAL("[ARGS]") ARGUMENTS,
     .next = SPECIAL("[TOOL_CALLS]")},
    {.name = "mistral",
     .signs = {"[TOOL_CALLS]"},
     .begin = SPECIAL("[TOOL_CALLS]"),
     .open = "[",
     .call = "{\"name\": \"" NAME "\", \"arguments\": " ARGUMENTS ", \"id\": \"" ID "\"}",
     .next = ",",
     .close = "]",
     .id = LONG_ID},
    {.name = "granite",
     .signs = {"<|tool_call|>", "<|end_of_role|>"},
     .begin = SPECIAL("<|tool_call|>"),
     .others = {"<tool_call>"},
     .open = "[",
     .call = OBJECT("name", "arguments"),
     .next = ",",
     .close = "]",
     .content_open = "<response>",
     .content_close = "</response>",
     .variable = "available_tools"},
    {.name = "phi-4-mini",
     .signs = {"<|/tool|>"},
     .begin = SPECIAL("<|tool_call|>"),
     .others = {"functools", "<tool_call>"},
     .open = "[",
     .call = OBJECT("name", "arguments"),
     .next = ",",
     .close = "]" SPECIAL("<|/tool_call|>")},
    {.name = "llama-3",
     .signs = {"<|python_tag|>", "\"parameters\": dictionary"},
     .call = OBJECT("name", "parameters"),
     .bare = {OBJECT("name", "parameters"), FENCED("parameters"),
              SPECIAL("<|python_tag|>") OBJECT("name", "parameters")}},
    {.name = "llama-3",
     .signs = {"<|start_header_id|>", "\"parameters\": dictionary"},
     .call = OBJECT("name", "parameters"),
     .bare = {OBJECT("name", "parameters"), FENCED("parameters"),
              SPECIAL("<|python_tag|>") OBJECT("name", "parameters")}},
    {.name = "llama-4",
     .signs = {"<|header_start|>", "\"parameters\": dictionary"},
     .call = OBJECT("name", "parameters"),
     .bare = {OBJECT("name", "parameters"), FENCED("parameters")},
     .content_open = SPECIAL("<|python_start|>"),
     .content_close = SPECIAL("<|python_end|>")},
    {.name = "kimi-k2",
     .signs = {"<|tool_calls_section_begin|>"},
     .begin = SPECIAL("<|tool_calls_section_begin|>"),
     .unmarked = SPECIAL("<|tool_call_begin|>"),
     .open = SPECIAL("<|tool_call_begin|>") "functions.",
     .call =
         NAME ":" ID SPECIAL("<|tool_call_argument_begin|>") ARGUMENTS SPECIAL("<|tool_call_end|>"),
     .next = SPECIAL("<|tool_call_begin|>") "functions.",
     .close = SPECIAL("<|tool_calls_section_end|>"),
     .id = SHORT_ID},
    {.name = "nemotron",
     .signs = {"<TOOLCALL>"},
     .begin = "<TOOLCALL>",
     .open = "[",
     .call = OBJECT("name", "arguments"),
     .next = ",",
     .close = "]</TOOLCALL>"},
    {.name = "apriel",
     .signs = {"<tool_calls>["},
     .begin = "<tool_calls>",
     .open = "[",
     .call = OBJECT("name", "arguments"),
     .next = ",",
     .close = "]</tool_calls>"},
    {.name = "qwen3-coder",
     .signs = {"<tool_call>", "<parameter="},
     .begin = "<tool_call>",
     .call = "\n<function=" NAME ">" ARGUMENTS "\n</function>\n</tool_call>",
     .next = "\n<tool_call>",
     .unmarked = "<function=",
     .parameter = "\n<parameter=" KEY ">\n" VALUE "\n</parameter>"},
    {.name = "seed-oss",
     .signs = {"<seed:tool_call>", "<parameter="},
     .begin = "<seed:tool_call>",
     .call = "\n<function=" NAME ">" ARGUMENTS "\n</function>\n</seed:tool_call>",
     .next = "\n<seed:tool_call>",
     .unmarked = "<function=",
     .parameter = "\n<parameter=" KEY ">" VALUE "</parameter>"},
    {.name = "glm-4.5",
     .signs = {"<tool_call>", "<arg_key>"},
     .begin = "<tool_call>",
     .call = NAME ARGUMENTS "\n</tool_call>",
     .next = "\n<tool_call>",
     .parameter = "\n<arg_key>" KEY "</arg_key>\n<arg_value>" VALUE "</arg_value>"},
    {.name = "minimax-m2",
     .signs = {"<minimax:tool_call>", "<parameter name="},
     .begin = "<minimax:tool_call>",
     .open = "\n<invoke name=\"",
     .call = NAME "\">" ARGUMENTS "\n</invoke>",
     .next = "\n<invoke name=\"",
     .unmarked = "<invoke name=\"",
     .close = "\n</minimax:tool_call>",
     .parameter = "\n<parameter name=\"" KEY "\">" VALUE "</parameter>"},
    {.name = "hermes",
     .signs = {"<tool_call>"},
     .begin = "<tool_call>",
     .call = "\n" OBJECT("name", "arguments") "\n</tool_call>",
     .next = "\n<tool_call>",
     .bare = {OBJECT("name", "arguments"), FENCED("arguments")}}};

#define THINKING(sign_, open_, close_)                                                             \
    {                                                                                              \
        .sign = sign_, .open = open_, .close = close_                                              \
    }
static const reply_thinking thinking[] = {
    THINKING(NULL, NULL, NULL),
    THINKING("<|channel|>analysis", SPECIAL("<|channel|>") "analysis" SPECIAL("<|message|>"),
             SPECIAL("<|end|>")),
    {.sign = "<|channel>thought",
     .open = SPECIAL("<|channel>") "thought",
     .close = SPECIAL("<channel|>"),
     .after = ""},
    THINKING("<|open|>", OPEN("think"), CLOSE("think")),
    THINKING("<think{}>", SPECIAL(HY3("think")), SPECIAL(HY3("/think"))),
    THINKING("assistant<|think|>", SPECIAL("<|think|>"), SPECIAL("<|end|>")),
    THINKING("<|inner_prefix|>", SPECIAL("<|inner_prefix|>"), SPECIAL("<|inner_suffix|>")),
    THINKING("[THINK]", SPECIAL("[THINK]"), SPECIAL("[/THINK]")),
    {.sign = "[BEGIN FINAL RESPONSE]",
     .open = "Here are my reasoning steps:",
     .close = "[BEGIN FINAL RESPONSE]",
     .after = "\n"},
    THINKING("<|START_THINKING|>", SPECIAL("<|START_THINKING|>"), SPECIAL("<|END_THINKING|>")),
    THINKING("<seed:think>", "<seed:think>", "</seed:think>"),
    THINKING("<mm:think>", "<mm:think>", "</mm:think>"),
    THINKING("</think>", "<think>", "</think>")};

const reply_family *reply_family_at(int32_t i)
{
    return i >= 0 && i < (int32_t)(sizeof families / sizeof *families) ? &families[i] : NULL;
}

const reply_thinking *reply_thinking_at(int32_t i)
{
    return i >= 0 && i < (int32_t)(sizeof thinking / sizeof *thinking) ? &thinking[i] : NULL;
}
