/* Joining the other ranks, and messages between them: see ranks.h. */
#include "ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/error.h"
#include "drey/drey_engine.h"
#include "os/clock.h"

static const char magic[8] = {'d', 'r', 'e', 'y', 'r', 'a', 'n', 'k'};
enum { BYTE_ORDER_MARK = 0x01020304 };

static drey_status join(drey_ranks *r, const rank_transport *transport, drey_error *err)
{
    char why[TRANSPORT_WHY_BYTES] = "";
    r->transport = transport;
    if (!transport)
        TRY(transport_load(&r->transport, err));
    if (r->transport->open(&r->rank, &r->n, r->host, why) < 0) {
        r->transport = NULL;
        FAIL(err, DREY_ERR_IO, "the ranks do not find each other: %s", why);
    }
    if (r->n > RANKS_MOST)
        FAIL(err, DREY_ERR_USAGE, "%d ranks are more than the %d that can share a model", r->n,
             RANKS_MOST);
    return ranks_make_room(r, 1, RANKS_USUAL_ROWS, 1, err);
}

drey_status ranks_open(drey_ranks **out, const rank_transport *transport, int32_t wait_s,
                       drey_error *err)
{
    enum { USUAL_WAIT_S = 120 };
    drey_ranks *r = calloc(1, sizeof *r);
    *out = r;
    if (!r)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the list of ranks");
    r->wait_ns = (int64_t)(wait_s > 0 ? wait_s : USUAL_WAIT_S) * 1000000000;
    drey_status status = join(r, transport, err);
    if (status != DREY_OK)
        drey_ranks_close(out);
    return status;
}

/* Rank 0 waits for it. */
static void say_not_started(drey_ranks *r)
{
    uint8_t *body;
    drey_error err;
    const char *message = "it could not start, and has said why itself";
    if (ranks_report(r, DREY_ERR_IO, message, &err) == DREY_OK)
        (void)ranks_out(r, &body, &err);
}

drey_status drey_ranks_open(drey_ranks **out, int32_t wait_s, drey_error *err)
{
    return ranks_open(out, NULL, wait_s, err);
}

void drey_ranks_close(drey_ranks **ranks)
{
    drey_ranks *r = *ranks;
    if (!r)
        return;
    if (r->transport && r->broken)
        r->transport->end_all(1);
    if (r->transport && r->rank == 0)
        ranks_quit(r);
    if (r->transport && r->rank > 0 && !r->served)
        say_not_started(r);
    if (r->transport && r->broken) /* they do not take it */
        r->transport->end_all(1);
    if (r->transport)
        r->transport->close();
    free(r->in);
    free(r->out);
    free(r->caches.paths);
    free(r);
    *ranks = NULL;
}

int32_t drey_ranks_rank(const drey_ranks *ranks)
{
    return ranks->rank;
}

bool drey_ranks_describe(const drey_ranks *ranks, int32_t rank, drey_rank_info *out)
{
    if (rank < 0 || rank >= ranks->n)
        return false;
    const ranks_member *m = &ranks->member[rank];
    *out = (drey_rank_info){.first_layer = m->first,
                            .n_layers = m->n_layers,
                            .budget_bytes = m->hello.budget_bytes,
                            .pinned_bytes = m->ready.pinned_bytes + m->ready.expert_bytes,
                            .streamed_bytes_per_pass = m->ready.streamed_bytes,
                            .read_bytes = rank == ranks->rank ? ranks->counts.read_bytes
                                                              : m->counts.read_bytes,
                            .disk_bytes_per_s = m->hello.disk_bytes_per_s};
    snprintf(out->host, sizeof out->host, "%s", m->hello.host);
    return true;
}

/* Both buffers, larger than they were; what has arrived and is not dropped would be lost. */
drey_status ranks_make_room(drey_ranks *r, int32_t n_caches, int32_t max_rows, int32_t n_embd,
                            drey_error *err)
{
    size_t capacity = ranks_room_bytes(n_caches, max_rows, n_embd);
    uint8_t *in = calloc(1, capacity), *out = calloc(1, capacity);
    int32_t *paths = calloc((size_t)n_caches * (size_t)max_rows, sizeof *paths);
    free(r->in);
    free(r->out);
    free(r->caches.paths);
    r->in = in;
    r->out = out;
    r->caches.paths = paths;
    r->caches.n_slots = n_caches;
    r->capacity = capacity;
    for (int32_t i = 0; paths && i < n_caches; i++)
        r->caches.slot[i].trail =
            (cache_trail){.path = paths + (size_t)i * (size_t)max_rows, .max = max_rows};
    if (!in || !out || !paths)
        FAIL(err, DREY_ERR_MEMORY, "no memory for messages of %zu bytes between ranks", capacity);
    return DREY_OK;
}

void ranks_pause(int32_t *n_times)
{
    enum { AWAKE = 64, SHORT_NS = 20000, SHORT_TIMES = 1000, LONG_NS = 200000 };
    enum { LONG_TIMES = 30000, IDLE_NS = 4000000 }; /* after six seconds */
    if (*n_times < LONG_TIMES)
        ++*n_times;
    if (*n_times <= AWAKE)
        return;
    struct timespec t = {.tv_nsec = *n_times < SHORT_TIMES  ? SHORT_NS
                                    : *n_times < LONG_TIMES ? LONG_NS
                                                            : IDLE_NS};
    nanosleep(&t, NULL);
}

static drey_status transport_failed(drey_ranks *r, drey_error *err)
{
    r->broken = true;
    FAIL(err, DREY_ERR_IO, "rank %d (%s) cannot reach the others any more: MPI has failed", r->rank,
         r->host);
}

/* Waits until a slot's message is out. */
static drey_status wait_sent(drey_ranks *r, int slot, drey_error *err)
{
    int32_t n_times = 0;
    int64_t until = clock_ns() + r->wait_ns;
    int sent;
    while ((sent = r->transport->sent(slot)) == 0 && clock_ns() < until)
        ranks_pause(&n_times);
    if (sent < 0)
        return transport_failed(r, err);
    if (sent == 0) {
        r->broken = true;
        FAIL(err, DREY_ERR_IO,
             "rank %d takes no messages of rank %d (%s) any more: look at that machine, and start "
             "again",
             slot == SLOT_BEAT ? 0 : r->sent_to, r->rank, r->host);
    }
    return DREY_OK;
}

drey_status ranks_out(drey_ranks *r, uint8_t **body, drey_error *err)
{
    TRY(wait_sent(r, SLOT_MESSAGE, err));
    *body = r->out + sizeof(ranks_head);
    return DREY_OK;
}

static ranks_head head_of(const drey_ranks *r, ranks_kind kind, size_t n_bytes)
{
    ranks_head h = {.byte_order = BYTE_ORDER_MARK,
                    .protocol = RANKS_PROTOCOL,
                    .kind = kind,
                    .from = r->rank,
                    .pass = r->pass,
                    .counts = r->counts,
                    .computed_ns = r->computed_ns,
                    .n_bytes = n_bytes};
    memcpy(h.magic, magic, sizeof magic);
    return h;
}

drey_status ranks_send(drey_ranks *r, int32_t to, ranks_kind kind, const void *body, size_t n_bytes,
                       drey_error *err)
{
    uint8_t *out;
    TRY(ranks_out(r, &out, err));
    if (body)
        memcpy(out, body, n_bytes);
    const ranks_head h = head_of(r, kind, n_bytes);
    r->sent_to = to;
    memcpy(r->out, &h, sizeof h);
    if (r->transport->send(SLOT_MESSAGE, to, r->out, sizeof h + n_bytes) < 0)
        return transport_failed(r, err);
    return DREY_OK;
}

void ranks_count(drey_ranks *r, const weights *w)
{
    stream_counters reads;
    weights_count(w, &reads);
    r->counts = (ranks_counts){reads.read_bytes, weights_count_experts(w)};
}

void ranks_beat(drey_ranks *r, bool is_done)
{
    if (is_done ? wait_sent(r, SLOT_BEAT, NULL) != DREY_OK : r->transport->sent(SLOT_BEAT) != 1)
        return;
    r->beat = head_of(r, RANKS_BEAT, 0);
    r->beat.is_done = is_done;
    r->transport->send(SLOT_BEAT, 0, &r->beat, sizeof r->beat);
}

drey_status ranks_look(drey_ranks *r, bool *got, drey_error *err)
{
    int32_t from;
    size_t n_bytes;
    *got = r->has;
    if (r->has)
        return DREY_OK;
    int state = r->transport->receive(&from, r->in, r->capacity, &n_bytes);
    if (state < 0)
        return transport_failed(r, err);
    if (state == 0)
        return DREY_OK;
    const ranks_head *h = ranks_got(r);
    if (n_bytes < sizeof *h || memcmp(h->magic, magic, sizeof magic) != 0)
        FAIL(err, DREY_ERR_MISMATCH, "rank %d is no drey: start the same program on all ranks",
             from);
    if (h->byte_order != BYTE_ORDER_MARK)
        FAIL(err, DREY_ERR_MISMATCH,
             "rank %d has the other byte order: ranks have to be machines of one kind", from);
    if (h->protocol != RANKS_PROTOCOL || h->n_bytes != n_bytes - sizeof *h)
        FAIL(err, DREY_ERR_MISMATCH,
             "rank %d has another version of drey: install the same one on all ranks", from);
    *got = r->has = true;
    return DREY_OK;
}

void ranks_drop(drey_ranks *r)
{
    r->has = false;
}

drey_status ranks_next(drey_ranks *r, drey_error *err)
{
    bool got = false;
    for (int32_t n_times = 0; !got; ranks_pause(&n_times))
        TRY(ranks_look(r, &got, err));
    return DREY_OK;
}

drey_status ranks_report(drey_ranks *r, drey_status code, const char *message, drey_error *err)
{
    ranks_failure f = {.code = (int32_t)code};
    memcpy(f.host, r->host, sizeof f.host);
    snprintf(f.message, sizeof f.message, "%s", message);
    return ranks_send(r, 0, RANKS_FAILURE, &f, sizeof f, err);
}

drey_status ranks_other_failed(const drey_ranks *r, drey_error *err)
{
    ranks_failure f;
    const ranks_head *h = ranks_got(r);
    if (h->n_bytes != sizeof f || h->from < 0 || h->from >= r->n)
        FAIL(err, DREY_ERR_IO, "a rank has failed, and does not say why");
    memcpy(&f, ranks_body(r), sizeof f);
    f.message[sizeof f.message - 1] = f.host[sizeof f.host - 1] = 0;
    FAIL(err, f.code < 0 ? (drey_status)f.code : DREY_ERR_IO, "rank %d (%s): %.400s", h->from,
         f.host, f.message);
}
