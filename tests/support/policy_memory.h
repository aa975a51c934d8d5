/* Room for the state of any policy, for tests that make several. */
#ifndef DREY_TESTS_POLICY_MEMORY_H
#define DREY_TESTS_POLICY_MEMORY_H

#include <stdalign.h>
#include <stddef.h>

typedef struct policy_memory {
    alignas(max_align_t) char bytes[1024];
} policy_memory;

#endif
