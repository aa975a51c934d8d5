/* Admin requests: see admin.h. */
#include "serve/admin.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/error.h"
#include "serve/slot_folder.h"

static int64_t n_tokens_of(const drey_session *session)
{
    const int32_t *ids;
    size_t n;
    drey_session_timeline(session, &ids, &n);
    return (int64_t)n;
}

static int64_t n_bytes_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? (int64_t)about.st_size : 0;
}

/* The saved session is the client's choice: what is wrong with it is a bad request. */
static drey_status restore(drey_session *session, const char *path, drey_error *err)
{
    drey_status status = drey_session_load(session, path, NULL, err);
    if (status != DREY_OK && status != DREY_ERR_MEMORY && err)
        status = err->code = DREY_ERR_USAGE;
    return status;
}

static drey_status save(const serve_options *o, const request *t, drey_session *session,
                        const char *path, drey_error *err)
{
    TRY(slot_folder_room(o->slots.folder, t->admin.file, drey_session_save_bytes(session),
                         o->slots.bytes, err));
    return drey_session_save(session, path, NULL, 0, err);
}

static drey_status do_file(shared *s, sequence *j, drey_session *session, drey_error *err)
{
    const request *t = j->request;
    char path[PATH_MAX];
    double begun = serve_clock_s();
    record_admin done = {.n_tokens = n_tokens_of(session)};
    drey_status status = DREY_OK;
    int n = snprintf(path, sizeof path, "%s/%s", s->options->slots.folder, t->admin.file);
    if (n < 0 || (size_t)n >= sizeof path)
        FAIL(err, DREY_ERR_USAGE, "the path of the file is too long");
    if (t->kind == REQUEST_SAVE)
        status = save(s->options, t, session, path, err);
    else if (t->kind == REQUEST_RESTORE)
        status = restore(session, path, err);
    else
        drey_session_reset(session);
    if (status != DREY_OK)
        return status;
    if (t->kind == REQUEST_RESTORE)
        done.n_tokens = n_tokens_of(session);
    done.n_bytes = t->kind == REQUEST_ERASE ? 0 : n_bytes_of(path);
    done.s = serve_clock_s() - begun;
    sequence_record(s, j, RECORD_ADMIN, &done, sizeof done);
    return DREY_OK;
}

/* ---- Vectors ---- */

enum { TEXTS_AT_ONCE = 64 }; /* at most: what has room in a pass is computed together */

size_t admin_vector_bytes(size_t n_vectors, size_t n_numbers)
{
    const size_t n_records = (n_numbers + RECORD_MOST_NUMBERS - 1) / RECORD_MOST_NUMBERS;
    const size_t head = sizeof(record_head) + offsetof(record_vector, numbers);
    return n_vectors * (n_records * head + n_numbers * sizeof(float)) + sizeof(record_vector);
}

int32_t *admin_text(const sequence *j, int32_t text, size_t *n)
{
    const int32_t *end = j->request->parts.end;
    *n = (size_t)(end[text] - (text ? end[text - 1] : 0));
    return (int32_t *)(void *)(j->records + j->capacity) - end[text];
}

static void record_numbers(shared *s, sequence *j, int32_t input, int32_t row, const float *numbers,
                           int32_t n_all)
{
    record_vector v = {.input = input, .row = row, .n_all = n_all};
    for (; v.from < n_all; v.from += v.n) {
        v.n = n_all - v.from < RECORD_MOST_NUMBERS ? n_all - v.from : RECORD_MOST_NUMBERS;
        memcpy(v.numbers, numbers + v.from, (size_t)v.n * sizeof *numbers);
        sequence_record(s, j, RECORD_VECTOR, &v,
                        offsetof(record_vector, numbers) + (size_t)v.n * sizeof *numbers);
    }
}

/* The next inputs', in the sequence's records before the ids, where there is room
 * (parse_embedding); records that are written before them never overtake the numbers that they
 * copy. */
static drey_status do_vectors(shared *s, sequence *j, drey_session *session, bool *over,
                              drey_error *err)
{
    const request *t = j->request;
    drey_model_info info;
    drey_model_describe(s->options->model, &info);
    const bool all = admin_pooling(s->options) == DREY_POOLING_NONE;
    const size_t n_embd = (size_t)info.n_embd, n_kept = t->prompts.n_ids * sizeof *t->prompts.ids;
    drey_text_ids texts[TEXTS_AT_ONCE];
    int32_t input = (int32_t)j->live.prompt_done;
    size_t n_texts = 0, n_vectors = 0, n_done;
    while (n_texts < TEXTS_AT_ONCE && input + (int32_t)n_texts < t->parts.n) {
        drey_text_ids *text = &texts[n_texts];
        text->ids = admin_text(j, input + (int32_t)n_texts++, &text->n);
        n_vectors += all ? text->n : 1;
    }
    float *vectors = (float *)(void *)(j->records + j->capacity - n_kept) - n_vectors * n_embd;
    TRY(drey_session_embed_texts(session, texts, n_texts, admin_pooling(s->options), vectors,
                                 &n_done, err));
    for (size_t i = 0; i < n_done; i++)
        for (size_t row = 0; row < (all ? texts[i].n : 1); row++, vectors += n_embd) {
            if (!all)
                drey_embed_normalize(vectors, n_embd, t->admin.norm);
            record_numbers(s, j, input + (int32_t)i, (int32_t)row, vectors, info.n_embd);
        }
    j->live.prompt_done += (int64_t)n_done;
    *over = j->live.prompt_done == t->parts.n;
    return DREY_OK;
}

drey_status admin_do(shared *s, sequence *j, drey_session *session, bool *over, drey_error *err)
{
    *over = true;
    if (j->cancelled)
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    return j->request->kind == REQUEST_EMBED ? do_vectors(s, j, session, over, err)
                                             : do_file(s, j, session, err);
}
