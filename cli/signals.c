/* Signal handling: see signals.h. */
#include "cli/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static _Atomic(drey_session *) watched;
static volatile sig_atomic_t caught, noting;

static void on_signal(int number)
{
    drey_session *session = atomic_load(&watched);
    if (caught || (!session && !noting))
        _exit(128 + number);
    caught = number;
    if (session)
        drey_session_cancel(session);
}

void signals_init(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file beyond its limit is a failed write like others */
}

static void mask(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(how, &set, NULL);
}

void signals_hold(void)
{
    mask(SIG_BLOCK);
}

void signals_release(void)
{
    mask(SIG_UNBLOCK);
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

int signals_exit_code(void)
{
    return caught ? 128 + caught : 0;
}
