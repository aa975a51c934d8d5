/* Bold, code and headings of a Markdown text, character by character. */
#include "cli/terminal/text_styles.h"
#include "support/test.h"

/* styles: a letter for each character of the text, "." plain, b, c, h. */
static void looks(const char *text, const char *styles)
{
    text_styles s = {0};
    char got[256] = "";
    for (size_t i = 0; text[i]; i++) {
        text_style style = text_styles_pass(&s, (unsigned char)text[i]);
        got[i] = text[i] == '\n' ? '\n' : ".bch"[style];
    }
    if (strcmp(got, styles) != 0)
        fail_msg("%s looks like\n%s instead of\n%s", text, got, styles);
}

TEST(in_a_line)
{
    looks("a **b c** d", "....bbb....");
    looks("**a** and `b c` and ``d`e``.", "..b........ccc........c.c...");
    looks("x**2 and 2 ** 3 and a*b*c", ".........................");
    looks("(**a**) ***b*** **`c`**", "...b.......b.......c...");
    looks("\\*\\*a \\`b", ".........");
    looks("it`s\nnext", "...c\n....");
}

TEST(headings)
{
    looks("# a `b` c\nd", ".hhhhchhh\n.");
    looks("  ###### a\n####### a\n#a\na # b", "........hh\n.........\n..\n.....");
    looks("# 1 # x", ".hhhhhh");
}

TEST(blocks_of_code)
{
    looks("```c\n**a** `b`\n\n# c\n```\n**d**", "....\nccccccccc\n\nccc\n...\n..b..");
    looks("1. ```\n   a\n   ```\n- **b**", "......\ncccc\nccc...\n....b..");
    looks("````\n```\na\n~~~\n````\nb", "....\n...\nc\nccc\n....\n.");
    looks("~~~ x\n`a`\n~~~ b\n~~~\n**c**", ".....\nccc\n....c\n...\n..b..");
    looks("```a``` **b**\nc", "..........b..\n.");
}

/* Lines of code are not broken at blanks, from the third mark on. */
TEST(lines_in_blocks)
{
    static const char text[] = "a b\n```\nb c\n```\nc d";
    text_styles s = {0};
    size_t n = 0;
    for (size_t i = 0; text[i]; i++) {
        text_styles_pass(&s, (unsigned char)text[i]);
        n += text_styles_in_block(&s);
    }
    assert_int_equal(n, strlen("`\nb c\n```"));
}
