/* See fake_device.h. */
#include "support/faults/fake_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weights/weights.h"

enum { MOST_WORK = PRODUCTS_MAX, MOST_MATRICES = 256, MOST_LOANS = 16 };

typedef struct loan {
    const uint8_t *memory;
    size_t bytes;
} loan;

typedef struct fake {
    device base;
    const kernel_table *kernels;
    bool copies, foreign, poor, slow, plain, deaf;
    int32_t fail_at, wait_at, attend_at; /* 0: never */
    int32_t n_submitted, n_waited, n_attended;
    device_matrix matrix[MOST_MATRICES];
    int32_t n_matrices;
    device_work work[MOST_WORK];
    int32_t n_work;
    loan loan[MOST_LOANS];
    int32_t n_loans;
    const volatile uint8_t *lent; /* memory of activations and results */
    size_t lent_bytes;
    bool over; /* it has failed, and must hear nothing more */
    uint8_t *scratch;
} fake;

/* Also where asserts are off. */
static void must(bool good)
{
    if (!good)
        abort();
}

static void take_word(fake *f, const char *word)
{
    int32_t n;
    f->copies = f->copies || strcmp(word, "copies") == 0;
    f->foreign = f->foreign || strcmp(word, "foreign") == 0;
    f->poor = f->poor || strcmp(word, "poor") == 0;
    f->slow = f->slow || strcmp(word, "slow") == 0;
    f->plain = f->plain || strcmp(word, "plain") == 0;
    f->deaf = f->deaf || strcmp(word, "deaf") == 0;
    if (sscanf(word, "attend%d", &n) == 1)
        f->attend_at = n;
    if (sscanf(word, "fail%d", &n) == 1)
        f->fail_at = n;
    if (sscanf(word, "wait%d", &n) == 1)
        f->wait_at = n;
}

static drey_status fake_open(device **out, const char *which, drey_error *err)
{
    char words[64] = "", *at = NULL;
    *out = NULL;
    if (which && strcmp(which, "refuse") == 0)
        FAIL(err, DREY_ERR_UNSUPPORTED, "the fake device flushes denormals, and is not used");
    fake *f = calloc(1, sizeof *f);
    must(f);
    f->base.class = &fake_device;
    f->kernels = kernel_select_shape("ref", 0);
    snprintf(words, sizeof words, "%s", which ? which : "");
    for (char *word = strtok_r(words, ".", &at); word; word = strtok_r(NULL, ".", &at))
        take_word(f, word);
    *out = &f->base;
    return DREY_OK;
}

static void fake_close(device **d)
{
    fake *f = (fake *)*d;
    for (int32_t i = 0; f && f->copies && i < f->n_matrices; i++)
        free((void *)(uintptr_t)f->matrix[i].packed);
    must(!f || (f->n_loans == 0 && !f->lent)); /* all was taken back */
    if (f)
        free(f->scratch);
    free(f);
    *d = NULL;
}

static bool fake_unified(const device *d)
{
    return !((const fake *)d)->copies;
}

static size_t fake_host_bytes(const device *d, uint64_t weight_bytes, int32_t most_rows)
{
    (void)most_rows;
    return fake_unified(d) ? 0 : weight_bytes;
}

static drey_status fake_attach(device *d, const device_matrix *matrix, int32_t n, int32_t most_rows,
                               drey_error *err)
{
    fake *f = (fake *)d;
    int64_t k = 0;
    must(n <= MOST_MATRICES && most_rows > 0 && f->n_matrices == 0);
    if (f->poor)
        FAIL(err, DREY_ERR_MEMORY, "the fake device has no memory for these weights");
    if (f->foreign)
        FAIL(err, DREY_ERR_UNSUPPORTED, "the fake device has no kernel for these weights");
    for (int32_t i = 0; i < n; i++) {
        device_matrix *m = &f->matrix[i];
        *m = matrix[i];
        k = m->k > k ? m->k : k;
        size_t bytes = (size_t)m->n_groups * m->group_bytes;
        if (!f->copies)
            continue;
        uint8_t *own = aligned_alloc(64, bytes + 64 - bytes % 64);
        must(own);
        memcpy(own, m->packed, bytes);
        m->packed = own;
    }
    f->n_matrices = n;
    size_t scratch = dot_scratch_bytes(k);
    f->scratch = aligned_alloc(64, scratch + 64 - scratch % 64);
    must(f->scratch);
    return DREY_OK;
}

static void spoil(const device_work *w)
{
    for (int32_t t = 0; t < w->n; t++)
        for (int32_t i = 0; i < w->n_groups * GROUP_ROWS; i++)
            w->y[t * w->ldy + (int64_t)w->first_group * GROUP_ROWS + i] = 12345;
}

static drey_status fake_submit(device *d, const device_work *w, drey_error *err)
{
    fake *f = (fake *)d;
    const device_matrix *m = &f->matrix[w->matrix];
    must(!f->over && f->n_work < MOST_WORK && w->n_groups > 0 && w->n > 0);
    must(w->first_group >= m->first_group &&
         w->first_group + w->n_groups <= m->first_group + m->n_groups);
    must(w->act == m->act && w->act_bytes == act_bytes(m->act, w->n, m->k));
    if (++f->n_submitted == f->fail_at) {
        f->over = true;
        spoil(w);
        FAIL(err, DREY_ERR_IO, "the fake device is gone");
    }
    f->work[f->n_work++] = *w;
    return DREY_OK;
}

static drey_status fake_wait(device *d, drey_error *err)
{
    fake *f = (fake *)d;
    must(!f->over);
    if (f->slow)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    bool fails = ++f->n_waited == f->wait_at;
    for (int32_t i = 0; i < f->n_work; i++) {
        const device_work *w = &f->work[i];
        const device_matrix *m = &f->matrix[w->matrix];
        const uint8_t *groups =
            m->packed + (size_t)(w->first_group - m->first_group) * m->group_bytes;
        if (fails)
            spoil(w);
        else
            matmul_dot(&f->kernels->matmul[m->type], w->y + (int64_t)w->first_group * GROUP_ROWS,
                       w->ldy, groups, w->n_groups, w->acts, w->n, m->k, f->scratch);
    }
    f->n_work = 0;
    f->over = fails;
    if (fails)
        FAIL(err, DREY_ERR_IO, "the fake device was lost");
    return DREY_OK;
}

/* ---- Attention ---- */

static const char *fake_no_attention(const device *d)
{
    const fake *f = (const fake *)d;
    return f->plain ? "the fake device is plain" : f->copies ? "its memory is its own" : NULL;
}

static drey_status fake_lend(device *d, const void *memory, size_t part_bytes, int32_t n_parts,
                             drey_error *err)
{
    fake *f = (fake *)d;
    must(f->n_loans < MOST_LOANS && part_bytes > 0 && n_parts > 0);
    if (f->deaf)
        FAIL(err, DREY_ERR_MEMORY, "the fake device takes no loans");
    f->loan[f->n_loans++] = (loan){memory, part_bytes * (size_t)n_parts};
    return DREY_OK;
}

static void fake_take_back(device *d, const void *memory)
{
    fake *f = (fake *)d;
    for (int32_t i = f->n_loans - 1; i >= 0; i--)
        if (f->loan[i].memory == memory)
            f->loan[i] = f->loan[--f->n_loans];
}

static bool is_lent(const fake *f, const uint8_t *at, size_t bytes)
{
    for (int32_t i = 0; i < f->n_loans; i++) {
        const loan *l = &f->loan[i];
        if (at >= l->memory && at + bytes <= l->memory + l->bytes)
            return true;
    }
    return false;
}

static void spoil_piece(const device_piece *p)
{
    const attention *a = &p->a;
    for (int32_t pair = p->first; pair < p->last && p->from == 0; pair++)
        for (int32_t i = 0; i < a->v_dim; i++)
            a->out[pair / a->n_q * a->out_ld + (int64_t)(pair % a->n_q) * a->v_dim + i] = 12345;
    p->partials[0] = 12345;
}

static drey_status fake_attend(device *d, const device_piece *piece, int32_t n, drey_error *err)
{
    fake *f = (fake *)d;
    bool fails = ++f->n_attended == f->attend_at;
    must(!f->over && n > 0 && n <= DEVICE_PIECES);
    if (f->slow)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    void *scratch =
        aligned_alloc(64, attend_scratch_bytes(piece[0].a.k_dim, piece[0].a.v_dim, false));
    must(scratch);
    for (int32_t i = 0; i < n; i++) {
        attention a = piece[i].a;
        size_t bytes = kv_head_bytes(a.format, piece[i].to * ATTEND_BLOCK, a.k_dim);
        must(device_can_attend(&a) && is_lent(f, a.keys, bytes) && is_lent(f, a.values, bytes));
        must(piece[i].from < piece[i].to &&
             piece[i].to <= attend_dense_blocks(&a, piece[i].first, piece[i].last));
        a.kernels = f->kernels;
        if (fails)
            spoil_piece(&piece[i]);
        else
            attend_range(&a, piece[i].first, piece[i].last, piece[i].n_first_range, piece[i].from,
                         piece[i].to, piece[i].partials, scratch);
    }
    free(scratch);
    f->over = fails;
    if (fails)
        FAIL(err, DREY_ERR_IO, "the fake device looked away");
    return DREY_OK;
}

/* Whole pages, which are still there when they are taken back. */
static void fake_lend_work(device *d, void *memory, size_t bytes)
{
    fake *f = (fake *)d;
    must(memory ? !f->lent && bytes > 0 && (uintptr_t)memory % 4096 == 0 : bytes == 0);
    if (f->lent)
        (void)f->lent[f->lent_bytes - 1];
    f->lent = memory;
    f->lent_bytes = bytes;
}

const device_class fake_device = {.name = "fake",
                                  .open = fake_open,
                                  .close = fake_close,
                                  .unified = fake_unified,
                                  .host_bytes = fake_host_bytes,
                                  .attach = fake_attach,
                                  .submit = fake_submit,
                                  .wait = fake_wait,
                                  .lend_work = fake_lend_work,
                                  .no_attention = fake_no_attention,
                                  .lend = fake_lend,
                                  .take_back = fake_take_back,
                                  .attend = fake_attend};
