/* The trie of a vocabulary: see vocab_trie.h. */
#include "grammar/vocab_trie.h"

#include <stdlib.h>
#include <string.h>

#include "common/num.h"

/* A token's bytes while they are sorted. */
typedef struct piece {
    const uint8_t *bytes;
    int32_t id, n;
} piece;

static int32_t piece_of(const tokenizer *t, int32_t id, uint8_t *out, size_t capacity)
{
    size_t n = tokenizer_piece(t, id, false, false, (char *)out, capacity);
    return n > VOCAB_TRIE_LONGEST || tokenizer_is_end(t, id) ? 0 : (int32_t)n;
}

static size_t count_bytes(const tokenizer *t)
{
    size_t total = 0;
    for (int32_t id = 0; id < tokenizer_n_vocab(t); id++)
        total += (size_t)piece_of(t, id, NULL, 0);
    return total;
}

static int by_bytes(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, (size_t)min_i32(x->n, y->n));
    if (order == 0)
        order = (x->n > y->n) - (x->n < y->n);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

/* Tokens with bytes, sorted. Returns how many. */
static int32_t sort_pieces(const tokenizer *t, piece *pieces, uint8_t *bytes)
{
    int32_t n = 0;
    for (int32_t id = 0; id < tokenizer_n_vocab(t); id++) {
        int32_t n_bytes = piece_of(t, id, bytes, VOCAB_TRIE_LONGEST);
        if (n_bytes == 0)
            continue;
        pieces[n++] = (piece){.bytes = bytes, .id = id, .n = n_bytes};
        bytes += n_bytes;
    }
    qsort(pieces, (size_t)n, sizeof *pieces, by_bytes);
    return n;
}

static int32_t common_bytes(const piece *a, const piece *b)
{
    int32_t n = 0;
    while (n < a->n && n < b->n && a->bytes[n] == b->bytes[n])
        n++;
    return n;
}

/* open[d]: the node of depth d on the way to the latest token. */
static void close_below(vocab_trie *t, const int32_t *open, int32_t from, int32_t to)
{
    for (int32_t d = from; d > to; d--)
        t->nodes[open[d]].end = t->n_nodes;
}

static void add_nodes(vocab_trie *t, const piece *pieces, int32_t n)
{
    int32_t open[VOCAB_TRIE_LONGEST + 1] = {0}, depth = 0;
    t->nodes[t->n_nodes++] = (vocab_trie_node){.first = 0};
    for (int32_t i = 0; i < n; i++) {
        int32_t same = i ? common_bytes(&pieces[i - 1], &pieces[i]) : 0;
        close_below(t, open, depth, same);
        for (depth = same; depth < pieces[i].n; depth++) {
            open[depth + 1] = t->n_nodes;
            t->nodes[t->n_nodes++] = (vocab_trie_node){
                .first = t->n_ids, .byte = pieces[i].bytes[depth], .depth = (uint8_t)(depth + 1)};
        }
        t->ids[t->n_ids++] = pieces[i].id;
    }
    close_below(t, open, depth, 0);
    t->nodes[0].end = t->n_nodes;
    t->nodes[t->n_nodes] = (vocab_trie_node){.end = t->n_nodes, .first = t->n_ids};
}

static int32_t count_nodes(const piece *pieces, int32_t n)
{
    int32_t total = 1;
    for (int32_t i = 0; i < n; i++)
        total += pieces[i].n - (i ? common_bytes(&pieces[i - 1], &pieces[i]) : 0);
    return total;
}

static drey_status build(vocab_trie **out, const tokenizer *tok, piece *pieces, uint8_t *bytes,
                         drey_error *err)
{
    int32_t n_vocab = tokenizer_n_vocab(tok), n = sort_pieces(tok, pieces, bytes), n_ends = 0;
    for (int32_t id = 0; id < n_vocab; id++)
        n_ends += tokenizer_is_end(tok, id);
    size_t nodes = (size_t)(count_nodes(pieces, n) + 1) * sizeof(vocab_trie_node);
    size_t size = sizeof(vocab_trie) + nodes + (size_t)(n + n_ends) * sizeof(int32_t);
    vocab_trie *t = malloc(size);
    if (!t)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the vocabulary's %d tokens", n_vocab);
    *t = (vocab_trie){.tokenizer = tok, .n_vocab = n_vocab, .size_bytes = size};
    t->nodes = (vocab_trie_node *)(void *)(t + 1);
    t->ids = (int32_t *)(void *)((uint8_t *)t->nodes + nodes);
    t->ends = t->ids + n;
    add_nodes(t, pieces, n);
    for (int32_t id = 0; id < n_vocab; id++)
        if (tokenizer_is_end(tok, id))
            t->ends[t->n_ends++] = id;
    *out = t;
    return DREY_OK;
}

drey_status vocab_trie_open(vocab_trie **out, const tokenizer *tok, drey_error *err)
{
    *out = NULL;
    size_t pieces = (size_t)tokenizer_n_vocab(tok) * sizeof(piece);
    piece *work = malloc(pieces + count_bytes(tok) + VOCAB_TRIE_LONGEST);
    if (!work)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory to sort the vocabulary's %d tokens",
             tokenizer_n_vocab(tok));
    drey_status status = build(out, tok, work, (uint8_t *)work + pieces, err);
    free(work);
    return status;
}

void vocab_trie_close(vocab_trie **t)
{
    free(*t);
    *t = NULL;
}

/* A node for each byte at most; qsort may take as much again as what it sorts. */
size_t vocab_trie_most_bytes(const tokenizer *t)
{
    size_t n = (size_t)tokenizer_n_vocab(t), bytes = count_bytes(t);
    return sizeof(vocab_trie) + (bytes + 2) * (sizeof(vocab_trie_node) + 1) +
           n * (2 * sizeof(piece) + 2 * sizeof(int32_t));
}
