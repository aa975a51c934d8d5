/* The sidecar: a model's matrices once more, packed as the kernels want them, in a separate
 * file next to the model.
 *
 * Without it every streamed group is packed again in every pass. With it a direct read brings what
 * a kernel consumes: matrices in the order of a pass, each from a multiple of 4096, its groups one
 * after another. The layout is the same on every CPU tier, so a sidecar serves any machine.
 *
 *   head | a stamp for each file of the model | an entry for each matrix | 0 | matrix | 0 | matrix
 *
 * A sidecar may hold matrices in planes (kernel/planes.h), those of types that can be split: then
 * a matrix is the first plane of all its groups, the second of all, the third of all. Its version
 * says so.
 *
 * The table (head, stamps, entries) is little-endian and follows from the model but for the hashes
 * of the matrices and, in planes, what is used for missing bits. So reading one is comparing it
 * with the table that the model asks for: nothing in the file is trusted, no offset or count of it
 * is used. Norms, biases and the rows of an untied embedding stay in the GGUF file. */
#pragma once

#include "drey/choices.h"

typedef struct file_stamp file_stamp;
typedef struct gguf gguf;
typedef struct weight weight;

enum { SIDECAR_VERSION = 2, SIDECAR_VERSION_PLANES = 3, SIDECAR_ALIGN = 4096 };

typedef struct sidecar_head { /* 64 bytes */
    char magic[8];
    uint32_t byte_order; /* SIDECAR_BYTE_ORDER as the writer's machine stores it */
    uint32_t version, layout, group_rows;
    uint32_t n_parts, n_matrices;
    uint64_t table_bytes, file_bytes;
    uint64_t checksum; /* XXH64 of the table, this field 0 */
    uint64_t zero;
} sidecar_head;

typedef struct sidecar_stamp { /* identity of a file of the model when the sidecar was made */
    uint64_t n_bytes;
    int64_t changed_s, changed_ns; /* its last modification */
    uint64_t header_hash;          /* XXH64 of all before its first tensor */
    uint64_t sample_hash;          /* XXH64 of pages spread over its tensors */
} sidecar_stamp;

typedef struct sidecar_entry {
    char name[64];
    uint32_t type;
    uint8_t means[4]; /* means of a matrix in planes: plane_means, not compared; else 0 */
    int64_t n_rows, k;
    uint64_t offset, n_bytes; /* n_bytes: whole groups */
    uint64_t hash;            /* XXH64 of the packed groups; compared while they are loaded, of
                                 experts, which never are all loaded, by sidecar_verify alone */
} sidecar_entry;

typedef struct sidecar_table {
    uint8_t *bytes; /* [n_bytes]; the three below point into it */
    size_t n_bytes;
    sidecar_head *head;
    sidecar_stamp *stamp; /* [n_parts] */
    sidecar_entry *entry; /* [n_matrices] */
} sidecar_table;

/* After the name of the model's first file. */
#define SIDECAR_FILE_ENDING ".drey"
/* True for a file that begins like a sidecar of any version. */
bool sidecar_is_one(const char *path);

/* The table for these matrices (weight_split: in planes) with stamps and hashes of 0, and the
 * checksum not made yet. */
drey_status sidecar_table_make(sidecar_table *t, int32_t n_parts, const weight *matrix, int32_t n,
                               drey_error *err);
void sidecar_table_free(sidecar_table *t);
/* Stamps the model's files as they are now; reads their headers and the sampled pages. */
drey_status sidecar_table_stamp(sidecar_table *t, const gguf *g, drey_error *err);
uint64_t sidecar_table_checksum(const sidecar_table *t);

/* Holds the front of a file of file_bytes (n_bytes of it, all of the table if it is that long)
 * against the table that the model asks for. DREY_ERR_FORMAT: damaged or no sidecar;
 * DREY_ERR_MISMATCH: of another model, stale, or of another version. Each says what to do. */
drey_status sidecar_compare(const sidecar_table *want, const uint8_t *bytes, size_t n_bytes,
                            uint64_t file_bytes, const char *path, drey_error *err);

/* Checks that the file at `path` is a good sidecar of this model, and makes the matrices be read
 * from there: sets their sidecar_offset and sidecar_hash, and splits them where it holds planes.
 * stamp: NULL, or for what the file was that was looked at: another may take its name at any time.
 */
drey_status sidecar_attach(const char *path, const gguf *g, weight *matrix, int32_t n,
                           file_stamp *stamp, drey_error *err);

typedef struct sidecar_job {
    const gguf *source; /* borrowed, like all of these */
    weight *matrix;     /* in the order of a pass */
    int32_t n_matrices;
    const char *path;
    void (*announce)(void *user, const char *path, uint64_t needed_bytes, uint64_t free_bytes);
    drey_progress_fn *progress;
    bool (*go_on)(void *user); /* asked about every MiB; any of the three may be NULL */
    void *user;
} sidecar_job;

/* Writes a sidecar: reports the space first, then all or nothing (see common/new_file.h). *n_bytes:
 * its size. A few MiB of memory. DREY_ERR_CANCELLED when go_on says so. */
drey_status sidecar_write(const sidecar_job *job, uint64_t *n_bytes, drey_error *err);
/* Reads all of the model and of its sidecar and compares: packs each matrix again. */
drey_status sidecar_verify(const sidecar_job *job, uint64_t *n_bytes, drey_error *err);
