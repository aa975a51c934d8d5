/* See writing.h. */
#include "support/writing.h"

#include <assert.h>

#include "engine/engine.h"

bool writing_keep_id(void *user, int32_t id)
{
    writing *w = user;
    assert(w->n_ids < WRITING_MAX);
    w->ids[w->n_ids++] = id;
    return w->n_ids != w->refuse_at;
}

static bool keep_text(void *user, const char *bytes, size_t n_bytes)
{
    writing *w = user;
    assert(w->n_bytes + n_bytes <= sizeof w->text);
    memcpy(w->text + w->n_bytes, bytes, n_bytes);
    w->n_bytes += n_bytes;
    return true;
}

drey_generate_options writing_into(writing *out, int32_t n)
{
    drey_generate_options g = greedy(n);
    g.on_token = writing_keep_id;
    g.on_text = keep_text;
    g.user = out;
    return g;
}

void writing_continue(writing *out, drey_session *s, const int32_t *ids, size_t n,
                      int32_t n_predict, const drey_sampling *sampling)
{
    drey_generate_options g = writing_into(out, n_predict);
    if (sampling)
        g.sampling = *sampling;
    MUST(drey_session_generate, s, ids, n, &g, &out->stats);
}

void must_be_same_ids(const writing *want, const writing *got, const char *what)
{
    for (int32_t i = 0; i < want->n_ids && i < got->n_ids; i++)
        if (got->ids[i] != want->ids[i])
            fail_msg("%s: token %d is %d instead of %d", what, i, got->ids[i], want->ids[i]);
    if (got->n_ids != want->n_ids)
        fail_msg("%s: %d tokens instead of %d", what, got->n_ids, want->n_ids);
}

void must_be_same(const writing *want, const writing *got, const char *what)
{
    must_be_same_ids(want, got, what);
    if (got->n_bytes != want->n_bytes || memcmp(got->text, want->text, want->n_bytes) != 0)
        fail_msg("%s: the bytes differ, %zu instead of %zu", what, got->n_bytes, want->n_bytes);
}

void seen_text_take(seen_text *t, const drey_event *e)
{
    assert_true(e->n_bytes > 0 && t->n_shown + e->n_bytes <= sizeof t->shown);
    if (e->kind == DREY_EVENT_TAKEN_BACK) {
        assert_true(t->n_shown >= t->n_verified + e->n_bytes);
        t->n_shown -= e->n_bytes;
        assert_memory_equal(t->shown + t->n_shown, e->bytes, e->n_bytes);
    } else if (e->kind == DREY_EVENT_PROVISIONAL) {
        memcpy(t->shown + t->n_shown, e->bytes, e->n_bytes);
        t->n_shown += e->n_bytes;
    } else {
        size_t known = t->n_shown - t->n_verified;
        known = known < e->n_bytes ? known : e->n_bytes;
        assert_memory_equal(t->shown + t->n_verified, e->bytes, known);
        memcpy(t->shown + t->n_verified, e->bytes, e->n_bytes);
        t->n_verified += e->n_bytes;
        t->n_shown = t->n_shown > t->n_verified ? t->n_shown : t->n_verified;
        t->n_stood += known;
    }
}

void writing_run_tuned(writing *out, const drey_engine_options *options, const engine_hooks *hooks,
                       const int32_t *ids, size_t n, int32_t n_predict,
                       const drey_sampling *sampling)
{
    memset(out, 0, sizeof *out);
    drey_generate_options g = writing_into(out, n_predict);
    if (sampling)
        g.sampling = *sampling;
    drey_engine *e = NULL;
    drey_session *s = NULL;
    out->status = engine_open(&e, options, hooks, &out->error);
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

void writing_try(writing *out, const drey_engine_options *options, double share, const int32_t *ids,
                 size_t n, int32_t n_predict, const drey_sampling *sampling)
{
    engine_hooks hooks = {.set_share = share >= 0, .share = share, .untimed = true};
    writing_run_tuned(out, options, &hooks, ids, n, n_predict, sampling);
}

void writing_run(writing *out, const drey_engine_options *options, double share, const int32_t *ids,
                 size_t n, int32_t n_predict, const drey_sampling *sampling)
{
    writing_try(out, options, share, ids, n, n_predict, sampling);
    must(out->status, &out->error);
}
