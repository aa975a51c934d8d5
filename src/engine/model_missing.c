/* The reasons why a file cannot run: the checks of opening it, one after another. */
#include <string.h>

#include "base/arena.h"
#include "kernel/kernel.h"
#include "model/arch.h"
#include "model/layout.h"
#include "text/tokenizer.h"

typedef struct listener {
    void (*missing)(void *user, const char *what);
    void *user;
} listener;

static void report(void *user, const drey_error *error)
{
    const listener *l = user;
    l->missing(l->user, error->message);
}

/* A key that is refused ends the reading of a shape: all of those are reported. */
static bool check_shape(model_shape *shape, const gguf *g, listener *l)
{
    drey_error error;
    if (model_shape_read(shape, g, &error) == DREY_OK)
        return true;
    bool has_sizes = shape->arch && shape->norm_eps > 0;
    if (!has_sizes || arch_keys_refused(shape, g, report, l) == 0)
        report(l, &error);
    return false;
}

/* encoder: those of the model's encoder. */
static drey_status bind_part(const model_shape *shape, bool encoder, const gguf *g,
                             drey_error *error)
{
    arena memory = {0};
    model_layout layout;
    const model_shape part = encoder ? shape_of_encoder(shape) : *shape;
    const kernel_table *kernels = kernel_select(NULL);
    TRY(arena_init(&memory, model_layout_bytes(&part, g), false, error));
    drey_status status = encoder ? encoder_layout_init(&layout, shape, g, kernels, &memory, error)
                                 : model_layout_init(&layout, g, kernels, &memory, error);
    arena_free(&memory);
    return status;
}

static drey_status bind_tensors(const model_shape *shape, const gguf *g, drey_error *error)
{
    TRY(bind_part(shape, false, g, error));
    return shape_reads(shape) ? bind_part(shape, true, g, error) : DREY_OK;
}

static void check_file(const gguf *g, listener *l)
{
    model_shape shape;
    drey_error error;
    tokenizer *tokens = NULL;
    if (check_shape(&shape, g, l) && bind_tensors(&shape, g, &error) != DREY_OK)
        report(l, &error);
    if (tokenizer_open(&tokens, g, &error) != DREY_OK)
        report(l, &error);
    tokenizer_close(&tokens);
}

/* A model's heads and predictors are not models. */
static bool is_side_file(const gguf *g)
{
    gguf_string name = gguf_text(g, "general.architecture");
    return name.n_bytes > 5 && memcmp(name.text, "drey-", 5) == 0;
}

drey_status drey_missing(const char *path, void (*missing)(void *user, const char *what),
                         void *user, drey_error *err)
{
    listener l = {missing, user};
    gguf *g = NULL;
    TRY(gguf_open(&g, path, err));
    if (!is_side_file(g))
        check_file(g, &l);
    gguf_close(&g);
    return DREY_OK;
}
