/* Waits for sockets and pipes, and calls a function for each that has something. One thread,
 * level-triggered epoll; functions that are called here do not block. Another thread may wake it.
 *
 *   event_loop_open, event_loop_watch ... --> event_loop_run: events, those of `last` after all
 *                                             others; between; tick; again, until one says so */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* events: as epoll has them. */
typedef void event_fn(void *user, void *of, uint32_t events);

typedef struct watched {
    int fd;          /* -1: closed */
    uint32_t events; /* events that are waited for; 0: none */
    event_fn *on_event;
    void *user, *of;
} watched;

typedef struct event_loop {
    int epoll;
    watched wake;                /* its descriptor: other threads write to it (event_loop_wake) */
    const watched *last;         /* the listener: a client that has gone may have events left, which
                                    are not those of the one that takes its memory */
    bool (*woken)(void *user);   /* returns whether the loop ends; NULL: nobody wakes it */
    bool (*between)(void *user); /* after the events; returns whether it has more to do at once;
                                    NULL: nothing */
    bool (*tick)(void *user);    /* several times per second; returns whether the loop ends */
    void *user;
    bool over;
} event_loop;

/* False: the system has no more files. */
bool event_loop_open(event_loop *l);
/* Accepts one that was not opened, of zeros but for epoll and wake.fd, which are -1. */
void event_loop_close(event_loop *l);
/* Waits for these events, 0: for none. */
void event_loop_watch(const event_loop *l, watched *w, uint32_t events);
/* Closes it. */
void event_loop_drop(const event_loop *l, watched *w);
void event_loop_run(event_loop *l);
/* Wakes the loop, from any thread. */
void event_loop_wake(int fd);
