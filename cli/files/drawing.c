/* Pieces of SVG: see drawing.h. */
#include "cli/files/drawing.h"

#include "common/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Colours that stay apart for most eyes, and on both papers. */
static const char style[] =
    "<style>\n"
    "  text { font: 12px system-ui, sans-serif; fill: #24292f; white-space: pre }\n"
    "  .title { font-size: 15px; font-weight: 600 } .small { font-size: 11px }\n"
    "  .faint { fill: #57606a } .paper { fill: #ffffff }\n"
    "  .grid { stroke: #d8dee4; stroke-width: 1; fill: none }\n"
    "  .box { fill: #f6f8fa; stroke: #d0d7de }\n"
    "  .draft { fill: #6e7781 } .verify { fill: #cf222e } .provisional { fill: #1a7f37 }\n"
    "  .stall { fill: #bf8700 } .read { fill: #2f6fde } .prompt { fill: #8250df }\n"
    "  .line { fill: none; stroke-width: 2; stroke-linejoin: round }\n"
    "  .line.draft { stroke: #6e7781 } .line.verify { stroke: #cf222e }\n"
    "  .line.provisional { stroke: #1a7f37 } .line.text { stroke: #24292f }\n"
    "  .edge { fill: none; stroke: #afb8c1; stroke-width: 1.2 }\n"
    "  .edge.accepted { stroke: #1a7f37; stroke-width: 2.5 }\n"
    "  .edge.rectified { stroke: #cf222e; stroke-width: 2.5; stroke-dasharray: 4 3 }\n"
    "  .edge.waits { stroke-dasharray: 3 3 }\n"
    "  .node { stroke-width: 1.2; fill: #f6f8fa; stroke: #afb8c1 }\n"
    "  .node.accepted { fill: #dafbe1; stroke: #1a7f37 }\n"
    "  .node.rectified { fill: #ffebe9; stroke: #cf222e }\n"
    "  .node.waits { fill: none; stroke-dasharray: 3 3 }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    text { fill: #e6edf3 } .faint { fill: #8b949e } .paper { fill: #0d1117 }\n"
    "    .grid { stroke: #30363d } .box { fill: #161b22; stroke: #30363d }\n"
    "    .draft { fill: #8b949e } .verify { fill: #f85149 } .provisional { fill: #3fb950 }\n"
    "    .stall { fill: #d29922 } .read { fill: #58a6ff } .prompt { fill: #bc8cff }\n"
    "    .line { fill: none } .line.draft { stroke: #8b949e } .line.verify { stroke: #f85149 }\n"
    "    .line.provisional { stroke: #3fb950 } .line.text { stroke: #e6edf3 }\n"
    "    .edge { stroke: #484f58 } .edge.accepted { stroke: #3fb950 }\n"
    "    .edge.rectified { stroke: #f85149 }\n"
    "    .node { fill: #161b22; stroke: #484f58 }\n"
    "    .node.accepted { fill: #12261e; stroke: #3fb950 }\n"
    "    .node.rectified { fill: #2d1416; stroke: #f85149 } .node.waits { fill: none }\n"
    "  }\n"
    "</style>\n";

void drawing_begin(FILE *out, double width, double height, const char *label)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
            "height=\"%.0f\" role=\"img\" aria-label=\"",
            width, height, width, height);
    drawing_put_text(out, label, false);
    fprintf(out, "\">\n%s<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", style, width,
            height);
}

void drawing_end(FILE *out)
{
    fputs("</svg>\n", out);
}

/* The sign for a character that would not be seen; NULL: it is seen. */
static const char *sign_of(const char *text, size_t i, size_t n)
{
    switch (text[i]) {
    case '\n':
        return "\u23ce";
    case '\t':
        return "\u21e5";
    case '\r':
        return "\u240d";
    case ' ': {
        size_t first = strspn(text, " "), last = n;
        while (last > 0 && text[last - 1] == ' ')
            last--;
        return i < first || i >= last ? "\u00b7" : NULL;
    }
    default:
        return NULL;
    }
}

void drawing_put_text(FILE *out, const char *text, bool spaces)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        int length = utf8_length((const uint8_t *)text + i, n - i);
        const char *sign = spaces ? sign_of(text, i, n) : NULL;
        unsigned char c = (unsigned char)text[i];
        bool forbidden = c == 0xef && length == 3 && (unsigned char)text[i + 1] == 0xbf &&
                         (unsigned char)text[i + 2] >= 0xbe; /* U+FFFE, U+FFFF */
        if (sign)
            fputs(sign, out);
        else if (length <= 0 || c == 0x7f || forbidden || (c < ' ' && c != '\n'))
            fputs("\ufffd", out);
        else if (strchr("&<>\"", c))
            fprintf(out, "&#%d;", c);
        else
            fwrite(text + i, 1, (size_t)length, out);
        i += length > 0 ? (size_t)length : 1;
    }
}

void drawing_text(FILE *out, double x, double y, const char *anchor, const char *class,
                  const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor,
            class);
    drawing_put_text(out, text, false);
    fputs("</text>\n", out);
}

double drawing_width(const char *text)
{
    const double sign = 14; /* of a line end or a tab */
    double width = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < ' ')
            width += sign;
        else if (*c < 0x80)
            width += strchr("iljtfr.,:;'|![]() ", *c) ? 4.2 : strchr("mwMW@", *c) ? 10.5 : 7.2;
        else if (*c >= 0xe0)
            width += 12; /* perhaps a wide one */
        else if (*c >= 0xc0)
            width += 7.2;
    }
    return width;
}

double drawing_step(double range, int n)
{
    double rough = range / (n > 0 ? n : 1);
    if (!(rough > 0) || !isfinite(rough))
        return 1;
    double decade = pow(10, floor(log10(rough))), digit = rough / decade;
    return decade * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}
