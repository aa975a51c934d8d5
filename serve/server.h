/* drey serve: HTTP for programs that speak OpenAI's API, llama.cpp's or others, in front of one
 * engine.
 *
 *   network.c, the caller's thread                     worker.c, its own thread
 *   sockets, HTTP, JSON, prompts    --- queue --->     the engine and its sessions: a step for all
 *   answers as JSON and events      <-- records ---    that write, then the next one
 *
 * The two share the sequences (requests.h), under one lock that nobody holds while he waits or
 * computes. All memory is taken once, by server_open, and server_bytes says how much: the engine
 * counts it in its budget. */
#pragma once

#include "drey/drey_session.h"
#include "serve/net/events.h"
#include "serve/net/listen.h"
#include "serve/net/lobby.h"

typedef struct serve_options {
    drey_model *model;         /* borrowed, as all that is borrowed until server_close */
    const char *name;          /* name of the model, as the server reports it; borrowed */
    const char *aliases;       /* further names of it, each after a comma; NULL: none. Borrowed */
    const char *chat_template; /* NULL: the model's own. Borrowed */
    bool no_reasoning;         /* templates get enable_thinking false, if a request says nothing */
    listen_address at;
    lobby *lobby; /* has the address until server_run; NULL: server_open takes it. Borrowed */
    const char *api_keys; /* separated by commas; NULL: nobody needs one. Borrowed */
    struct {
        const char *folder; /* folder where clients may save sessions; NULL: nowhere. Borrowed */
        uint64_t bytes;     /* bytes that they may take there */
    } slots;
    const char *origins;  /* pages that may ask, by their origins, with commas; "*"; NULL: none */
    const char *closed;   /* "page", "metrics", "slots", with commas: not answered; NULL: none */
    drey_pooling pooling; /* pooling of vectors */
    int32_t n_sessions, n_context; /* as the engine's */
    int32_t n_queue;               /* requests that wait for a session */
    int32_t n_connections;
    uint64_t body_bytes;    /* the most bytes of a request */
    int32_t timeout_s;      /* for a request to arrive, and for a client that does not read */
    int32_t grace_s;        /* for texts that are being written when the server is asked to stop */
    int32_t n_predict;      /* tokens of a text, where a request does not say; 0: to the end */
    drey_sampling sampling; /* the same */
    drey_penalties penalties;
    bool (*keeps_running)(void *user); /* asked several times per second: false stops the server */
    /* receives what happens, on the caller's thread; may be NULL */
    serve_event_fn *on_event;
    void *user;
} serve_options;

enum {
    SERVE_MAX_QUEUE = 1024,
    SERVE_MAX_CONNECTIONS = 4096,
    SERVE_MAX_BODY = 64 << 20,
    SERVE_MIN_BODY = 4 << 10
};

typedef struct server server;

/* Takes the address and all memory. DREY_ERR_IO: the address is taken, or cannot be had. */
drey_status server_open(server **out, const serve_options *options, drey_error *err);
/* Returns the bytes of all its memory. */
uint64_t server_bytes(const server *s);
/* "http://127.0.0.1:8080", or "unix:/run/drey.sock"; borrowed. */
const char *server_address(const server *s);
/* Serves until it is asked to stop: then texts that are being written may end within the grace, and
 * what is left of them ends as it is. The engine is used by another thread until this returns. An
 * error: a session of the engine could not be opened, or the engine can no longer be used; texts
 * then end with that error. */
drey_status server_run(server *s, drey_engine *engine, drey_error *err);
/* Accepts NULL; nulls the pointer. */
void server_close(server **s);
