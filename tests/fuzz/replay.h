/* The program that replays corpora: each target adds itself before main(). */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int fuzz_target(const uint8_t *bytes, size_t n_bytes);
void register_target(const char *path, fuzz_target *target);
