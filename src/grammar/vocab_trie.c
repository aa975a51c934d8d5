/* The trie of a vocabulary: see vocab_trie.h. */
#include "grammar/vocab_trie.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/num.h"
#include "common/utf8.h"
#include "text/tokenizer.h"

/* A token's bytes while they are sorted. */
typedef struct piece {
    const uint8_t *bytes;
    int32_t id, n;
    int32_t n_chars; /* characters of a plain token; 0: it is not */
} piece;

/* Returns whether a character of that code counts as plain: JSON's strings have it as it is, and no
 * mark begins with it, nor code in a line. */
static bool vocab_is_plain(uint32_t code)
{
    return code >= 0x20 && code != '"' && code != '\\' && code != '<' && code != '`' &&
           code != 0x7F;
}

static int32_t plain_chars(const uint8_t *bytes, int32_t n)
{
    int32_t n_chars = 0;
    for (int32_t i = 0; i < n; n_chars++) {
        int length = utf8_length(bytes + i, (size_t)(n - i));
        if (length <= 0 || !vocab_is_plain(utf8_code_point(bytes + i, length)))
            return 0;
        i += length;
    }
    return n_chars <= VOCAB_PLAIN_MOST ? n_chars : 0;
}

int32_t vocab_trie_piece(const tokenizer *t, int32_t id, uint8_t out[VOCAB_TRIE_LONGEST])
{
    bool special = tokenizer_is_special(t, id);
    if (tokenizer_is_end(t, id) || tokenizer_is_suppressed(t, id))
        return 0;
    size_t n = tokenizer_piece(t, id, special, false, (char *)out + special,
                               (size_t)VOCAB_TRIE_LONGEST - special);
    if (n == 0 || n + special > VOCAB_TRIE_LONGEST)
        return 0;
    if (special)
        out[0] = VOCAB_TRIE_TOKEN;
    else if (out[0] == VOCAB_TRIE_TOKEN)
        return 0;
    return (int32_t)n + special;
}

static size_t count_bytes(const tokenizer *t)
{
    uint8_t bytes[VOCAB_TRIE_LONGEST];
    size_t total = 0;
    for (int32_t id = 0; id < tokenizer_n_vocab(t); id++)
        total += (size_t)vocab_trie_piece(t, id, bytes);
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
        uint8_t piece_bytes[VOCAB_TRIE_LONGEST];
        int32_t n_bytes = vocab_trie_piece(t, id, piece_bytes);
        if (n_bytes == 0)
            continue;
        memcpy(bytes, piece_bytes, (size_t)n_bytes);
        pieces[n++] =
            (piece){.bytes = bytes, .id = id, .n = n_bytes, .n_chars = plain_chars(bytes, n_bytes)};
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
static void close_below(vocab_part *part, const int32_t *open, int32_t from, int32_t to)
{
    for (int32_t d = from; d > to; d--)
        part->nodes[open[d]].end = part->n_nodes;
}

/* Notes at the nodes on the way to a plain token how many of its characters come after each. */
static void note_plain(vocab_part *part, const int32_t *open, const piece *p)
{
    uint8_t after = 0;
    for (int32_t d = p->n; d >= 0; d--) {
        vocab_trie_node *node = &part->nodes[open[d]];
        if (d < p->n && (p->bytes[d] & 0xC0) == 0x80)
            continue;
        node->n_plain =
            node->n_plain == VOCAB_NOT_PLAIN || node->n_plain < after ? after : node->n_plain;
        after++;
    }
}

static void add_nodes(vocab_trie *t, vocab_part *part, const piece *pieces, int32_t n)
{
    int32_t open[VOCAB_TRIE_LONGEST + 1] = {0}, depth = 0;
    part->nodes[part->n_nodes++] = (vocab_trie_node){.first = t->n_ids, .n_plain = VOCAB_NOT_PLAIN};
    for (int32_t i = 0; i < n; i++) {
        int32_t same = i ? common_bytes(&pieces[i - 1], &pieces[i]) : 0;
        close_below(part, open, depth, same);
        for (depth = same; depth < pieces[i].n; depth++) {
            open[depth + 1] = part->n_nodes;
            part->nodes[part->n_nodes++] = (vocab_trie_node){.first = t->n_ids,
                                                             .byte = pieces[i].bytes[depth],
                                                             .depth = (uint8_t)(depth + 1),
                                                             .n_plain = VOCAB_NOT_PLAIN};
        }
        if (pieces[i].n_chars)
            note_plain(part, open, &pieces[i]);
        t->ids[t->n_ids++] = pieces[i].id;
    }
    close_below(part, open, depth, 0);
    part->nodes[0].end = part->n_nodes;
    part->nodes[part->n_nodes] = (vocab_trie_node){.end = part->n_nodes, .first = t->n_ids};
}

static int32_t count_nodes(const piece *pieces, int32_t n)
{
    int32_t total = 1;
    for (int32_t i = 0; i < n; i++)
        total += pieces[i].n - (i ? common_bytes(&pieces[i - 1], &pieces[i]) : 0);
    return total;
}

/* Plain pieces first, in their order. Returns how many. */
static int32_t part_pieces(const piece *pieces, int32_t n, piece *parted)
{
    int32_t n_plain = 0, n_others = 0;
    for (int32_t i = 0; i < n; i++)
        n_plain += pieces[i].n_chars > 0;
    for (int32_t i = 0, k = 0; i < n; i++)
        parted[pieces[i].n_chars ? k++ : n_plain + n_others++] = pieces[i];
    return n_plain;
}

static void mark_plain(vocab_trie *t, const piece *pieces, int32_t n)
{
    const int32_t n_words = t->n_words;
    memset(t->plain, 0, VOCAB_PLAIN_MOST * (size_t)n_words * sizeof *t->plain);
    for (int32_t i = 0; i < n; i++)
        t->plain[(int64_t)(pieces[i].n_chars - 1) * n_words + pieces[i].id / 64] |=
            UINT64_C(1) << (pieces[i].id % 64);
    for (int64_t w = n_words; w < (int64_t)VOCAB_PLAIN_MOST * n_words; w++)
        t->plain[w] |= t->plain[w - n_words];
}

static bool ends(const tokenizer *t, int32_t id)
{
    return tokenizer_is_end(t, id) && !tokenizer_is_suppressed(t, id);
}

static drey_status build(vocab_trie **out, const tokenizer *tok, piece *pieces, uint8_t *bytes,
                         drey_error *err)
{
    int32_t n_vocab = tokenizer_n_vocab(tok), n = sort_pieces(tok, pieces, bytes), n_ends = 0;
    piece *parted = pieces + n_vocab;
    const int32_t n_plain = part_pieces(pieces, n, parted), n_words = (n_vocab + 63) / 64;
    const int32_t n_nodes = count_nodes(parted, n_plain) + 1;
    for (int32_t id = 0; id < n_vocab; id++)
        n_ends += ends(tok, id);
    size_t nodes = (size_t)(n_nodes + count_nodes(parted + n_plain, n - n_plain) + 1) *
                   sizeof(vocab_trie_node);
    size_t masks = VOCAB_PLAIN_MOST * (size_t)n_words * sizeof(uint64_t);
    size_t size = sizeof(vocab_trie) + masks + nodes + (size_t)(n + n_ends) * sizeof(int32_t);
    vocab_trie *t = malloc(size);
    if (!t)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the vocabulary's %d tokens", n_vocab);
    *t = (vocab_trie){.tokenizer = tok, .n_vocab = n_vocab, .n_words = n_words, .size_bytes = size};
    t->plain = (uint64_t *)(void *)(t + 1);
    t->parts[VOCAB_PLAIN].nodes = (vocab_trie_node *)(void *)((uint8_t *)t->plain + masks);
    t->parts[VOCAB_OTHERS].nodes = t->parts[VOCAB_PLAIN].nodes + n_nodes;
    t->ids = (int32_t *)(void *)((uint8_t *)t->parts[VOCAB_PLAIN].nodes + nodes);
    t->ends = t->ids + n;
    add_nodes(t, &t->parts[VOCAB_PLAIN], parted, n_plain);
    add_nodes(t, &t->parts[VOCAB_OTHERS], parted + n_plain, n - n_plain);
    mark_plain(t, parted, n_plain);
    for (int32_t id = 0; id < n_vocab; id++)
        if (ends(tok, id))
            t->ends[t->n_ends++] = id;
    *out = t;
    return DREY_OK;
}

drey_status vocab_trie_open(vocab_trie **out, const tokenizer *tok, drey_error *err)
{
    *out = NULL;
    size_t pieces = 2 * (size_t)tokenizer_n_vocab(tok) * sizeof(piece);
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
    size_t masks = VOCAB_PLAIN_MOST * ((n + 63) / 64) * sizeof(uint64_t);
    return sizeof(vocab_trie) + masks + (bytes + 4) * (sizeof(vocab_trie_node) + 1) +
           n * (2 * sizeof(piece) + 2 * sizeof(int32_t));
}
