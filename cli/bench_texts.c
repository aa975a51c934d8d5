/* Hashes of texts, and budgets of results: see bench_texts.h. */
#include "cli/bench_texts.h"

#include "cli/csv_rows.h"

#include <stdio.h>

bool text_hash_id(void *user, int32_t id)
{
    text_hash *h = user;
    for (int i = 0; i < 4; i++)
        h->value = (h->value ^ ((uint32_t)id >> (8 * i) & 255)) * UINT64_C(0x100000001b3);
    if (++h->n == TEXT_HASH_HEAD)
        text_hash_put(h, h->head, sizeof h->head);
    return true;
}

void text_hash_put(const text_hash *h, char *out, size_t size)
{
    snprintf(out, size, "%016llx", (unsigned long long)h->value);
}

double kept_mib(uint64_t bytes)
{
    return bytes == DREY_MEMORY_UNLIMITED ? 0 : csv_kept((double)bytes / 1048576);
}

uint64_t bytes_of_mib(double mib)
{
    return mib > 0 ? (uint64_t)(mib * 1048576) : DREY_MEMORY_UNLIMITED;
}

const char *budget_words(char *out, double mib)
{
    snprintf(out, 32, mib > 0 ? "%.0f MiB" : "in memory", mib);
    return out;
}
