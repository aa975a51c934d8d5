/* A session in a file: what is written of it, and taken from one. */
#include "session/session.h"
#include "state/cache.h"
#include "state/kept_positions.h"
#include "store/session_file.h"
#include "text/tokenizer.h"

#include <assert.h>

static drey_status check_all_here(const drey_session *s, drey_error *err)
{
    if (!s->engine->team->is_alone)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "a session of several ranks cannot be saved or loaded: each has a part of its keys "
             "and values; use one rank");
    if (cache_is_in_file(&s->target_cache))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "a session whose keys and values are in a file cannot be saved or loaded yet; give it "
             "memory for all of them, or a shorter context");
    return DREY_OK;
}

static drey_status contents_of(const drey_session *s, session_contents *out, drey_error *err)
{
    const drey_engine *e = s->engine;
    const drey_model *target = e->config.target;
    *out = (session_contents){.cache = &s->target_cache,
                              .timeline = s->timeline,
                              .n_timeline = s->n_timeline,
                              .input = s->input.ids,
                              .n_input = s->input.n,
                              .n_context = e->config.n_context,
                              .n_vocab = tokenizer_n_vocab(target->tokenizer),
                              .sampling = s->text.options.sampling,
                              .model_path = gguf_shard_path(target->file, 0),
                              .kv_name = drey_kv_name(e->config.memory.kv)};
    return engine_saved_origin(e, &out->origin, err);
}

uint64_t drey_session_save_bytes(const drey_session *s)
{
    session_contents contents;
    return contents_of(s, &contents, NULL) == DREY_OK ? session_file_bytes(&contents) : 0;
}

drey_status drey_session_save(const drey_session *s, const char *path, const void *note,
                              size_t n_note_bytes, drey_error *err)
{
    session_contents contents;
    TRY(check_all_here(s, err));
    if (s->state != SESSION_IDLE)
        FAIL(err, DREY_ERR_USAGE, "the session is writing a text; end that one before saving it");
    if (n_note_bytes > DREY_MAX_NOTE_BYTES)
        FAIL(err, DREY_ERR_USAGE, "a note of %zu bytes is too long to be saved (at most %d)",
             n_note_bytes, DREY_MAX_NOTE_BYTES);
    TRY(contents_of(s, &contents, err));
    return session_file_write(path, &contents, note, n_note_bytes, err);
}

static drey_status take_file(drey_session *s, session_file *f, drey_saved_session *saved,
                             drey_error *err)
{
    drey_saved_session taken;
    session_end(s, DREY_FINISH_INTERRUPTED);
    TRY(session_file_take(f, &s->target_cache, s->timeline, s->input.ids, &taken, err));
    s->n_timeline = (int32_t)taken.n_tokens;
    s->input.n = (int32_t)f->header.n_input;
    s->input.unread = s->input.n > 0; /* its output is computed again, with the same bits */
    if (s->input.unread)
        cache_clear(&s->draft_cache);
    s->text.options.sampling = taken.sampling;
    if (saved)
        *saved = taken;
    return DREY_OK;
}

drey_status drey_session_load(drey_session *s, const char *path, drey_saved_session *saved,
                              drey_error *err)
{
    session_contents contents;
    session_file f;
    TRY(check_all_here(s, err));
    TRY(contents_of(s, &contents, err));
    TRY(session_file_open(&f, path, &contents, saved != NULL, err));
    drey_status status = take_file(s, &f, saved, err);
    session_file_close(&f);
    assert(session_is_valid(s));
    return status;
}
