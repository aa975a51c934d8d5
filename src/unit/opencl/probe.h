/* Trying something that may crash or hang, in a child process first: what a driver does when it is
 * opened must not take the program with it. */
#ifndef DREY_UNIT_PROBE_H
#define DREY_UNIT_PROBE_H

#include "common/error.h"

/* Runs attempt(user, err) in a child, whose standard output and error are nobody's, and returns
 * what it returned, with its sentence. DREY_ERR_UNSUPPORTED: it crashed, or it hangs: for idle_s
 * seconds it has neither used processor time nor waited for any, or it used it for PROBE_BUSY_S. (A
 * slow or busy machine is no hang.) `what` ("the OpenCL library") begins that sentence. */
enum { PROBE_BUSY_S = 60 };
drey_status probe_in_child(drey_status (*attempt)(void *user, drey_error *err), void *user,
                           const char *what, int32_t idle_s, drey_error *err);

#endif
