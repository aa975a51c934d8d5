/* Sessions in files: see slots.h. */
#include "serve/api/slots.h"
#include "serve/answer/serializer.h"

#include <string.h>

#include "common/utf8.h"
#include "serve/slot_folder.h"

/* ---- Requests ---- */

/* The number of a session; -1: there is none of that name. */
static int32_t slot_of(http_span id, int32_t n_sessions)
{
    int32_t slot = 0;
    if (id.n < 1 || id.n > 4)
        return -1;
    for (size_t i = 0; i < id.n; i++) {
        if (id.text[i] < '0' || id.text[i] > '9')
            return -1;
        slot = 10 * slot + (id.text[i] - '0');
    }
    return slot < n_sessions ? slot : -1;
}

/* A name in the folder, and nothing else, which no unfinished file may have. */
static bool is_name(const json_value *v)
{
    if (!v || v->type != JSON_STRING || v->n == 0 || v->n >= REQUEST_FILE_BYTES ||
        v->text[0] == '.' || slot_folder_is_unfinished(v->text, v->n))
        return false;
    for (size_t i = 0; i < v->n;) {
        bool plain;
        size_t length = utf8_look(v->text + i, v->n - i, &plain);
        if (!plain || strchr("/\\:*?\"<>|", v->text[i]))
            return false;
        i += length;
    }
    return true;
}

static bool get_file(request *t, const json_value *body, refusal *r)
{
    const json_value *name = json_member(body, "filename");
    if (!is_name(name))
        return refuse_with(r, 400,
                           "Field 'filename' takes the name of a file in the server's folder of "
                           "saved sessions: up to %d bytes without a slash, not hidden, and not "
                           "ending in .partial.",
                           REQUEST_FILE_BYTES - 1);
    memcpy(t->admin.file, name->text, name->n + 1);
    return true;
}

bool parse_slot(request *t, http_span id, http_span query, const json_value *body,
                const serve_options *o, refusal *r)
{
    http_span action = http_query(query, "action");
    r->status = 0;
    t->session.wanted = slot_of(id, o->n_sessions);
    if (!o->slots.folder)
        return refuse_with(r, 501,
                           "This server saves no sessions: start it with --slot-save-path FOLDER.");
    if (t->session.wanted < 0)
        return refuse_with(r, 400, "There is no such slot: this server has 0 to %d.",
                           o->n_sessions - 1);
    if (http_span_is(action, "erase")) {
        t->kind = REQUEST_ERASE;
        return true;
    }
    if (!http_span_is(action, "save") && !http_span_is(action, "restore"))
        return refuse_with(r, 400, "The query takes action=save, action=restore or action=erase.");
    t->kind = http_span_is(action, "save") ? REQUEST_SAVE : REQUEST_RESTORE;
    return get_file(t, body, r);
}

/* ---- Answers ---- */

static void put_front(const answer *a, text_out *out)
{
    out_json(out, "{id_slot:%d", a->request->sequences[0]->slot);
}

static void put_record(answer *a, const record *r, text_out *out)
{
    const request *t = a->request;
    record_admin c;
    memcpy(&c, r->bytes, sizeof c);
    if (t->kind == REQUEST_ERASE) {
        out_json(out, "n_erased:%lld", (long long)c.n_tokens);
        return;
    }
    bool saves = t->kind == REQUEST_SAVE;
    out_json(out,
             saves ? "filename:%s,n_saved:%lld,n_written:%lld,timings:{save_ms:%g}"
                   : "filename:%s,n_restored:%lld,n_read:%lld,timings:{restore_ms:%g}",
             t->admin.file, (long long)c.n_tokens, (long long)c.n_bytes, 1e3 * c.s);
}

static void put_close(answer *a, text_out *out)
{
    (void)a;
    out_json(out, "}");
}

const serializer answer_slot = {
    .id_prefix = "slot-", .front = put_front, .record = put_record, .close = put_close};
