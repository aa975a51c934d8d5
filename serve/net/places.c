/* Who has to go: see places.h. */
#include "serve/net/places.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "serve/jobs.h"

/* A client keeps its place for at least so long: one that has just come, or just read an answer, is
 * about to ask. */
static const double spare_s = 1, least_bytes_per_s = 16384;

bool places_is_slow(double timeout_s, double age_s, size_t n_bytes)
{
    return age_s > timeout_s / 6 + (double)n_bytes / least_bytes_per_s;
}

bool places_is_unread(double timeout_s, double age_s)
{
    return age_s > timeout_s / 6;
}

static int32_t find_free(const places *p)
{
    for (int32_t i = 0; i < p->n; i++)
        if (p->look(p->user, i).use == PLACE_FREE)
            return i;
    return -1;
}

/* A request of it has arrived, and is about to be read. */
static bool has_sent(const client_place *c)
{
    char byte;
    return c->silent && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Finds, among the clients that are let in or the others, the one that is so longest, at least for
 * so long; PLACE_FREE: whatever it does. -1: there is none. */
static int32_t find_longest(const places *p, place_use use, bool admitted, double least_s)
{
    const double now = serve_clock_s();
    int32_t longest = -1;
    double since_s = now;
    for (int32_t i = 0; i < p->n; i++) {
        client_place c = p->look(p->user, i);
        bool wanted = c.admitted == admitted && (c.use == use || use == PLACE_FREE);
        if (wanted && c.since_s <= since_s && now - c.since_s >= least_s && !has_sent(&c)) {
            longest = i;
            since_s = c.since_s;
        }
    }
    return longest;
}

/* Who has to go; -1: nobody does. unshown_s: so long half a request may have its place. */
static int32_t find_spare(const places *p, double unshown_s)
{
    int32_t i = find_longest(p, PLACE_UNSHOWN, true, unshown_s);
    if (i < 0)
        i = find_longest(p, PLACE_IDLE, true, spare_s);
    return i < 0 ? find_longest(p, PLACE_STUCK, true, 0) : i;
}

static bool is_full(const places *p)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n; i++) {
        client_place c = p->look(p->user, i);
        n += c.use != PLACE_FREE && c.admitted;
    }
    return n >= p->n_admitted;
}

int32_t places_choose(const places *p, bool *admitted, bool *taken)
{
    bool full = is_full(p);
    int32_t i = full ? find_spare(p, spare_s) : find_free(p);
    *admitted = i >= 0;
    *taken = full;
    if (i >= 0)
        return i;
    i = find_free(p);
    *taken = i < 0;
    if (i < 0)
        i = find_longest(p, PLACE_FREE, false, 0);
    while (i < 0 || p->look(p->user, i).admitted) /* all have just sent something */
        i++;
    return i;
}

int32_t places_make_room(const places *p)
{
    if (!is_full(p))
        return -1;
    int32_t i = find_spare(p, 0);
    return i < 0 ? p->n : i;
}

bool places_settle(const places *p)
{
    for (int32_t i = 0; i < p->n; i++) {
        client_place c = p->look(p->user, i);
        if (c.admitted && c.use != PLACE_FREE && has_sent(&c))
            return true;
    }
    return false;
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
