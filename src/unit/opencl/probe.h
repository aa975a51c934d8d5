/* Tries something that may crash or hang in a child process first: opening a driver must not end
 * the program. */
#pragma once

#include "common/error.h"

/* Runs attempt(user, err) in a child, whose standard output and error are discarded, and returns
 * its status and message. DREY_ERR_UNSUPPORTED: it crashed, or it hangs: for idle_s seconds it
 * neither used nor waited for processor time, or it used processor time for PROBE_BUSY_S. (A slow
 * or busy machine does not count as a hang.) `what` ("the OpenCL library") begins that message. */
enum { PROBE_BUSY_S = 60 };
drey_status probe_in_child(drey_status (*attempt)(void *user, drey_error *err), void *user,
                           const char *what, int32_t idle_s, drey_error *err);
