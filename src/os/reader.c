/* Code that both readers share: continuing interrupted and short reads, and the end of a file. */
#include "os/reader.h"

static void start(reader_request *q)
{
    q->error = 0;
    q->n_done = 0;
    q->patience = (file_patience){0};
    q->next = NULL;
}

void reader_submit(reader *r, reader_request *request)
{
    start(request);
    r->ops->submit(r, request);
}

reader_request *reader_wait(reader *r)
{
    return r->ops->wait(r);
}

void reader_wake(reader *r)
{
    r->ops->wake(r);
}

void reader_close(reader **r)
{
    if (*r)
        (*r)->ops->close(*r);
    *r = NULL;
}

bool reader_is_uring(const reader *r)
{
    return r->uring;
}

bool reader_is_registered(const reader *r)
{
    return r->registered;
}

int reader_attempt(const reader *r, reader_request *q)
{
    /* A direct read that was cut short continues from the last whole block. */
    uint32_t align = r->options.files[q->file].direct ? READER_ALIGN : 1;
    q->n_begin = q->n_done / align * align;
    q->n_ask = q->n_bytes - q->n_begin;
    if (!r->options.files[q->file].direct && q->n_ask > READER_CACHED_BYTES)
        q->n_ask = READER_CACHED_BYTES;
    if (!r->options.fault)
        return 0;
    int fault = r->options.fault(r->options.fault_user, q->file, q->offset + q->n_begin, q->n_ask);
    if (fault >= 0)
        return fault;
    uint32_t cut = (uint32_t)-fault;
    cut = (cut + align - 1) / align * align;
    if (cut < q->n_ask)
        q->n_ask = cut;
    return 0;
}

static bool finish(reader_request *q, int error)
{
    q->error = error;
    q->error_offset = q->offset + q->n_done;
    return true;
}

bool reader_result(const reader *r, reader_request *q, int64_t result)
{
    if (result < 0)
        return file_try_again(&q->patience, (int)-result) ? false : finish(q, (int)-result);
    uint32_t n_done = q->n_begin + (uint32_t)result;
    if (n_done <= q->n_done)
        return finish(q, FILE_SHORTER); /* only the end of the file returns nothing new */
    const file *f = &r->options.files[q->file];
    if (!f->direct)
        file_drop(f, q->offset + q->n_begin, (size_t)result);
    q->n_done = n_done;
    q->patience = (file_patience){0};
    return n_done >= q->n_needed ? finish(q, 0) : false;
}
