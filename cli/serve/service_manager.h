/* Protocol between a program and the manager of services that started it (systemd): sockets that it
 * opened for the program, and when the program is ready. Both are by variables of the environment,
 * as sd_listen_fds(3) and sd_notify(3) of systemd describe them. */
#pragma once

#include "drey/drey_error.h"

/* *fd: the socket that was opened for this process; 0: none was. DREY_ERR_USAGE: several. */
drey_status manager_socket(int *fd, drey_error *err);
/* Says that the program is ready, if somebody wants to know. */
void manager_ready(void);
