/* Renders conversations with a chat template, for scripts that compare what comes out:
 *
 *     render_chat TEMPLATE_FILE < CASES
 *
 * A case is four lines: messages, tools and more variables, as JSON ("-": none), and the time ("0":
 * no clock). Answers: "ok BYTES RANGES", the text, a newline and the ranges of what the
 * conversation wrote; or "error CODE SENTENCE". bos is <s>, eos </s>. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drey/chat.h"
#include "template/conversation.h"
#include "text/tokenizer.h"

/* A line without its end, which the next call ends; NULL: there is none. */
static char *next_line(void)
{
    static char *line[4];
    static size_t size[4];
    static int turn;
    char **at = &line[turn % 4];
    ssize_t n = getline(at, &size[turn++ % 4], stdin);
    if (n <= 0)
        return NULL;
    if ((*at)[n - 1] == '\n')
        (*at)[n - 1] = 0;
    return *at;
}

static const char *given(const char *text)
{
    return text && strcmp(text, "-") != 0 ? text : NULL;
}

static char *read_template(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, CHAT_TEMPLATE_BYTES + 2);
    if (!f || !text || fread(text, 1, CHAT_TEMPLATE_BYTES + 1, f) == 0) {
        fprintf(stderr, "render_chat: cannot read %s\n", path);
        exit(2);
    }
    fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    char *chat_template = read_template(argv[1]);
    for (char *messages; (messages = next_line()) != NULL;) {
        const char *tools = given(next_line()), *variables = given(next_line()), *now = next_line();
        const drey_chat_request request = {.messages_json = messages,
                                           .tools_json = tools,
                                           .variables_json = variables,
                                           .chat_template = chat_template,
                                           .now_s = now ? strtoll(now, NULL, 10) : 0};
        chat_text text;
        drey_error err = {0};
        if (chat_render(&request, "<s>", "</s>", &text, &err) != DREY_OK) {
            printf("error %d %s\n", err.code, err.message);
            continue;
        }
        printf("ok %zu %zu\n%s\n", text.n_bytes, text.n_plain, text.text);
        for (size_t i = 0; i < text.n_plain; i++)
            printf("%zu %zu\n", text.plain[i].begin, text.plain[i].end);
        chat_text_free(&text);
    }
    free(chat_template);
    return 0;
}
