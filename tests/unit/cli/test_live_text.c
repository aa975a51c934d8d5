/* Provisional text on a terminal, read by a model of one: at any time the screen shows the verified
 * text as if it had been written once, and after it, dim, what is provisional; at the end nothing
 * else is left. Wide characters, wrapped lines, tabs, a screen of few rows, changing widths. */
#include <locale.h>
#include <wchar.h>

#include "cli/terminal/live_text.h"
#include "support/rng.h"
#include "support/test.h"

/* ---- A terminal ---- */

enum { MOST_COLUMNS = 64, MOST_ROWS = 1200 };

typedef struct cell {
    uint32_t code;   /* 0: blank */
    uint32_t joins;  /* a mark above it */
    bool dim, right; /* right: the second column of a wide character */
    text_style style;
} cell;

typedef struct screen {
    int32_t columns, height;
    cell cells[MOST_ROWS][MOST_COLUMNS];
    bool wrapped[MOST_ROWS]; /* the row continues in the next one */
    /* counts of all rows ever; the screen is the last `height` of them */
    int32_t row, column, n_rows;
    bool dim;
    text_style style;
    int32_t n_clears;
} screen;

static void screen_init(screen *s, int32_t columns, int32_t height)
{
    memset(s, 0, sizeof *s);
    s->columns = columns;
    s->height = height;
    s->n_rows = 1;
}

static void next_row(screen *s)
{
    s->row++;
    assert_true(s->row < MOST_ROWS);
    if (s->row == s->n_rows)
        s->n_rows++;
}

/* Prints as xterm and its like do: a character in the last column leaves the cursor at the margin,
 * and the next one begins a row. */
static void print(screen *s, uint32_t code)
{
    int width = wcwidth((wchar_t)code);
    assert_true(width >= 0);
    if (width == 0) {
        int32_t at = s->column - 1;
        assert_true(at >= 0);
        at -= s->cells[s->row][at].right;
        s->cells[s->row][at].joins = code;
        return;
    }
    if (s->column + width > s->columns) {
        s->wrapped[s->row] = true;
        next_row(s);
        s->column = 0;
    }
    s->cells[s->row][s->column] = (cell){.code = code, .dim = s->dim, .style = s->style};
    if (width == 2)
        s->cells[s->row][s->column + 1] = (cell){.dim = s->dim, .right = true};
    s->column += width;
    if (s->column >= s->columns - 1)
        s->wrapped[s->row] = false;
}

static void clear_below(screen *s)
{
    int32_t from = s->column < s->columns ? s->column : s->columns - 1;
    s->n_clears++;
    memset(&s->cells[s->row][from], 0, (size_t)(MOST_COLUMNS - from) * sizeof(cell));
    s->wrapped[s->row] = false;
    for (int32_t row = s->row + 1; row < s->n_rows; row++) {
        memset(s->cells[row], 0, sizeof s->cells[row]);
        s->wrapped[row] = false;
    }
}

static void control(screen *s, char what, int32_t n)
{
    int32_t top = s->n_rows > s->height ? s->n_rows - s->height : 0;
    int32_t steps = n ? n : 1;
    if (what == 'A') {
        assert_true(s->row - steps >= top); /* nobody counts on rows that have gone */
        s->row -= steps;
    } else if (what == 'B') {
        assert_true(s->row + steps < s->n_rows);
        s->row += steps;
    } else if (what == 'C') {
        s->column = s->column + steps;
        assert_true(s->column < s->columns);
    } else if (what == 'J') {
        clear_below(s);
    } else {
        assert_int_equal(what, 'm');
        assert_int_equal(n, n == 2 ? 2 : 22);
        assert_int_equal(s->style, TEXT_STYLE_PLAIN);
        s->dim = n == 2;
    }
    if ((what == 'A' || what == 'B') && s->column == s->columns)
        s->column--;
}

static size_t code_point(const char *p, uint32_t *code)
{
    uint8_t lead = (uint8_t)p[0];
    size_t n = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    *code = n == 1 ? lead : lead & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++)
        *code = *code << 6 | ((uint8_t)p[i] & 0x3Fu);
    return n;
}

/* The sequence of a style begins, or ends what that one began; 0: there is none. */
static size_t style_sequence(screen *s, const char *bytes)
{
    for (text_style i = TEXT_STYLE_BOLD; i <= TEXT_STYLE_HEADING; i++) {
        bool inside = s->style == i;
        const char *sequence = (inside ? text_style_end : text_style_begin)[i];
        if (strncmp(bytes, sequence, strlen(sequence)) != 0 || s->dim)
            continue;
        s->style = inside ? TEXT_STYLE_PLAIN : i;
        return strlen(sequence);
    }
    return 0;
}

static void feed(void *user, const char *bytes, size_t n)
{
    screen *s = user;
    for (size_t i = 0, skipped; i < n;) {
        uint32_t code;
        if (bytes[i] == 033 && (skipped = style_sequence(s, bytes + i)) > 0) {
            i += skipped;
            continue;
        }
        if (bytes[i] == 033) {
            int32_t number = 0;
            assert_int_equal(bytes[i + 1], '[');
            for (i += 2; bytes[i] >= '0' && bytes[i] <= '9'; i++)
                number = number * 10 + (bytes[i] - '0');
            control(s, bytes[i++], number);
            continue;
        }
        i += code_point(bytes + i, &code);
        if (code == '\n') { /* the terminal's driver makes it both */
            next_row(s);
            s->column = 0;
        } else if (code == '\r') {
            s->column = 0;
        } else if (code == '\t') {
            int32_t stop = (s->column / 8 + 1) * 8;
            s->column = stop < s->columns ? stop : s->columns - 1;
        } else {
            print(s, code);
        }
    }
}

static void write_plain(screen *s, const char *text, size_t n, bool dim)
{
    s->dim = dim;
    feed(s, text, n);
    s->dim = false;
}

static void same_screen(const screen *got, const screen *want)
{
    for (int32_t row = 0; row < want->n_rows || row < got->n_rows; row++)
        for (int32_t i = 0; i < want->columns; i++) {
            const cell *a = &got->cells[row][i], *b = &want->cells[row][i];
            if (a->code != b->code || a->joins != b->joins || a->right != b->right ||
                (a->code && a->dim != b->dim))
                fail_msg("row %d, column %d: U+%04X%s instead of U+%04X%s", row, i, a->code,
                         a->dim ? " (dim)" : "", b->code, b->dim ? " (dim)" : "");
        }
    assert_int_equal(got->row, want->row);
    assert_int_equal(got->column, want->column);
    assert_false(got->dim);
}

/* ---- Text and events ---- */

typedef struct world {
    live_text live;
    screen shown, want;
    char verified[65536], provisional[DREY_MAX_PROVISIONAL];
    size_t n_verified, n_provisional;
    rng r;
    bool exotic; /* also characters whose place is not known */
} world;

static world *w;

static void begin(int32_t columns, int32_t height, uint64_t seed)
{
    screen_init(&w->shown, columns, height);
    w->n_verified = w->n_provisional = 0;
    w->r = rng_from(seed);
    w->exotic = false;
    live_text_init(&w->live, feed, &w->shown, false);
    live_text_size(&w->live, columns, height);
}

static void check(void)
{
    screen_init(&w->want, w->shown.columns, w->shown.height);
    write_plain(&w->want, w->verified, w->n_verified, false);
    write_plain(&w->want, w->provisional, w->live.n_drawn, true);
    assert_true(w->live.n_drawn <= w->n_provisional);
    /* Rows that provisional text had reached stay, empty. */
    same_screen(&w->shown, &w->want);
}

static void send(drey_event_kind kind, const char *bytes, size_t n)
{
    const drey_event e = {.kind = kind, .bytes = bytes, .n_bytes = n};
    if (n > 0)
        live_text_event(&w->live, &e);
}

static void provisional(const char *text)
{
    size_t n = strlen(text);
    memcpy(w->provisional + w->n_provisional, text, n);
    w->n_provisional += n;
    send(DREY_EVENT_PROVISIONAL, text, n);
    check();
}

static void taken_back(size_t n)
{
    w->n_provisional -= n;
    send(DREY_EVENT_TAKEN_BACK, w->provisional + w->n_provisional, n);
}

/* Keeps text as the screen has it: a bell is shown. */
static void keep_verified(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        w->verified[w->n_verified++] = text[i] == '\a' ? '?' : text[i];
}

static void verified(const char *text, size_t n)
{
    static char sent[sizeof w->verified]; /* text may be provisional so far */
    memcpy(sent, text, n);
    size_t stood = n < w->n_provisional ? n : w->n_provisional;
    keep_verified(text, n);
    w->n_provisional -= stood;
    memmove(w->provisional, w->provisional + stood, w->n_provisional);
    send(DREY_EVENT_VERIFIED, sent, n);
    check();
}

static void verified_text(const char *text)
{
    verified(text, strlen(text));
}

/* ---- By hand ---- */

TEST(stands)
{
    begin(20, 6, 1);
    verified_text("The black ");
    provisional("cat sat");
    verified_text("cat");
    assert_int_equal(w->shown.n_clears, 0); /* nothing is erased that stays */
    provisional(" on");
    verified_text(" sat on");
    assert_int_equal(w->shown.n_clears, 0);
    assert_int_equal(w->live.n_drawn, 0);
}

TEST(goes)
{
    begin(20, 6, 1);
    verified_text("The black ");
    provisional("cat sat on the mat and slept there");
    taken_back(28);    /* "cat sa" is left */
    provisional("nk"); /* in one go */
    assert_int_equal(w->shown.n_clears, 1);
    taken_back(8);
    live_text_draw(&w->live);
    check();
    assert_int_equal(w->shown.n_clears, 2);
    verified_text("dog ran");
}

/* Two columns wide: the tenth one does not fit a row of 19. */
TEST(wide_characters)
{
    for (int32_t columns = 4; columns <= 21; columns++) {
        begin(columns, 8, 1);
        verified_text("漢");
        provisional("字字字字字字字");
        verified_text("字字");
        taken_back(3 * 3);
        provisional("国x国");
        taken_back(3 * 2 + 7);
        verified_text("終\n");
        provisional("次");
        verified_text("次の行");
    }
}

/* The margin: a newline there goes to the next row, not to the one after it. */
TEST(the_margin)
{
    begin(10, 6, 1);
    verified_text("0123456789");
    provisional("abc");
    taken_back(3);
    live_text_draw(&w->live);
    check();
    verified_text("\nx");
    provisional("123456789ab");
    taken_back(2); /* up to the margin */
    provisional("\ny");
    verified_text("123456789\nz");
    begin(10, 6, 1);
    verified_text("01234567漢");
    provisional("\n\n漢");
    taken_back(5);
    live_text_draw(&w->live);
    check();
    verified_text("!");
}

TEST(a_low_screen)
{
    begin(20, 3, 1);
    verified_text("one\ntwo\nthree\n");
    provisional("four\nfive\nsix\nseven\n");
    assert_true(w->live.n_drawn < 18); /* what scrolls away cannot be taken back */
    verified_text("four\nfive\n");
    taken_back(10);
    verified_text("6");
}

TEST(what_nobody_knows)
{
    begin(20, 6, 1);
    verified_text("a\a");
    provisional("not shown");
    assert_int_equal(w->live.n_drawn, 0);
    taken_back(9);
    verified_text("b\n");
    provisional("shown\anot");
    assert_int_equal(w->live.n_drawn, 5);
    taken_back(9);
    verified_text("e\xCC\x81t\n");
}

static char captured[256];

static void capture(void *user, const char *bytes, size_t n)
{
    strncat(captured, bytes, n);
}

TEST(no_text_steers_the_terminal)
{
    begin(20, 6, 1);
    w->live.write = capture;
    static const char *const pieces[] = {"a\033]0;", "name\a\b",  "\033[2J\x7F", "\xC2",
                                         "\x9B",     "\tz\r\xC2", "\n\xC2"};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        send(DREY_EVENT_VERIFIED, pieces[i], strlen(pieces[i]));
    live_text_end(&w->live);
    assert_string_equal(captured, "a?]0;name???[2J?\xC2?\tz\r\xC2\n\xC2");
}

/* ---- At random ---- */

static size_t random_text(char *out, size_t most)
{
    static const char *const pieces[] = {"a",  "word ",  "漢",        "国字", "\n",
                                         "\t", "é",      "x = y;",    "が",   " ",
                                         "  ", "wörter", "e\xCC\x81", "\a"};
    int32_t n_pieces = w->exotic ? 14 : 12;
    size_t n = 0;
    for (int32_t left = 1 + rng_below(&w->r, 12); left > 0; left--) {
        const char *piece = pieces[rng_below(&w->r, n_pieces)];
        if (n + strlen(piece) > most)
            break;
        memcpy(out + n, piece, strlen(piece));
        n += strlen(piece);
    }
    return n;
}

/* Returns a length from the beginning, in whole characters. */
static size_t some_of(const char *text, size_t n)
{
    size_t at = 0, most = n ? (size_t)rng_below(&w->r, (int32_t)n + 1) : 0;
    uint32_t code;
    while (at < most)
        at += code_point(text + at, &code);
    return at < n ? at : n;
}

static void random_event(void)
{
    char text[400];
    int32_t what = rng_below(&w->r, 5);
    if (what < 2 && w->n_provisional < 600) {
        size_t n = random_text(text, 200);
        text[n] = 0;
        provisional(text);
    } else if (what == 2) {
        size_t keep = some_of(w->provisional, w->n_provisional);
        taken_back(w->n_provisional - keep);
        if (rng_below(&w->r, 2)) {
            live_text_draw(&w->live);
            check();
        }
    } else { /* the beginning of it, and then something else */
        size_t n = some_of(w->provisional, w->n_provisional);
        if (n > 200)
            return;
        memcpy(text, w->provisional, n);
        if (n == 0 || rng_below(&w->r, 2)) {
            taken_back(w->n_provisional - n);
            n += random_text(text + n, 150);
        }
        if (n > 0)
            verified(text, n);
    }
}

static void at_random(bool exotic)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        begin(seed % 3 ? 20 : 5 + (int32_t)seed % 40, 3 + (int32_t)seed % 12, seed);
        w->exotic = exotic;
        for (int i = 0; i < 150 && w->shown.n_rows < MOST_ROWS - 100; i++)
            random_event();
        taken_back(w->n_provisional);
        live_text_draw(&w->live);
        check();
    }
}

TEST(random_events)
{
    at_random(false);
}

TEST(random_exotic_events)
{
    at_random(true);
}

/* ---- Words at the margin ---- */

/* Greedy lines, as one would set them by hand: a word that has no room begins a row, and continues
 * in the next one if that has none either. */
static size_t set_lines(const char *text, size_t n, int32_t columns, char *out)
{
    int32_t column = 0;
    size_t n_out = 0;
    for (size_t at = 0; at < n;) {
        size_t end = at;
        while (end < n && text[end] != ' ' && text[end] != '\n')
            end++;
        int32_t word = (int32_t)(end - at);
        if (n_out > 0 && out[n_out - 1] == ' ' && column + word > columns) {
            out[n_out - 1] = '\n';
            column = 0;
        }
        memcpy(out + n_out, text + at, (size_t)word);
        n_out += (size_t)word;
        column += word;
        while (column > columns)
            column -= columns;
        if (end < n) {
            bool at_margin = text[end] == ' ' && column == columns;
            out[n_out++] = at_margin ? '\n' : text[end];
            column = out[n_out - 1] == '\n' ? 0 : column + 1;
        }
        at = end + 1;
    }
    return n_out;
}

static void begin_wrapped(int32_t columns, int32_t height, uint64_t seed)
{
    begin(columns, height, seed);
    live_text_init(&w->live, feed, &w->shown, true);
    live_text_size(&w->live, columns, height);
}

static void is_set(void)
{
    char lines[65536];
    size_t n = set_lines(w->verified, w->n_verified, w->shown.columns, lines);
    screen_init(&w->want, w->shown.columns, w->shown.height);
    write_plain(&w->want, lines, n, false);
    same_screen(&w->shown, &w->want);
}

/* Puts text alone: nothing is provisional yet. */
static void put_provisional(const char *text)
{
    w->n_provisional = strlen(text);
    memcpy(w->provisional, text, w->n_provisional);
    send(DREY_EVENT_PROVISIONAL, text, w->n_provisional);
}

/* The screen is one on which this was written at once, and then, dim, what is provisional. */
static void shows(int32_t columns, int32_t height, const char *text, const char *dim)
{
    screen_init(&w->want, columns, height);
    write_plain(&w->want, text, strlen(text), false);
    write_plain(&w->want, dim, strlen(dim), true);
    same_screen(&w->shown, &w->want);
}

static void send_verified(const char *text, size_t n)
{
    size_t stood = n < w->n_provisional ? n : w->n_provisional;
    keep_verified(text, n);
    w->n_provisional -= stood;
    memmove(w->provisional, w->provisional + stood, w->n_provisional);
    send(DREY_EVENT_VERIFIED, text, n);
}

/* Guesses a piece, right or wrong, or does not. */
static void guess_before(const char *piece, const char *wrong)
{
    if (rng_below(&w->r, 2))
        return;
    const char *guess = rng_below(&w->r, 2) ? piece : wrong;
    put_provisional(guess);
    if (guess != piece || rng_below(&w->r, 3) == 0)
        taken_back(w->n_provisional);
}

/* However a text comes, in pieces and with guesses before it, its words are set as they would be at
 * once; a word that grows moves while it does. */
TEST(words)
{
    static const char *const pieces[] = {"a", "of ",  "the ", "tree", "elephant ",
                                         " ", "grow", "\n",   "ing, "};
    int32_t n_moved = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        begin_wrapped(4 + (int32_t)seed % 30, 4 + (int32_t)seed % 9, seed);
        for (int i = 0; i < 120; i++) {
            const char *piece = pieces[rng_below(&w->r, 9)];
            bool doubled = w->n_verified == 0 || w->verified[w->n_verified - 1] == ' ' ||
                           w->verified[w->n_verified - 1] == '\n';
            if (doubled && piece[0] == ' ')
                continue; /* one blank between words */
            guess_before(piece, "oak and ash ");
            int32_t row = w->shown.row;
            size_t held = w->live.n_held;
            send_verified(piece, strlen(piece));
            n_moved += held > 0 && w->live.n_held == 0 && w->shown.row > row && piece[0] != '\n';
            if (w->n_provisional == 0)
                is_set();
        }
        w->n_provisional = 0;
        live_text_end(&w->live);
        is_set();
        assert_int_equal(w->live.n_held + w->live.n_drawn, 0);
    }
    assert_true(n_moved > 100);
}

/* The screen has the text's characters in their order, whatever rows they are in. */
static void has_all(void)
{
    size_t at = 0;
    uint32_t code = 0;
    for (int32_t row = 0; row < w->shown.n_rows; row++)
        for (int32_t i = 0; i < w->shown.columns; i++) {
            const cell *c = &w->shown.cells[row][i];
            for (int mark = 0; mark < 2; mark++) {
                uint32_t got = mark ? c->joins : c->code;
                if (got == 0 || got == ' ')
                    continue;
                do
                    at += code_point(w->verified + at, &code);
                while (strchr(" \n\a", (int)code) && at < w->n_verified);
                assert_int_equal(got, code);
                assert_false(c->dim);
            }
        }
    for (; at < w->n_verified; at++)
        assert_true(strchr(" \n\a", w->verified[at]));
}

TEST(words_at_random)
{
    char text[400];
    for (uint64_t seed = 1; seed <= 60; seed++) {
        begin_wrapped(5 + (int32_t)seed % 40, 3 + (int32_t)seed % 12, seed);
        w->exotic = seed % 2;
        for (int i = 0; i < 100 && w->shown.n_rows < MOST_ROWS - 100; i++) {
            size_t n = random_text(text, 100);
            for (size_t k = 0; k < n; k++) /* at the margin one writes over what is there */
                text[k] = text[k] == '\t' ? ' ' : text[k];
            memcpy(w->provisional, text, n);
            w->n_provisional = n;
            send(DREY_EVENT_PROVISIONAL, text, n);
            size_t keep = some_of(text, n);
            taken_back(n - keep);
            if (keep > 0)
                send_verified(w->provisional, keep);
            taken_back(w->n_provisional);
        }
        live_text_end(&w->live);
        has_all();
    }
}

/* Words between wide characters need no blank; code stays as it is; what is dim is set as well. */
TEST(words_of_other_kinds)
{
    begin_wrapped(10, 8, 1);
    send_verified("ab 漢字漢字漢字 x\n", strlen("ab 漢字漢字漢字 x\n"));
    live_text_end(&w->live);
    shows(10, 8, "ab 漢字漢\n字漢字 x\n", "");
    static const char code[] = "```c d e f g h\nint x = 1; /* a b */\n```\nand then words\n";
    begin_wrapped(10, 12, 1);
    for (size_t at = 0; code[at]; at++)
        send_verified(code + at, 1);
    shows(10, 12, "```c d e f g h\nint x = 1; /* a b */\n```\nand then\nwords\n", "");
    begin_wrapped(10, 8, 1);
    send_verified("the tr", 6);
    put_provisional("ees grow");
    shows(10, 8, "the tr", "ees\ngrow");
    taken_back(8);
    put_provisional("ansport"); /* moves what is verified of the word */
    shows(10, 8, "the\ntr", "ansport");
}

/* ---- Markdown ---- */

/* Each character of the verified text has the style that it would have if all came at once. */
static void has_styles(void)
{
    text_styles styles = {0};
    size_t at = 0;
    for (int32_t row = 0; row < w->shown.n_rows; row++)
        for (int32_t i = 0; i < w->shown.columns; i++) {
            const cell *c = &w->shown.cells[row][i];
            uint32_t code = 0;
            text_style style = TEXT_STYLE_PLAIN;
            if (c->code == 0 || c->code == ' ')
                continue;
            while (at < w->n_verified && code != c->code) {
                at += code_point(w->verified + at, &code);
                style = text_styles_pass(&styles, code);
            }
            assert_int_equal(code, c->code);
            assert_false(c->dim);
            if (c->style != style)
                fail_msg("row %d, column %d: style %d instead of %d", row, i, (int)c->style,
                         (int)style);
        }
    assert_int_equal(w->shown.style, TEXT_STYLE_PLAIN);
}

TEST(markdown)
{
    static const char *const pieces[] = {"a ",  "**", "bold ", "`",    "x = y ",  "\n",   "# ",
                                         "```", "~",  "tree ", "漢字", "\n```\n", "grow", "*"};
    int32_t n_seen[TEXT_STYLE_HEADING + 1] = {0};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        begin_wrapped(6 + (int32_t)seed % 30, 4 + (int32_t)seed % 9, seed);
        w->live.styled = true;
        for (int i = 0; i < 100; i++) {
            const char *piece = pieces[rng_below(&w->r, 14)];
            guess_before(piece, "**oak` and ash ");
            send_verified(piece, strlen(piece));
        }
        taken_back(w->n_provisional);
        live_text_end(&w->live);
        has_styles();
        for (int32_t row = 0; row < w->shown.n_rows; row++)
            for (int32_t i = 0; i < w->shown.columns; i++)
                n_seen[w->shown.cells[row][i].style]++;
    }
    for (int i = 0; i <= TEXT_STYLE_HEADING; i++)
        assert_true(n_seen[i] > 100);
}

/* ---- Widths that change ---- */

/* Resizes as terminals do that flow their lines again: rows that continue are one line. */
static void resize(screen *s, int32_t columns)
{
    static screen before;
    before = *s;
    screen_init(s, columns, before.height);
    s->n_clears = before.n_clears;
    int32_t cursor_row = 0, cursor_column = 0;
    for (int32_t row = 0; row < before.n_rows; row++) {
        int32_t end = before.row == row ? before.column : 0;
        for (int32_t i = 0; i < before.columns; i++)
            if (before.cells[row][i].code || before.cells[row][i].right)
                end = i + 1 > end ? i + 1 : end;
        for (int32_t i = 0; i < end; i++) {
            const cell *c = &before.cells[row][i];
            if (before.row == row && before.column == i) {
                cursor_row = s->row;
                cursor_column = s->column;
            }
            if (c->right)
                continue;
            s->dim = c->dim;
            print(s, c->code ? c->code : ' ');
        }
        if (before.row == row && before.column >= end) {
            cursor_row = s->row;
            cursor_column = s->column;
        }
        if (row + 1 < before.n_rows && !before.wrapped[row]) {
            next_row(s);
            s->column = 0;
        }
    }
    s->row = cursor_row;
    s->column = cursor_column;
    s->dim = false;
}

TEST(a_width_that_changes)
{
    begin(20, 8, 1);
    verified_text("The quick brown ");
    provisional("fox jumps over the lazy dog");
    static const int32_t widths[] = {13, 30, 9, 20, 17};
    for (int i = 0; i < 5; i++) {
        resize(&w->shown, widths[i]);
        live_text_size(&w->live, widths[i], 8);
        check();
        verified(w->provisional, 3);
        taken_back(2);
        provisional("!?+");
    }
    taken_back(w->n_provisional);
    verified_text(".\n");
}

/* Words are set for the new width; what stands is the terminal's to flow. */
TEST(words_and_another_width)
{
    begin_wrapped(24, 8, 1);
    send_verified("the quick brown fox ", 20);
    resize(&w->shown, 12);
    live_text_size(&w->live, 12, 8);
    send_verified("jumps over ", 11);
    send_verified("the lazy dog", 12);
    shows(12, 8, "the quick brown fox\njumps over\nthe lazy dog", "");
}

static int make_world(void **state)
{
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    w = calloc(1, sizeof *w);
    return !w || !utf8 || !uselocale(utf8);
}

static int free_world(void **state)
{
    locale_t utf8 = uselocale(LC_GLOBAL_LOCALE);
    if (utf8 != LC_GLOBAL_LOCALE)
        freelocale(utf8);
    free(w);
    return 0;
}

TEST_GROUP(make_world, free_world)
