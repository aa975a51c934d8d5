/* Sockets that listen: see listen.h. */
#include "serve/net/listen.h"

#include "common/error.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

/* A socket that nobody listens on any more is left over from a server that was killed. */
static bool is_left_over(const struct sockaddr_un *name)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool left = fd >= 0 && connect(fd, (const struct sockaddr *)name, sizeof *name) != 0 &&
                errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return left;
}

/* The user's own: a socket in a folder that others may read is not theirs to ask. */
static drey_status listen_unix(listen_socket *p, const char *path, drey_error *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path)
        FAIL(err, DREY_ERR_USAGE, "a socket's path has at most %zu bytes",
             sizeof name.sun_path - 1);
    memcpy(name.sun_path, path, strlen(path) + 1);
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISSOCK(info.st_mode) && is_left_over(&name))
        unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    mode_t before = umask(0177);
    int bound = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&name, sizeof name);
    int error = errno;
    umask(before);
    p->fd = fd;
    if (bound != 0 || listen(fd, 128) != 0)
        FAIL(err, DREY_ERR_IO, "cannot listen on %s: %s", path,
             strerror(bound != 0 ? error : errno));
    p->is_unix = true;
    snprintf(p->address, sizeof p->address, "unix:%s", path);
    return DREY_OK;
}

static void note_address(listen_socket *p)
{
    struct sockaddr_storage name;
    socklen_t n = sizeof name;
    char host[200] = "", port[16] = "";
    getsockname(p->fd, (struct sockaddr *)&name, &n);
    getnameinfo((struct sockaddr *)&name, n, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    bool v6 = strchr(host, ':') != NULL;
    snprintf(p->address, sizeof p->address, "http://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
             port);
}

static int listen_at(const struct addrinfo *at)
{
    int one = 1;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, 511) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static drey_status listen_tcp(listen_socket *p, const char *host_name, int32_t number,
                              drey_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", number);
    int code = getaddrinfo(host_name, port, &hints, &found);
    if (code != 0)
        FAIL(err, DREY_ERR_IO, "cannot find the address \"%.100s\": %s", host_name,
             gai_strerror(code));
    int fd = -1;
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
        fd = listen_at(at);
    int error = errno;
    freeaddrinfo(found);
    p->fd = fd;
    if (fd < 0)
        FAIL(err, DREY_ERR_IO, "cannot listen on %.100s, port %d: %s%s", host_name, number,
             strerror(error),
             error == EADDRINUSE ? "; another server may be running there: stop it, "
                                   "or take another one with --port"
                                 : "");
    note_address(p);
    return DREY_OK;
}

static drey_status listen_passed(listen_socket *p, int fd, drey_error *err)
{
    struct sockaddr_storage name = {0};
    int type = 0, listens = 0;
    socklen_t n_name = sizeof name, n_type = sizeof type, n_listens = sizeof listens;
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n_type);
    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n_listens);
    if (getsockname(fd, (struct sockaddr *)&name, &n_name) != 0 || type != SOCK_STREAM || !listens)
        FAIL(err, DREY_ERR_USAGE,
             "file %d, which was passed to the server, is no socket that listens for streams", fd);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    p->fd = fd;
    p->passed = true;
    p->is_unix = name.ss_family == AF_UNIX;
    if (p->is_unix)
        snprintf(p->address, sizeof p->address, "unix:%s",
                 ((const struct sockaddr_un *)&name)->sun_path);
    else
        note_address(p);
    return DREY_OK;
}

drey_status listen_open(listen_socket *p, const listen_address *at, drey_error *err)
{
    *p = (listen_socket){.fd = -1};
    if (at->passed)
        return listen_passed(p, at->passed, err);
    if (ends_with(at->host, ".sock"))
        return listen_unix(p, at->host, err);
    return listen_tcp(p, at->host, at->port, err);
}

void listen_close(listen_socket *p, const char *host)
{
    if (p->fd < 0)
        return;
    close(p->fd);
    p->fd = -1;
    if (p->is_unix && !p->passed)
        unlink(host);
}

/* A socket's buffers grow to megabytes if they may, which nobody counted; and what a client does
 * not read waits in its records as well as there. */
static void set_up_socket(int fd)
{
    const int one = 1, in = SOCKET_IN_BYTES, out = SOCKET_OUT_BYTES;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &in, sizeof in);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &out, sizeof out);
}

int listen_accept(const listen_socket *p, bool *exhausted)
{
    int fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    *exhausted = fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
    if (fd >= 0)
        set_up_socket(fd);
    return fd;
}

void listen_peer(const listen_socket *p, int fd, char *out, size_t room)
{
    struct sockaddr_storage name;
    socklen_t n = sizeof name;
    bool local = p->is_unix || strncmp(p->address, "http://127.", 11) == 0 ||
                 strncmp(p->address, "http://[::1]", 12) == 0;
    out[0] = '\0';
    if (!local && getpeername(fd, (struct sockaddr *)&name, &n) == 0 &&
        getnameinfo((struct sockaddr *)&name, n, out, (socklen_t)room, NULL, 0, NI_NUMERICHOST))
        out[0] = '\0';
}
