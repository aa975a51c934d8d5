/* The block for multi-token prediction that comes with a model (MTP, "nextn"), as a drafter: one
 * layer of the target's own kind, trained together with it (DeepSeek-AI 2024, "DeepSeek-V3
 * technical report", 2.2). It is in the target's file, after the layers, or in a separate one.
 *
 *      t: a token, f: the target's residual stream after all layers and the final norm, at the
 *      token before t; g: what this layer has made of the token before t, after its norm
 *   row of a token that the target has accepted    x = eh_proj [enorm(e(t)); hnorm(f)]
 *   row of a node below                            x = eh_proj [enorm(e(t)); hnorm(g)]
 *   guesses                                        head shared_head_norm(layer x)
 *
 * Some families leave out the final norm of f and g (FORM_MTP_UNNORMED). All else, trees above all,
 * is as with an EAGLE layer: see eagle_drafter.h. Of several blocks, each of which was trained for
 * one token further ahead, the first drafts all. */
#include <string.h>

#include "base/usual.h"
#include "draft/drafter_kind.h"
#include "draft/eagle_drafter.h"
#include "gguf/gguf.h"
#include "model/arch.h"
#include "model/layout.h"

typedef struct compared_number {
    const char *suffix; /* ending of the key that has it */
    int32_t block, target;
} compared_number;

/* The block's file has to be of the target. */
static drey_status check_fit(const draft_source *src, drey_error *err)
{
    const model_shape *s = src->in.side_shape, *target = &src->in.layout->shape;
    const compared_number numbers[] = {
        {"embedding_length", s->n_embd, target->n_embd},
        {"block_count (without nextn_predict_layers)", s->taps.mtp_block, target->n_layers},
        {"vocab_size", s->n_vocab, target->n_vocab}};
    char key[96];
    if (strcmp(s->arch->name, target->arch->name) != 0)
        FAIL(err, DREY_ERR_MISMATCH,
             "general.architecture is %s, and that of the model %s: this MTP block is another "
             "model's; take the file that belongs to this one",
             s->arch->name, target->arch->name);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].block != numbers[i].target)
            FAIL(err, DREY_ERR_MISMATCH,
                 "%s is %d, and that of the model %d: this MTP block is another model's; take the "
                 "file that belongs to this one",
                 arch_key(s->arch, numbers[i].suffix, key), numbers[i].block, numbers[i].target);
    return DREY_OK;
}

static drey_status mtp_open(draft_source *src, drey_error *err)
{
    const char *path = gguf_shard_path(src->in.side, 0);
    if (!shape_is_mtp(src->in.side_shape))
        FAIL(err, DREY_ERR_USAGE,
             "%s is no MTP block: use it with the drafter \"model\", or take the model's own block "
             "with \"mtp\" and no file",
             SHOWN_PATH(path));
    TRY(error_in_file(err, path, check_fit(src, err)));
    src->out.taps = &src->in.side_shape->taps;
    return DREY_OK;
}

static const tree_yield usual[DRAFT_YIELDS] = USUAL_EAGLE_YIELDS;

const drafter_kind drafter_mtp = {.name = "mtp",
                                  .with = "its MTP block",
                                  .side = DRAFT_SIDE_BLOCK,
                                  .usual = usual,
                                  .open = mtp_open,
                                  .session_bytes = eagle_session_bytes,
                                  .make = eagle_make};
