/* Names of a layer's tensors in most folders: see tensor_names.h.
 *
 * A role is of use where the folder has the tensor. What one name means in one family and not in
 * another is in another list, which the family's row names. */
#include "convert/tensor_names.h"

#include <stddef.h>

#define ORDERED(from, to, order)                                                                   \
    {                                                                                              \
        from, to, order, false                                                                     \
    }
#define PARTS(module, gate, up, down, to)                                                          \
    ROLE(module "." gate ".weight", "ffn_gate" to ".weight"),                                      \
        ROLE(module "." up ".weight", "ffn_up" to ".weight"),                                      \
        ROLE(module "." down ".weight", "ffn_down" to ".weight")
#define USUAL_PARTS(module, to) PARTS(module, "gate_proj", "up_proj", "down_proj", to)

const role common_layer[] = {
    WITH_BIAS("input_layernorm", "attn_norm"),
    ROLE("attention_layernorm.weight", "attn_norm.weight"),
    ROLE("attention_norm.weight", "attn_norm.weight"),
    ROLE("operator_norm.weight", "attn_norm.weight"),
    ORDERED("self_attn.q_proj.weight", "attn_q.weight", HEADS_Q),
    ORDERED("self_attn.q_proj.bias", "attn_q.bias", HEADS_Q),
    ORDERED("self_attn.k_proj.weight", "attn_k.weight", HEADS_K),
    ORDERED("self_attn.k_proj.bias", "attn_k.bias", HEADS_K),
    WITH_BIAS("self_attn.v_proj", "attn_v"),
    ROLE("self_attn.qkv_proj.weight", "attn_qkv.weight"),
    ROLE("attention.query_key_value.weight", "attn_qkv.weight"),
    ROLE("self_attn.q_norm.weight", "attn_q_norm.weight"),
    ROLE("self_attn.k_norm.weight", "attn_k_norm.weight"),
    ROLE("self_attn.q_layernorm.weight", "attn_q_norm.weight"),
    ROLE("self_attn.k_layernorm.weight", "attn_k_norm.weight"),
    ROLE("self_attn.query_layernorm.weight", "attn_q_norm.weight"),
    ROLE("self_attn.key_layernorm.weight", "attn_k_norm.weight"),
    ROLE("attention.query_layernorm.weight", "attn_q_norm.weight"),
    ROLE("attention.key_layernorm.weight", "attn_k_norm.weight"),
    ORDERED("self_attn.q_layernorm.norms.%d.weight", "attn_q_norm.weight", HEADS_Q),
    ORDERED("self_attn.k_layernorm.norms.%d.weight", "attn_k_norm.weight", HEADS_K),
    ROLE("self_attn.gate_proj.weight", "attn_gate.weight"),
    ROLE("self_attn.g_proj.weight", "attn_gate.weight"),
    ROLE("self_attn.sinks", "attn_sinks.weight"),
    ROLE("self_attn.attention_sink_bias", "attn_sinks.weight"),
    WITH_BIAS("self_attn.o_proj", "attn_output"),
    WITH_BIAS("self_attn.dense", "attn_output"),
    ROLE("self_attn.out_proj.weight", "attn_output.weight"),
    ROLE("attention.dense.weight", "attn_output.weight"),
    ORDERED("attention.wqkv.weight", "attn_q.weight", PART_Q),
    ORDERED("attention.wqkv.weight", "attn_k.weight", PART_K),
    ORDERED("attention.wqkv.weight", "attn_v.weight", PART_V),
    ROLE("attention.wo.weight", "attn_output.weight"),
    ROLE("post_self_attn_layernorm.weight", "post_attention_norm.weight"),
    ORDERED("linear_attn.in_proj_qkv.weight", "attn_qkv.weight", ROWS_V),
    ORDERED("linear_attn.in_proj_z.weight", "attn_gate.weight", ROWS_V),
    ORDERED("linear_attn.in_proj_qkvz.weight", "attn_qkv.weight", PART_QKV),
    ORDERED("linear_attn.in_proj_qkvz.weight", "attn_gate.weight", PART_Z),
    ORDERED("linear_attn.in_proj_b.weight", "ssm_beta.weight", NUMBERS_V),
    ORDERED("linear_attn.in_proj_a.weight", "ssm_alpha.weight", NUMBERS_V),
    ROLE("linear_attn.in_proj_ba.weight", "ssm_ba.weight"),
    ORDERED("linear_attn.conv1d.weight", "ssm_conv1d.weight", ROWS_V),
    ORDERED("linear_attn.dt_bias", "ssm_dt.bias", NUMBERS_V),
    ORDERED("linear_attn.A_log", "ssm_a", DECAYS_V),
    ROLE("linear_attn.norm.weight", "ssm_norm.weight"),
    ORDERED("linear_attn.out_proj.weight", "ssm_out.weight", COLUMNS_V),
    ROLE("conv.in_proj.weight", "shortconv.in_proj.weight"),
    ROLE("conv.conv.weight", "shortconv.conv.weight"),
    ROLE("conv.out_proj.weight", "shortconv.out_proj.weight"),
    WITH_BIAS("post_attention_layernorm", "ffn_norm"),
    ROLE("feedforward_layernorm.weight", "ffn_norm.weight"),
    ROLE("ffn_norm.weight", "ffn_norm.weight"),
    ROLE("post_mlp_layernorm.weight", "post_ffw_norm.weight"),
    ROLE("block_sparse_moe.gate.weight", "ffn_gate_inp.weight"),
    ROLE("block_sparse_moe.router.layer.weight", "ffn_gate_inp.weight"),
    ROLE("block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"),
    PARTS("block_sparse_moe.experts.%d", "w1", "w3", "w2", "_exps"),
    ROLE("mlp.gate.weight", "ffn_gate_inp.weight"),
    ROLE("mlp.gate.wg.weight", "ffn_gate_inp.weight"),
    ROLE("mlp.router.gate.weight", "ffn_gate_inp.weight"),
    ROLE("mlp.expert_bias", "exp_probs_b.bias"),
    ROLE("mlp.gate.expert_bias", "exp_probs_b.bias"),
    ROLE("mlp.e_score_correction_bias", "exp_probs_b.bias"),
    ROLE("mlp.gate.e_score_correction_bias", "exp_probs_b.bias"),
    ROLE("mlp.experts.e_score_correction_bias", "exp_probs_b.bias"),
    ROLE("mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"),
    USUAL_PARTS("mlp.experts.%d", "_exps"),
    ROLE("mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight"),
    USUAL_PARTS("mlp.shared_expert", "_shexp"),
    USUAL_PARTS("mlp.shared_experts", "_shexp"),
    USUAL_PARTS("mlp.shared_mlp", "_shexp"),
    ROLE("shared_mlp.output_linear.weight", "ffn_down_shexp.weight"),
    ROLE("moe.gate.weight", "ffn_gate_inp.weight"),
    ROLE("moe.router_bias", "exp_probs_b.bias"),
    USUAL_PARTS("share_expert", "_shexp"),
    ROLE("feed_forward.gate.weight", "ffn_gate_inp.weight"),
    ROLE("feed_forward.router.weight", "ffn_gate_inp.weight"),
    ROLE("feed_forward.expert_bias", "exp_probs_b.bias"),
    PARTS("feed_forward.experts.%d", "w1", "w3", "w2", "_exps"),
    USUAL_PARTS("feed_forward.shared_expert", "_shexp"),
    PARTS("feed_forward", "w1", "w3", "w2", ""),
    USUAL_PARTS("feed_forward", ""),
    WITH_BIAS("mlp.gate_proj", "ffn_gate"),
    ROLE("mlp.gate_up_proj.weight", "ffn_up.weight"),
    WITH_BIAS("mlp.up_proj", "ffn_up"),
    WITH_BIAS("mlp.down_proj", "ffn_down"),
    WITH_BIAS("mlp.c_fc", "ffn_up"),
    WITH_BIAS("mlp.c_proj", "ffn_down"),
    WITH_BIAS("mlp.fc1", "ffn_up"),
    WITH_BIAS("mlp.fc2", "ffn_down"),
    ROLE("eh_proj.weight", "nextn.eh_proj.weight"),
    ROLE("enorm.weight", "nextn.enorm.weight"),
    ROLE("hnorm.weight", "nextn.hnorm.weight"),
    ROLE("embed_tokens.weight", "nextn.embed_tokens.weight"),
    ROLE("shared_head.head.weight", "nextn.shared_head_head.weight"),
    ROLE("shared_head.norm.weight", "nextn.shared_head_norm.weight"),
    ROLE("final_layernorm.weight", "nextn.shared_head_norm.weight"),
    {0}};

const role norms_after_roles[] = {
    ROLE("post_attention_layernorm.weight", "post_attention_norm.weight"),
    ROLE("post_feedforward_layernorm.weight", "post_ffw_norm.weight"),
    {0}};

const role pre_mlp_roles[] = {ROLE("post_attention_layernorm.weight", "post_attention_norm.weight"),
                              ROLE("pre_mlp_layernorm.weight", "ffn_norm.weight"),
                              {0}};

#define STACKED(module, form)                                                                      \
    {module "gate_up_proj", "ffn_gate_exps.weight", form, ROWS_FIRST},                             \
        {module "gate_up_proj", "ffn_up_exps.weight", form, ROWS_SECOND},                          \
    {                                                                                              \
        module "down_proj", "ffn_down_exps.weight", form, ROWS_ALL                                 \
    }

const fused_role fused_halves[] = {
    STACKED("mlp.experts.", FUSED_ROWS),
    {"moe.gate_proj.weight", "ffn_gate_exps.weight", FUSED_ROWS, ROWS_ALL},
    {"moe.up_proj.weight", "ffn_up_exps.weight", FUSED_ROWS, ROWS_ALL},
    {"moe.down_proj.weight", "ffn_down_exps.weight", FUSED_ROWS, ROWS_ALL},
    {0}};

const fused_role fused_turned_halves[] = {
    STACKED("mlp.experts.", FUSED_TURNED), STACKED("feed_forward.experts.", FUSED_TURNED), {0}};

const char mtp_layer[] = "mtp.layers";
const role mtp_roles[] = {ROLE("mtp.fc.weight", "nextn.eh_proj.weight"),
                          ROLE("mtp.pre_fc_norm_embedding.weight", "nextn.enorm.weight"),
                          ROLE("mtp.pre_fc_norm_hidden.weight", "nextn.hnorm.weight"),
                          ROLE("mtp.norm.weight", "nextn.shared_head_norm.weight"),
                          {0}};
