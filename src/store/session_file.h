/* Sessions in files.
 *
 *   header | ids [n_tokens], [n_input] | note | piece, its hash | piece, its hash | ...
 *
 * A piece holds the committed positions of one head (cache_piece), in whole groups. The header has
 * a hash of itself, and one of ids and note: no byte of the file is trusted before its hash was
 * checked, and sizes follow only from the header and the model. A file is read twice: all of it is
 * checked before the session changes. */
#pragma once

#include "drey/drey_session.h"
#include "os/file.h"
#include "store/kv_origin.h"

typedef struct text_cache text_cache;

typedef struct session_contents { /* borrowed */
    saved_origin origin;          /* origin of its keys and values */
    const text_cache *cache;
    const int32_t *timeline; /* [n_timeline] */
    int32_t n_timeline, n_context, n_vocab;
    const int32_t *input; /* [n_input]: of an encoder */
    int32_t n_input;
    drey_sampling sampling;
    const char *model_path, *kv_name; /* for messages */
} session_contents;

typedef struct session_header {
    char magic[8];
    uint32_t version, n_bytes; /* fields of the header */
    saved_origin origin;
    int32_t n_tokens, n_committed;
    float temperature, top_p, min_p;
    int32_t top_k;
    uint64_t seed;
    uint64_t n_note_bytes;
    uint64_t body_hash; /* hash of ids and note */
    uint64_t n_input;   /* ids of the encoder's input, after those of the timeline */
    uint64_t zero[2];
    uint64_t hash; /* hash of all before it */
} session_header;

/* An open file, with what was read of it. */
typedef struct session_file {
    const char *path;
    file file;
    session_header header;
    int32_t *ids; /* [n_tokens], then [n_input] */
    char *note;   /* [n_note_bytes], and a NUL; NULL: there is none, or it is not kept */
    uint8_t *buffer;
} session_file;

/* The size of a file without a note. */
uint64_t session_file_bytes(const session_contents *s);
/* Whole or not at all: DREY_ERR_IO. */
drey_status session_file_write(const char *path, const session_contents *s, const void *note,
                               size_t n_note_bytes, drey_error *err);

/* Opens a file and checks all of it for the session that is to take it. DREY_ERR_IO,
 * DREY_ERR_MEMORY, DREY_ERR_FORMAT (damaged, or another kind of file), DREY_ERR_MISMATCH (of
 * another model, cache or version), DREY_ERR_CONTEXT; nothing is held after a failure. keep_note:
 * the caller wants it. */
drey_status session_file_open(session_file *f, const char *path, const session_contents *s,
                              bool keep_note, drey_error *err);
/* Reads its keys and values, committed, and its ids, for which `timeline` and `input` have room.
 * The caller then owns the note. An error leaves the cache empty. */
drey_status session_file_take(session_file *f, text_cache *cache, int32_t *timeline, int32_t *input,
                              drey_saved_session *saved, drey_error *err);
void session_file_close(session_file *f);
