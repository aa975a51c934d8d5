/* Ctrl-C, kill and a closed terminal while a session works.
 *
 *      signals_watch(s)          signal                  signals_unwatch
 *   (default: exit at once) -> (the session is cancelled) -> (default)
 *                                  another signal: exit at once
 *
 * The handler runs on the main thread only (the engine's threads start with these signals blocked),
 * so a session is never cancelled while it is being closed. */
#pragma once

#include "drey/drey_session.h"

/* SIGPIPE is ignored from here on (a write then fails); SIGINT, SIGTERM and, unless it is ignored
 * (nohup), SIGHUP end the process with 128 + their number. */
void signals_init(void);
/* Around whatever starts threads: these are to leave signals to the main thread. */
void signals_hold(void);
void signals_release(void);
void signals_watch(drey_session *session);
void signals_unwatch(void);
/* Only notes the first signal from here on, for code that asks signals_exit_code now and then. */
void signals_note(void);
/* Returns whether SIGINT has come; it is forgotten then. Other signals stay. */
bool signals_take_interrupt(void);
/* Forgets the signals that came. */
void signals_forget(void);
/* The exit code that the signal asks for: 129, 130, 143, or 0 if none came. */
int signals_exit_code(void);
/* None has come: for the library's options, which pass user. */
bool signals_may_continue(void *user);
/* Waits until a write to the file would not block, as long as no signal has come; false: it would,
 * and one has. */
bool signals_wait_writable(int file);
/* The same of a read. */
bool signals_wait_readable(int file);
