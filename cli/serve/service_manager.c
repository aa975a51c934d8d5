/* The manager of services: see service_manager.h. */
#include "cli/serve/service_manager.h"

#include "common/error.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_PASSED = 3 };

drey_status manager_socket(int *fd, drey_error *err)
{
    const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    *fd = 0;
    /* Variables that are meant for another process are inherited as well. */
    if (!pid || !n || strtol(pid, NULL, 10) != (long)getpid())
        return DREY_OK;
    long n_passed = strtol(n, NULL, 10);
    if (n_passed > 1)
        FAIL(err, DREY_ERR_USAGE,
             "systemd passes %ld sockets, and a server listens on one: leave one ListenStream=",
             n_passed);
    *fd = n_passed == 1 ? FIRST_PASSED : 0;
    return DREY_OK;
}

void manager_ready(void)
{
    static const char ready[] = "READY=1";
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof name.sun_path)
        return;
    memcpy(name.sun_path, path, n);
    if (path[0] == '@') /* a name that is in no file system */
        name.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    ssize_t sent = sendto(fd, ready, sizeof ready - 1, 0, (const struct sockaddr *)&name,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    (void)sent; /* a manager that cannot be reached waits until its own time limit */
    close(fd);
}
