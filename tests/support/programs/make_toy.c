/* Writes a toy model for tests that are scripts: make_toy PATH [LAYERS [NOISE [HEAD_DIM]]]
 * make_toy --t5 PATH ... and --bart PATH ... write models with an encoder, make_toy --sentencepiece
 * PATH ... one with SentencePiece's tokens, make_toy --gpt-oss PATH ... one with the types of
 * published gpt-oss (experts in MXFP4, others in BF16), make_toy --damage PATH TENSOR puts a NaN
 * into one, make_toy --golden DIR writes those of tests/data/logits. Two toys with other LAYERS or
 * NOISE agree often enough to be target and draft. With DREY_TEST_EXPERTS in the environment they
 * are mixtures of experts. */
#include "engine/config.h"
#include "support/drafts/eagle_file.h"
#include "support/drafts/mtp_toy.h"
#include "support/faults/damage.h"
#include "support/logit_toys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_golden(const char *folder)
{
    for (int i = 0; i < N_LOGIT_TOYS; i++) {
        toy_options options;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.gguf", folder, logit_toy(i, &options));
        toy_write(path, &options);
    }
    for (int i = 0; i < N_MTP_TOYS; i++) {
        toy_options options;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.gguf", folder, mtp_toy(i, &options));
        toy_write(path, &options);
    }
}

/* Targets and the layers after them. */
static void write_eagles(const char *folder)
{
    for (int i = 0; i < N_EAGLE_TOYS; i++) {
        toy_options options;
        char path[4096];
        drey_model *target;
        eagle_file e;
        const char *name = eagle_toy(i, &options);
        snprintf(path, sizeof path, "%s/%s-target.gguf", folder, name);
        toy_write(path, &options);
        if (drey_model_open(&target, path, NULL) != DREY_OK)
            abort();
        eagle_toy_layer(i, &e, &options, target->file, &target->shape);
        snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
        eagle_file_write(path, &e);
        drey_model_close(&target);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: make_toy PATH [LAYERS [NOISE [HEAD_DIM]]]\n");
        return 2;
    }
    if (argc == 4 && strcmp(argv[1], "--damage") == 0) {
        damage(argv[2], argv[3], 0, 0, false);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--golden") == 0) {
        write_golden(argv[2]);
        write_eagles(argv[2]);
        return 0;
    }
    toy_options options = toy_asked();
    bool bart = strcmp(argv[1], "--bart") == 0;
    if (bart || strcmp(argv[1], "--t5") == 0) {
        arch_toy(bart ? FIRST_BART_TOY : FIRST_T5_TOY, &options);
        argc--;
        argv++;
    }
    if (strcmp(argv[1], "--gpt-oss") == 0) {
        static const toy_key window[] = {{"attention.sliding_window", GGUF_U32, 37, NULL}, {0}};
        options.keys = window;
        options.architecture = "gpt-oss";
        options.pre = "gpt-4o";
        options.type = TYPE_BF16;
        options.experts = (toy_experts){.n = 8, .n_used = 4, .n_ff = 96, .type = TYPE_MXFP4};
        argc--;
        argv++;
    }
    if (strcmp(argv[1], "--sentencepiece") == 0) {
        options.pre = NULL;
        argc--;
        argv++;
    }
    if (argc > 2)
        options.n_layers = (int32_t)strtol(argv[2], NULL, 10);
    if (argc > 3)
        options.noise = strtof(argv[3], NULL);
    if (argc > 4)
        options.head_dim = (int32_t)strtol(argv[4], NULL, 10);
    toy_write(argv[1], &options);
    return 0;
}
