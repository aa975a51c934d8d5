/* Summing up and writing importance matrices: see importance.h.
 *
 * The file, as llama.cpp's programs read it:
 *
 *   general.type "imatrix", imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size
 *   for each matrix  NAME.in_sum2 [n][k]  sums of squares, and NAME.counts [n][1]  rows, in F32 */
#include "gguf/new_gguf.h"
#include "gguf/types.h"
#include "quantise/importance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS_PER_WRITE = 1024, NAME_BYTES = 64, TENSOR_BYTES = 512 };

void importance_add(importance_input *in, int32_t expert, const float *rows, int64_t ld, int64_t n)
{
    double *sums = in->squares + expert * in->k;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < in->k; j++)
            sums[j] += (double)rows[i * ld + j] * (double)rows[i * ld + j];
    in->counts[expert] += n;
}

bool importance_is_finite(const importance_input *in)
{
    for (int64_t i = 0; i < in->n * in->k; i++)
        if (!isfinite((float)in->squares[i]))
            return false;
    return true;
}

/* ---- The file ---- */

typedef struct writing {
    const importance_input *in;
    int32_t n_inputs;
} writing;

/* Tensors come in pairs, in the order of the inputs and their names. */
static const importance_input *input_of(const writing *w, uint64_t pair)
{
    const importance_input *in = w->in;
    for (; pair >= (uint64_t)in->n_names; in++)
        pair -= (uint64_t)in->n_names;
    return in;
}

static drey_status fill(void *user, uint64_t i, gguf_sink *to, drey_error *err)
{
    const writing *w = user;
    const importance_input *in = input_of(w, i / 2);
    const int64_t n = i % 2 ? in->n : in->n * in->k;
    float numbers[NUMBERS_PER_WRITE];
    for (int64_t done = 0; done < n;) {
        const int64_t m = n - done < NUMBERS_PER_WRITE ? n - done : NUMBERS_PER_WRITE;
        for (int64_t j = 0; j < m; j++)
            numbers[j] = i % 2 ? (float)in->counts[done + j] : (float)in->squares[done + j];
        TRY(gguf_sink_put(to, numbers, (size_t)m * sizeof *numbers, err));
        done += m;
    }
    return DREY_OK;
}

static void name_tensors(new_gguf *g, const importance_input *in, const char *name)
{
    char text[NAME_BYTES];
    const uint64_t size = sizeof(float), n = (uint64_t)in->n;
    snprintf(text, sizeof text, "%.*s.in_sum2", NAME_BYTES - 9, name);
    new_gguf_tensor(g, text, TYPE_F32, (int64_t[]){in->k, in->n}, 2, NULL,
                    n * (uint64_t)in->k * size);
    snprintf(text, sizeof text, "%.*s.counts", NAME_BYTES - 9, name);
    new_gguf_tensor(g, text, TYPE_F32, (int64_t[]){1, in->n}, 2, NULL, n * size);
}

drey_status importance_write(const char *path, const importance_input *in, int32_t n_inputs,
                             const importance_text *text, drey_error *err)
{
    writing w = {in, n_inputs};
    new_gguf g;
    new_gguf_begin(&g, NULL);
    new_gguf_text(&g, "general.type", "imatrix");
    if (text->name)
        new_gguf_texts(&g, "imatrix.datasets", &(gguf_string){text->name, strlen(text->name)}, 1);
    new_gguf_u32(&g, "imatrix.chunk_count", (uint32_t)text->n_windows);
    new_gguf_u32(&g, "imatrix.chunk_size", (uint32_t)text->window);
    for (int32_t i = 0; i < n_inputs; i++)
        for (int32_t k = 0; k < in[i].n_names; k++)
            name_tensors(&g, &in[i], in[i].names[k]);
    drey_status status = new_gguf_stream(&g, path, fill, &w, err);
    new_gguf_free(&g);
    return status;
}

size_t importance_write_bytes(int64_t n_matrices)
{
    return (size_t)n_matrices * TENSOR_BYTES;
}
