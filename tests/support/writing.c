/* See writing.h. */
#include "support/writing.h"

#include <assert.h>
#include <string.h>

#include "engine/engine.h"

static bool keep_id(void *user, int32_t id)
{
    writing *w = user;
    assert(w->n_ids < WRITING_MAX);
    w->ids[w->n_ids++] = id;
    return true;
}

static bool keep_text(void *user, const char *bytes, size_t n_bytes)
{
    writing *w = user;
    assert(w->n_bytes + n_bytes <= sizeof w->text);
    memcpy(w->text + w->n_bytes, bytes, n_bytes);
    w->n_bytes += n_bytes;
    return true;
}

void writing_run_tuned(writing *out, const drey_engine_options *options,
                       const engine_tuning *tuning, const int32_t *ids, size_t n, int32_t n_predict,
                       const drey_sampling *sampling)
{
    memset(out, 0, sizeof *out);
    drey_generate_options g;
    drey_generate_options_init(&g);
    g.n_predict = n_predict;
    g.ignore_eos = true;
    g.on_token = keep_id;
    g.on_text = keep_text;
    g.user = out;
    if (sampling)
        g.sampling = *sampling;
    drey_engine *e = NULL;
    drey_session *s = NULL;
    out->status = engine_open(&e, options, tuning, &out->error);
    if (out->status == DREY_OK)
        out->status = drey_session_open(&s, e, &out->error);
    if (out->status == DREY_OK)
        out->status = drey_session_generate(s, ids, n, &g, &out->stats, &out->error);
    if (out->status == DREY_OK)
        drey_session_speculation(s, &out->speculation);
    if (out->status == DREY_OK)
        drey_session_exits(s, &out->exits);
    while (out->status == DREY_OK && out->n_units < DREY_MAX_UNITS &&
           drey_engine_unit(e, out->n_units, &out->units[out->n_units]))
        out->n_units++;
    drey_session_close(&s);
    drey_engine_close(&e);
}

void writing_run(writing *out, const drey_engine_options *options, double share, const int32_t *ids,
                 size_t n, int32_t n_predict, const drey_sampling *sampling)
{
    engine_tuning tuning = {.set_share = share >= 0, .share = share, .untimed = true};
    writing_run_tuned(out, options, &tuning, ids, n, n_predict, sampling);
}
