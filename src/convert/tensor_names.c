/* The tables of names: see tensor_names.h. */
#include "convert/tensor_names.h"

#include <stddef.h>

/* Lists what Gemma's layers have instead of others'. */
static const role gemma_layer[] = {
    {"post_attention_layernorm.weight", "post_attention_norm.weight", 0, false},
    {"pre_feedforward_layernorm.weight", "ffn_norm.weight", 0, false},
    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight", 0, false},
    {0}};

static const role gpt2_layer[] = {{"ln_1.weight", "attn_norm.weight", 0, false},
                                  {"ln_1.bias", "attn_norm.bias", 0, false},
                                  {"attn.c_attn.weight", "attn_qkv.weight", 0, true},
                                  {"attn.c_attn.bias", "attn_qkv.bias", 0, false},
                                  {"attn.c_proj.weight", "attn_output.weight", 0, true},
                                  {"attn.c_proj.bias", "attn_output.bias", 0, false},
                                  {"ln_2.weight", "ffn_norm.weight", 0, false},
                                  {"ln_2.bias", "ffn_norm.bias", 0, false},
                                  {"mlp.c_fc.weight", "ffn_up.weight", 0, true},
                                  {"mlp.c_fc.bias", "ffn_up.bias", 0, false},
                                  {"mlp.c_proj.weight", "ffn_down.weight", 0, true},
                                  {"mlp.c_proj.bias", "ffn_down.bias", 0, false},
                                  {0}};

static const role gpt_oss_layer[] = {
    {"post_attention_layernorm.weight", "post_attention_norm.weight", 0, false},
    {"self_attn.sinks", "attn_sinks.weight", 0, false},
    {"mlp.router.weight", "ffn_gate_inp.weight", 0, false},
    {"mlp.router.bias", "ffn_gate_inp.bias", 0, false},
    {0}};

#define GATE_UP "mlp.experts.gate_up_proj"
#define DOWN    "mlp.experts.down_proj"
const fused_role fused_roles[] = {
    {"block_sparse_moe.input_linear.weight", "ffn_gate_exps.weight", FUSED_ROWS, ROWS_FIRST},
    {"block_sparse_moe.input_linear.weight", "ffn_up_exps.weight", FUSED_ROWS, ROWS_SECOND},
    {"block_sparse_moe.output_linear.weight", "ffn_down_exps.weight", FUSED_ROWS, ROWS_ALL},
    {"shared_mlp.input_linear.weight", "ffn_gate_shexp.weight", FUSED_ROWS, ROWS_FIRST},
    {"shared_mlp.input_linear.weight", "ffn_up_shexp.weight", FUSED_ROWS, ROWS_SECOND},
    {GATE_UP FUSED_BLOCKS, "ffn_gate_exps.weight", FUSED_MXFP4, ROWS_EVEN},
    {GATE_UP FUSED_BLOCKS, "ffn_up_exps.weight", FUSED_MXFP4, ROWS_ODD},
    {DOWN FUSED_BLOCKS, "ffn_down_exps.weight", FUSED_MXFP4, ROWS_ALL},
    {GATE_UP, "ffn_gate_exps.weight", FUSED_TURNED, ROWS_EVEN},
    {GATE_UP, "ffn_up_exps.weight", FUSED_TURNED, ROWS_ODD},
    {DOWN, "ffn_down_exps.weight", FUSED_TURNED, ROWS_ALL},
    {GATE_UP "_bias", "ffn_gate_exps.bias", FUSED_NUMBERS, ROWS_EVEN},
    {GATE_UP "_bias", "ffn_up_exps.bias", FUSED_NUMBERS, ROWS_ODD},
    {DOWN "_bias", "ffn_down_exps.bias", FUSED_NUMBERS, ROWS_ALL},
    {0}};

/* Layers of T5: attention to itself, and then what the two halves have each. */
static const role t5_layer[] = {
    ROLE("layer.0.layer_norm.weight", "attn_norm.weight"),
    ROLE("layer.0.SelfAttention.q.weight", "attn_q.weight"),
    ROLE("layer.0.SelfAttention.k.weight", "attn_k.weight"),
    ROLE("layer.0.SelfAttention.v.weight", "attn_v.weight"),
    ROLE("layer.0.SelfAttention.o.weight", "attn_o.weight"),
    ROLE("layer.0.SelfAttention.relative_attention_bias.weight", "attn_rel_b.weight"),
    {0}};

static const role t5_encoder[] = {ROLE("layer.1.layer_norm.weight", "ffn_norm.weight"),
                                  ROLE("layer.1.DenseReluDense.wi.weight", "ffn_up.weight"),
                                  ROLE("layer.1.DenseReluDense.wi_0.weight", "ffn_gate.weight"),
                                  ROLE("layer.1.DenseReluDense.wi_1.weight", "ffn_up.weight"),
                                  ROLE("layer.1.DenseReluDense.wo.weight", "ffn_down.weight"),
                                  {0}};

static const role t5_decoder[] = {
    ROLE("layer.1.layer_norm.weight", "cross_attn_norm.weight"),
    ROLE("layer.1.EncDecAttention.q.weight", "cross_attn_q.weight"),
    ROLE("layer.1.EncDecAttention.k.weight", "cross_attn_k.weight"),
    ROLE("layer.1.EncDecAttention.v.weight", "cross_attn_v.weight"),
    ROLE("layer.1.EncDecAttention.o.weight", "cross_attn_o.weight"),
    ROLE("layer.1.EncDecAttention.relative_attention_bias.weight", "cross_attn_rel_b.weight"),
    ROLE("layer.2.layer_norm.weight", "ffn_norm.weight"),
    ROLE("layer.2.DenseReluDense.wi.weight", "ffn_up.weight"),
    ROLE("layer.2.DenseReluDense.wi_0.weight", "ffn_gate.weight"),
    ROLE("layer.2.DenseReluDense.wi_1.weight", "ffn_up.weight"),
    ROLE("layer.2.DenseReluDense.wo.weight", "ffn_down.weight"),
    {0}};

static const role bart_layer[] = {WITH_BIAS("self_attn.q_proj", "attn_q"),
                                  WITH_BIAS("self_attn.k_proj", "attn_k"),
                                  WITH_BIAS("self_attn.v_proj", "attn_v"),
                                  WITH_BIAS("self_attn.out_proj", "attn_o"),
                                  WITH_BIAS("self_attn_layer_norm", "attn_norm"),
                                  WITH_BIAS("fc1", "ffn_up"),
                                  WITH_BIAS("fc2", "ffn_down"),
                                  WITH_BIAS("final_layer_norm", "ffn_norm"),
                                  {0}};

static const role bart_decoder[] = {WITH_BIAS("encoder_attn.q_proj", "cross_attn_q"),
                                    WITH_BIAS("encoder_attn.k_proj", "cross_attn_k"),
                                    WITH_BIAS("encoder_attn.v_proj", "cross_attn_v"),
                                    WITH_BIAS("encoder_attn.out_proj", "cross_attn_o"),
                                    WITH_BIAS("encoder_attn_layer_norm", "cross_attn_norm"),
                                    {0}};

/* Encoder and decoder have one embedding, which a folder may have by any of these names, or more
 * than once. T5's is the head as well, where the folder has no other. */
#define SHARED(to)                                                                                 \
    ROLE("shared.weight", to), ROLE("encoder.embed_tokens.weight", to),                            \
        ROLE("decoder.embed_tokens.weight", to)

const naming_scheme naming_schemes[] = {
    [NAMING_LLAMA] = {{{"model.embed_tokens.weight", "token_embd.weight", 0, false},
                       {"model.tok_embeddings.weight", "token_embd.weight", 0, false},
                       {"model.word_embeddings.weight", "token_embd.weight", 0, false},
                       WITH_BIAS("model.norm", "output_norm"),
                       WITH_BIAS("model.final_layernorm", "output_norm"),
                       ROLE("model.embedding_norm.weight", "token_embd_norm.weight"),
                       WITH_BIAS("lm_head", "output"),
                       ROLE("output.weight", "output.weight")},
                      "model.layers",
                      common_layer,
                      NULL,
                      NULL},
    [NAMING_GEMMA] = {{{"model.embed_tokens.weight", "token_embd.weight", 0, false},
                       {"model.norm.weight", "output_norm.weight", 0, false},
                       {"lm_head.weight", "output.weight", 0, false}},
                      "model.layers",
                      common_layer,
                      gemma_layer,
                      NULL},
    [NAMING_GPT_OSS] = {{{"model.embed_tokens.weight", "token_embd.weight", 0, false},
                         {"model.norm.weight", "output_norm.weight", 0, false},
                         {"lm_head.weight", "output.weight", 0, false}},
                        "model.layers",
                        common_layer,
                        gpt_oss_layer,
                        NULL},
    [NAMING_GPT2] = {{{"wte.weight", "token_embd.weight", 0, false},
                      {"wpe.weight", "position_embd.weight", 0, false},
                      {"ln_f.weight", "output_norm.weight", 0, false},
                      {"ln_f.bias", "output_norm.bias", 0, false},
                      {"lm_head.weight", "output.weight", 0, false}},
                     "h",
                     gpt2_layer,
                     NULL,
                     NULL},
    [NAMING_T5] = {{SHARED("token_embd.weight"),
                    ROLE("encoder.final_layer_norm.weight", "enc.output_norm.weight"),
                    ROLE("lm_head.weight", "output.weight"), SHARED("output.weight")},
                   "encoder.block",
                   t5_layer,
                   t5_encoder,
                   "enc."},
    [NAMING_T5_DECODER] = {{ROLE("decoder.final_layer_norm.weight", "dec.output_norm.weight")},
                           "decoder.block",
                           t5_layer,
                           t5_decoder,
                           "dec."},
    [NAMING_BART] = {{SHARED("token_embd.weight"), ROLE("lm_head.weight", "output.weight"),
                      ROLE("final_logits_bias", "output.bias"),
                      ROLE("encoder.embed_positions.weight", "enc.position_embd.weight"),
                      WITH_BIAS("encoder.layernorm_embedding", "enc.token_embd_norm")},
                     "encoder.layers",
                     bart_layer,
                     NULL,
                     "enc."},
    [NAMING_BART_DECODER] = {{ROLE("decoder.embed_positions.weight", "dec.position_embd.weight"),
                              WITH_BIAS("decoder.layernorm_embedding", "dec.token_embd_norm")},
                             "decoder.layers",
                             bart_layer,
                             bart_decoder,
                             "dec."},
};
