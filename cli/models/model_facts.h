/* Facts about a model that a person asks for first, from its file's header: of any architecture. */
#pragma once

#include "drey/drey_error.h"

#include <stdio.h>

typedef struct model_facts {
    char name[128], basename[64];          /* general.name, general.basename; "": not said */
    char architecture[32], pre[48];        /* pre: the pre-tokenizer */
    char license[64], type[16];            /* type: what most weights are, as "Q4_K_M" */
    bool has_template, has_tools, has_spm; /* has_spm: SentencePiece, not byte-level BPE */
    bool runs;                             /* the header is one that drey runs */
    bool has_mtp;                          /* a block for multi-token prediction, which drafts */
    int64_t n_parameters, n_vocab;         /* n_vocab: with padding */
    int64_t n_context, n_layers, n_embd, n_ff, n_experts; /* 0: not said */
    uint64_t n_bytes;                                     /* all parts */
} model_facts;

/* Reads a file's header, of a split model the first part's. */
drey_status model_facts_read(model_facts *f, const char *path, drey_error *err);
/* "135M", "1.54B", "30.5B". Returns out. */
const char *model_parameters(char out[16], int64_t n);
/* "32K" of whole multiples of 1024, else "5000". Returns out. */
const char *model_context(char out[24], int64_t n);
/* The lines that show and inspect begin with; path: of the file. */
void model_facts_head(FILE *out, const model_facts *f, const char *path);
