/* Messages between threads: see thread_ranks.h. */
#include "support/faults/thread_ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct letter letter;
struct letter {
    letter *next;
    int32_t from, slot;
    size_t n_bytes;
    uint8_t bytes[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int32_t n, n_ended;
    bool silent[THREAD_RANKS];
    int32_t n_under_way[THREAD_RANKS][SLOTS]; /* messages that nobody has received yet */
    thread_ranks_alter_fn *alter[THREAD_RANKS];
    letter *first[THREAD_RANKS], **end[THREAD_RANKS];
} post;
static _Thread_local int32_t self;

void thread_ranks_begin(int32_t n)
{
    for (int32_t i = 0; i < THREAD_RANKS; i++)
        for (letter *l = post.first[i], *next; l; l = next) {
            next = l->next;
            free(l);
        }
    memset(&post, 0, sizeof post);
    post.n = n;
    for (int32_t i = 0; i < THREAD_RANKS; i++)
        post.end[i] = &post.first[i];
}

void thread_ranks_be(int32_t rank)
{
    self = rank;
}

void thread_ranks_silence(int32_t rank)
{
    pthread_mutex_lock(&lock);
    post.silent[rank] = true;
    pthread_mutex_unlock(&lock);
}

void thread_ranks_alter(int32_t rank, thread_ranks_alter_fn *alter)
{
    pthread_mutex_lock(&lock);
    post.alter[rank] = alter;
    pthread_mutex_unlock(&lock);
}

int32_t thread_ranks_ended(void)
{
    return post.n_ended;
}

static int open_thread(int32_t *rank, int32_t *n, char host[TRANSPORT_HOST_BYTES],
                       char why[TRANSPORT_WHY_BYTES])
{
    (void)why;
    *rank = self;
    *n = post.n;
    snprintf(host, TRANSPORT_HOST_BYTES, "host%d", self);
    return 0;
}

static int send_letter(int slot, int32_t to, const void *bytes, size_t n_bytes)
{
    letter *l = malloc(sizeof *l + n_bytes);
    if (!l)
        return -1;
    *l = (letter){.from = self, .slot = slot, .n_bytes = n_bytes};
    memcpy(l->bytes, bytes, n_bytes);
    pthread_mutex_lock(&lock);
    if (post.alter[self])
        post.alter[self](l->bytes, n_bytes);
    if (post.silent[self]) {
        free(l);
    } else {
        post.n_under_way[self][slot]++;
        *post.end[to] = l;
        post.end[to] = &l->next;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Long messages wait for their receiver, as those of MPI do; beats do not. */
static int sent(int slot)
{
    pthread_mutex_lock(&lock);
    bool waits = slot == SLOT_MESSAGE && post.n_under_way[self][slot] > 0 && post.n_ended == 0;
    pthread_mutex_unlock(&lock);
    return !waits;
}

static int receive(int32_t *from, void *bytes, size_t capacity, size_t *n_bytes)
{
    pthread_mutex_lock(&lock);
    letter *l = post.first[self];
    bool ended = post.n_ended > 0;
    if (l && !ended) {
        post.n_under_way[l->from][l->slot]--;
        post.first[self] = l->next;
        if (!l->next)
            post.end[self] = &post.first[self];
    }
    pthread_mutex_unlock(&lock);
    if (ended)
        return -1;
    if (!l)
        return 0;
    bool fits = l->n_bytes <= capacity;
    *from = l->from;
    *n_bytes = l->n_bytes;
    if (fits)
        memcpy(bytes, l->bytes, l->n_bytes);
    free(l);
    return fits ? 1 : -1;
}

static void close_thread(void)
{
}

static void end_all(int code)
{
    (void)code;
    pthread_mutex_lock(&lock);
    post.n_ended++;
    pthread_mutex_unlock(&lock);
}

const rank_transport *thread_transport(void)
{
    static const rank_transport threads = {.version = TRANSPORT_VERSION,
                                           .open = open_thread,
                                           .send = send_letter,
                                           .sent = sent,
                                           .receive = receive,
                                           .close = close_thread,
                                           .end_all = end_all};
    return &threads;
}
