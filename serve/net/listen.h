/* The address at which a server listens: a port, the path of a socket, or what systemd passes. */
#pragma once

#include "drey/drey_error.h"

/* Bytes that a client's socket may hold, of which the kernel makes twice as much to keep books.
 */
enum {
    SOCKET_IN_BYTES = 16 << 10,
    SOCKET_OUT_BYTES = 32 << 10,
    SOCKET_KERNEL_BYTES = 2 * (SOCKET_IN_BYTES + SOCKET_OUT_BYTES)
};

typedef struct listen_address {
    const char *host; /* an address, a name, or a path that ends in ".sock"; borrowed */
    int32_t port;     /* 0: one that is free */
    int passed;       /* a socket that listens already, instead of these two; 0: none */
} listen_address;

typedef struct listen_socket {
    int fd; /* -1: closed */
    bool is_unix, passed;
    char address[300]; /* "http://127.0.0.1:8080", or "unix:/run/drey.sock" */
} listen_socket;

/* DREY_ERR_IO: the address is taken, or cannot be had. A socket that was passed is the place's from
 * here on. */
drey_status listen_open(listen_socket *p, const listen_address *at, drey_error *err);
/* Closes the socket and removes its file, unless another process made it. A second time it does
 * nothing. */
void listen_close(listen_socket *p, const char *host);
/* Writes the address of a client, where clients of other machines may come; else "". */
void listen_peer(const listen_socket *p, int fd, char *out, size_t room);
/* The next client's socket; -1: there is none now. *exhausted: the system has no more files or
 * memory, and would say so again and again: let nobody in for a moment. */
int listen_accept(const listen_socket *p, bool *exhausted);
