/* The grammar of answers of messages with headers: see channel_reader.c and reply_grammar.c.
 *
 *     root   ::= reasoning* answer    (without reasoning where the request wants none)
 *     answer ::= remark? (the last message | call) */
#include "reply/reply_writing.h"

#define CHANNEL   SPECIAL("<|channel|>")
#define MESSAGE   SPECIAL("<|message|>")
#define END       SPECIAL("<|end|>")
#define START     SPECIAL("<|start|>")
#define CONSTRAIN SPECIAL("<|constrain|>")

static void put_rule(const writing *w, const char *name, const char *pattern)
{
    fprintf(w->out, "%s ::=", name);
    writing_pattern(w, pattern, "", 0);
    fputs("\n", w->out);
}

void writing_channels(const writing *w)
{
    fputs(w->form->unreasoned ? " answer\n" : " reasoning* answer\n", w->out);
    put_rule(w, "channel", CHANNEL);
    put_rule(w, "message", MESSAGE);
    fputs("next ::= ended? begun?\n", w->out);
    put_rule(w, "ended", END);
    put_rule(w, "begun", START "assistant");
    put_rule(w, "constrain", CONSTRAIN);
    fputs("body ::= %without \"<|end|>\" \"<|start|>\" \"<|channel|>\" \"<|message|>\" "
          "\"<|call|>\" \"<|return|>\"\n"
          "reasoning ::= channel \"analysis\" message body next\n"
          "remark ::= channel \"commentary\" message body next\n"
          "side ::= \"commentary\" | \"analysis\"\n"
          "json ::= (\" \" (constrain? \"json\" | \"code\"))?\n",
          w->out);
}

void writing_channel_answer(const writing *w, bool schema)
{
    const reply_form *form = w->form;
    if (form->calls && form->required) {
        fputs(" calls", w->out);
        return;
    }
    fprintf(w->out, " remark? (channel \"final\" json message %s%s)", schema ? "content" : "body",
            form->calls ? " | calls" : "");
}

/* Writes the rule of a call, which names its tool before the channel or after it. */
void writing_channel_call(const writing *w, const char *name, int32_t tool)
{
    fprintf(w->out,
            " (channel side \" to=functions.%s\" | \" to=functions.%s\" channel side) json message "
            "arguments-%d",
            name, name, (int)tool);
}
