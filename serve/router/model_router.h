/* drey serve --models: several models at one address, in one budget.
 *
 *   clients ---- proxy.c: heads and bodies, bytes both ways ----> a process for each loaded model
 *                router_state.h: the loop, what it answers           (model_process.h), drey serve
 *                model_budget.c: who has memory                       at its own socket
 *
 * A request names its model ("model" in the body, or ?model=NAME); one that names none gets the
 * model that was used last. One thread; nothing here blocks. */
#pragma once

#include "drey/drey_error.h"
#include "serve/router/model_process.h"
#include "serve/net/listen.h"

enum { ROUTER_MAX_MODELS = 48, ROUTER_NAME_BYTES = 128 };

typedef struct router_model {
    const char *name, *path;
    const char *why;  /* the reason that it cannot be run, from its header; "": none was found */
    int32_t n_checks; /* number of times that it was looked at */
} router_model;

typedef struct router_options {
    const router_model *models; /* [ROUTER_MAX_MODELS], of which n_models are there; names differ;
                                  borrowed, as all that is borrowed */
    int32_t n_models;
    /* Adds models that have come since after these, and looks at those that have changed; returns
     * how many there are. NULL: none come.
     * Called when a client lists models or names an unknown one. */
    int32_t (*look)(void *user);
    /* Says which models may be meant by a text that is no model's name: puts the first `room` of
     * them into found, indices of models, and returns how many there are. Where there is none,
     * *near is one whose name is near, or -1. */
    int32_t (*mean)(void *user, const char *text, int32_t *found, int32_t room, int32_t *near);
    int32_t n_loaded;        /* most of them at the same time; 0: as many as have room */
    listen_socket listening; /* taken over, also by a router_open that fails */
    const char *host;        /* its address, name or path; as in serve_options, and the next five */
    const char *api_keys, *origins, *closed;
    int32_t n_connections;
    uint64_t body_bytes;
    int32_t timeout_s, grace_s;
    const char *folder; /* folder of the sockets, the user's own */
    process_work work;  /* functions of a model's process */
    bool (*keeps_running)(void *user);
    serve_event_fn *on_event; /* as in serve_options; events of a model have its name */
    void *user;
} router_options;

typedef struct router router;

/* Takes all memory. DREY_ERR_IO, DREY_ERR_MEMORY. */
drey_status router_open(router **out, const router_options *options, drey_error *err);
const char *router_address(const router *r);
/* Until it is asked to stop, and all processes have ended. */
void router_run(router *r);
/* Accepts NULL; nulls the pointer. */
void router_close(router **r);
