/* Names of tensors, here and there. Internal to this folder.
 *
 * Folder: the names of Hugging Face transformers. File: those of llama.cpp (gguf-py's constants),
 * of BART drey's own (docs/reference/bart.md). */
#pragma once

#include "convert/family.h"

/* Orders of a tensor's rows in the file (row_order.c). */
typedef enum order {
    HEADS_NONE,
    HEADS_Q, /* pairs within heads of queries, where the family's rows change places */
    HEADS_K,
    ROWS_V,    /* heads of values at the end take turns (arch.heads_in_turns) */
    NUMBERS_V, /* the same of one number for each */
    DECAYS_V,  /* the same, each x becoming -exp(x) */
    COLUMNS_V, /* the same of columns */
    PART_QKV,  /* queries, keys and values out of groups that have gates as well */
    PART_Z,    /* the gates */
    PART_Q,    /* queries out of groups of some heads of queries, a key and a value; in pairs */
    PART_K,
    PART_V
} order;
enum { MOST_ENDS = 16 };

typedef struct role {
    const char *from, *to; /* after the layer's prefix; of experts, or of heads, with a %d */
    int heads;             /* its order */
    bool turned;
} role;

/* Tensors that hold a matrix or a vector of each expert, or gate and up in one. */
typedef enum fused_form {
    FUSED_ROWS,    /* [experts][rows][columns], without experts [rows][columns] */
    FUSED_TURNED,  /* [experts][columns][rows] */
    FUSED_NUMBERS, /* [experts][rows] */
    FUSED_MXFP4    /* [experts][rows][blocks][16], and scales [experts][rows][blocks] */
} fused_form;
typedef enum fused_rows { ROWS_ALL, ROWS_FIRST, ROWS_SECOND, ROWS_EVEN, ROWS_ODD } fused_rows;

typedef struct fused_role {
    const char *from, *to;
    fused_form form;
    fused_rows rows; /* rows of a fused group; halves are the first and the second */
} fused_role;

#define ROLE(from, to)                                                                             \
    {                                                                                              \
        from, to, 0, false                                                                         \
    }
#define WITH_BIAS(from, to) ROLE(from ".weight", to ".weight"), ROLE(from ".bias", to ".bias")
extern const role common_layer[]; /* layer_names.c */

#define FUSED_BLOCKS "_blocks" /* ends the names of FUSED_MXFP4; their scales' end with _scales */
extern const fused_role fused_roles[]; /* the last one has no name */
/* Gate and up in one of the folder's tensors: rows of each expert, or its columns. */
extern const fused_role fused_halves[], fused_turned_halves[];

/* Roles that a family has in place of those of the same name, or besides (layer_names.c). */
extern const role norms_after_roles[], pre_mlp_roles[];
/* Blocks for multi-token prediction that are not among the layers: the names of one, and of what
 * the first one has in front of its layer. */
extern const char mtp_layer[];
extern const role mtp_roles[];

typedef struct naming_scheme {
    role ends[MOST_ENDS];    /* before and after the layers */
    const char *layer;       /* the prefix of one */
    const role *layer_roles; /* the last one has no name */
    const role *own;         /* more of them, also in place of those of the same name; or NULL */
    const char *to;          /* in front of a layer's names in the file; NULL: nothing */
} naming_scheme;
extern const naming_scheme naming_schemes[]; /* by naming */
