/* Status and error of functions that can fail, and the version. */
#ifndef DREY_DREY_ERROR_H
#define DREY_DREY_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DREY_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum drey_status {
    DREY_OK = 0,
    DREY_ERR_USAGE = -1,  /* an argument is out of range, or two of them contradict each other */
    DREY_ERR_MEMORY = -2, /* the budget is too small, or the system refused memory */
    DREY_ERR_IO = -3,     /* a file cannot be opened, read or written */
    DREY_ERR_FORMAT = -4, /* a file is broken or not what it claims to be */
    DREY_ERR_UNSUPPORTED = -5, /* a valid file that this version cannot run */
    DREY_ERR_MISMATCH = -6,    /* draft and target do not fit together */
    DREY_ERR_CONTEXT = -7,     /* the prompt does not fit into the context */
    DREY_ERR_CANCELLED = -8,   /* drey_session_cancel was called */
    DREY_ERR_INTERNAL = -9     /* a bug in drey */
} drey_status;

/* The option that the message is about, so that a program can name its own switch for it. */
typedef enum drey_hint {
    DREY_HINT_NONE = 0,
    DREY_HINT_N_CONTEXT = 1,    /* use a larger n_context */
    DREY_HINT_MEMORY_BYTES = 2, /* another memory_bytes */
    DREY_HINT_N_THREADS = 3,    /* fewer n_threads */
    DREY_HINT_IO = 4,           /* another io */
    DREY_HINT_SIDECAR = 5,      /* prepare the sidecar again, or set no_sidecar */
    DREY_HINT_OUTPUT = 6,       /* another output of drey_prepare */
    DREY_HINT_FORCE = 7,        /* another output of drey_prepare, or its force */
    DREY_HINT_PREPARE = 8,      /* drey_prepare with force */
    DREY_HINT_CHAT = 9,         /* a prompt in the model's own format, without drey_chat_format */
    DREY_HINT_PLANES = 10,      /* drey_prepare with planes */
    DREY_HINT_EXIT_FILE = 11,   /* another exit_file, or predictors that are trained again */
    DREY_HINT_REQUANTIZE = 12,  /* requantize of drey_quantize */
    DREY_HINT_HEADS = 13,       /* heads that are trained first */
    DREY_HINT_IMPORTANCE = 14   /* an importance matrix, of drey_imatrix */
} drey_hint;

/* A message ready for a terminal: what went wrong, and what to do about it. */
typedef struct drey_error {
    drey_status code;
    drey_hint hint;
    char message[500];
} drey_error;

DREY_API const char *drey_version(void);

#ifdef __cplusplus
}
#endif
#endif
