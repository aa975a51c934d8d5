/* Runs of plain characters: see states.h. Inside of a string any of them leads to the same state,
 * and most tokens are made of nothing else. */
#include "grammar/states.h"
#include "grammar/vocab_trie.h"

/* The plain characters by the ranges of their bytes. */
typedef struct byte_range {
    uint8_t low, high;
} byte_range;

enum { N_FORMS = 13, MOST_BYTES = 4 };
static const struct {
    int n;
    byte_range bytes[MOST_BYTES];
} forms[N_FORMS] = {
    {1, {{0x20, 0x21}}},
    {1, {{0x23, 0x3B}}},
    {1, {{0x3D, 0x5B}}},
    {1, {{0x5D, 0x5F}}},
    {1, {{0x61, 0x7E}}},
    {2, {{0xC2, 0xDF}, {0x80, 0xBF}}},
    {3, {{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}}},
    {3, {{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {3, {{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}}}, /* not surrogates */
    {3, {{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {4, {{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {4, {{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {4, {{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}},
};

/* Follows the characters of a form; *after becomes the state after all of them, or
 * STATE_PLAIN_DIFFERS. Returns false when states were forgotten: ids mean nothing then. */
static bool follow(states *s, int32_t from, const byte_range *bytes, int n, int32_t *after)
{
    const uint8_t *class_of = s->a->class_of;
    if (n == 0 || from == GRAMMAR_NOWHERE) {
        *after = *after == STATE_PLAIN_UNKNOWN || *after == from ? from : STATE_PLAIN_DIFFERS;
        return true;
    }
    const int64_t n_compacted = s->n_compacted;
    int32_t last = STATE_PLAIN_UNKNOWN;
    for (int b = bytes->low; b <= bytes->high && *after != STATE_PLAIN_DIFFERS; b++) {
        if (b > bytes->low && class_of[b] == class_of[b - 1])
            continue;
        int32_t at = from, to = states_step(s, &at, (uint8_t)b);
        if (s->n_compacted != n_compacted)
            return false;
        if (to != last && !follow(s, to, bytes + 1, n - 1, after))
            return false;
        last = to;
    }
    return true;
}

/* The state after any plain character, or a state_plain. */
static int32_t after_any(states *s, int32_t id)
{
    int32_t after = s->all[id].plain;
    if (after != STATE_PLAIN_UNKNOWN)
        return after;
    for (int i = 0; i < N_FORMS && after != STATE_PLAIN_DIFFERS; i++)
        if (!follow(s, id, forms[i].bytes, forms[i].n, &after))
            return STATE_PLAIN_UNKNOWN;
    s->all[id].plain = after;
    return after;
}

plain_run states_plain_run(states *s, const int32_t *state)
{
    plain_run run = {0};
    for (int32_t id = *state; run.n < VOCAB_PLAIN_MOST; run.n++) {
        int32_t after = after_any(s, id);
        if (after == STATE_PLAIN_UNKNOWN) /* all that was seen of them has other ids */
            return (plain_run){0};
        if (after == id)
            return (plain_run){.n = VOCAB_PLAIN_MOST};
        run.ends = after == GRAMMAR_NOWHERE;
        if (after == STATE_PLAIN_DIFFERS || run.ends)
            return run;
        id = after;
    }
    return run;
}
