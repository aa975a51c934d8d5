/* Who has to go: see places.h. */
#include "serve/net/places.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "serve/jobs.h"

/* Idle for this long, a client may have to make room: one that has just come or just read an answer
 * is about to ask. */
static const double spare_s = 1;

static int32_t find_free(place_look_fn *look, const void *user, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++)
        if (look(user, i).free)
            return i;
    return -1;
}

/* The one that has been in its state longest; `idle`: of those that ask for nothing. -1: there is
 * none. */
static int32_t find_longest(place_look_fn *look, const void *user, int32_t from, int32_t to,
                            bool idle)
{
    int32_t longest = -1;
    for (int32_t i = from; i < to; i++) {
        client_place p = look(user, i);
        if ((p.idle || !idle) && (longest < 0 || p.since_s < look(user, longest).since_s))
            longest = i;
    }
    return longest;
}

/* It has been idle for a while, and no request of it has arrived. */
static bool can_go(const client_place *p)
{
    char byte;
    return serve_clock_s() - p->since_s >= spare_s &&
           recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

int32_t places_choose(place_look_fn *look, const void *user, int32_t n_in, int32_t n_all,
                      bool *taken)
{
    int32_t i = find_free(look, user, 0, n_in);
    *taken = false;
    if (i >= 0)
        return i;
    i = find_longest(look, user, 0, n_in, true);
    if (i >= 0) {
        const client_place p = look(user, i);
        *taken = can_go(&p);
        if (*taken)
            return i;
    }
    i = find_free(look, user, n_in, n_all);
    *taken = i < 0;
    return *taken ? find_longest(look, user, n_in, n_all, false) : i;
}

/* What it has sent is read first, as closing a socket with unread bytes throws its answer away. If
 * its request comes after that, the connection is reset: the length says where the answer ends. */
void places_refuse(int fd, bool unanswered)
{
    static const char why[] =
        "{\"error\":{\"code\":503,\"message\":\"Too many connections are open.\",\"type\":"
        "\"unavailable_error\"}}";
    char nothing[16 << 10], answer[400];
    while (recv(fd, nothing, sizeof nothing, MSG_DONTWAIT) == (ssize_t)sizeof nothing)
        ;
    if (unanswered) {
        int n = snprintf(answer, sizeof answer,
                         "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
                         "Content-Type: application/json\r\nContent-Length: %zu\r\n"
                         "Connection: close\r\n\r\n%s",
                         strlen(why), why);
        ssize_t sent = send(fd, answer, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)sent; /* a client that does not take it sees the end of the connection */
    }
}
