/* The vector attention of Arm: kernel_table.attend. */
#ifndef DREY_KERNEL_ARM_ATTEND_H
#define DREY_KERNEL_ARM_ATTEND_H

#include <stdint.h>

void attend_neon(float *out, const float *q, const uint16_t *keys, const uint16_t *values,
                 int32_t n_prefix, const int32_t *path, int32_t n_path, int32_t n_q,
                 int32_t head_dim, float scale, float *scratch);

#endif
