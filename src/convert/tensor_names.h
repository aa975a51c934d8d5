/* Names of tensors, here and there. Internal to this folder.
 *
 * Folder: the names of Hugging Face transformers. File: those of llama.cpp (gguf-py's constants),
 * of BART drey's own (docs/reference/bart.md). */
#pragma once

#include "convert/family.h"

enum { HEADS_NONE, HEADS_Q, HEADS_K };
enum { MOST_ENDS = 8 };

typedef struct role {
    const char *from, *to; /* after the layer's prefix; of experts with a %d */
    int heads;             /* heads whose rows are permuted, where the family's are */
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

#define FUSED_BLOCKS "_blocks" /* ends the names of FUSED_MXFP4; their scales' end with _scales */
extern const fused_role fused_roles[]; /* the last one has no name */

typedef struct naming_scheme {
    role ends[MOST_ENDS];    /* before and after the layers */
    const char *layer;       /* the prefix of one */
    const role *layer_roles; /* the last one has no name */
    const role *own;         /* more of them, also in place of those of the same name; or NULL */
    const char *to;          /* in front of a layer's names in the file; NULL: nothing */
} naming_scheme;
extern const naming_scheme naming_schemes[]; /* by naming */
