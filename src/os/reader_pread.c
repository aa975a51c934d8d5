/* Reads by a few threads that call pread: for systems that refuse io_uring.
 *
 *   submitter --submit--> todo (first in, first out) --thread--> done --wait--> submitter */
#include "common/num.h"
#include "os/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/thread.h"

enum { STACK_BYTES = 64 * 1024 };

typedef struct pread_reader {
    reader base;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t work;  /* todo or leave has changed */
    pthread_cond_t news;  /* done or woken has changed */
    reader_request *todo, **todo_end;
    reader_request *done, **done_end;
    bool woken, leave;
    int32_t n_threads;
    pthread_t threads[READER_MOST_THREADS];
} pread_reader;

static void push(reader_request ***end, reader_request *q)
{
    q->next = NULL;
    **end = q;
    *end = &q->next;
}

static void carry_out(pread_reader *r, reader_request *q)
{
    const file *f = &r->base.options.files[q->file];
    int64_t result;
    do {
        int fault = reader_attempt(&r->base, q);
        if (fault) {
            result = -fault;
            continue;
        }
        result = pread(f->fd, q->dst + q->n_begin, q->n_ask, (off_t)(q->offset + q->n_begin));
        if (result < 0)
            result = -errno;
    } while (!reader_result(&r->base, q, result));
}

static void *serve(void *arg)
{
    pread_reader *r = arg;
    thread_asks_for_short_slices();
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (!r->todo && !r->leave)
            pthread_cond_wait(&r->work, &r->lock);
        if (!r->todo)
            break;
        reader_request *q = r->todo;
        r->todo = q->next;
        if (!r->todo)
            r->todo_end = &r->todo;
        pthread_mutex_unlock(&r->lock);
        carry_out(r, q);
        pthread_mutex_lock(&r->lock);
        push(&r->done_end, q);
        pthread_cond_signal(&r->news);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void submit(reader *base, reader_request *q)
{
    pread_reader *r = (pread_reader *)base;
    pthread_mutex_lock(&r->lock);
    push(&r->todo_end, q);
    pthread_cond_signal(&r->work);
    pthread_mutex_unlock(&r->lock);
}

static reader_request *await(reader *base)
{
    pread_reader *r = (pread_reader *)base;
    pthread_mutex_lock(&r->lock);
    while (!r->done && !r->woken)
        pthread_cond_wait(&r->news, &r->lock);
    reader_request *finished = r->done;
    r->done = NULL;
    r->done_end = &r->done;
    r->woken = false;
    pthread_mutex_unlock(&r->lock);
    return finished;
}

static void wake(reader *base)
{
    pread_reader *r = (pread_reader *)base;
    pthread_mutex_lock(&r->lock);
    r->woken = true;
    pthread_cond_signal(&r->news);
    pthread_mutex_unlock(&r->lock);
}

static void close_reader(reader *base)
{
    pread_reader *r = (pread_reader *)base;
    pthread_mutex_lock(&r->lock);
    r->leave = true;
    pthread_cond_broadcast(&r->work);
    pthread_mutex_unlock(&r->lock);
    for (int32_t i = 0; i < r->n_threads; i++)
        pthread_join(r->threads[i], NULL);
    pthread_cond_destroy(&r->news);
    pthread_cond_destroy(&r->work);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

drey_status reader_open_pread(reader **out, const reader_options *options, drey_error *err)
{
    static const reader_ops ops = {submit, await, wake, close_reader};
    *out = NULL;
    pread_reader *r = calloc(1, sizeof *r);
    if (!r)
        FAIL(err, DREY_ERR_MEMORY, "no memory for reading threads");
    r->base = (reader){.ops = &ops, .options = *options};
    r->todo_end = &r->todo;
    r->done_end = &r->done;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->work, NULL);
    pthread_cond_init(&r->news, NULL);
    int32_t n = min_i32(options->depth, READER_MOST_THREADS);
    for (; r->n_threads < n; r->n_threads++) {
        drey_status status =
            thread_start(&r->threads[r->n_threads], "drey-read", STACK_BYTES, serve, r, err);
        if (status != DREY_OK && r->n_threads > 0)
            break; /* fewer will do */
        if (status != DREY_OK) {
            close_reader(&r->base);
            return status;
        }
    }
    *out = &r->base;
    return DREY_OK;
}

size_t reader_overhead_bytes(int32_t depth)
{
    size_t threads = (size_t)READER_MOST_THREADS * (STACK_BYTES + THREAD_KERNEL_BYTES);
    /* Pages of the queue, and what the block layer takes per read to describe a few MiB. */
    size_t uring = 64 * 1024 + (size_t)depth * 16 * 1024;
    return sizeof(pread_reader) + max_size(threads, uring);
}
