/* See scene.h. */
#include "support/scene.h"

#include "support/temp_dir.h"
#include "support/test.h"

void must(drey_status status, const drey_error *err)
{
    if (status != DREY_OK)
        fail_msg("%s", err->message);
}

drey_model *toy_open(const char *name, const toy_options *toy)
{
    drey_model *m = NULL;
    drey_error err = {0};
    toy_write(temp_path(name), toy);
    must(drey_model_open(&m, temp_path(name), &err), &err);
    return m;
}

drey_engine_options plain_options(const drey_model *m, int32_t n_context, int32_t n_threads)
{
    drey_engine_options o;
    drey_engine_options_init(&o);
    o.target = m;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_context = n_context;
    o.n_threads = n_threads;
    return o;
}

drey_generate_options greedy(int32_t n)
{
    drey_generate_options g;
    drey_generate_options_init(&g);
    g.n_predict = n;
    g.ignore_eos = true;
    return g;
}
