/* Places for clients: those of clients that are let in, and some more for those that are turned
 * away. When all are taken, a client that keeps one for nothing makes room, in this order:
 *
 *   PLACE_UNSHOWN  it has not shown its key, or, where none is needed, sends half a request
 *   PLACE_IDLE     it has no request under way
 *   PLACE_STUCK    it sends a body, or reads its answer, so slowly that it looks like a way to
 *                  keep the place
 *   PLACE_CROWD    it sends a request, and its address has more than half of the places, which
 *                  another address asks for
 *
 * of each the one that has been so longest. Where none does, a new client has a place until its
 * head has come: if that shows a key, a client that has not shown one makes room at once; else it
 * reads why it is refused, and hears that the server is well if that is its question. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLACES_TURNED_AWAY = 8 };

/* Of a client, in its owner's structure. */
typedef struct client_place {
    bool admitted;    /* it is let in; else it is there to hear why not */
    bool shown;       /* its key; where none is needed, that it sends a whole request */
    bool waits;       /* what has come of it is read in the next round */
    uint64_t address; /* where it comes from; 0: this machine, by a socket's path */
} client_place;

typedef enum client_phase {
    CLIENT_NONE,
    CLIENT_HEAD, /* it sends a request's head, or none so far */
    CLIENT_BODY,
    CLIENT_ANSWER,
    CLIENT_DRAIN /* its answer is out */
} client_phase;

/* What a client does. */
typedef struct client_look {
    client_place *place;
    client_phase phase;
    int fd;
    size_t n_in, n_body; /* bytes of its request that have been read */
    bool unread;         /* of its answer, bytes wait for it */
    bool large;          /* it has a large buffer */
    double since_s;      /* when its phase began */
    double moved_s;      /* when it last took bytes of its answer */
} client_look;

typedef struct places {
    client_look (*look)(void *user, int32_t i);
    void (*close)(void *user, int32_t i);
    void (*read)(void *user, int32_t i); /* what has come of it */
    void *user;
    int32_t n_admitted; /* at most */
    int32_t n;          /* in all: PLACES_TURNED_AWAY more */
    bool keyed;         /* clients need a key */
    double timeout_s;   /* what a client may take where nobody waits for its place */
} places;

/* Returns where a client's socket comes from, as client_place has it. */
uint64_t places_address(int fd);
/* Returns the place for a new client, which is free now: another one may have had to go.
 * *admitted: the new one is let in. */
int32_t places_choose(const places *p, uint64_t address, bool *admitted);
/* Client i was turned away and has shown that it may ask: it is let in if another one can go. If
 * one has just sent something, i waits until that has been read. */
void places_let_in(const places *p, int32_t i);
/* Reads what has come of clients that wait, one request of each. Returns whether there are more. */
bool places_read_waiting(const places *p);
/* Takes its place, and with it a large buffer, from a client that keeps them for nothing. False:
 * none does. */
bool places_free_large(const places *p);
