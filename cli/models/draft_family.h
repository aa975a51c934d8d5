/* Finds the small model that drafts for a large one: a table by family. A draft has to have its
 * target's tokens, and families share them; docs/reference/drafts.md shows the same table. */
#pragma once

#include "cli/models/model_facts.h"

typedef struct draft_family {
    const char *name;    /* "Qwen 3" */
    const char *targets; /* sizes that the draft is for, as people name them */
    const char *draft;   /* a name for drey pull; NULL: no small model has these tokens */
    double draft_bytes;
    const char *otherwise; /* drafter to use without one */
} draft_family;

/* The family of a model, by its keys; NULL: none that is known, or the model is as small as the
 * draft. */
const draft_family *draft_family_of(const model_facts *f);
/* Family i, counted from 0, and NULL after the last one. */
const draft_family *draft_family_at(size_t i);

/* Returns how many times as fast a text is with a draft of the family, about, on a usual machine:
 * passes of the target read streamed_bytes. For a mixture of experts it is the most that was
 * measured. 1: it does not pay, or there is none. */
double draft_family_gain(const draft_family *family, const model_facts *target,
                         uint64_t streamed_bytes);
/* Writes "for Qwen 3: drey pull OWNER/NAME:Q4_K_M, then about 5 times as fast", or what drafts
 * where there is no small model; "" for a draft that does not pay. */
void draft_family_words(const draft_family *family, const model_facts *target, double gain,
                        char *out, size_t room);
/* The same of the model in a file; "" for a family that is not known. */
void draft_family_hint(const char *path, uint64_t streamed_bytes, char *out, size_t room);
/* Writes ", then about 5 times as fast". Returns out. */
const char *draft_family_gain_text(double gain, const model_facts *target, char out[48]);
