/* Clients wait here for a server whose model is still being opened: its address is taken before
 * that, so that a port in use is found at once, and a thread answers there.
 *
 *   lobby_open                    lobby_leave                    network_run
 *   ----------> "Loading model" -------------> the listener, clients that have sent no whole
 *                 to all requests              request yet, and events
 */
#pragma once

#include "serve/net/events.h"
#include "serve/net/listen.h"

enum { LOBBY_CLIENTS = 16, LOBBY_EVENTS = 16 };

typedef struct lobby lobby;

/* All borrowed; as in serve_options. */
typedef struct lobby_options {
    listen_address at;
    const char *api_keys, *origins, *closed;
} lobby_options;

/* Clients and events that a server takes over. */
typedef struct lobby_guests {
    const struct http_client
        *clients[LOBBY_CLIENTS]; /* [n_clients]: with what they have sent; borrowed
                                                  until lobby_close */
    int32_t n_clients;
    serve_event events[LOBBY_EVENTS]; /* [n_events]: of the first requests that were answered */
    int32_t n_events;
} lobby_guests;

/* DREY_ERR_IO: the address is taken, or cannot be had. */
drey_status lobby_open(lobby **out, const lobby_options *options, drey_error *err);
/* Returns the address at which it listens; borrowed. */
const listen_socket *lobby_socket(const lobby *l);
/* Ends the thread: the listener and the guests are the caller's. */
void lobby_leave(lobby *l, listen_socket *listening, lobby_guests *guests);
/* Accepts NULL; nulls the pointer. Closes what nobody has taken over. */
void lobby_close(lobby **l);
