/* The library in one screen: opens a model, continues a text, prints what comes.
 *   simple MODEL.gguf "Once upon a time"
 * Build: cc simple.c $(pkg-config --cflags --libs drey) */
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
    if (argc != 3) {
        fprintf(stderr, "usage: simple MODEL.gguf TEXT\n");
        return 2;
    }
    drey_model *model = NULL;
    drey_engine *engine = NULL;
    drey_session *session = NULL;
    drey_error err = {.code = DREY_OK};
    int32_t ids[1024];
    size_t n_ids = 0;

    if (drey_model_open(&model, argv[1], &err) != DREY_OK ||
        drey_tokenize(model, argv[2], strlen(argv[2]), DREY_TOKENIZE_BOS, ids, 1024, &n_ids,
                      &err) != DREY_OK)
        goto done;

    drey_engine_options options;
    drey_engine_options_init(&options);
    options.target = model;
    options.n_context = (int32_t)n_ids + 64;
    if (drey_engine_open(&engine, &options, &err) != DREY_OK ||
        drey_session_open(&session, engine, &err) != DREY_OK)
        goto done;

    drey_generate_options generate;
    drey_generate_options_init(&generate);
    generate.n_predict = 64;
    generate.on_text = print_text;
    if (drey_session_generate(session, ids, n_ids, &generate, NULL, &err) == DREY_OK)
        printf("\n");
done:
    if (err.code != DREY_OK)
        fprintf(stderr, "simple: %s\n", err.message);
    drey_session_close(&session);
    drey_engine_close(&engine);
    drey_model_close(&model);
    return err.code == DREY_OK ? 0 : 1;
}
