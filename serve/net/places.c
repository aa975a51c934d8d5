/* Who has to go: see places.h. */
#include "serve/net/places.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "serve/jobs.h"

/* A client keeps its place for at least so long: one that has just come, or just read an answer, is
 * about to ask. */
static const double spare_s = 1, least_bytes_per_s = 16384;
/* Of the timeout: who takes longer is PLACE_STUCK. */
static const double stuck_part = 1.0 / 6;

typedef enum place_use {
    PLACE_FREE,
    PLACE_UNSHOWN,
    PLACE_IDLE,
    PLACE_STUCK,
    PLACE_CROWD,
    PLACE_BUSY
} place_use;

/* The network of an IPv6 address, as its owner has all of it. */
uint64_t places_address(int fd)
{
    struct sockaddr_storage name = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof name;
    uint64_t address = 0;
    if (getpeername(fd, (struct sockaddr *)&name, &n) != 0)
        return 0;
    if (name.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&name)->sin_addr.s_addr;
    if (name.ss_family != AF_INET6)
        return 0;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)&name)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(six))
        memcpy(&address, six->s6_addr + 12, 4);
    else
        memcpy(&address, six->s6_addr, sizeof address);
    return address;
}

/* ---- What a client does ---- */

static bool is_idle(const client_look *c)
{
    return c->phase == CLIENT_HEAD && c->n_in == 0;
}

static bool sends(const client_look *c)
{
    return (c->phase == CLIENT_HEAD || c->phase == CLIENT_BODY) && !is_idle(c);
}

static bool is_stuck(const places *p, const client_look *c)
{
    const double now = serve_clock_s(), most_s = p->timeout_s * stuck_part;
    if (sends(c))
        return now - c->since_s > most_s + (double)c->n_body / least_bytes_per_s;
    return c->phase == CLIENT_ANSWER && c->unread && now - c->moved_s > most_s;
}

static place_use use_of(const places *p, const client_look *c)
{
    const client_place *place = c->place;
    if (c->phase == CLIENT_NONE)
        return PLACE_FREE;
    if ((c->phase == CLIENT_DRAIN && place->shown) || (is_idle(c) && (place->shown || !p->keyed)))
        return PLACE_IDLE;
    if (!place->shown)
        return PLACE_UNSHOWN;
    return is_stuck(p, c) ? PLACE_STUCK : PLACE_BUSY;
}

/* A request of it has arrived, and is about to be read. */
static bool has_sent(const client_look *c)
{
    char byte;
    return is_idle(c) && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static bool is_admitted(const client_look *c)
{
    return c->phase != CLIENT_NONE && c->place->admitted;
}

/* ---- Who has to go ---- */

static int32_t find_free(const places *p)
{
    for (int32_t i = 0; i < p->n; i++)
        if (p->look(p->user, i).phase == CLIENT_NONE)
            return i;
    return -1;
}

/* Clients that one of them is looked for among: let in or not; of a use, PLACE_FREE: of any; at
 * least so long; PLACE_CROWD: those that send, of this address. */
typedef struct wanted {
    place_use use;
    bool admitted;
    double least_s;
    uint64_t address;
} wanted;

static bool is_wanted(const places *p, const client_look *c, const wanted *w)
{
    if (c->phase == CLIENT_NONE || is_admitted(c) != w->admitted)
        return false;
    if (w->use == PLACE_CROWD)
        return sends(c) && c->place->address == w->address;
    return w->use == PLACE_FREE || use_of(p, c) == w->use;
}

/* Finds the one that is so longest; -1: there is none. */
static int32_t find_longest(const places *p, wanted w)
{
    const double now = serve_clock_s();
    int32_t longest = -1;
    double since_s = now;
    for (int32_t i = 0; i < p->n; i++) {
        client_look c = p->look(p->user, i);
        if (is_wanted(p, &c, &w) && c.since_s <= since_s && now - c.since_s >= w.least_s &&
            !has_sent(&c)) {
            longest = i;
            since_s = c.since_s;
        }
    }
    return longest;
}

/* The address that more than half of those who are let in have (Boyer and Moore's vote); false:
 * none. */
static bool find_crowd(const places *p, uint64_t *address)
{
    int32_t votes = 0, n = 0;
    for (int32_t i = 0; i < p->n; i++) {
        client_look c = p->look(p->user, i);
        if (!is_admitted(&c))
            continue;
        if (votes == 0)
            *address = c.place->address;
        votes += c.place->address == *address ? 1 : -1;
    }
    for (int32_t i = 0; i < p->n; i++) {
        client_look c = p->look(p->user, i);
        n += is_admitted(&c) && c.place->address == *address;
    }
    return 2 * n > p->n_admitted;
}

/* Who has to go for a client of this address; -1: nobody does. unshown_s: so long half a request
 * may have its place. */
static int32_t find_spare(const places *p, uint64_t address, double unshown_s)
{
    const wanted in_order[] = {{PLACE_UNSHOWN, true, unshown_s, 0},
                               {PLACE_IDLE, true, spare_s, 0},
                               {PLACE_STUCK, true, 0, 0}};
    uint64_t crowd = 0;
    int32_t i = -1;
    for (size_t k = 0; k < sizeof in_order / sizeof *in_order && i < 0; k++)
        i = find_longest(p, in_order[k]);
    if (i < 0 && find_crowd(p, &crowd) && crowd != address)
        i = find_longest(p, (wanted){PLACE_CROWD, true, 0, crowd});
    return i;
}

static bool is_full(const places *p)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n; i++) {
        client_look c = p->look(p->user, i);
        n += is_admitted(&c);
    }
    return n >= p->n_admitted;
}

/* What it has sent is read first, as closing a socket with unread bytes throws its answer away. If
 * its request comes after that, the connection is reset: the length says where the answer ends. */
static void refuse(int fd, bool unanswered)
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

/* It goes before it has its answer, and reads why if nothing was sent to it yet. */
static void turn_out(const places *p, int32_t i)
{
    const client_look c = p->look(p->user, i);
    if (!(c.place->admitted && is_idle(&c)))
        refuse(c.fd, c.phase == CLIENT_HEAD || c.phase == CLIENT_BODY);
    p->close(p->user, i);
}

/* ---- Places ---- */

/* A place for a client that hears why it is not let in. */
static int32_t find_turned_away(const places *p)
{
    int32_t i = find_free(p);
    if (i < 0)
        i = find_longest(p, (wanted){PLACE_FREE, false, 0, 0});
    for (int32_t k = 0; k < p->n && i < 0; k++) { /* all have just sent something */
        client_look c = p->look(p->user, k);
        i = is_admitted(&c) ? -1 : k;
    }
    return i;
}

int32_t places_choose(const places *p, uint64_t address, bool *admitted)
{
    bool full = is_full(p);
    int32_t i = full ? find_spare(p, address, spare_s) : find_free(p);
    *admitted = i >= 0;
    if (i < 0)
        i = find_turned_away(p);
    if (p->look(p->user, i).phase != CLIENT_NONE)
        turn_out(p, i);
    return i;
}

/* Returns whether one that is let in has just sent something, which is read before it may have to
 * go. */
static bool settles(const places *p)
{
    for (int32_t i = 0; i < p->n; i++) {
        client_look c = p->look(p->user, i);
        if (is_admitted(&c) && has_sent(&c))
            return true;
    }
    return false;
}

void places_let_in(const places *p, int32_t i)
{
    client_place *place = p->look(p->user, i).place;
    const bool full = is_full(p);
    int32_t spare = full ? find_spare(p, place->address, 0) : -1;
    place->waits = full && spare < 0 && settles(p);
    if (spare >= 0)
        turn_out(p, spare);
    place->admitted = !full || spare >= 0;
}

bool places_read_waiting(const places *p)
{
    bool more = false;
    for (int32_t i = 0; i < p->n; i++) {
        client_look c = p->look(p->user, i);
        if (c.phase != CLIENT_HEAD || !c.place->waits)
            continue;
        c.place->waits = false;
        p->read(p->user, i);
        c = p->look(p->user, i);
        more = more || (c.phase == CLIENT_HEAD && c.place->waits);
    }
    return more;
}

bool places_free_large(const places *p)
{
    for (int32_t i = 0; i < p->n; i++) {
        client_look c = p->look(p->user, i);
        place_use use = c.large ? use_of(p, &c) : PLACE_BUSY;
        if (use != PLACE_STUCK && use != PLACE_UNSHOWN)
            continue;
        turn_out(p, i);
        return true;
    }
    return false;
}
