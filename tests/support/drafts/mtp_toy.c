#include "support/drafts/mtp_toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/logit_toys.h"

const char *mtp_toy(int i, toy_options *options)
{
    static const char *const of[] = {"toy-qwen35", "toy-glm4moe"};
    static const char *const names[] = {"mtp-qwen35", "mtp-glm4moe"};
    for (int toy = 0; strcmp(logit_toy(toy, options), of[i]) != 0; toy++)
        if (toy + 1 == N_LOGIT_TOYS)
            abort();
    options->n_nextn = 1;
    options->mtp = true;
    return names[i];
}

static void *must(void *p)
{
    if (!p)
        abort();
    return p;
}

static void put_diagonal(FILE *f, const gguf_tensor *t)
{
    float *row = must(calloc((size_t)t->dims[0], sizeof *row));
    if (t->type != TYPE_F32 || fseek(f, (long)t->offset, SEEK_SET) != 0)
        abort();
    for (int64_t i = 0; i < t->dims[1]; i++) {
        row[i] = 1;
        if (fwrite(row, sizeof *row, (size_t)t->dims[0], f) != (size_t)t->dims[0])
            abort();
        row[i] = 0;
    }
    free(row);
}

void mtp_toy_teach(const char *path)
{
    gguf *g;
    if (gguf_open(&g, path, NULL) != DREY_OK)
        abort();
    FILE *f = must(fopen(path, "r+b"));
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++)
        if (strstr(gguf_tensor_at(g, i)->name, ".nextn.eh_proj."))
            put_diagonal(f, gguf_tensor_at(g, i));
    if (fclose(f) != 0)
        abort();
    gguf_close(&g);
}
