/* Included before every file of the test-only build of the avxvnni and amx tiers: gives other names
 * to what they define, so that the library's tiers can be linked as well, unchanged. */
#pragma once

#define avxvnni_matmul_init emulated_avxvnni_matmul_init
#define tile_q4_0_avxvnni   emulated_tile_q4_0_avxvnni
#define tile_q4_1_avxvnni   emulated_tile_q4_1_avxvnni
#define tile_q5_0_avxvnni   emulated_tile_q5_0_avxvnni
#define tile_q5_1_avxvnni   emulated_tile_q5_1_avxvnni
#define tile_q8_0_avxvnni   emulated_tile_q8_0_avxvnni
#define tile_iq4_nl_avxvnni emulated_tile_iq4_nl_avxvnni
#define tile_mxfp4_avxvnni  emulated_tile_mxfp4_avxvnni

#define books_avxvnni_set   emulated_books_avxvnni_set
#define decoded_avxvnni_set emulated_decoded_avxvnni_set
#define limits_avxvnni_set  emulated_limits_avxvnni_set
#define limits_amx_set      emulated_limits_amx_set

#define amx_matmul_init  emulated_amx_matmul_init
#define dot_amx          emulated_dot_amx
#define dot_part_amx     emulated_dot_part_amx
#define build_q4_0_amx   emulated_build_q4_0_amx
#define build_q4_1_amx   emulated_build_q4_1_amx
#define build_q5_0_amx   emulated_build_q5_0_amx
#define build_q5_1_amx   emulated_build_q5_1_amx
#define build_q8_0_amx   emulated_build_q8_0_amx
#define build_iq4_nl_amx emulated_build_iq4_nl_amx
#define build_mxfp4_amx  emulated_build_mxfp4_amx
#define build_q2_k_amx   emulated_build_q2_k_amx
#define build_q3_k_amx   emulated_build_q3_k_amx
#define build_q4_k_amx   emulated_build_q4_k_amx
#define build_q5_k_amx   emulated_build_q5_k_amx
#define build_q6_k_amx   emulated_build_q6_k_amx
#define build_iq4_xs_amx emulated_build_iq4_xs_amx
#define build_coded_amx  emulated_build_coded_amx
