/* The linker's --wrap replaces calls of X by __wrap_X, and __real_X is the original: see starve.h.
 */
#include "support/faults/starve.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/mman.h>

/* Names that the linker prescribes. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__real_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
char *__wrap_strdup(const char *text);
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);

static atomic_int_fast64_t left = INT64_MAX; /* requests until the refusal; below 0: it is past */

void starve_after(int64_t n)
{
    atomic_store(&left, n);
}

bool starve_end(void)
{
    return atomic_exchange(&left, INT64_MAX) < 0;
}

static bool refused(void)
{
    bool now = atomic_fetch_sub(&left, 1) == 0;
    if (now)
        errno = ENOMEM;
    return now;
}

void *__wrap_malloc(size_t n)
{
    return refused() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refused() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t n)
{
    return refused() ? NULL : __real_realloc(old, n);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return refused() ? NULL : __real_aligned_alloc(alignment, n);
}

char *__wrap_strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = refused() ? NULL : __real_malloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    return refused() ? MAP_FAILED : __real_mmap(at, n, protection, flags, fd, offset);
}
