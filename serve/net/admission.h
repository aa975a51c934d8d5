/* Lets clients in: some, and some more that are turned away. When all places are taken, a client
 * that keeps one for nothing makes room, in this order:
 *
 *   UNSHOWN  it has not shown its key, or, where none is needed, sends half a request
 *   IDLE     it has no request under way
 *   STUCK    it sends a body, or reads its answer, so slowly that it looks like a way to keep the
 *            place
 *   CROWD    it sends a request, and its address has more than half of the places, which another
 *            address asks for
 *
 * of each the one that has been so longest. Where none does, a new client stays until its head has
 * come: if that shows a key, a client that has not shown one makes room at once; else it reads why
 * it is refused; only a request for the health of the server is answered. */
#pragma once

#include "serve/net/http_server.h"

enum { ADMISSION_TURNED_AWAY = 8 };

/* Returns where a client's socket comes from, as client_standing has it. */
uint64_t admission_address(int fd);
/* Returns the memory of a new client, which is free now: another one may have had to go.
 * *admitted: the new one is let in. */
http_client *admission_choose(http_server *h, uint64_t address, bool *admitted);
/* A client that was turned away has shown that it may ask: it is let in if another one can go. If
 * one has just sent something, this one waits until that has been read. */
void admission_let_in(http_server *h, http_client *c);
/* Reads what has come of clients that wait, one request of each. Returns whether there are more. */
bool admission_read_waiting(http_server *h);
/* Takes its connection, and with it a large buffer, from a client that keeps them for nothing.
 * False: none does. */
bool admission_free_large(http_server *h);
