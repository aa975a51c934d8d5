/* Reads answers that consist of messages with headers, as gpt-oss writes them:
 *
 *     <|channel|>analysis<|message|>The user wants ...<|end|><|start|>assistant<|channel|>
 *     commentary to=functions.weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>
 *
 *   AT_BEGIN, IN_HEADER --<|message|>--> IN_REASONING, IN_CONTENT, IN_ARGUMENTS or IN_OTHER
 *        ^                                     |
 *        +-- <|end|>, <|start|>, <|channel|> --+
 *
 * The channel "analysis" is reasoning, others are content. A message to a tool is a call; what is
 * written to anybody else is nobody's: IN_OTHER. An answer that does not begin like a header is
 * content. */
#include "reply/reply_reading.h"

#include <string.h>

static const char message_mark[] = "<|message|>";
/* Marks that end a message, or begin the next one. */
static const char *const edges[] = {"<|end|>", "<|start|>", "<|channel|>", "<|call|>",
                                    "<|return|>"};
enum { CHANNEL_EDGE = 2 };

/* The last text after `key` in held[0..n), up to a blank or a mark; *n_word is 0 if there is
 * none. */
static const char *word_after(const char *held, int32_t n, const char *key, int32_t *n_word)
{
    const char *found = held;
    int32_t n_key = (int32_t)strlen(key);
    *n_word = 0;
    for (int32_t i = 0; i + n_key <= n; i++) {
        if (memcmp(held + i, key, (size_t)n_key) != 0)
            continue;
        int32_t k = i + n_key, from = k;
        while (k < n && held[k] != '<' && !reading_blank(held[k]))
            k++;
        found = held + from;
        *n_word = k - from;
    }
    return found;
}

static bool is_word(const char *text, int32_t n, const char *word)
{
    return (int32_t)strlen(word) == n && memcmp(text, word, (size_t)n) == 0;
}

/* Messages of the same kind are apart. */
static void begin_text(reading *x, int32_t state)
{
    reply_reader *r = x->r;
    bool reasoning = state == IN_REASONING;
    bool before = reasoning ? r->had_reasoning : r->had_text;
    reading_enter_fresh(x, state);
    r->raw = false;
    if (before) {
        r->wrote = true;
        reading_put_plain(x, '\n');
        reading_put_plain(x, '\n');
        r->wrote = false;
    }
}

/* The header is whole: held[0..n). */
static void take_header(reading *x)
{
    static const char functions[] = "functions.";
    reply_reader *r = x->r;
    const int32_t n_prefix = (int32_t)sizeof functions - 1;
    char held[sizeof r->held];
    int32_t n = r->n_held, n_to, n_channel;
    memcpy(held, r->held, (size_t)n);
    const char *to = word_after(held, n, "to=", &n_to);
    const char *channel = word_after(held, n, "<|channel|>", &n_channel);
    bool analysis = is_word(channel, n_channel, "analysis");
    if (n_to > n_prefix && memcmp(to, functions, (size_t)n_prefix) == 0 && r->form.calls &&
        n_to - n_prefix <= (int32_t)sizeof r->name) {
        reading_give_call(x, to + n_prefix, (size_t)(n_to - n_prefix));
        reading_enter(x, IN_CALL);
    } else if (n_to > 0 && !is_word(to, n_to, "assistant") && !is_word(to, n_to, "user")) {
        reading_enter(x, IN_OTHER);
    } else if (!analysis) {
        begin_text(x, IN_CONTENT);
    } else if (r->form.thinking) {
        begin_text(x, IN_REASONING);
    } else { /* it stays in the content, with its marks */
        reading_enter_fresh(x, IN_CONTENT);
        for (int32_t i = 0; i < n; i++)
            reading_put_plain(x, held[i]);
        r->raw = true;
    }
}

/* Returns whether the held text can be the beginning of a header. */
static bool is_header(const reply_reader *r)
{
    static const char *const begins[] = {"<|start|>", "<|channel|>", "<|constrain|>", "assistant",
                                         "to="};
    int32_t blanks = 0;
    while (blanks < r->n_held && reading_blank(r->held[blanks]))
        blanks++;
    int32_t n = r->n_held - blanks;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        int32_t n_begin = (int32_t)strlen(begins[i]);
        if (memcmp(begins[i], r->held + blanks, (size_t)(n < n_begin ? n : n_begin)) == 0)
            return true;
    }
    return false;
}

/* The message that had begun is over. */
static void end_message(reading *x, size_t edge)
{
    reply_reader *r = x->r;
    const char *text = edges[edge];
    bool raw = r->raw && edge == 0;
    for (const char *p = text; *p && raw; p++)
        reading_put_plain(x, *p);
    r->had_reasoning = r->had_reasoning || (r->state == IN_REASONING && r->wrote);
    r->had_text = r->had_text || (r->state == IN_CONTENT && r->wrote && !r->raw);
    reading_enter(x, IN_HEADER);
    if (edge == CHANNEL_EDGE) {
        r->n_held = (int32_t)strlen(text);
        memcpy(r->held, text, (size_t)r->n_held);
    }
}

/* Finds an edge in the held text, or its beginning. */
static fit find_edge(const reply_reader *r, size_t *edge)
{
    fit best = NO_FIT;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        fit f = reading_fits(edges[i], r->held, (size_t)r->n_held);
        if (f > best) {
            best = f;
            *edge = i;
        }
    }
    return best;
}

static void read_header(reading *x, char c)
{
    reply_reader *r = x->r;
    const int32_t n_mark = (int32_t)sizeof message_mark - 1;
    size_t edge = 0;
    r->held[r->n_held++] = c;
    if (find_edge(r, &edge) == WHOLE_FIT && edge != CHANNEL_EDGE)
        r->n_held = 0;
    if (find_edge(r, &edge) == PART_FIT)
        return;
    if (r->n_held >= n_mark &&
        memcmp(r->held + r->n_held - n_mark, message_mark, (size_t)n_mark) == 0) {
        take_header(x);
    } else if (!is_header(r) || r->n_held == (int32_t)sizeof r->held) {
        char held[sizeof r->held];
        int32_t n = r->n_held;
        memcpy(held, r->held, (size_t)n);
        reading_enter_fresh(x, IN_CONTENT);
        r->raw = false;
        for (int32_t i = 0; i < n; i++)
            reading_put_plain(x, held[i]);
    }
}

static void read_text(reading *x, char c)
{
    reply_reader *r = x->r;
    r->held[r->n_held++] = c;
    while (r->n_held > 0) {
        size_t edge = 0;
        fit f = find_edge(r, &edge);
        if (f == PART_FIT)
            return;
        if (f == WHOLE_FIT) {
            end_message(x, edge);
            return;
        }
        if (r->state != IN_OTHER)
            reading_put_plain(x, r->held[0]);
        reading_drop_held(x, 1);
    }
}

void channels_read(reading *x, char c)
{
    if (x->r->state == IN_CONTENT || x->r->state == IN_REASONING || x->r->state == IN_OTHER)
        read_text(x, c);
    else
        read_header(x, c);
}
