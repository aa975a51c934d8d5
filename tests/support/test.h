/* cmocka, with the headers that it wants before its own. */
#ifndef DREY_TESTS_TEST_H
#define DREY_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
