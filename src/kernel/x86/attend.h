/* The vector attentions of x86: kernel_table.attend. */
#ifndef DREY_KERNEL_X86_ATTEND_H
#define DREY_KERNEL_X86_ATTEND_H

#include <stdint.h>

void attend_avx2(float *out, const float *q, const void *keys, const void *values, int32_t n_prefix,
                 const int32_t *path, int32_t n_path, int32_t n_q, int32_t head_dim, float scale,
                 float *scratch);
void attend_avx512(float *out, const float *q, const void *keys, const void *values,
                   int32_t n_prefix, const int32_t *path, int32_t n_path, int32_t n_q,
                   int32_t head_dim, float scale, float *scratch);

#endif
