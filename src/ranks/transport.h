/* Transport of messages between ranks: a table of functions of a library that is opened at run time
 * (libdrey-mpi), so that nobody else needs MPI. This header is all that both know.
 *
 * Functions are called from one thread. Those that return int return below 0 if the transport has
 * failed, and then *why says it. Messages between two ranks arrive in the order in which they were
 * sent. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TRANSPORT_VERSION = 1, TRANSPORT_HOST_BYTES = 64, TRANSPORT_WHY_BYTES = 256 };

/* Messages that a rank may be sending at the same time: one in each slot. */
enum { SLOT_MESSAGE, SLOT_BEAT, SLOTS };

typedef struct rank_transport {
    uint32_t version; /* TRANSPORT_VERSION */
    /* Joins the others. host: what this machine is called. */
    int (*open)(int32_t *rank, int32_t *n_ranks, char host[TRANSPORT_HOST_BYTES],
                char why[TRANSPORT_WHY_BYTES]);
    /* Begins to send; the bytes are borrowed until sent() is 1, as it is before the first. */
    int (*send)(int slot, int32_t to, const void *bytes, size_t n_bytes);
    int (*sent)(int slot);
    /* 1: the next message is in bytes; 0: none has arrived, or not all of it: the same memory has
     * to be given again. */
    int (*receive)(int32_t *from, void *bytes, size_t capacity, size_t *n_bytes);
    /* Leaves in good order, which waits until the others do. */
    void (*close)(void);
    /* Ends this process and all others. */
    void (*end_all)(int code);
} rank_transport;

/* The library has this one function. */
#define TRANSPORT_ENTRY "drey_rank_transport"
typedef const rank_transport *rank_transport_fn(void);
