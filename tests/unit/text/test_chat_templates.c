/* The chat templates that have names: what each writes for one conversation. */
#include "cli/files/chat_templates.h"

#include <stdlib.h>
#include <string.h>

#include "drey/chat.h"
#include "support/scene.h"
#include "support/test.h"
#include "template/conversation.h"

static const struct {
    const char *name, *text;
} cases[] = {
    {"chatml", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n"
               "<|im_start|>assistant\nA <|im_end|>\n<|im_start|>user\nV<|im_end|>\n"
               "<|im_start|>assistant\n"},
    {"llama2", "<s>[INST] S\nU [/INST]A </s>[INST] V [/INST]"},
    {"llama2-sys", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]A </s>[INST] V [/INST]"},
    {"llama2-sys-bos", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]A </s><s>[INST] V [/INST]"},
    {"llama2-sys-strip", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST]A</s>[INST] V [/INST]"},
    {"llama3", "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\nA <|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nV<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"mistral-v1", "<s> [INST] S\n\nU [/INST] A </s> [INST] V [/INST]"},
    {"mistral-v3", "<s>[INST] S\n\nU[/INST] A</s>[INST] V[/INST]"},
    {"mistral-v3-tekken", "<s>[INST]S\n\nU[/INST]A </s>[INST]V[/INST]"},
    {"mistral-v7", "<s>[SYSTEM_PROMPT] S[/SYSTEM_PROMPT][INST] U[/INST] A </s>[INST] V[/INST]"},
    {"mistral-v7-tekken", "<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]U[/INST]A </s>[INST]V[/INST]"},
    {"phi3", "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA <|end|>\n<|user|>\nV"
             "<|end|>\n<|assistant|>\n"},
    {"phi4", "<|im_start|>system<|im_sep|>S<|im_end|><|im_start|>user<|im_sep|>U<|im_end|>"
             "<|im_start|>assistant<|im_sep|>A <|im_end|><|im_start|>user<|im_sep|>V<|im_end|>"
             "<|im_start|>assistant<|im_sep|>"},
    {"falcon3", "<|system|>\nS\n<|user|>\nU\n<|assistant|>\nA \n<|user|>\nV\n<|assistant|>\n"},
    {"zephyr", "<|system|>\nS</s>\n<|user|>\nU</s>\n<|assistant|>\nA </s>\n<|user|>\nV</s>\n"
               "<|assistant|>\n"},
    {"monarch", "<s>system\nS</s>\n<s>user\nU</s>\n<s>assistant\nA </s>\n<s>user\nV</s>\n"
                "<s>assistant\n"},
    {"openchat", "<s>S<|end_of_turn|>GPT4 Correct User: U<|end_of_turn|>GPT4 Correct Assistant: A "
                 "<|end_of_turn|>GPT4 Correct User: V<|end_of_turn|>GPT4 Correct Assistant:"},
    {"vicuna", "<s>S\n\nUSER: U\nASSISTANT: A </s>\nUSER: V\nASSISTANT:"},
    {"vicuna-orca", "<s>SYSTEM: S\nUSER: U\nASSISTANT: A </s>\nUSER: V\nASSISTANT:"},
    {"deepseek", "<s>S### Instruction:\nU\n### Response:\nA \n<|EOT|>\n### Instruction:\nV\n"
                 "### Response:\n"},
    {"deepseek3", "<s>S\n\n<｜User｜>U<｜Assistant｜>A </s><｜User｜>V<｜Assistant｜>"},
    {"granite", "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n"
                "<|start_of_role|>user<|end_of_role|>U<|end_of_text|>\n"
                "<|start_of_role|>assistant<|end_of_role|>A <|end_of_text|>\n"
                "<|start_of_role|>user<|end_of_role|>V<|end_of_text|>\n"
                "<|start_of_role|>assistant<|end_of_role|>"},
    {"gemma", "<s><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n"
              "<start_of_turn>user\nV<end_of_turn>\n<start_of_turn>model\n"}};

TEST(templates_by_name)
{
    static const drey_chat_message messages[] = {
        {"system", "S", 1}, {"user", "U", 1}, {"assistant", "A ", 2}, {"user", "V", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text;
        chat_text out;
        MUST(chat_template_read, cases[i].name, &text);
        const drey_chat_request request = {
            .messages = messages, .n_messages = 4, .chat_template = text};
        MUST(chat_render, &request, "<s>", "</s>", &out);
        assert_string_equal(out.text, cases[i].text);
        chat_text_free(&out);
        free(text);
    }
}

TEST(a_name_that_there_is_not_is_a_file)
{
    char *text;
    drey_error err = {0};
    assert_int_equal(chat_template_read("no-such-template", &text, &err), DREY_ERR_IO);
    assert_non_null(strstr(err.message, "no-such-template"));
    assert_null(text);
}
