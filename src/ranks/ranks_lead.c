/* Rank 0's part: see ranks.h. */
#include "model/layout.h"
#include "model/workspace.h"
#include "ranks/ranks.h"

#include <string.h>

#include "common/error.h"
#include "common/num.h"
#include "os/clock.h"

static bool is_late(const drey_ranks *r)
{
    return clock_ns() - r->holder.since_ns > r->wait_ns;
}

static void hold(drey_ranks *r, int32_t rank)
{
    r->holder.rank = rank;
    r->holder.since_ns = clock_ns();
}

static drey_status silent(drey_ranks *r, int32_t rank, drey_error *err)
{
    r->broken = true;
    FAIL(err, DREY_ERR_IO,
         "rank %d (%s) has said nothing for %.0f seconds: look at that machine, and start again",
         rank, r->member[rank].hello.host[0] ? r->member[rank].hello.host : "host not known yet",
         (double)r->wait_ns * 1e-9);
}

/* ---- The start ---- */

/* Waits for a message of any of the ranks that are not `there`. */
static drey_status next_of(drey_ranks *r, const bool *there, drey_error *err)
{
    bool got = false;
    hold(r, 0);
    for (int32_t n_times = 0; !got; ranks_pause(&n_times)) {
        TRY(ranks_look(r, &got, err));
        int32_t missing = 1;
        while (missing < r->n - 1 && there[missing])
            missing++;
        if (!got && is_late(r))
            return silent(r, missing, err);
    }
    return DREY_OK;
}

static drey_status take_hello(drey_ranks *r, uint64_t identity, drey_error *err)
{
    const ranks_head *h = ranks_got(r);
    if (h->kind != RANKS_HELLO || h->n_bytes != sizeof(ranks_hello) || h->from < 1 ||
        h->from >= r->n)
        FAIL(err, DREY_ERR_MISMATCH, "rank %d does not begin as ranks do: start all of them again",
             h->from);
    ranks_hello *hello = &r->member[h->from].hello;
    memcpy(hello, ranks_body(r), sizeof *hello);
    hello->host[sizeof hello->host - 1] = hello->version[sizeof hello->version - 1] = 0;
    if (strcmp(hello->version, drey_version()) != 0)
        FAIL(err, DREY_ERR_MISMATCH,
             "rank %d (%s) has drey %s, this is %s: install the same version on all ranks", h->from,
             hello->host, hello->version, drey_version());
    if (hello->identity != identity)
        FAIL(err, DREY_ERR_MISMATCH,
             "rank %d (%s) has another model: give all ranks copies of the same file", h->from,
             hello->host);
    return DREY_OK;
}

drey_status ranks_hear(drey_ranks *r, uint64_t identity, drey_error *err)
{
    bool there[RANKS_MOST] = {true};
    for (int32_t n = 1; n < r->n; n++) {
        TRY(next_of(r, there, err));
        if (ranks_got(r)->kind == RANKS_FAILURE)
            return ranks_other_failed(r, err);
        TRY(take_hello(r, identity, err));
        there[ranks_got(r)->from] = true;
        ranks_drop(r);
    }
    return DREY_OK;
}

static drey_status take_ready(drey_ranks *r, drey_error *err)
{
    const ranks_head *h = ranks_got(r);
    if (h->kind == RANKS_FAILURE)
        return ranks_other_failed(r, err);
    if (h->kind != RANKS_READY || h->n_bytes != sizeof(ranks_ready) || h->from < 1 ||
        h->from >= r->n)
        FAIL(err, DREY_ERR_MISMATCH, "rank %d is out of step: start all ranks again", h->from);
    memcpy(&r->member[h->from].ready, ranks_body(r), sizeof(ranks_ready));
    return DREY_OK;
}

/* ---- A pass ---- */

/* A beat, or what a pass that was given up left. True: it is gone. */
static bool drop_old(drey_ranks *r)
{
    const ranks_head *h = ranks_got(r);
    bool is_open = h->pass >= r->first_open;
    if (h->from >= 1 && h->from < r->n) {
        r->member[h->from].counts = h->counts;
        if (is_open)
            hold(r, h->is_done && h->from + 1 < r->n ? h->from + 1 : h->from);
    }
    if (h->kind == RANKS_FAILURE ? is_open : h->kind != RANKS_BEAT && h->pass == r->pass)
        return false;
    ranks_drop(r);
    return true;
}

/* An error is found again by take. */
static bool is_back(void *user)
{
    drey_ranks *r = user;
    bool got = true;
    while (got) {
        if (ranks_look(r, &got, NULL) != DREY_OK)
            r->broken = true;
        if (r->broken)
            return true;
        if (got && !drop_old(r))
            return true;
    }
    return is_late(r);
}

static drey_status why_not_back(drey_ranks *r, drey_error *err)
{
    if (r->broken)
        FAIL(err, DREY_ERR_IO, "the ranks do not understand each other: start all of them again");
    if (!r->has)
        return silent(r, r->holder.rank, err);
    drey_status status =
        ranks_got(r)->kind == RANKS_FAILURE
            ? ranks_other_failed(r, err)
            : error_set(err, DREY_ERR_IO, "rank %d is out of step: start all ranks again",
                        ranks_got(r)->from);
    ranks_drop(r);
    return status;
}

/* The first failure is kept: what comes later may only follow from it. */
static drey_status keep_failure(drey_ranks *r, const drey_error *why, drey_error *err)
{
    if (r->failed.code == DREY_OK)
        r->failed = *why;
    if (err)
        *err = r->failed;
    return r->failed.code;
}

/* Returns why is_back was true, where it was not for rows. */
static drey_status not_back(drey_ranks *r, drey_error *err)
{
    drey_error why;
    why_not_back(r, &why);
    return keep_failure(r, &why, err);
}

/* Passes whose rows do not come back follow each other: this waits until the others take the rows
 * before these. */
static drey_status send_away(void *user, const model_pass *p, drey_error *err)
{
    drey_ranks *r = user;
    drey_error why;
    r->pass++;
    if (r->awaits) /* and was given up */
        r->first_open = r->pass;
    r->awaits = p->n_logits > 0;
    for (int32_t n_times = 0; r->transport->sent(SLOT_MESSAGE) == 0; ranks_pause(&n_times))
        if (is_back(r))
            return not_back(r, err);
    if (ranks_send_rows(r, 1, p, &why) != DREY_OK)
        return keep_failure(r, &why, err);
    r->wait.sent_ns = clock_ns();
    hold(r, 1);
    return DREY_OK;
}

static void wait_back(void *user, const _Atomic bool *cancel)
{
    for (int32_t n_times = 0; !is_back(user) && !atomic_load_explicit(cancel, memory_order_relaxed);
         ranks_pause(&n_times))
        ;
}

static void take_rows(drey_ranks *r, const ranks_pass *m, const model_pass *p)
{
    int64_t away_ns = clock_ns() - r->wait.sent_ns,
            computed_ns = (int64_t)ranks_got(r)->computed_ns;
    r->wait.idle_ns += max_i64(away_ns - max_i64(computed_ns, 0), 0);
    ranks_copy_rows(m, p->r->ws->x, pass_rows_stride(p->r));
}

static drey_status take_back(void *user, const model_pass *p, bool *done, drey_error *err)
{
    drey_ranks *r = user;
    ranks_pass m;
    *done = false;
    if (!is_back(user))
        return DREY_OK;
    if (r->broken || !r->has || ranks_got(r)->kind != RANKS_ROWS ||
        !ranks_read_rows(r, shape_width(&p->r->layout->shape), &m) || m.head.n_rows != p->n_rows)
        return not_back(r, err);
    take_rows(r, &m, p);
    ranks_drop(r);
    r->awaits = false;
    r->first_open = r->pass + 1;
    *done = true;
    return DREY_OK;
}

/* ---- The others' loops ---- */

drey_status ranks_join_all(drey_ranks *r, const ranks_join *common, drey_error *err)
{
    bool there[RANKS_MOST] = {true};
    for (int32_t i = 1; i < r->n; i++) {
        ranks_join join = *common;
        join.first = r->member[i].first;
        join.n_layers = r->member[i].n_layers;
        TRY(ranks_send(r, i, RANKS_JOIN, &join, sizeof join, err));
    }
    for (int32_t n = 1; n < r->n; n++) {
        TRY(next_of(r, there, err));
        TRY(take_ready(r, err));
        there[ranks_got(r)->from] = true;
        ranks_drop(r);
    }
    uint8_t *body;
    TRY(ranks_out(r, &body, err));
    r->remote = (pass_remote){
        .user = r, .send = send_away, .ready = is_back, .wait = wait_back, .take = take_back};
    return DREY_OK;
}

/* Drops what is there. Returns how many ranks said that they end. */
static int32_t take_ends(drey_ranks *r)
{
    bool got = true;
    int32_t n = 0;
    while (ranks_look(r, &got, NULL) == DREY_OK && got) {
        n += ranks_got(r)->kind == RANKS_QUIT;
        ranks_drop(r);
    }
    return n;
}

/* A rank may still be sending what nobody wants, and hears of the end after that. */
void ranks_quit(drey_ranks *r)
{
    int32_t next = 1, n_ends = r->remote.user ? r->n - 1 : 0, n_times = 0;
    int64_t until = clock_ns() + r->wait_ns;
    while ((next < r->n || n_ends > 0) && clock_ns() < until) {
        n_ends -= take_ends(r);
        if (next == r->n || r->transport->sent(SLOT_MESSAGE) == 0)
            ranks_pause(&n_times);
        else if (ranks_send(r, next++, RANKS_QUIT, NULL, 0, NULL) != DREY_OK)
            return;
    }
    r->broken |= next < r->n || n_ends > 0;
}
