/* The loop over descriptors: see event_loop.h. */
#include "serve/net/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "serve/requests.h"

enum { MOST_EVENTS = 64, WAIT_MS = 200 };
static const double tick_s = 0.1;

static void take_wake(void *user, void *of, uint32_t events)
{
    event_loop *l = user;
    eventfd_t count;
    (void)of, (void)events;
    eventfd_read(l->wake.fd, &count);
    if (l->woken)
        l->over = l->woken(l->user) || l->over;
}

bool event_loop_open(event_loop *l)
{
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    l->wake =
        (watched){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .on_event = take_wake, .user = l};
    if (l->epoll < 0 || l->wake.fd < 0)
        return false;
    event_loop_watch(l, &l->wake, EPOLLIN);
    return true;
}

void event_loop_close(event_loop *l)
{
    if (l->wake.fd >= 0)
        close(l->wake.fd);
    if (l->epoll >= 0)
        close(l->epoll);
    l->epoll = l->wake.fd = -1;
}

void event_loop_wake(int fd)
{
    eventfd_write(fd, 1);
}

/* Removes a descriptor without events from epoll, which would report its end again and again. */
void event_loop_watch(const event_loop *l, watched *w, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = w};
    if (w->fd < 0 || w->events == events)
        return;
    epoll_ctl(l->epoll,
              !events     ? EPOLL_CTL_DEL
              : w->events ? EPOLL_CTL_MOD
                          : EPOLL_CTL_ADD,
              w->fd, &event);
    w->events = events;
}

/* Closing is not enough: a process that has just been forked still holds it, and would keep it in
 * epoll for a moment. */
void event_loop_drop(const event_loop *l, watched *w)
{
    if (w->fd < 0)
        return;
    event_loop_watch(l, w, 0);
    close(w->fd);
    w->fd = -1;
}

void event_loop_run(event_loop *l)
{
    struct epoll_event events[MOST_EVENTS];
    double next_tick = 0;
    bool more = false;
    while (!l->over) {
        int n = epoll_wait(l->epoll, events, MOST_EVENTS, more ? 0 : WAIT_MS);
        bool last = false;
        for (int i = 0; i < n; i++) {
            const watched *w = events[i].data.ptr;
            last = last || w == l->last;
            if (w != l->last && w->events)
                w->on_event(w->user, w->of, events[i].events);
        }
        if (last)
            l->last->on_event(l->last->user, l->last->of, EPOLLIN);
        more = l->between && l->between(l->user);
        double now = serve_clock_s();
        if (n < 0 || now >= next_tick) {
            next_tick = now + tick_s;
            l->over = l->tick(l->user) || l->over;
        }
    }
}
