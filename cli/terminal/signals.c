/* Signal handling: see signals.h. */
#include "cli/terminal/signals.h"

#include "cli/terminal/terminal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static _Atomic(drey_session *) watched;
static _Atomic int caught, noting; /* the server also asks from its other thread */

static void on_signal(int number)
{
    drey_session *session = atomic_load(&watched);
    if (caught || (!session && !noting)) {
        terminal_show_typing();
        _exit(128 + number);
    }
    caught = number;
    if (session)
        drey_session_cancel(session);
}

static sigset_t endings(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

void signals_init(void)
{
    /* Without SA_RESTART: what is blocked in a write has to come back. */
    struct sigaction action = {.sa_handler = on_signal, .sa_mask = endings()}, before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) != 0 || before.sa_handler != SIG_IGN) /* nohup */
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file beyond its limit is a failed write like others */
}

void signals_hold(void)
{
    sigset_t set = endings();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void signals_release(void)
{
    sigset_t set = endings();
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void signals_watch(drey_session *session)
{
    atomic_store(&watched, session);
}

void signals_unwatch(void)
{
    atomic_store(&watched, NULL);
}

void signals_note(void)
{
    noting = 1;
}

bool signals_take_interrupt(void)
{
    bool interrupted = caught == SIGINT;
    if (interrupted)
        caught = 0;
    return interrupted;
}

void signals_forget(void)
{
    caught = 0;
}

int signals_exit_code(void)
{
    return caught ? 128 + caught : 0;
}

bool signals_may_continue(void *user)
{
    (void)user;
    return signals_exit_code() == 0;
}

static bool wait_for(int file, short events)
{
    static const struct timespec now = {0};
    struct pollfd wanted = {.fd = file, .events = events};
    sigset_t set = endings(), before;
    /* Only the waiting itself lets signals in: none comes between the look at `caught` and it. */
    pthread_sigmask(SIG_BLOCK, &set, &before);
    int n;
    do
        n = ppoll(&wanted, 1, caught ? &now : NULL, &before);
    while (n < 0 && (errno == EINTR || errno == EAGAIN));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n != 0;
}

bool signals_wait_writable(int file)
{
    return wait_for(file, POLLOUT);
}

bool signals_wait_readable(int file)
{
    return wait_for(file, POLLIN);
}
