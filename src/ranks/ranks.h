/* Several machines as one: a run of layers for each rank.
 *
 *    rank 0                      rank 1              rank 2
 *    tokens, drafts, the choice
 *    embedding, layers [0, a) -- ROWS --> [a, b) -- ROWS --> [b, n)
 *    head  <----------------------------- ROWS -----------------+
 *
 * A pass goes around once. Its message says what rank 0's caches, one for each of its sessions, did
 * since the message before, the places of the pass's rows, and the residual stream; each rank does
 * the same to its own caches, computes its layers with the functions that one machine uses, and
 * sends the rows on. So caches change in step, and a row has the bits that it has on one machine.
 *
 *    start    HELLO (all to rank 0) --> JOIN (its layers) --> READY
 *    a pass   ROWS, numbered; BEAT to rank 0 at each layer; FAILURE to rank 0 instead of ROWS
 *    the end  QUIT (rank 0 to all, and back)
 *
 * A cache is known by its slot, which another session's may get when it is closed. A session that
 * leaves a pass before its rows are sent is not in the message; one that leaves later is, and
 * nothing of it is committed.
 *
 * Rows come back if the pass has logits. Others, those of a prompt before its last ones, do not, so
 * that several such passes are under way: each rank begins its next one when its message is out. A
 * failure of one of them is that of a later pass.
 *
 * Rank 0 may give a pass up. What comes back for it later has an old number and is dropped; the
 * next message commits nothing of it.
 *
 * If a rank that has to compute is silent for wait_s, the run is broken: drey_ranks_close then ends
 * all processes. */
#pragma once

#include "drey/choices.h"
#include "model/pass.h"
#include "ranks/transport.h"
#include "state/text_cache.h"
#include "weights/weights.h"

enum { RANKS_MOST = 64, RANKS_PROTOCOL = 6 };
/* Rows that the messages have room for before a plan says more. */
enum { RANKS_USUAL_ROWS = 256 };
/* memory that MPI adds to what a rank's plan counts for the program: Open MPI 4.1.4. */
enum { RANKS_MPI_BYTES = 8 << 20 };
/* Copies between caches that a message has room for. */
enum { RANKS_COPIES = 2 * DREY_MAX_SESSIONS };

typedef enum ranks_kind {
    RANKS_HELLO = 1,
    RANKS_JOIN,
    RANKS_READY,
    RANKS_ROWS,
    RANKS_BEAT,
    RANKS_FAILURE,
    RANKS_QUIT
} ranks_kind;

/* Work that a rank has done so far. */
typedef struct ranks_counts {
    uint64_t read_bytes; /* bytes of the model */
    expert_counts experts;
} ranks_counts;

/* A message is this and a body of n_bytes. */
typedef struct ranks_head {
    char magic[8];
    uint32_t byte_order, protocol, kind;
    int32_t from;
    uint64_t pass;       /* its number; 0: before the first */
    ranks_counts counts; /* counts of the sender */
    uint64_t n_bytes;
    uint64_t is_done; /* flag of a BEAT: 1: the next rank gets the rows now */
    /* time of ROWS: what their pass has computed in other ranks than 0 so far */
    uint64_t computed_ns;
} ranks_head;

typedef struct ranks_hello {
    char host[TRANSPORT_HOST_BYTES], version[32];
    uint64_t identity;       /* identity of the model (weights/identity.h) */
    uint64_t budget_bytes;   /* budget of this rank, */
    uint64_t fixed_bytes;    /* its part that is needed besides layers and their caches, about */
    double disk_bytes_per_s; /* 0: not known */
} ranks_hello;

typedef struct ranks_join {
    int32_t first, n_layers;
    int32_t n_context, n_sessions, tree_nodes, max_rows, kv;
} ranks_join;

typedef struct ranks_ready {
    uint64_t pinned_bytes, streamed_bytes;
    uint64_t expert_bytes; /* bytes of a mixture: of its slots, besides what is pinned, */
    uint64_t token_bytes;  /* and that the experts of one row have in the file */
} ranks_ready;

/* Then ranks_cache[n_caches], ranks_copy[n_copies], the paths of all caches, parent[n_rows], and
 * rows [n_rows][D] without padding. */
typedef struct ranks_rows {
    int32_t n_rows, n_embd;
    int32_t n_caches; /* number of caches; those with rows come first, in the order of the rows */
    int32_t n_copies;
    int32_t is_wanted; /* 1: they come back to rank 0 */
} ranks_rows;

typedef struct ranks_cache {
    int32_t slot;
    int32_t n_rows;      /* rows of this pass; 0: its session takes no part */
    int32_t n_path;      /* pending rows that are committed first, and then, after all copies: */
    int32_t n_committed; /* so many positions stay; nothing is pending */
    int32_t head;        /* pass_head of the rows */
    int32_t whole;       /* 1: they are a prompt's (pass_group.whole) */
} ranks_cache;

/* Copy that keeps n_kept positions of `to` and takes those of `from` up to n: in the order of
 * copies, after the commits of all caches. */
typedef struct ranks_copy {
    int32_t to, from, n_kept, n;
} ranks_copy;

/* A message of rows that was read: borrowed from it. */
typedef struct ranks_pass {
    ranks_rows head;
    const ranks_cache *caches;
    const ranks_copy *copies;
    const int32_t *paths, *parents;
} ranks_pass;

typedef struct ranks_failure {
    int32_t code;
    char host[TRANSPORT_HOST_BYTES];
    char message[512];
} ranks_failure;

/* A cache of rank 0. */
typedef struct ranks_slot {
    const text_cache *cache; /* NULL: its session is closed */
    cache_trail trail;       /* since the last message */
} ranks_slot;

/* All of them, and what is copied from one to another. */
typedef struct ranks_caches {
    ranks_slot slot[DREY_MAX_SESSIONS]; /* [n_slots] */
    int32_t *paths;                     /* [n_slots][max rows]: the trails' */
    int32_t n_slots, n_copies;
    ranks_copy copies[RANKS_COPIES]; /* since the last message */
} ranks_caches;

/* A rank as rank 0 knows it. */
typedef struct ranks_member {
    ranks_hello hello;
    ranks_ready ready;
    int32_t first, n_layers;
    ranks_counts counts;
} ranks_member;

typedef struct drey_ranks drey_ranks;
struct drey_ranks {
    const rank_transport *transport;
    int32_t rank, n;
    char host[TRANSPORT_HOST_BYTES];
    int64_t wait_ns;
    uint8_t *in, *out; /* [capacity] */
    size_t capacity;
    bool has;    /* a whole message is in `in` */
    bool broken; /* some rank is silent or gone */
    /* error on rank 0: what the first pass that failed at others said; else no code */
    drey_error failed;
    bool served; /* flag of another rank than 0: it has begun to serve */
    ranks_head beat;
    uint64_t pass; /* the number of the last one that was sent */
    /* first open pass of rank 0: failures of earlier passes are of no interest */
    uint64_t first_open;
    bool awaits;          /* the last one's rows are wanted back */
    int32_t sent_to;      /* whom the latest message went to */
    uint64_t computed_ns; /* time for the next message */
    struct {
        int64_t sent_ns; /* time on rank 0: when its latest rows went to the others, */
        int64_t idle_ns; /* and how long others did not compute while rows were with them */
    } wait;
    ranks_counts counts;     /* own, for messages and reports */
    double disk_bytes_per_s; /* own; 0: not known */
    ranks_caches caches;     /* caches of rank 0, */
    pass_remote remote;      /* and what its passes do after their last layer */
    struct {
        int32_t rank; /* rank that has the rows */
        int64_t since_ns;
    } holder;
    ranks_member member[RANKS_MOST];
};

static inline const ranks_head *ranks_got(const drey_ranks *r)
{
    return (const ranks_head *)(const void *)r->in;
}
static inline const void *ranks_body(const drey_ranks *r)
{
    return r->in + sizeof(ranks_head);
}

/* drey_ranks_open over a transport; NULL: that of libdrey-mpi. */
drey_status ranks_open(drey_ranks **out, const rank_transport *transport, int32_t wait_s,
                       drey_error *err);
/* The table of libdrey-mpi. (transport_load.c; a static program has no_transport_load.c.) */
drey_status transport_load(const rank_transport **out, drey_error *err);
/* Makes room for passes of so many rows of D numbers, and for n_caches caches. Once, before the
 * first of either. */
drey_status ranks_make_room(drey_ranks *r, int32_t n_caches, int32_t max_rows, int32_t n_embd,
                            drey_error *err);
size_t ranks_room_bytes(int32_t n_caches, int32_t max_rows, int32_t n_embd);

/* Sends a message whose body of n_bytes is in r->out already (ranks_out), or in `body`. Waits until
 * the one before is out. DREY_ERR_IO. */
drey_status ranks_send(drey_ranks *r, int32_t to, ranks_kind kind, const void *body, size_t n_bytes,
                       drey_error *err);
/* Waits until the message before is out, whose memory this is. */
drey_status ranks_out(drey_ranks *r, uint8_t **body, drey_error *err);
/* Counts what this rank has done with its weights so far. */
void ranks_count(drey_ranks *r, const weights *w);
/* Says to rank 0 that this rank is at work, or done with the pass. One that is at work says nothing
 * if the beat before is not out yet. */
void ranks_beat(drey_ranks *r, bool is_done);
/* Looks once for a message. *got: it is there, of this version, until ranks_drop. */
drey_status ranks_look(drey_ranks *r, bool *got, drey_error *err);
void ranks_drop(drey_ranks *r);
/* Waits for one, without end. */
drey_status ranks_next(drey_ranks *r, drey_error *err);
/* A short sleep; longer the more often there was nothing. */
void ranks_pause(int32_t *n_times);

/* Reports a failure to rank 0. */
drey_status ranks_report(drey_ranks *r, drey_status code, const char *message, drey_error *err);
/* The message of such a failure, with the rank's name: returns its code. */
drey_status ranks_other_failed(const drey_ranks *r, drey_error *err);

/* ---- Rows (ranks_rows.c) ---- */

/* Rank 0: the pass's rows, and what its caches did since the last message. */
drey_status ranks_send_rows(drey_ranks *r, int32_t to, const model_pass *p, drey_error *err);
/* The message that was read, with other rows: row i at x + i ld. */
drey_status ranks_pass_on(drey_ranks *r, int32_t to, const ranks_pass *m, const float *x,
                          int64_t ld, drey_error *err);
/* The message that is there. False: it is none of such rows. */
bool ranks_read_rows(const drey_ranks *r, int32_t n_embd, ranks_pass *m);
/* Its rows to `to`, row i at to + i ld. */
void ranks_copy_rows(const ranks_pass *m, float *to, int64_t ld);

/* ---- Rank 0 (ranks_lead.c) ---- */

/* Hears all other ranks, of which each has to have this model and version. DREY_ERR_MISMATCH. */
drey_status ranks_hear(drey_ranks *r, uint64_t identity, drey_error *err);
/* Gives each its layers (member's first and n_layers), waits until all are ready, and sets
 * r->remote. */
drey_status ranks_join_all(drey_ranks *r, const ranks_join *common, drey_error *err);
/* Gives a cache a slot, and takes it back. One is free as long as there are fewer caches than
 * ranks_make_room has made room for. */
void ranks_open_cache(drey_ranks *r, text_cache *cache);
void ranks_close_cache(drey_ranks *r, const text_cache *cache);
/* The other ranks copy positions n_kept .. n - 1 of a cache as well, before their next rows. False:
 * it cannot be, and rank 0 must not do it either. */
bool ranks_copy_cache(drey_ranks *r, const text_cache *to, const text_cache *from, int32_t n);
/* Ends the others' loops; r->broken: not in time. */
void ranks_quit(drey_ranks *r);

/* ---- Dividing layers (ranks_divide.c), pure ---- */

/* Memory and speed that a rank has for layers. */
typedef struct ranks_means {
    uint64_t room_bytes;     /* UINT64_MAX is enough for all */
    double disk_bytes_per_s; /* 0: not known: as the others' are on average */
} ranks_means;

/* layer_bytes: [n_layers], each with its cache. means: [n]. Sets n_of[n], each at least 1;
 * n <= n_layers. Where all fits, layers are divided as room is; else what does not fit is read from
 * all disks, for equally long. */
void ranks_divide(const uint64_t *layer_bytes, int32_t n_layers, const ranks_means *means,
                  int32_t n, int32_t *n_of);
