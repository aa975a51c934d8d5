/* A layer's experts: what their matrices are in the file, the slots of memory that some of them are
 * in (expert_slots.h), and how those that a pass needs come to a slot.
 *
 * A tensor of experts holds one matrix below the other; so do file and sidecar. Each expert is
 * whole groups of rows, so that a few reads bring it, packed or not.
 *
 *   gate   |expert 0|expert 1|expert 2| ...        slot   |gate|up|down|  of one expert, packed
 *   up     |expert 0|expert 1|expert 2| ...
 *   down   |expert 0|expert 1|expert 2| ...
 *
 *   or gate and up in one:   |gate 0|up 0|gate 1|up 1| ...
 *
 * A wave is what a pass multiplies with at a time: experts that are in slots together, those that
 * were there before first. The others' pieces are appended to the weights' stream, and products
 * (product_begin_experts) put them into their slots as they arrive. A wave is computed in batches,
 * whose rows fit the pass's buffers; of each batch gate and up come before down:
 *
 *   bring --> begin a batch --> gate and up --> down --+--> end
 *                    ^---------------------------------+
 *   leave, at any point: what has not been used is not read, or given up
 *
 * Experts that the next layer is likely to choose can be guessed: they are appended after the
 * wave's, and read while the disk would be idle. They stay in the ring, and no slot is taken for
 * them, until that layer's wave: then those that it asks for are used as if it had brought them,
 * before the others that are missing, and the rest is given up.
 *
 *   ring   |misses of layer l|guesses for l + 1|misses of l + 1|guesses for l + 2| ... */
#pragma once

#include "os/cpu_tuning.h"
#include "weights/expert_slots.h"
#include "weights/weights.h"

typedef struct gguf_tensor gguf_tensor;

enum { EXPERT_GATE, EXPERT_UP, EXPERT_DOWN, EXPERT_MATRICES };

typedef struct expert_matrix {
    weight *all; /* [n_experts * its rows][k]: nothing of it is pinned, no pass streams it */
    /* groups of an expert: group i of expert e is e * stride + first + i of `all`. 0 of gates that
     * it does not have, whose `all` is that of its ups */
    int32_t n_groups;
    int32_t first, stride;
    size_t at; /* beginning of its first group in a slot */
} expert_matrix;

typedef struct expert_layer {
    int32_t n_experts;
    expert_matrix matrix[EXPERT_MATRICES];
    size_t slot_bytes;
    expert_slots slots;
    uint8_t *memory; /* [slots.n_slots][slot_bytes] */
} expert_layer;

typedef struct expert_wave {
    expert_layer *layer; /* NULL: there is none */
    int32_t n;           /* experts */
    int32_t n_early;     /* runs that were there or had been guessed */
    int32_t from, to;    /* runs of the present batch */
    int32_t most_rows;   /* the most rows of a batch of more than one expert */
    expert_run *run;     /* [n], borrowed */
    int32_t *slot;       /* [n] */
    bool *there;         /* [n]: it was in its slot before */
    weight *matrix;      /* [n][EXPERT_MATRICES]: in the slots */
    int64_t *seq;        /* [n][EXPERT_MATRICES]: of the first piece; -1: it is there, or a product
                            has begun to use it */
    int32_t n_read;      /* experts of it that were not there */
    int64_t begun_ns;
} expert_wave;

enum { EXPERTS_GUESSED = 8 };

typedef struct expert_guess {
    int32_t expert;
    int64_t seq, end; /* its pieces: of gate, up, down */
} expert_guess;

typedef struct expert_guesses {
    expert_layer *layer; /* their layer; NULL: there are none */
    int32_t n;
    expert_guess of[EXPERTS_GUESSED];
} expert_guesses;

/* The experts of a model's weights. */
typedef struct expert_set {
    expert_layer *layer; /* [n_layers]; those without experts have n_experts 0 */
    int32_t n_layers;
    int32_t most_runs; /* the most runs of pieces of one matrix of an expert */
    expert_wave wave;
    expert_guesses guesses;
    stream_piece *piece;       /* [most pieces of a wave and of guesses] */
    _Atomic int32_t *run_left; /* [most slots of a layer][EXPERT_MATRICES][most_runs] */
    expert_counts counts;
    uint64_t n_continued; /* waves so far that had another after them */
    struct {
        int32_t n_guessed, n_right; /* lately */
        int32_t n_left_out;         /* times that none were made */
    } trust;
} expert_set;

/* Describes n matrices of all experts, from `matrix` on, of a tensor [n_experts][n][n_rows][k];
 * those before them have been. `all` is filled. DREY_ERR_UNSUPPORTED: no kernel, or n_rows is no
 * multiple of GROUP_ROWS. */
drey_status expert_matrices_describe(expert_layer *l, int32_t matrix, int32_t n, weight *all,
                                     const gguf_tensor *t, const kernel_table *kernels,
                                     drey_error *err);

/* Layers that have experts. */
int32_t experts_layers(const expert_layer *layer, int32_t n_layers);
/* n_slots are of all layers together: each layer with experts has an equal part of them, and the
 * first ones may have one more. Memory of the set and what goes with it; most slots of a layer;
 * most pieces of a wave, and of guesses for the next one. */
size_t experts_bytes(const expert_layer *layer, int32_t n_layers, int32_t n_slots);
int32_t experts_most_slots(const expert_layer *layer, int32_t n_layers, int32_t n_slots);
int64_t experts_most_appended(const expert_layer *layer, int32_t n_layers, int32_t n_slots);
/* All slots are empty. The arena's owner checks it. */
expert_set *experts_make(expert_layer *layer, int32_t n_layers, int32_t n_slots, arena *a);

/* Begins a wave of the layer, during a pass, once the weights are loaded: of the n runs as many as
 * fit into its slots (expert_slots_fit), which become the first of them: those that are there, then
 * those whose reads now begin. Returns how many. Borrows the runs until the wave is over. */
int32_t experts_bring(weights *w, expert_layer *l, expert_run *run, int32_t n, int32_t most_rows);
/* Returns whether guesses are worth making: whether enough of the latest were right. Some are made
 * all the same, so that this can change. */
bool experts_trust_guesses(weights *w);
/* Guesses that the layer after the wave's will choose among these n experts, the likeliest first:
 * those that are in no slot of it, as far as there is room for them. Once per wave, the layer's
 * last. */
void experts_guess(weights *w, expert_layer *l, const int32_t *expert, int32_t n);
/* The next batch, of the wave; false: there is none, and the wave is over. */
bool experts_next_batch(weights *w);
/* A product of the present batch, in *out: i of [wave.from, wave.to), one of its matrices. */
void experts_product(expert_product *out, const weights *w, int32_t i, int32_t matrix, float *y,
                     int64_t ldy, void *const *acts);
/* Returns the expert whose bytes are at a position of the matrix; -1: the matrix is not of
 * experts. */
int32_t experts_at(const weights *w, const weight *matrix, const stream_piece *at);
/* A product begins with a matrix of the wave: its pieces are that product's. */
void experts_begun(weights *w, const weight *matrix);
/* Gives up what is left of a wave, if there is one, and guesses, no product being open. */
void experts_leave(weights *w);
