/* Ranks that are threads of one process: a transport for tests, without MPI. */
#pragma once

#include "ranks/ranks.h"

enum { THREAD_RANKS = 8 };

/* There are n of them from now on, without messages. */
void thread_ranks_begin(int32_t n);
/* The calling thread is that rank. */
void thread_ranks_be(int32_t rank);
/* Loses what that rank sends from now on. */
void thread_ranks_silence(int32_t rank);
/* Changes what that rank sends from now on: n bytes of a message, in its copy. NULL: nothing. */
typedef void thread_ranks_alter_fn(uint8_t *bytes, size_t n);
void thread_ranks_alter(int32_t rank, thread_ranks_alter_fn *alter);
/* Returns how often a rank has ended all: since the first time, nobody receives anything. */
int32_t thread_ranks_ended(void);
const rank_transport *thread_transport(void);
