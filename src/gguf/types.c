/* The table of ggml's tensor types. The file format fixes the numbers; the gaps are formats that
 * ggml itself has dropped. */
#include "gguf/types.h"

#include <stddef.h>

static const type_traits types[] = {
    /* number      name        block    bytes  runnable */
    [TYPE_F32] = {"F32", 1, 4, true},
    [TYPE_F16] = {"F16", 1, 2, true},
    [TYPE_Q4_0] = {"Q4_0", 32, 18, true},
    [TYPE_Q4_1] = {"Q4_1", 32, 20, true},
    [TYPE_Q5_0] = {"Q5_0", 32, 22, true},
    [TYPE_Q5_1] = {"Q5_1", 32, 24, true},
    [TYPE_Q8_0] = {"Q8_0", 32, 34, true},
    [9] = {"Q8_1", 32, 36, false},
    [TYPE_Q2_K] = {"Q2_K", 256, 84, true},
    [TYPE_Q3_K] = {"Q3_K", 256, 110, true},
    [TYPE_Q4_K] = {"Q4_K", 256, 144, true},
    [TYPE_Q5_K] = {"Q5_K", 256, 176, true},
    [TYPE_Q6_K] = {"Q6_K", 256, 210, true},
    [15] = {"Q8_K", 256, 292, false},
    [TYPE_IQ2_XXS] = {"IQ2_XXS", 256, 66, true},
    [TYPE_IQ2_XS] = {"IQ2_XS", 256, 74, true},
    [TYPE_IQ3_XXS] = {"IQ3_XXS", 256, 98, true},
    [TYPE_IQ1_S] = {"IQ1_S", 256, 50, true},
    [TYPE_IQ4_NL] = {"IQ4_NL", 32, 18, true},
    [TYPE_IQ3_S] = {"IQ3_S", 256, 110, true},
    [TYPE_IQ2_S] = {"IQ2_S", 256, 82, true},
    [TYPE_IQ4_XS] = {"IQ4_XS", 256, 136, true},
    [24] = {"I8", 1, 1, false},
    [25] = {"I16", 1, 2, false},
    [26] = {"I32", 1, 4, false},
    [27] = {"I64", 1, 8, false},
    [28] = {"F64", 1, 8, false},
    [TYPE_IQ1_M] = {"IQ1_M", 256, 56, true},
    [TYPE_BF16] = {"BF16", 1, 2, true},
    [TYPE_TQ1_0] = {"TQ1_0", 256, 54, true},
    [TYPE_TQ2_0] = {"TQ2_0", 256, 66, true},
    [TYPE_MXFP4] = {"MXFP4", 32, 17, true},
    [TYPE_NVFP4] = {"NVFP4", 64, 36, true},
    [41] = {"Q1_0", 128, 18, false},
    [42] = {"Q2_0", 64, 18, false},
};

const type_traits *type_find(uint32_t type)
{
    if (type >= sizeof types / sizeof types[0] || !types[type].name)
        return NULL;
    return &types[type];
}

bool type_is_dropped(uint32_t type)
{
    return (type >= 31 && type <= 33) || (type >= 36 && type <= 38);
}
