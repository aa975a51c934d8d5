/* See warm_up.h. */
#include "cli/chat/warm_up.h"

#include "cli/terminal/signals.h"

/* One token, which is forgotten: the pass that writes it has loaded what it needs. */
static void *load(void *user)
{
    warm_up *w = user;
    drey_generate_options options;
    drey_generate_options_init(&options);
    options.n_predict = 1;
    drey_status status = drey_session_sync(w->session, w->ids, w->n_ids, NULL, NULL);
    if (status == DREY_OK)
        status = drey_session_begin(w->session, &options, NULL, NULL);
    for (bool done = false; status == DREY_OK && !done && !atomic_load(&w->stop);)
        status = drey_session_step(w->session, &done, NULL);
    drey_session_end(w->session);
    atomic_store(&w->done, true);
    return NULL;
}

void warm_up_begin(warm_up *w, drey_session *session, const int32_t *ids, size_t n_ids)
{
    w->session = session;
    w->ids = ids;
    w->n_ids = n_ids;
    atomic_init(&w->stop, false);
    atomic_init(&w->done, false);
    signals_hold();
    if (pthread_create(&w->thread, NULL, load, w) != 0)
        w->session = NULL;
    signals_release();
}

bool warm_up_runs(warm_up *w)
{
    return w->session && !atomic_load(&w->done);
}

void warm_up_end(warm_up *w)
{
    if (!w->session)
        return;
    signals_watch(w->session);
    if (signals_exit_code()) /* it came before */
        warm_up_cancel(w);
    else
        pthread_join(w->thread, NULL);
    signals_unwatch();
    w->session = NULL;
}

void warm_up_cancel(warm_up *w)
{
    if (!w->session)
        return;
    atomic_store(&w->stop, true);
    drey_session_cancel(w->session);
    pthread_join(w->thread, NULL);
    w->session = NULL;
}
