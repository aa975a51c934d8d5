/* Cutting a Jinja template into words: see jinja_lexer.h. */
#include "template/jinja_lexer.h"

#include <string.h>

#include "common/utf8.h"

/* ---- The template as lines ---- */

value lexer_source(heap *r, const char *chat_template, size_t n)
{
    size_t at = text_begin(r), done = 0;
    for (size_t i = 0; i < n; i++) {
        if (chat_template[i] != '\r')
            continue;
        text_put(r, chat_template + done, i - done);
        text_put(r, "\n", 1);
        i += i + 1 < n && chat_template[i + 1] == '\n';
        done = i + 1;
    }
    text_put(r, chat_template + done, n - done);
    value source = text_end(r, at);
    if (source.n > 0 && source.text[source.n - 1] == '\n')
        source.n--;
    return source;
}

void lexer_init(lexer *l, heap *r, value source)
{
    *l = (lexer){.r = r, .text = source.text, .n = source.n, .line = 1, .line_begins = true};
}

/* ---- Small steps ---- */

static token stop(lexer *l, const char *why)
{
    l->r->line = l->line;
    heap_fail(l->r, DREY_ERR_FORMAT, "%s", why);
    return (token){.kind = WORD_END, .line = l->line};
}

static bool stands(const lexer *l, size_t at, const char *what)
{
    size_t n = strlen(what);
    return at <= l->n && n <= l->n - at && memcmp(l->text + at, what, n) == 0;
}

static size_t space_at(const lexer *l, size_t at)
{
    if (at >= l->n)
        return 0;
    size_t n = character_bytes(l->text + at, l->n - at);
    return is_space(character_code(l->text + at, n)) ? n : 0;
}

static size_t after_spaces(const lexer *l, size_t at)
{
    for (size_t n; (n = space_at(l, at)) > 0;)
        at += n;
    return at;
}

/* Continues at `to`, counting lines. */
static void go_to(lexer *l, size_t to)
{
    for (; l->at < to; l->at++)
        l->line += l->text[l->at] == '\n';
    l->line_begins = to > 0 && l->text[to - 1] == '\n';
}

/* text[begin..end) without the white space at its end. */
static size_t without_spaces(const lexer *l, size_t begin, size_t end)
{
    while (end > begin) {
        size_t last = last_character(l->text, begin, end);
        if (!is_space(character_code(l->text + last, end - last)))
            break;
        end = last;
    }
    return end;
}

/* text[begin..end) before a block or comment, without the blanks that begin its line. */
static size_t without_indent(const lexer *l, size_t begin, size_t end, bool line_begins)
{
    size_t line = end;
    while (line > begin && l->text[line - 1] != '\n')
        line--;
    if (line == begin && !line_begins)
        return end;
    return without_spaces(l, line, end) == line ? line : end;
}

/* ---- Text and tags ---- */

/* The next {{, {% or {#. */
static size_t find_tag(const lexer *l)
{
    for (size_t at = l->at; at + 1 < l->n; at++) {
        const char *brace = memchr(l->text + at, '{', l->n - 1 - at);
        if (!brace)
            break;
        at = (size_t)(brace - l->text);
        if (brace[1] == '{' || brace[1] == '%' || brace[1] == '#')
            return at;
    }
    return l->n;
}

/* The position after a tag's "%}" or "#}" at `at`; `mark` is the sign before it. */
static size_t after_block(const lexer *l, size_t at, char mark)
{
    at += 2;
    if (mark == '-')
        return after_spaces(l, at);
    return at + (mark != '+' && at < l->n && l->text[at] == '\n');
}

static void skip_comment(lexer *l)
{
    size_t at = l->at + 2;
    at += at < l->n && (l->text[at] == '-' || l->text[at] == '+');
    size_t length = text_find(l->text + at, l->n - at, "#}", 2);
    if (length == SIZE_MAX)
        stop(l, "a comment, {#, that does not end");
    else
        go_to(l, after_block(l, at + length, length > 0 ? l->text[at + length - 1] : ' '));
}

/* If the tag that begins here is {% NAME %}: the position after it; else 0. */
static size_t named_tag(const lexer *l, size_t at, const char *name, char *mark)
{
    at += 2;
    at += at < l->n && (l->text[at] == '-' || l->text[at] == '+');
    at = after_spaces(l, at);
    if (!stands(l, at, name))
        return 0;
    at = after_spaces(l, at + strlen(name));
    *mark = ' ';
    if (at < l->n && (l->text[at] == '-' || l->text[at] == '+'))
        *mark = l->text[at++];
    return stands(l, at, "%}") ? at : 0;
}

static token data_token(lexer *l, size_t begin, size_t end, uint32_t line)
{
    return (token){.kind = WORD_DATA, .line = line, .v = string_span(l->text + begin, end - begin)};
}

/* The text between {% raw %}, which ends at l->at, and {% endraw %}. */
static token raw_text(lexer *l)
{
    size_t begin = l->at;
    uint32_t line = l->line;
    for (size_t at = begin;; at++) {
        size_t length = text_find(l->text + at, l->n - at, "{%", 2);
        if (length == SIZE_MAX)
            return stop(l, "{% raw %} without {% endraw %}");
        at += length;
        char mark, sign = at + 2 < l->n ? l->text[at + 2] : ' ';
        size_t close = named_tag(l, at, "endraw", &mark);
        if (!close)
            continue;
        size_t end = sign == '-'   ? without_spaces(l, begin, at)
                     : sign != '+' ? without_indent(l, begin, at, l->line_begins)
                                   : at;
        go_to(l, after_block(l, close, mark));
        l->state = IN_DATA;
        return data_token(l, begin, end, line);
    }
}

static token enter_tag(lexer *l)
{
    bool prints = l->state == BEFORE_PRINT;
    size_t at = l->at + 2;
    l->state = prints ? IN_PRINT : IN_BLOCK;
    go_to(l, at + (at < l->n && (l->text[at] == '-' || l->text[at] == '+')));
    return (token){.kind = prints ? WORD_PRINT_BEGIN : WORD_BLOCK_BEGIN, .line = l->line};
}

/* Goes to the tag at l->at, past a comment. */
static void meet_tag(lexer *l)
{
    char mark, kind = l->text[l->at + 1];
    size_t close = kind == '%' ? named_tag(l, l->at, "raw", &mark) : 0;
    if (close) {
        l->state = IN_RAW;
        go_to(l, mark == '-' ? after_spaces(l, close + 2) : close + 2);
    } else if (kind == '#') {
        skip_comment(l);
    } else {
        l->state = kind == '{' ? BEFORE_PRINT : BEFORE_BLOCK;
    }
}

/* The text up to the next tag, if there is some; or the tag. */
static token next_data(lexer *l)
{
    while (l->state == IN_DATA && l->at < l->n && heap_ok(l->r)) {
        size_t begin = l->at, tag = find_tag(l), end = tag;
        uint32_t line = l->line;
        bool begins = l->line_begins;
        char sign = tag + 2 < l->n ? l->text[tag + 2] : ' ';
        if (sign == '-')
            end = without_spaces(l, begin, tag);
        else if (tag < l->n && sign != '+' && l->text[tag + 1] != '{')
            end = without_indent(l, begin, tag, begins);
        go_to(l, tag);
        if (tag < l->n)
            meet_tag(l);
        if (end > begin)
            return data_token(l, begin, end, line);
    }
    if (l->state == IN_DATA || !heap_ok(l->r))
        return (token){.kind = WORD_END, .line = l->line};
    return l->state == IN_RAW ? raw_text(l) : enter_tag(l);
}

/* ---- Inside of tags ---- */

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* \xHH, \uHHHH, \UHHHHHHHH and octal digits; false: none of them. */
static bool put_coded(lexer *l, const char *p, size_t n, size_t *used)
{
    size_t wanted = p[0] == 'x' ? 2 : p[0] == 'u' ? 4 : p[0] == 'U' ? 8 : 0;
    bool octal = p[0] >= '0' && p[0] <= '7';
    uint32_t code = 0;
    size_t i = octal ? 0 : 1, end = octal ? 3 : 1 + wanted;
    if (!octal && (wanted == 0 || n < end))
        return false;
    for (; i < end && i < n; i++) {
        char c = p[i];
        int d = digit(c)               ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 16;
        if (d >= (octal ? 8 : 16)) {
            if (octal)
                break;
            return false;
        }
        code = code * (octal ? 8 : 16) + (uint32_t)d;
    }
    char out[4];
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return false;
    text_put(l->r, out, utf8_write(code, out));
    *used = i;
    return true;
}

/* A string's meaning; s has an escape. */
static value unescaped(lexer *l, value s)
{
    static const char names[] = "ntr\\'\"abfv", meanings[] = "\n\t\r\\'\"\a\b\f\v";
    size_t at = text_begin(l->r);
    for (size_t i = 0; i < s.n && heap_ok(l->r);) {
        const char *slash = memchr(s.text + i, '\\', s.n - i);
        size_t plain = slash ? (size_t)(slash - s.text) - i : s.n - i, used = 1;
        text_put(l->r, s.text + i, plain);
        i += plain;
        if (i + 1 >= s.n)
            break;
        const char *known = s.text[i + 1] ? strchr(names, s.text[i + 1]) : NULL;
        if (known)
            text_put(l->r, &meanings[known - names], 1);
        else if (s.text[i + 1] == 'N')
            stop(l, "the escape \\N in a string is not supported");
        else if (s.text[i + 1] != '\n' && !put_coded(l, s.text + i + 1, s.n - i - 1, &used))
            text_put(l->r, s.text + i, 2); /* unknown ones stay */
        i += 1 + used;
    }
    return text_end(l->r, at);
}

static token next_string(lexer *l)
{
    char quote = l->text[l->at];
    size_t begin = l->at + 1, end = begin;
    bool escapes = false;
    token t = {.kind = WORD_STRING, .line = l->line};
    while (end < l->n && l->text[end] != quote) {
        escapes |= l->text[end] == '\\';
        end += l->text[end] == '\\' ? 2 : 1;
    }
    if (end >= l->n)
        return stop(l, "a string that does not end");
    t.v = string_span(l->text + begin, end - begin);
    if (escapes)
        t.v = unescaped(l, t.v);
    go_to(l, end + 1);
    return t;
}

/* The position after the digits at `at`. */
static size_t after_digits(const lexer *l, size_t at)
{
    while (at < l->n && digit(l->text[at]))
        at++;
    return at;
}

static token next_number(lexer *l)
{
    size_t end = after_digits(l, l->at), exponent;
    token t = {.kind = WORD_INT, .line = l->line};
    if (end + 1 < l->n && l->text[end] == '.' && digit(l->text[end + 1])) {
        t.kind = WORD_FLOAT;
        end = after_digits(l, end + 1);
    }
    if (end + 1 < l->n && (l->text[end] | 0x20) == 'e') {
        exponent = end + 1 + (l->text[end + 1] == '-' || l->text[end + 1] == '+');
        if (after_digits(l, exponent) > exponent) {
            t.kind = WORD_FLOAT;
            end = after_digits(l, exponent);
        }
    }
    if (end < l->n && letter(l->text[end]))
        return stop(l, "numbers with letters in them are not supported");
    value digits = string_span(l->text + l->at, end - l->at);
    t.v = t.kind == WORD_INT ? int_from_text(digits) : float_from_text(l->r, digits);
    go_to(l, end);
    return t;
}

static bool open_bracket(lexer *l, char closing)
{
    if (l->n_brackets == (int)sizeof l->brackets) {
        l->r->line = l->line;
        heap_fail(l->r, DREY_ERR_UNSUPPORTED, "brackets are nested too deep");
        return false;
    }
    l->brackets[l->n_brackets++] = closing;
    return true;
}

static token next_sign(lexer *l)
{
    static const struct {
        char text[3], sign;
    } pairs[] = {{"==", SIGN_EQ}, {"!=", SIGN_NE},    {"<=", SIGN_LE},
                 {">=", SIGN_GE}, {"**", SIGN_POWER}, {"//", SIGN_FLOOR_DIV}};
    token t = {.kind = WORD_SIGN, .line = l->line, .sign = l->text[l->at]};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (stands(l, l->at, pairs[i].text)) {
            t.sign = pairs[i].sign;
            l->at += 2;
            return t;
        }
    }
    if (!t.sign || !strchr("+-/*%~[](){}<>=.:|,;", t.sign))
        return stop(l, "a character that means nothing in a tag");
    char closing = t.sign == '(' ? ')' : t.sign == '[' ? ']' : t.sign == '{' ? '}' : 0;
    if (closing && !open_bracket(l, closing))
        return (token){.kind = WORD_END, .line = l->line};
    if (strchr(")]}", t.sign)) {
        if (l->n_brackets == 0 || l->brackets[l->n_brackets - 1] != t.sign)
            return stop(l, "a closing bracket without its opening one");
        l->n_brackets--;
    }
    l->at++;
    return t;
}

/* The end of the tag, if it ends here. */
static bool tag_end(lexer *l, token *t)
{
    const char *end = l->state == IN_PRINT ? "}}" : "%}";
    char mark = l->text[l->at];
    size_t at = l->at + (mark == '-' || (mark == '+' && l->state == IN_BLOCK));
    if (l->n_brackets > 0 || !stands(l, at, end))
        return false;
    *t = (token){.kind = l->state == IN_PRINT ? WORD_PRINT_END : WORD_BLOCK_END, .line = l->line};
    if (l->state == IN_BLOCK)
        go_to(l, after_block(l, at, mark));
    else
        go_to(l, mark == '-' ? after_spaces(l, at + 2) : at + 2);
    l->state = IN_DATA;
    return true;
}

static token next_name(lexer *l)
{
    size_t begin = l->at, end = begin;
    while (end < l->n && (letter(l->text[end]) || digit(l->text[end])))
        end++;
    l->at = end;
    return (token){
        .kind = WORD_NAME, .line = l->line, .v = string_span(l->text + begin, end - begin)};
}

token lexer_next(lexer *l)
{
    token t;
    if (!heap_charge(l->r, 0))
        return (token){.kind = WORD_END, .line = l->line};
    if (l->state == IN_RAW)
        return raw_text(l);
    if (l->state == IN_DATA)
        return next_data(l);
    if (l->state == BEFORE_PRINT || l->state == BEFORE_BLOCK)
        return enter_tag(l);
    go_to(l, after_spaces(l, l->at));
    if (l->at >= l->n)
        return stop(l, "a tag that does not end");
    if (tag_end(l, &t))
        return t;
    char c = l->text[l->at];
    if (letter(c))
        return next_name(l);
    if (digit(c))
        return next_number(l);
    if (c == '\'' || c == '"')
        return next_string(l);
    return next_sign(l);
}
