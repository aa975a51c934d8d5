/* A device that is none: plain C kernels on its driver's thread, for tests of what units do with
 * devices. The words after "fake:", separated by dots, say how it behaves:
 *
 *   refuse   it does not open                    failN    its call N of submit fails, having
 *   copies   its memory is its own: it gets               spoilt what it was to write
 *            its share alone, and copies it      waitN    its call N of wait fails
 *   foreign  it has no kernels for the matrices  slow     each wait takes a millisecond
 *   poor     it has no memory for them           attendN  its call N of attend fails, alike
 *   plain    it has no part in attention         deaf     nothing can be lent to it
 *
 * Attention only touches what is lent to it. */
#pragma once

#include "unit/device.h"

extern const device_class fake_device;
