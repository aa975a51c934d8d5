/* Writes on from a prompt, under a memory budget, with a small model's help if one is named:
 *
 *     simple TARGET.gguf "The sky is blue because" [DRAFT.gguf]
 *
 * Build: cc simple.c -o simple $(pkg-config --cflags --libs drey) */
#include <drey/drey.h>
#include <stdio.h>
#include <string.h>

static bool print_text(void *user, const char *bytes, size_t n_bytes)
{
    (void)user;
    return fwrite(bytes, 1, n_bytes, stdout) == n_bytes && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    enum { N_PREDICT = 64, MAX_PROMPT = 2048 };
    drey_model *target = NULL, *draft = NULL;
    drey_engine *engine = NULL;
    drey_session *session = NULL;
    drey_error err = {0};
    int32_t ids[MAX_PROMPT];
    size_t n_ids = 0;

    if (argc < 3) {
        fprintf(stderr, "usage: %s TARGET.gguf PROMPT [DRAFT.gguf]\n", argv[0]);
        return 2;
    }
    if (drey_model_open(&target, argv[1], &err) != DREY_OK ||
        (argc > 3 && drey_model_open(&draft, argv[3], &err) != DREY_OK) ||
        drey_tokenize(target, argv[2], strlen(argv[2]), DREY_TOKENIZE_BOS, ids, MAX_PROMPT, &n_ids,
                      &err) != DREY_OK)
        goto done;

    drey_engine_options options;
    drey_engine_options_init(&options);
    options.target = target;
    options.draft = draft;
    options.drafter = draft ? DREY_DRAFTER_MODEL : DREY_DRAFTER_NONE;
    options.n_context = (int32_t)n_ids + N_PREDICT;
    drey_generate_options generate;
    drey_generate_options_init(&generate);
    generate.n_predict = N_PREDICT;
    generate.on_text = print_text;
    if (drey_engine_open(&engine, &options, &err) == DREY_OK &&
        drey_session_open(&session, engine, &err) == DREY_OK)
        drey_session_generate(session, ids, n_ids, &generate, NULL, &err);
done:
    putchar('\n');
    if (err.code != DREY_OK)
        fprintf(stderr, "%s\n", err.message);
    drey_session_close(&session);
    drey_engine_close(&engine);
    drey_model_close(&draft);
    drey_model_close(&target);
    return err.code != DREY_OK;
}
