/* Tests that start threads carry the label "threads", by which those for TSan are chosen. ctest
 * sets an environment variable for the others: with it, an attempt to start one ends the test. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument)
{
    if (getenv("DREY_TEST_NO_THREADS")) {
        fputs("a test that starts threads: put it into THREADED in tests/CMakeLists.txt\n", stderr);
        abort();
    }
    return __real_pthread_create(thread, attributes, start, argument);
}
