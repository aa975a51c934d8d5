/* Property: any bytes are an unknown template, which is refused with a sentence, or give a turn
 * that holds the user's text and, where there is one, the system's, and says where.
 *
 * A zero byte ends the template; what follows it is the system text, and after another the user's.
 */
#include "fuzz/fuzz.h"
#include "text/chat.h"

#include <string.h>

/* The next text up to a zero byte or the end, with bytes of its own. */
static char *next_text(const uint8_t **bytes, size_t *n_bytes, size_t *n)
{
    const uint8_t *zero = *n_bytes ? memchr(*bytes, 0, *n_bytes) : NULL;
    *n = zero ? (size_t)(zero - *bytes) : *n_bytes;
    char *text = malloc(*n + 1);
    FUZZ_CHECK(text);
    if (*n)
        memcpy(text, *bytes, *n);
    text[*n] = 0;
    size_t used = *n + (zero != NULL);
    *bytes += used;
    *n_bytes -= used;
    return text;
}

/* Whether a text is in another but for blanks around it, which templates may strip: looked for by
 * its longest part without any. */
static bool holds(const char *whole, const char *text)
{
    for (; *text; text++) {
        size_t n = 0;
        while ((text[n] > 0x20 && text[n] != 0x7F)) /* ASCII only: wide blanks may go too */
            n++;
        if (n > 0) {
            const char *at = memmem(whole, strlen(whole), text, n);
            return at != NULL;
        }
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    size_t n_template, n_system, n_user;
    char *template = next_text(&bytes, &n_bytes, &n_template);
    bool has_system = n_bytes > 0;
    char *system = next_text(&bytes, &n_bytes, &n_system);
    char *user = next_text(&bytes, &n_bytes, &n_user);
    /* A copy without a byte behind it, so that a sanitizer sees one that is read. */
    char *exact = malloc(n_template ? n_template : 1);
    chat_turn turn;
    FUZZ_CHECK(exact);
    memcpy(exact, template, n_template);
    drey_error err = {0};
    drey_status status =
        chat_format_turn(exact, n_template, "</s>", has_system ? system : NULL, user, &turn, &err);
    const char *out = turn.text;
    if (n_template > CHAT_TEMPLATE_BYTES || chat_recognise(exact, n_template) == CHAT_UNKNOWN) {
        FUZZ_CHECK(status == DREY_ERR_UNSUPPORTED && !out && strlen(err.message) > 20);
    } else {
        FUZZ_CHECK(status == DREY_OK && out);
        FUZZ_CHECK(holds(out, user) && (!has_system || holds(out, system)));
        FUZZ_CHECK(turn.n_bytes == strlen(out) && turn.n_content >= 1 && turn.n_content <= 2);
        const text_range *last = &turn.content[turn.n_content - 1];
        FUZZ_CHECK(last->begin <= last->end && last->end <= turn.n_bytes);
        FUZZ_CHECK(turn.n_content == 1 || turn.content[0].end <= last->begin);
    }
    free(turn.text);
    free(exact);
    free(user);
    free(system);
    free(template);
    return 0;
}
