/* Places for clients: those of clients that are let in, and some more for those that are turned
 * away. When all are taken, a client that asks for nothing makes room; where none does, a new
 * client has a place until its request has come, so that it reads why it is refused, and hears that
 * the server is well if that is its question. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PLACES_TURNED_AWAY = 8 };

typedef struct client_place {
    bool free, idle; /* idle: no request is under way */
    int fd;
    double since_s; /* when its state began */
} client_place;
typedef client_place place_look_fn(const void *user, int32_t i);

/* The place for a new client: of [0, n_in), or of those up to n_all. *taken: its client has to go
 * first. */
int32_t places_choose(place_look_fn *look, const void *user, int32_t n_in, int32_t n_all,
                      bool *taken);
/* A client that was turned away goes before it has asked. It reads that as well, if nothing was
 * sent to it yet. */
void places_refuse(int fd, bool unanswered);
