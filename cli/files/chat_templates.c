/* The forms in which usual chats are written: see chat_templates.h. They know no tools. */
#include "cli/files/chat_templates.h"

#include <stdlib.h>
#include <string.h>

#include "cli/files/input.h"
#include "common/error.h"

/* Loop over the messages, with `role` and `text` in front of and after each one's content. */
#define EACH(text)  "{% for message in messages %}" text "{% endfor %}"
#define BEGIN(text) "{% if add_generation_prompt %}{{ '" text "' }}{% endif %}"
#define ROLE        "' + message['role'] + '"
#define TEXT        "' + message['content'] + '"

#define STRIPPED "' + message['content'] | trim + '"
#define EOS      "' + eos_token + '"
/* Each role in its own way. */
#define ROLES(system, user, assistant)                                                             \
    EACH("{% if message['role'] == 'system' %}{{ '" system "' }}"                                  \
         "{% elif message['role'] == 'assistant' %}{{ '" assistant "' }}"                          \
         "{% else %}{{ '" user "' }}{% endif %}")
/* The same; a system message is within the turn of the user's that follows, which `open` opens. */
#define TURNS(open, system, user, assistant)                                                       \
    "{{ bos_token }}{% for message in messages %}"                                                 \
    "{% if loop.first or messages[loop.index0 - 1]['role'] == 'assistant' %}{{ '" open             \
    "' }}{% endif %}"                                                                              \
    "{% if message['role'] == 'system' %}{{ '" system "' }}"                                       \
    "{% elif message['role'] == 'assistant' %}{{ '" assistant "' }}"                               \
    "{% else %}{{ '" user "' }}{% endif %}{% endfor %}"
#define SYS(text) "<<SYS>>\\n" text "\\n<</SYS>>\\n\\n"
#define AGAIN_BOS "' + (bos_token if not loop.first else '') + '"

static const struct {
    const char *name, *text;
} known[] = {
    {"chatml", EACH("{{ '<|im_start|>" ROLE "\\n" TEXT "<|im_end|>\\n' }}")
                   BEGIN("<|im_start|>assistant\\n")},
    {"llama2", TURNS("[INST] ", TEXT "\\n", TEXT " [/INST]", TEXT EOS)},
    {"llama2-sys", TURNS("[INST] ", SYS(TEXT), TEXT " [/INST]", TEXT EOS)},
    {"llama2-sys-bos", TURNS(AGAIN_BOS "[INST] ", SYS(TEXT), TEXT " [/INST]", TEXT EOS)},
    {"llama2-sys-strip", TURNS("[INST] ", SYS(STRIPPED), STRIPPED " [/INST]", STRIPPED EOS)},
    {"llama3", "{{ bos_token }}" EACH("{{ '<|start_header_id|>" ROLE "<|end_header_id|>\\n\\n" TEXT
                                      "<|eot_id|>' }}")
                   BEGIN("<|start_header_id|>assistant<|end_header_id|>\\n\\n")},
    {"mistral-v1", TURNS(" [INST] ", TEXT "\\n\\n", TEXT " [/INST]", " " TEXT EOS)},
    {"mistral-v3", TURNS("[INST] ", TEXT "\\n\\n", TEXT "[/INST]", " " STRIPPED EOS)},
    {"mistral-v3-tekken", TURNS("[INST]", TEXT "\\n\\n", TEXT "[/INST]", TEXT EOS)},
    {"mistral-v7", "{{ bos_token }}" ROLES("[SYSTEM_PROMPT] " TEXT "[/SYSTEM_PROMPT]",
                                           "[INST] " TEXT "[/INST]", " " TEXT EOS)},
    {"mistral-v7-tekken", "{{ bos_token }}" ROLES("[SYSTEM_PROMPT]" TEXT "[/SYSTEM_PROMPT]",
                                                  "[INST]" TEXT "[/INST]", TEXT EOS)},
    {"phi3", EACH("{{ '<|" ROLE "|>\\n" TEXT "<|end|>\\n' }}") BEGIN("<|assistant|>\\n")},
    {"phi4", EACH("{{ '<|im_start|>" ROLE "<|im_sep|>" TEXT "<|im_end|>' }}")
                 BEGIN("<|im_start|>assistant<|im_sep|>")},
    {"falcon3", EACH("{{ '<|" ROLE "|>\\n" TEXT "\\n' }}") BEGIN("<|assistant|>\\n")},
    {"zephyr",
     EACH("{{ '<|" ROLE "|>\\n" TEXT "' + eos_token + '\\n' }}") BEGIN("<|assistant|>\\n")},
    {"monarch",
     EACH("{{ bos_token + '" ROLE "\\n" TEXT EOS "\\n' }}") BEGIN("' + bos_token + 'assistant\\n")},
    {"openchat",
     "{{ bos_token }}" ROLES(TEXT "<|end_of_turn|>", "GPT4 Correct User: " TEXT "<|end_of_turn|>",
                             "GPT4 Correct Assistant: " TEXT "<|end_of_turn|>")
         BEGIN("GPT4 Correct Assistant:")},
    {"vicuna", "{{ bos_token }}" ROLES(TEXT "\\n\\n", "USER: " TEXT "\\n",
                                       "ASSISTANT: " TEXT EOS "\\n") BEGIN("ASSISTANT:")},
    {"vicuna-orca", "{{ bos_token }}" ROLES("SYSTEM: " TEXT "\\n", "USER: " TEXT "\\n",
                                            "ASSISTANT: " TEXT EOS "\\n") BEGIN("ASSISTANT:")},
    {"deepseek",
     "{{ bos_token }}" ROLES(TEXT, "### Instruction:\\n" TEXT "\\n",
                             "### Response:\\n" TEXT "\\n<|EOT|>\\n") BEGIN("### Response:\\n")},
    {"deepseek3", "{{ bos_token }}" ROLES(TEXT "\\n\\n", "<｜User｜>" TEXT,
                                          "<｜Assistant｜>" TEXT EOS) BEGIN("<｜Assistant｜>")},
    {"granite", EACH("{{ '<|start_of_role|>" ROLE "<|end_of_role|>" TEXT "<|end_of_text|>\\n' }}")
                    BEGIN("<|start_of_role|>assistant<|end_of_role|>")},
    {"command-r",
     EACH(
         "{% set role = 'CHATBOT' if message['role'] == 'assistant' else message['role'] | upper %}"
         "{{ '<|START_OF_TURN_TOKEN|><|' + role + '_TOKEN|>' + message['content'] | trim + "
         "'<|END_OF_TURN_TOKEN|>' }}") BEGIN("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>")},
    {"gemma",
     "{{ bos_token }}" EACH(
         "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
         "{% if role == 'system' %}{{ raise_exception('no system messages') }}{% endif %}"
         "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}")
         BEGIN("<start_of_turn>model\\n")}};

drey_status chat_template_read(const char *name, char **out, drey_error *err)
{
    const input_limit limit = {.n_bytes = 1 << 20, .reason = "templates are read up to 1M"};
    size_t n;
    *out = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known && !*out; i++)
        if (strcmp(name, known[i].name) == 0) {
            *out = strdup(known[i].text);
            if (!*out)
                FAIL(err, DREY_ERR_MEMORY, "not enough memory for a chat template");
        }
    return *out ? DREY_OK : input_read(name, "the chat template", &limit, out, &n, err);
}
