/* Styles of Markdown: see text_styles.h. */
#include "cli/terminal/text_styles.h"

#include <string.h>

enum { LEAST_FENCE = 3, MOST_HEADING = 6 };

const char *const text_style_begin[] = {"", "\033[1m", "\033[36m", "\033[1;35m"};
const char *const text_style_end[] = {"", "\033[22m", "\033[39m", "\033[22;39m"};

static bool is_blank(uint32_t code)
{
    return code == ' ' || code == '\t' || code == '\n';
}

static bool is_ascii_of(uint32_t code, const char *set)
{
    return code > 0 && code < 0x80 && strchr(set, (int)code);
}

/* Bold begins after a blank or a sign, not within a word: 2**3 is no mark. */
static void end_stars(text_styles *s, uint32_t next)
{
    bool may_open =
        s->before == 0 || is_blank(s->before) || is_ascii_of(s->before, "([{\"'`:;,.!?-/>|_~");
    if (s->n_run < 2)
        return;
    if (s->bold && !is_blank(s->before))
        s->bold = false;
    else if (!s->bold && may_open && !is_blank(next))
        s->bold = true;
}

static void end_run(text_styles *s, uint32_t next)
{
    bool fences = s->run_is_first && s->n_run >= LEAST_FENCE;
    char run = s->run;
    s->run = 0;
    if (s->fence)
        s->closes = fences && run == s->fence && s->n_run >= s->n_fence;
    else if ((run == '`' || run == '~') && fences)
        s->opens = run;
    else if (run == '`' && s->n_code == 0)
        s->n_code = s->n_run;
    else if (run == '`' && s->n_code == s->n_run)
        s->n_code = 0;
    else if (run == '*')
        end_stars(s, next);
    else if (run == '#')
        s->heading |= s->run_is_first && s->n_run <= MOST_HEADING && next == ' ';
}

static void end_line(text_styles *s)
{
    char fence = s->fence;
    int32_t n_fence = s->n_fence;
    if (s->opens) {
        fence = s->opens;
        n_fence = s->n_run;
    } else if (s->closes) {
        fence = 0;
    }
    *s = (text_styles){.fence = fence, .n_fence = fence ? n_fence : 0};
}

/* Returns whether the character is one of a run of marks, which it then joins. */
static bool joins_run(text_styles *s, uint32_t code)
{
    const char *marks = s->fence                ? s->fence == '`' ? "`" : "~"
                        : s->opens || s->closes ? ""
                        : s->n_code             ? "`"
                        : s->begun              ? "`*"
                                                : "`~*#";
    if (s->escaped || !is_ascii_of(code, marks) || (s->fence && s->begun))
        return false;
    if (!s->run) {
        s->run = (char)code;
        s->n_run = 0;
        s->run_is_first = !s->begun;
    }
    s->n_run++;
    return true;
}

text_style text_styles_pass(text_styles *s, uint32_t code)
{
    if (s->run && code != (unsigned char)s->run)
        end_run(s, code);
    if (code == '\n') {
        end_line(s);
        return TEXT_STYLE_PLAIN;
    }
    if (s->opens == '`' && code == '`') { /* a block's name has none: it was code in the line */
        s->opens = 0;
        s->n_code = s->n_run;
    }
    if (joins_run(s, code))
        return s->heading ? TEXT_STYLE_HEADING : TEXT_STYLE_PLAIN;
    s->closes = s->closes && is_blank(code);
    s->begun = s->begun || !is_ascii_of(code, s->fence ? " \t" : " \t-+>.)0123456789");
    s->before = code;
    s->escaped = !s->escaped && code == '\\' && !s->n_code && !s->fence;
    if (s->opens || s->closes)
        return TEXT_STYLE_PLAIN;
    if (s->fence || s->n_code)
        return TEXT_STYLE_CODE;
    return s->heading ? TEXT_STYLE_HEADING : s->bold ? TEXT_STYLE_BOLD : TEXT_STYLE_PLAIN;
}

bool text_styles_in_block(const text_styles *s)
{
    bool begins = (s->run == '`' || s->run == '~') && s->run_is_first && s->n_run >= LEAST_FENCE;
    return s->fence || s->opens || begins;
}
