/* The server's memory: see server.h. */
#include "serve/server.h"

#include "common/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "serve/net/admission.h"
#include "serve/net/network.h"
#include "serve/worker.h"

struct server {
    serve_options options;
    shared shared;
    network network;
    worker worker;
    char *memory; /* [n_memory]: one mapping, touched as it is needed */
    size_t n_memory, n_used;
};

/* ---- Memory ---- */

/* The next n bytes; without a mapping they are only counted. */
static void *take(server *s, size_t n)
{
    void *memory = s->memory ? s->memory + s->n_used : NULL;
    s->n_used += (n + 63) / 64 * 64;
    return memory;
}

/* An answer's text, about four bytes per token and as much again for what comes before each. */
static size_t record_bytes(const serve_options *o)
{
    return (64 << 10) + (size_t)o->n_context * 24;
}

static void place_requests(server *s)
{
    const serve_options *o = &s->options;
    shared *sh = &s->shared;
    sh->n_requests = o->n_queue + 2 * o->n_sessions;
    sh->n_sequences = sh->n_requests;
    sh->requests = take(s, (size_t)sh->n_requests * sizeof *sh->requests);
    sh->sequences = take(s, (size_t)sh->n_sequences * sizeof *sh->sequences);
    sh->queue = take(s, (size_t)sh->n_sequences * sizeof *sh->queue);
    for (int32_t i = 0; i < sh->n_requests; i++) {
        int32_t *ids = take(s, (size_t)o->n_context * sizeof *ids);
        char *records = take(s, record_bytes(o)), *grammar = take(s, REQUEST_GRAMMAR_BYTES);
        if (!s->memory)
            continue;
        sh->requests[i].shared = sh;
        sh->requests[i].prompts.ids = ids;
        sh->requests[i].grammar.text = grammar;
        sh->sequences[i].records = records;
        sh->sequences[i].capacity = record_bytes(o);
    }
}

static void place_connections(server *s)
{
    const serve_options *o = &s->options;
    network *n = &s->network;
    http_server *h = &n->http;
    size_t n_large = (size_t)o->body_bytes;
    n->n_values = 1024 + n_large / 16;
    n->n_ids = n_large / 4;
    h->rules = (access_rules){o->api_keys, o->origins, o->at.host, h->listening.is_unix};
    h->timeout_s = o->timeout_s;
    h->large_bytes = n_large;
    h->n_admitted = o->n_connections;
    h->n_clients = o->n_connections + ADMISSION_TURNED_AWAY;
    h->client_bytes = sizeof(connection);
    h->clients = take(s, (size_t)h->n_clients * h->client_bytes);
    for (int32_t i = 0; i < h->n_clients; i++) {
        char *in = take(s, HTTP_IN_BYTES), *out = take(s, HTTP_OUT_BYTES);
        if (s->memory) {
            http_client_at(h, i)->in = in;
            http_client_at(h, i)->out = out;
        }
    }
    h->n_large = NETWORK_LARGE;
    for (int i = 0; i < NETWORK_LARGE; i++)
        h->large[i] = take(s, n_large + 1);
    n->values = take(s, n->n_values * sizeof *n->values);
    n->ids = take(s, n->n_ids * sizeof *n->ids);
    n->scratch.capacity = n_large + NETWORK_PAGE_BYTES;
    n->scratch.text = take(s, n->scratch.capacity);
    n->rewritten.capacity = n_large + NETWORK_PAGE_BYTES;
    n->rewritten.text = take(s, n->rewritten.capacity);
    n->streams.n = o->n_sessions + 1;
    n->streams.n_ring = stream_ring_bytes(o->n_context);
    n->streams.of = take(s, (size_t)n->streams.n * sizeof *n->streams.of);
    for (int32_t i = 0; i < n->streams.n; i++) {
        char *ring = take(s, n->streams.n_ring);
        if (s->memory)
            n->streams.of[i].ring = ring;
    }
    n->store.capacity = 2 * n_large;
    n->store.memory = take(s, n->store.capacity);
    s->shared.store = &n->store;
}

/* First counted, then taken. */
static drey_status take_memory(server *s, drey_error *err)
{
    for (int round = 0; round < 2; round++) {
        s->n_used = 0;
        place_requests(s);
        place_connections(s);
        if (round > 0)
            break;
        s->n_memory = (s->n_used + 4095) / 4096 * 4096;
        s->memory = mmap(NULL, s->n_memory, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (s->memory == MAP_FAILED) {
            s->memory = NULL;
            FAIL(err, DREY_ERR_MEMORY, "the server finds no room for its %zu MiB",
                 s->n_memory >> 20);
        }
    }
    return DREY_OK;
}

/* For the time of a request: what a template takes to write it, however short it is; and after
 * that, what the tokenizer takes to read it, most for one endless word. */
static uint64_t reading_bytes(uint64_t body_bytes)
{
    const uint64_t a_template = 1 << 20, times = 32, word_times = 264, longest_word = 12 << 20;
    uint64_t writing = a_template + times * body_bytes;
    uint64_t word = word_times * body_bytes;
    uint64_t reading = 4 * body_bytes + (word < longest_word ? word : longest_word);
    return writing > reading ? writing : reading;
}

uint64_t server_bytes(const server *s)
{
    /* A grammar for each session, and one that is tried out. */
    uint64_t grammars = drey_grammar_bytes(s->options.model, s->options.n_sessions + 1);
    return s->n_memory + grammars + (uint64_t)s->network.http.n_clients * SOCKET_KERNEL_BYTES +
           reading_bytes(s->options.body_bytes) + sizeof *s;
}

/* ---- Opening, running, closing ---- */

static drey_status init(server *s, drey_error *err)
{
    shared *sh = &s->shared;
    network *n = &s->network;
    http_server *h = &n->http;
    h->listening.fd = h->loop.epoll = h->loop.wake.fd = h->listener.fd = -1;
    sh->options = n->options = &s->options;
    n->shared = sh;
    sh->began = (int64_t)time(NULL);
    pthread_mutex_init(&sh->lock, NULL);
    pthread_cond_init(&sh->work, NULL);
    drey_status status = DREY_OK;
    if (s->options.lobby) {
        h->listening = *lobby_socket(s->options.lobby);
        h->listening.fd = -1; /* as long as it is there */
    } else {
        status = listen_open(&h->listening, &s->options.at, err);
    }
    if (status == DREY_OK)
        status = take_memory(s, err);
    if (status == DREY_OK && !event_loop_open(&h->loop))
        status = error_set(err, DREY_ERR_IO, "the system has no more files: %s", strerror(errno));
    sh->wake = h->loop.wake.fd;
    return status;
}

drey_status server_open(server **out, const serve_options *options, drey_error *err)
{
    *out = NULL;
    server *s = calloc(1, sizeof *s);
    if (!s)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a server");
    s->options = *options;
    drey_status status = init(s, err);
    if (status != DREY_OK)
        server_close(&s);
    *out = s;
    return status;
}

const char *server_address(const server *s)
{
    return s->network.http.listening.address;
}

drey_status server_run(server *s, drey_engine *engine, drey_error *err)
{
    shared *sh = &s->shared;
    drey_engine_plan(engine, &sh->plan);
    s->worker = (worker){.shared = sh, .engine = engine};
    if (!worker_start(&s->worker))
        FAIL(err, DREY_ERR_MEMORY, "the system gives the server no thread");
    lobby_guests guests = {.n_clients = 0};
    if (s->options.lobby)
        lobby_leave(s->options.lobby, &s->network.http.listening, &guests);
    network_run(&s->network, &guests);
    worker_join(&s->worker);
    if (sh->failed.code != DREY_OK && err)
        *err = sh->failed;
    return sh->failed.code;
}

void server_close(server **closed)
{
    server *s = *closed;
    if (!s)
        return;
    http_stop_listening(&s->network.http);
    event_loop_close(&s->network.http.loop);
    if (s->memory)
        munmap(s->memory, s->n_memory);
    pthread_mutex_destroy(&s->shared.lock);
    pthread_cond_destroy(&s->shared.work);
    free(s);
    *closed = NULL;
}
