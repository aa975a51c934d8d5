/* Answers the last message of a conversation, in the model's own chat format:
 *
 *     chat MODEL.gguf 100 "Be brief." "Why is the sky blue?"
 *     chat MODEL.gguf 100 "" "Why is the sky blue?" "Because air scatters light." "And at sunset?"
 *
 * Arguments: the most tokens to write; the system message, empty for none; messages of user and
 * assistant in turns.
 * Build: cc chat.c -o chat $(pkg-config --cflags --libs drey) */
#include <drey/chat.h>
#include <drey/tune.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROMPT = 2048, MAX_MESSAGES = 64 };

static bool print_text(void *user, const char *bytes, size_t n_bytes)
{
    (void)user;
    return fwrite(bytes, 1, n_bytes, stdout) == n_bytes && fflush(stdout) == 0;
}

/* Makes the prompt's ids. Whatever the messages say, it is text: none of it becomes a special
 * token. */
static drey_status make_prompt(const drey_model *model, int n_texts, char **texts, int32_t *ids,
                               size_t *n_ids, drey_error *err)
{
    drey_chat_message messages[MAX_MESSAGES];
    drey_chat_request request;
    drey_chat_request_init(&request);
    request.messages = messages;
    for (int i = 0; i < n_texts && i < MAX_MESSAGES; i++) {
        const char *role = i == 0 ? "system" : i % 2 ? "user" : "assistant";
        if (i > 0 || texts[i][0])
            messages[request.n_messages++] = (drey_chat_message){role, texts[i], strlen(texts[i])};
    }
    return drey_chat_encode(model, &request, DREY_TOKENIZE_BOS, ids, MAX_PROMPT, n_ids, err);
}

/* Chooses the draft that promises most here, by what drey tune -m measured where it did: a small
 * model in the target's folder, its own planes, heads, or what the text itself suggests. */
static drey_status choose_draft(drey_engine_options *options, drey_draft_choice *choice,
                                drey_pair_report *known, drey_error *err)
{
    char folder[4096];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    snprintf(folder, sizeof folder, "%s%s",
             cache  ? cache
             : home ? home
                    : "",
             cache ? "/drey" : "/.cache/drey");
    drey_status status = drey_choose_draft(options, folder, choice, err);
    if (status == DREY_OK && drey_profile_load(options, folder, known, NULL) == DREY_OK)
        options->profile = &known->profile;
    return status;
}

static drey_status answer(drey_session *session, const int32_t *ids, size_t n_ids,
                          int32_t n_predict, drey_error *err)
{
    drey_generate_options generate;
    drey_generate_options_init(&generate);
    generate.n_predict = n_predict;
    generate.on_text = print_text;
    return drey_session_generate(session, ids, n_ids, &generate, NULL, err);
}

int main(int argc, char **argv)
{
    drey_model *model = NULL;
    drey_engine *engine = NULL;
    drey_session *session = NULL;
    drey_draft_choice draft = {0};
    drey_pair_report known;
    drey_error err = {0};
    int32_t ids[MAX_PROMPT];
    size_t n_ids = 0;

    int32_t n_predict = argc > 4 ? (int32_t)strtol(argv[2], NULL, 10) : 0;
    if (n_predict <= 0) {
        fprintf(stderr, "usage: %s MODEL.gguf TOKENS SYSTEM MESSAGE [ANSWER MESSAGE ...]\n",
                argv[0]);
        return 2;
    }
    drey_engine_options options;
    drey_engine_options_init(&options);
    drey_status status = drey_model_open(&model, argv[1], &err);
    if (status == DREY_OK)
        status = make_prompt(model, argc - 3, argv + 3, ids, &n_ids, &err);
    options.target = model;
    options.n_context = (int32_t)n_ids + n_predict;
    if (status == DREY_OK)
        status = choose_draft(&options, &draft, &known, &err);
    if (status == DREY_OK)
        status = drey_engine_open(&engine, &options, &err);
    if (status == DREY_OK)
        status = drey_session_open(&session, engine, &err);
    if (status == DREY_OK)
        status = answer(session, ids, n_ids, n_predict, &err);
    putchar('\n');
    if (status != DREY_OK)
        fprintf(stderr, "%s\n", err.message);
    drey_session_close(&session);
    drey_engine_close(&engine);
    drey_draft_choice_close(&draft);
    drey_model_close(&model);
    return status != DREY_OK;
}
