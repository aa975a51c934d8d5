/* Chat formats: see chat.h. */
#include "text/chat.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

/* ---- Strings: borrowed pieces, and one that grows ---- */

typedef struct piece {
    const char *text;
    size_t n;
} piece;

typedef struct builder {
    char *text; /* NUL-terminated once something was added */
    size_t n, capacity;
    bool failed; /* no memory; what was added since is lost */
    text_range content[2];
    size_t n_content;
} builder;

static piece from_string(const char *s)
{
    return (piece){s, strlen(s)};
}

static void add(builder *b, piece p)
{
    if (b->failed)
        return;
    if (p.n >= b->capacity - b->n) {
        size_t capacity = 2 * (b->n + p.n) + 64;
        char *text = realloc(b->text, capacity);
        if (!text) {
            b->failed = true;
            return;
        }
        b->text = text;
        b->capacity = capacity;
    }
    if (p.n)
        memcpy(b->text + b->n, p.text, p.n);
    b->n += p.n;
    b->text[b->n] = 0;
}

static void add_text(builder *b, const char *s)
{
    add(b, from_string(s));
}

/* Adds what system or user wrote. */
static void add_content(builder *b, piece p)
{
    b->content[b->n_content++] = (text_range){b->n, b->n + p.n};
    add(b, p);
}

static size_t find(piece p, const char *what)
{
    const char *at = p.n ? memmem(p.text, p.n, what, strlen(what)) : NULL;
    return at ? (size_t)(at - p.text) : SIZE_MAX;
}

static bool contains(piece p, const char *what)
{
    return find(p, what) != SIZE_MAX;
}

static piece behind(piece p, size_t at)
{
    return (piece){p.text + at, p.n - at};
}

/* White space as Python's str.strip sees it, which is what Jinja's trim calls. */
static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

static piece strip_front(piece p)
{
    while (p.n > 0) {
        int length = utf8_length((const uint8_t *)p.text, p.n);
        if (length <= 0 || !is_space(utf8_code_point((const uint8_t *)p.text, length)))
            break;
        p = behind(p, (size_t)length);
    }
    return p;
}

static piece strip_back(piece p)
{
    for (;;) {
        size_t length = 1; /* of the last character: back to its first byte */
        while (length < p.n && length < 4 && (p.text[p.n - length] & 0xC0) == 0x80)
            length++;
        if (p.n == 0)
            return p;
        const uint8_t *last = (const uint8_t *)p.text + p.n - length;
        if (utf8_length(last, length) != (int)length ||
            !is_space(utf8_code_point(last, (int)length)))
            return p;
        p.n -= length;
    }
}

static piece strip(piece p)
{
    return strip_front(strip_back(p));
}

/* ---- Reading the template ---- */

/* Whether the template strips messages: content'] | trim, content.strip() and the like. */
static bool strips_content(piece t)
{
    for (size_t at; (at = find(t, "content")) != SIZE_MAX;) {
        t = behind(t, at + strlen("content"));
        piece rest = t;
        if (rest.n >= 2 && (rest.text[0] == '\'' || rest.text[0] == '"') && rest.text[1] == ']')
            rest = behind(rest, 2);
        if (rest.n >= 8 && memcmp(rest.text, ".strip()", 8) == 0)
            return true;
        while (rest.n > 0 && rest.text[0] == ' ')
            rest = behind(rest, 1);
        if (rest.n == 0 || rest.text[0] != '|')
            continue;
        rest = behind(rest, 1);
        while (rest.n > 0 && rest.text[0] == ' ')
            rest = behind(rest, 1);
        if (rest.n >= 4 && memcmp(rest.text, "trim", 4) == 0)
            return true;
    }
    return false;
}

/* Reads the string literals of a template, front to back: each byte is looked at once, whatever the
 * template is. */
typedef struct literals {
    piece t;
    size_t at;
    int depth; /* of braces around at: 0 outside of {{ }} and {% %}, where quotes mean nothing */
} literals;

/* Goes on behind the next {{ or {%; false: there is none. */
static bool enter_tag(literals *l)
{
    while (l->at + 1 < l->t.n) {
        const char *p = l->t.text + l->at;
        l->at += p[0] == '{' ? 2 : 1;
        if (p[0] != '{')
            continue;
        if (p[1] == '{' || p[1] == '%') {
            l->depth = 1;
            return true;
        }
        if (p[1] == '#') {
            size_t end = find(behind(l->t, l->at), "#}");
            l->at = end == SIZE_MAX ? l->t.n : l->at + end + 2;
        }
    }
    return false;
}

/* The next literal, quotes left out, escapes as they stand. */
static bool next_literal(literals *l, piece *out)
{
    while (l->depth > 0 || enter_tag(l)) {
        if (l->at >= l->t.n)
            return false;
        char c = l->t.text[l->at++];
        l->depth += (c == '{') - (c == '}'); /* a tag may hold {"key": value} */
        if (c != '\'' && c != '"')
            continue;
        for (size_t begin = l->at; l->at < l->t.n; l->at++) {
            if (l->t.text[l->at] == c) {
                *out = (piece){l->t.text + begin, l->at++ - begin};
                return true;
            }
            if (l->t.text[l->at] == '\\')
                l->at++;
        }
    }
    return false;
}

/* The literal that holds t.text[at]; text NULL: it is in none. */
static piece quoted(piece t, size_t at)
{
    literals l = {.t = t};
    piece p;
    while (next_literal(&l, &p)) {
        size_t begin = (size_t)(p.text - t.text);
        if (at < begin)
            break;
        if (at <= begin + p.n)
            return p;
    }
    return (piece){0};
}

/* Adds a quoted string's meaning: the escapes that templates use. */
static void add_unescaped(builder *b, piece p)
{
    static const char escapes[] = "n\nt\tr\r\\\\'\'\"\"";
    while (p.n > 0) {
        const char *slash = memchr(p.text, '\\', p.n);
        size_t plain = slash ? (size_t)(slash - p.text) : p.n;
        add(b, (piece){p.text, plain});
        p = behind(p, plain);
        if (p.n == 0)
            return;
        size_t used = 1;
        piece meaning = {p.text, 1};
        for (size_t i = 0; p.n > 1 && i + 1 < sizeof escapes; i += 2)
            if (escapes[i] == p.text[1]) {
                meaning.text = &escapes[i + 1];
                used = 2;
            }
        add(b, meaning);
        p = behind(p, used);
    }
}

/* Adds the string literal of the template that holds a mark, or the fallback where none does. */
static void add_literal(builder *b, piece t, const char *mark, const char *fallback)
{
    size_t at = find(t, mark);
    piece literal = at == SIZE_MAX ? (piece){0} : quoted(t, at);
    if (literal.text)
        add_unescaped(b, literal);
    else
        add_text(b, fallback);
}

/* The system text that a ChatML template has of its own: a literal that holds a whole system
 * message. text NULL: none. Escapes stay. */
static piece chatml_default(piece t)
{
    static const char head[] = "<|im_start|>system";
    literals l = {.t = t};
    piece text;
    while (next_literal(&l, &text)) {
        size_t at = find(text, head);
        if (at == SIZE_MAX)
            continue;
        text = behind(text, at + strlen(head));
        text.n = find(text, "<|im_end|>");
        if (text.n == SIZE_MAX)
            continue;
        if (text.n >= 1 && text.text[0] == '\n')
            return behind(text, 1);
        if (text.n >= 2 && text.text[0] == '\\' && text.text[1] == 'n')
            return behind(text, 2);
    }
    return (piece){0};
}

/* ---- The families ---- */

chat_format chat_recognise(const char *chat_template, size_t n_bytes)
{
    piece t = {chat_template, n_bytes};
    if (contains(t, "<|im_start|>"))
        return contains(t, "<|im_sep|>") ? CHAT_UNKNOWN : CHAT_CHATML;
    if (contains(t, "<|start_header_id|>"))
        return CHAT_LLAMA3;
    if (contains(t, "<start_of_turn>"))
        return CHAT_GEMMA;
    if (contains(t, "[INST]")) {
        if (contains(t, "[SYSTEM_PROMPT]"))
            return CHAT_UNKNOWN;
        return contains(t, "<<SYS>>") ? CHAT_LLAMA2 : CHAT_MISTRAL;
    }
    if (contains(t, "<|user|>") && contains(t, "<|assistant|>") && !contains(t, "<|end|>") &&
        (contains(t, "eos_token") || contains(t, "</s>")))
        return CHAT_ZEPHYR;
    return CHAT_UNKNOWN;
}

static void chatml(builder *b, piece t, const char *system, const char *user)
{
    bool strips = strips_content(t);
    piece own = chatml_default(t);
    if (system || own.text) {
        add_text(b, "<|im_start|>system\n");
        if (system)
            add_content(b, strips ? strip(from_string(system)) : from_string(system));
        else
            add_unescaped(b, own);
        add_text(b, "<|im_end|>\n");
    }
    add_text(b, "<|im_start|>user\n");
    add_content(b, strips ? strip(from_string(user)) : from_string(user));
    add_text(b, "<|im_end|>\n<|im_start|>assistant\n");
}

static void llama2(builder *b, piece t, const char *system, const char *user)
{
    bool strips = strips_content(t);
    piece text = from_string(user);
    add_literal(b, t, "[INST]", "[INST] ");
    if (system) {
        add_text(b, "<<SYS>>\n");
        add_content(b, from_string(system));
        add_text(b, "\n<</SYS>>\n\n");
        add_content(b, strips ? strip_back(text) : text);
    } else {
        add_content(b, strips ? strip(text) : text);
    }
    add_literal(b, t, "[/INST]", " [/INST]");
}

static void llama3(builder *b, piece t, const char *system, const char *user)
{
    bool strips = strips_content(t);
    bool dated = contains(t, "Cutting Knowledge Date: ");
    if (system || dated) {
        add_text(b, "<|start_header_id|>system<|end_header_id|>\n\n");
        if (dated) {
            size_t date = find(t, "date_string = \"");
            piece literal =
                date == SIZE_MAX ? (piece){0} : quoted(t, date + strlen("date_string = \""));
            add_literal(b, t,
                        "Cutting Knowledge Date: ", "Cutting Knowledge Date: December 2023\n");
            add_text(b, "Today Date: ");
            add_unescaped(b, literal.text ? literal : from_string("26 Jul 2024"));
            add_text(b, "\n\n");
        }
        if (system)
            add_content(b, strips ? strip(from_string(system)) : from_string(system));
        add_text(b, "<|eot_id|>");
    }
    add_text(b, "<|start_header_id|>user<|end_header_id|>\n\n");
    add_content(b, strips ? strip(from_string(user)) : from_string(user));
    add_text(b, "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
}

/* Gemma 3 puts the system text in front of the user's and strips that alone; the others refuse a
 * system text, so that it is a part of the user's, which is stripped as a whole. */
static void gemma(builder *b, piece t, const char *system, const char *user)
{
    bool strips = strips_content(t), refuses = !contains(t, "first_user_prefix");
    builder turn = {0};
    if (system) {
        add_text(&turn, system);
        add_text(&turn, "\n\n");
    }
    piece text = from_string(user);
    add(&turn, strips && !refuses ? strip(text) : text);
    text = (piece){turn.text, turn.n};
    add_text(b, "<start_of_turn>user\n");
    add_content(b, strips && refuses ? strip(text) : text);
    add_text(b, "<end_of_turn>\n<start_of_turn>model\n");
    b->failed |= turn.failed;
    free(turn.text);
}

static void mistral(builder *b, piece t, const char *system, const char *user)
{
    add_literal(b, t, "[INST]", "[INST] ");
    if (system) {
        add_content(b, from_string(system));
        add_text(b, "\n\n");
    }
    add_content(b, from_string(user));
    add_literal(b, t, "[/INST]", " [/INST]");
}

static void zephyr(builder *b, piece t, const char *eos, const char *system, const char *user)
{
    const char *end = contains(t, "eos_token") ? eos : "</s>";
    if (system) {
        add_text(b, "<|system|>\n");
        add_content(b, from_string(system));
        add_text(b, end);
        add_text(b, "\n");
    }
    add_text(b, "<|user|>\n");
    add_content(b, from_string(user));
    add_text(b, end);
    add_text(b, "\n<|assistant|>\n");
}

drey_status chat_format_turn(const char *chat_template, size_t n_bytes, const char *eos,
                             const char *system, const char *user, chat_turn *out, drey_error *err)
{
    *out = (chat_turn){0};
    if (n_bytes > CHAT_TEMPLATE_BYTES)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's chat template has %zu bytes, and templates of more than %d are not read; "
             "write the prompt in the model's own format instead",
             n_bytes, CHAT_TEMPLATE_BYTES);
    builder b = {0};
    piece t = {chat_template, n_bytes};
    switch (chat_recognise(chat_template, n_bytes)) {
    case CHAT_CHATML:
        chatml(&b, t, system, user);
        break;
    case CHAT_LLAMA2:
        llama2(&b, t, system, user);
        break;
    case CHAT_LLAMA3:
        llama3(&b, t, system, user);
        break;
    case CHAT_GEMMA:
        gemma(&b, t, system, user);
        break;
    case CHAT_MISTRAL:
        mistral(&b, t, system, user);
        break;
    case CHAT_ZEPHYR:
        zephyr(&b, t, eos, system, user);
        break;
    case CHAT_UNKNOWN:
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model's chat template is of no known format (ChatML, Llama 2, Llama 3, Gemma, "
             "Mistral, Zephyr); write the prompt in the model's own format instead");
    }
    if (b.failed) {
        free(b.text);
        FAIL(err, DREY_ERR_MEMORY, "no memory for a prompt of %zu bytes", b.n);
    }
    *out = (chat_turn){b.text, b.n, {b.content[0], b.content[1]}, b.n_content};
    return DREY_OK;
}
