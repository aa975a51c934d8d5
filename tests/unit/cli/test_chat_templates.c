/* The chat templates that have names: what each writes for one conversation. */
#include "cli/files/chat_templates.h"

#include "support/grammar/case_text.h"
#include "support/scene.h"
#include "template/conversation.h"

static void check(void *user, char *name)
{
    static const drey_chat_message messages[] = {
        {"system", "S", 1}, {"user", "U", 1}, {"assistant", "A ", 2}, {"user", "V", 1}};
    char *text, *wanted = strstr(name, " ⇒ ");
    chat_text out;
    assert_non_null(wanted);
    *wanted = '\0';
    case_decode(wanted += strlen(" ⇒ "));
    MUST(chat_template_read, name, &text);
    const drey_chat_request request = {
        .messages = messages, .n_messages = 4, .chat_template = text};
    MUST(chat_render, &request, "<s>", "</s>", &out);
    assert_string_equal(out.text, wanted);
    chat_text_free(&out);
    free(text);
}

TEST(templates_by_name)
{
    case_file_read(TEST_DATA "/named_templates.txt", check, NULL, " ⇒ ", 23);
}

TEST(a_name_that_there_is_not_is_a_file)
{
    char *text;
    drey_error err = {0};
    assert_int_equal(chat_template_read("no-such-template", &text, &err), DREY_ERR_IO);
    assert_non_null(strstr(err.message, "no-such-template"));
    assert_null(text);
}
