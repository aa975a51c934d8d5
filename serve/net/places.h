/* Places for clients: those of clients that are let in, and some more for those that are turned
 * away. When all are taken, a client that keeps one for nothing makes room, in this order:
 *
 *   PLACE_UNSHOWN  it has not shown its key, or, where none is needed, sends half a request
 *   PLACE_IDLE     it has no request under way
 *   PLACE_STUCK    it sends a body, or reads its answer, so slowly that it looks like a way to
 *                  keep the place
 *
 * of each the one that has been so longest. Where none does, a new client has a place until its
 * head has come: if that shows a key, a client that has not shown one makes room at once; else it
 * reads why it is refused, and hears that the server is well if that is its question. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLACES_TURNED_AWAY = 8 };

typedef enum place_use { PLACE_FREE, PLACE_UNSHOWN, PLACE_IDLE, PLACE_STUCK, PLACE_BUSY } place_use;

typedef struct client_place {
    place_use use;
    bool admitted; /* it is let in */
    bool silent;   /* nothing of a request has been read: it may be there all the same */
    int fd;
    double since_s; /* when its state began */
} client_place;
typedef client_place place_look_fn(const void *user, int32_t i);

typedef struct places {
    place_look_fn *look;
    const void *user;
    int32_t n_admitted; /* at most */
    int32_t n;          /* in all: PLACES_TURNED_AWAY more */
} places;

/* Returns the place for a new client. *admitted: it is let in. *taken: the client that has the
 * place has to go first. */
int32_t places_choose(const places *p, bool *admitted, bool *taken);
/* For a client that was turned away, and has shown that it may ask: -1: there is room now. Else the
 * one that has to go first; p->n: none has to. */
int32_t places_make_room(const places *p);
/* Returns whether one that is let in has just sent something, which is read before it may have to
 * go: ask again after that. */
bool places_settle(const places *p);

/* Return whether a client is PLACE_STUCK, after a sixth of what it may take where nobody waits for
 * its place: is_slow one whose body has n_bytes after age_s, which bring it a second for each 16
 * KiB; is_unread one that has not read its answer for age_s. */
bool places_is_slow(double timeout_s, double age_s, size_t n_bytes);
bool places_is_unread(double timeout_s, double age_s);

/* A client goes before it has its answer. It reads why, if nothing was sent to it yet. */
void places_refuse(int fd, bool unanswered);
