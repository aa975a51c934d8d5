/* Model files, and text as tokens. */
#ifndef DREY_DREY_MODEL_H
#define DREY_DREY_MODEL_H

#include "drey/drey_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Models: a GGUF file's header, shapes and tokenizer ---- */

typedef struct drey_model drey_model;

/* Opens a GGUF v3 file (the first part of a split one) and validates all of its header. Weights are
 * not read. DREY_ERR_UNSUPPORTED names the architecture, tokenizer or key that drey does not
 * compute; drey_engine_open names the tensor. Every key under the architecture's name must be one
 * that drey computes or that is known to have no effect. Numbers that are not finite give
 * DREY_ERR_FORMAT when they are read: norms and biases in drey_engine_open, matrices when they are
 * loaded or streamed, or in drey_prepare. */
DREY_API drey_status drey_model_open(drey_model **out, const char *path, drey_error *err);
/* Opens a file for drey_tokenize and drey_detokenize alone: of any architecture, and also one that
 * has a vocabulary and no tensors. Other functions but drey_model_close must not be called with
 * it. */
DREY_API drey_status drey_vocabulary_open(drey_model **out, const char *path, drey_error *err);
/* Accepts NULL; sets the pointer to NULL. Close the engines and grammars that borrow the model
 * first. */
DREY_API void drey_model_close(drey_model **model);

typedef struct drey_model_info {
    const char *architecture; /* borrowed from the model */
    const char *name;         /* general.name, or "" */
    int32_t n_layers, n_embd, n_heads, n_heads_kv, head_dim, n_ff, n_vocab;
    int32_t n_context_train; /* the longest context the model was made for */
    uint64_t file_bytes;     /* all parts */
    uint64_t weight_bytes;   /* tensors only */
    int64_t n_parameters;
    int32_t bos_id, eos_id; /* -1: the file names none */
    /* The longest text of any token but the unknown one, in bytes: a text of more than n *
     * token_bytes_most bytes has more than n tokens. */
    uint32_t token_bytes_most;
    const char *path; /* path of the file, or of its first part; borrowed from the model */
    /* Fields of an encoder, which reads the prompt as its input (drey_session_generate); 0: there
     * is none. n_layers are then the decoder's, whose texts begin with start_id, and with a second
     * given token where the file has one. */
    int32_t n_encoder_layers, start_id;
    uint64_t reserved[2]; /* zero */
} drey_model_info;
DREY_API void drey_model_describe(const drey_model *model, drey_model_info *info);
/* The chat template of the model's file: *text[*n], borrowed from the model; n 0: there is none. */
DREY_API void drey_model_chat_template(const drey_model *model, const char **text, size_t *n);
/* The same of a template that the file has under a name besides: "tool_use", which conversations
 * with tools are written by (drey_chat_request without chat_template), "rag", or another one. */
DREY_API void drey_model_named_template(const drey_model *model, const char *name,
                                        const char **text, size_t *n);

/* Tokens of models that were trained to fill in the middle of a text (FIM). */
typedef struct drey_fim {
    int32_t prefix, suffix, middle; /* before the three parts */
    int32_t repo, file;             /* before the names of a project and a file; -1: none */
    uint64_t reserved[4];           /* zero */
} drey_fim;
/* Returns false if the model does not have the first three. */
DREY_API bool drey_model_fim(const drey_model *model, drey_fim *fim);

/* A mixture of experts: each of its layers chooses a few of many feed-forward parts for a token. */
typedef struct drey_experts {
    int32_t n_layers;          /* layers that have experts */
    int32_t n_experts, n_used; /* experts of each of them; those that a token uses */
    int32_t n_ff, n_ff_shared; /* width of an expert, and of the one that all tokens use; 0: none */
    /* weighing of the router: "softmax", "sigmoid", "softmax of the chosen"; static */
    const char *router;
    bool normed; /* the chosen weights add up to 1, before they are scaled */
    /* groups of experts, of which a token uses some; 1, 0: there are none */
    int32_t n_groups, n_groups_used;
    uint64_t expert_bytes; /* bytes of all experts, in the file */
    uint64_t trunk_bytes;  /* bytes of all other tensors, which every token uses, */
    uint64_t token_bytes;  /* and of the experts that one token uses */
    uint64_t reserved[4];  /* zero */
} drey_experts;
/* Returns false if the model is no mixture. */
DREY_API bool drey_model_experts(const drey_model *model, drey_experts *experts);

/* Identifies the model: copies of its file have the same number, other models have another. Reads a
 * few MiB of the file. */
DREY_API drey_status drey_model_identity(const drey_model *model, uint64_t *identity,
                                         drey_error *err);

/* ---- Text and tokens ---- */

enum {
    DREY_TOKENIZE_SPECIAL = 1, /* special tokens written in the text count as tokens, not as text */
    DREY_TOKENIZE_BOS = 2,     /* put BOS first, or EOS last, if the file says that the model wants
                                  them */
    DREY_TOKENIZE_INNER = 4    /* the text continues another one: none of the blanks that
                                  SentencePiece puts in front of a text is added or dropped */
};

/* text: n_bytes arbitrary bytes; invalid UTF-8 is tokenized as well. *n_ids is set to the number of
 * ids. If that exceeds capacity, the first `capacity` ids are written and DREY_ERR_USAGE is
 * returned. */
DREY_API drey_status drey_tokenize(const drey_model *model, const char *text, size_t n_bytes,
                                   int flags, int32_t *ids, size_t capacity, size_t *n_ids,
                                   drey_error *err);

/* Writes the bytes of n ids, not NUL-terminated. Special tokens are written only with
 * DREY_TOKENIZE_SPECIAL. *n_bytes is the length needed; DREY_ERR_USAGE if it exceeds capacity. */
DREY_API drey_status drey_detokenize(const drey_model *model, const int32_t *ids, size_t n,
                                     int flags, char *text, size_t capacity, size_t *n_bytes,
                                     drey_error *err);

/* One turn in the model's own chat format, as text; for whole conversations see drey/chat.h. system
 * may be NULL. *out is a NUL-terminated string that the caller frees with drey_free.
 * DREY_ERR_UNSUPPORTED: the model has no template, or the template uses something that is not
 * supported. Tokenizing the text with DREY_TOKENIZE_SPECIAL also accepts special tokens written in
 * system and user, which can end their turn; drey_chat_tokenize does not. */
DREY_API drey_status drey_chat_format(const drey_model *model, const char *system, const char *user,
                                      char **out, drey_error *err);
/* The same turn as ids. The template's special tokens become tokens; in system and user they are
 * plain text, unless flags has DREY_TOKENIZE_SPECIAL. capacity and *n_ids as in drey_tokenize. */
DREY_API drey_status drey_chat_tokenize(const drey_model *model, const char *system,
                                        const char *user, int flags, int32_t *ids, size_t capacity,
                                        size_t *n_ids, drey_error *err);
DREY_API void drey_free(void *memory);

/* ---- What keeps a file from running ---- */

typedef struct drey_inspector {
    void (*header)(void *user, uint32_t version, uint64_t n_keys, uint64_t n_tensors,
                   uint64_t file_bytes);
    /* value: as text; long arrays and strings are cut with "..." */
    void (*key)(void *user, const char *name, const char *type, const char *value);
    void (*tensor)(void *user, const char *name, const char *type, const int64_t *dims, int n_dims,
                   uint64_t bytes, uint64_t offset, bool runnable);
    void *user;
    uint64_t reserved[4]; /* zero */
} drey_inspector;
/* Validates a GGUF file of any architecture and visits its header, keys and tensors. */
DREY_API drey_status drey_inspect(const char *path, const drey_inspector *inspector,
                                  drey_error *err);

/* Calls `missing` with a sentence for each reason why drey cannot run a file: an unknown
 * architecture, each key that drey does not compute, the first tensor that is missing or has no
 * role, the tokenizer. Not called if there is none. Sentences are valid during the call. Errors are
 * only those of opening the file. */
DREY_API drey_status drey_missing(const char *path, void (*missing)(void *user, const char *what),
                                  void *user, drey_error *err);

#ifdef __cplusplus
}
#endif
#endif
