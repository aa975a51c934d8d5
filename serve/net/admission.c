/* Finds the client that makes room for another: see admission.h. */
#include "serve/net/admission.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A client keeps its place for at least so long: one that has just come, or just read an answer, is
 * about to ask. */
static const double spare_s = 1, least_bytes_per_s = 16384;
/* Part of the timeout: a client that takes longer is STUCK. */
static const double stuck_part = 1.0 / 6;

typedef enum use { FREE, UNSHOWN, IDLE, STUCK, CROWD, BUSY } use;

/* The network of an IPv6 address, as its owner has all of it. */
uint64_t admission_address(int fd)
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

static bool is_idle(const http_client *c)
{
    return c->phase == CLIENT_HEAD && c->n_in == 0;
}

static bool sends(const http_client *c)
{
    return (c->phase == CLIENT_HEAD || c->phase == CLIENT_BODY) && !is_idle(c);
}

static bool is_stuck(const http_server *h, const http_client *c)
{
    const double now = serve_clock_s(), most_s = h->timeout_s * stuck_part;
    bool unread = c->n_out > c->n_sent || c->n_more > 0;
    if (sends(c))
        return now - c->clock.since_s > most_s + (double)c->n_body / least_bytes_per_s;
    return c->phase == CLIENT_ANSWER && unread && now - c->clock.moved_s > most_s;
}

static use use_of(const http_server *h, const http_client *c)
{
    bool shown = c->standing.shown;
    if (c->phase == CLIENT_FREE)
        return FREE;
    if ((c->phase == CLIENT_DRAIN && shown) || (is_idle(c) && (shown || !h->rules.api_keys)))
        return IDLE;
    if (!shown)
        return UNSHOWN;
    return is_stuck(h, c) ? STUCK : BUSY;
}

/* A request of it has arrived, and is about to be read. */
static bool has_sent(const http_client *c)
{
    char byte;
    return is_idle(c) && recv(c->socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static bool is_admitted(const http_client *c)
{
    return c->phase != CLIENT_FREE && c->standing.admitted;
}

/* ---- Who has to go ---- */

/* Clients that one of them is looked for among: let in or not; of a use, FREE: of any, CROWD: those
 * that send, of this address; at least so long. */
typedef struct wanted {
    use use;
    bool admitted;
    double least_s;
    uint64_t address;
} wanted;

static bool is_wanted(const http_server *h, const http_client *c, const wanted *w)
{
    if (c->phase == CLIENT_FREE || is_admitted(c) != w->admitted)
        return false;
    if (w->use == CROWD)
        return sends(c) && c->standing.address == w->address;
    return w->use == FREE || use_of(h, c) == w->use;
}

/* Finds the one that is so longest; NULL: there is none. */
static http_client *find_longest(const http_server *h, wanted w)
{
    const double now = serve_clock_s();
    http_client *longest = NULL;
    for (int32_t i = 0; i < h->n_clients; i++) {
        http_client *c = http_client_at(h, i);
        double since_s = c->clock.since_s;
        if (is_wanted(h, c, &w) && (!longest || since_s <= longest->clock.since_s) &&
            now - since_s >= w.least_s && !has_sent(c))
            longest = c;
    }
    return longest;
}

/* Number of clients that are let in, from this address, or with NULL from anywhere. */
static int32_t count_admitted(const http_server *h, const uint64_t *address)
{
    int32_t n = 0;
    for (int32_t i = 0; i < h->n_clients; i++) {
        const http_client *c = http_client_at(h, i);
        n += is_admitted(c) && (!address || c->standing.address == *address);
    }
    return n;
}

static bool is_full(const http_server *h)
{
    return count_admitted(h, NULL) >= h->n_admitted;
}

/* The address that more than half of those who are let in have (Boyer and Moore's vote); false:
 * none. */
static bool find_crowd(const http_server *h, uint64_t *address)
{
    int32_t votes = 0;
    for (int32_t i = 0; i < h->n_clients; i++) {
        const http_client *c = http_client_at(h, i);
        if (!is_admitted(c))
            continue;
        if (votes == 0)
            *address = c->standing.address;
        votes += c->standing.address == *address ? 1 : -1;
    }
    return 2 * count_admitted(h, address) > h->n_admitted;
}

/* The client that makes room for one of this address; NULL: none does. unshown_s: so long half a
 * request may have its connection. */
static http_client *find_spare(const http_server *h, uint64_t address, double unshown_s)
{
    const wanted in_order[] = {
        {UNSHOWN, true, unshown_s, 0}, {IDLE, true, spare_s, 0}, {STUCK, true, 0, 0}};
    uint64_t crowd = 0;
    http_client *c = NULL;
    for (size_t k = 0; k < sizeof in_order / sizeof *in_order && !c; k++)
        c = find_longest(h, in_order[k]);
    if (!c && find_crowd(h, &crowd) && crowd != address)
        c = find_longest(h, (wanted){CROWD, true, 0, crowd});
    return c;
}

/* Reads what it has sent first, as closing a socket with unread bytes throws its answer away. If
 * its request comes after that, the connection is reset: the length says where the answer ends. */
static void refuse(int fd, bool unanswered)
{
    static const char answer[] =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
        "Content-Length: 92\r\nConnection: close\r\n\r\n"
        "{\"error\":{\"code\":503,\"message\":\"Too many connections are open.\",\"type\":"
        "\"unavailable_error\"}}";
    char nothing[16 << 10];
    while (recv(fd, nothing, sizeof nothing, MSG_DONTWAIT) == (ssize_t)sizeof nothing)
        ;
    ssize_t sent =
        unanswered ? send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    (void)sent; /* a client that does not take it sees the end of the connection */
}

/* Closes a client before it has its answer; it reads why if nothing was sent to it yet. */
static void turn_out(http_server *h, http_client *c)
{
    if (!(c->standing.admitted && is_idle(c)))
        refuse(c->socket.fd, c->phase == CLIENT_HEAD || c->phase == CLIENT_BODY);
    if (h->handler->turned_out)
        h->handler->turned_out(h->user, c);
    http_close(h, c);
}

/* ---- Who is let in ---- */

static http_client *find_free(const http_server *h)
{
    for (int32_t i = 0; i < h->n_clients; i++)
        if (http_client_at(h, i)->phase == CLIENT_FREE)
            return http_client_at(h, i);
    return NULL;
}

/* Returns the place of a client that is not let in, for the answer that says why: a free one, or
 * that of a client which has to go; NULL: all are admitted. */
static http_client *find_turned_away(const http_server *h)
{
    http_client *c = find_free(h);
    if (!c)
        c = find_longest(h, (wanted){FREE, false, 0, 0});
    for (int32_t i = 0; i < h->n_clients && !c; i++) /* all have just sent something */
        c = is_admitted(http_client_at(h, i)) ? NULL : http_client_at(h, i);
    return c;
}

http_client *admission_choose(http_server *h, uint64_t address, bool *admitted)
{
    http_client *c = is_full(h) ? find_spare(h, address, spare_s) : find_free(h);
    *admitted = c;
    if (!c)
        c = find_turned_away(h);
    if (c->phase != CLIENT_FREE)
        turn_out(h, c);
    return c;
}

/* Returns whether one that is let in has just sent something, which is read before it may have to
 * go. */
static bool is_about_to_ask(const http_server *h)
{
    for (int32_t i = 0; i < h->n_clients; i++)
        if (is_admitted(http_client_at(h, i)) && has_sent(http_client_at(h, i)))
            return true;
    return false;
}

void admission_let_in(http_server *h, http_client *c)
{
    const bool full = is_full(h);
    http_client *spare = full ? find_spare(h, c->standing.address, 0) : NULL;
    c->standing.waits = full && !spare && is_about_to_ask(h);
    if (spare)
        turn_out(h, spare);
    c->standing.admitted = !full || spare;
}

bool admission_read_waiting(http_server *h)
{
    bool more = false;
    for (int32_t i = 0; i < h->n_clients; i++) {
        http_client *c = http_client_at(h, i);
        if (c->phase != CLIENT_HEAD || !c->standing.waits)
            continue;
        c->standing.waits = false;
        http_read_again(h, c);
        more = more || (c->phase == CLIENT_HEAD && c->standing.waits);
    }
    return more;
}

bool admission_free_large(http_server *h)
{
    for (int32_t i = 0; i < h->n_clients; i++) {
        http_client *c = http_client_at(h, i);
        use now = c->large ? use_of(h, c) : BUSY;
        if (now == STUCK || now == UNSHOWN) {
            turn_out(h, c);
            return true;
        }
    }
    return false;
}
