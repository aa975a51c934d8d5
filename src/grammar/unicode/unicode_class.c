/* Classes of characters: see unicode_class.h. */
#include "grammar/unicode/unicode_class.h"

#include <string.h>

#include "grammar/unicode/unicode_table.h"

enum { N_CATEGORIES = sizeof category_names / sizeof *category_names };
enum { N_SCRIPTS = sizeof script_names / sizeof *script_names };
enum { AFTER_LAST = 0x110000, LONGEST_NAME = 24 };
_Static_assert(N_CATEGORIES <= 32 && N_SCRIPTS <= 32, "bits of a run");

/* Long names of categories, and the short ones. */
static const char long_names[][2][24] = {{"letter", "L"},
                                         {"casedletter", "LC"},
                                         {"lowercaseletter", "Ll"},
                                         {"modifierletter", "Lm"},
                                         {"otherletter", "Lo"},
                                         {"titlecaseletter", "Lt"},
                                         {"uppercaseletter", "Lu"},
                                         {"mark", "M"},
                                         {"combiningmark", "M"},
                                         {"spacingmark", "Mc"},
                                         {"enclosingmark", "Me"},
                                         {"nonspacingmark", "Mn"},
                                         {"number", "N"},
                                         {"decimalnumber", "Nd"},
                                         {"digit", "Nd"},
                                         {"letternumber", "Nl"},
                                         {"othernumber", "No"},
                                         {"punctuation", "P"},
                                         {"punct", "P"},
                                         {"connectorpunctuation", "Pc"},
                                         {"dashpunctuation", "Pd"},
                                         {"closepunctuation", "Pe"},
                                         {"finalpunctuation", "Pf"},
                                         {"initialpunctuation", "Pi"},
                                         {"otherpunctuation", "Po"},
                                         {"openpunctuation", "Ps"},
                                         {"symbol", "S"},
                                         {"currencysymbol", "Sc"},
                                         {"modifiersymbol", "Sk"},
                                         {"mathsymbol", "Sm"},
                                         {"othersymbol", "So"},
                                         {"separator", "Z"},
                                         {"lineseparator", "Zl"},
                                         {"paragraphseparator", "Zp"},
                                         {"spaceseparator", "Zs"},
                                         {"other", "C"},
                                         {"control", "Cc"},
                                         {"format", "Cf"},
                                         {"unassigned", "Cn"},
                                         {"privateuse", "Co"},
                                         {"surrogate", "Cs"}};

/* Writes the name without "_", "-" and blanks, in lower case: as Unicode compares names. */
static bool plain_name(const char *name, size_t n, char out[LONGEST_NAME])
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        if (c == '_' || c == '-' || c == ' ')
            continue;
        if (k + 1 == LONGEST_NAME)
            return false;
        out[k++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    out[k] = 0;
    return true;
}

static bool same_name(const char *plain, const char *name)
{
    char other[LONGEST_NAME];
    return plain_name(name, strlen(name), other) && strcmp(plain, other) == 0;
}

/* Bits of categories; 0: it is none. */
static uint32_t categories_named(const char *plain)
{
    uint32_t out = 0;
    for (size_t i = 0; i < sizeof long_names / sizeof *long_names; i++)
        if (strcmp(plain, long_names[i][0]) == 0)
            return categories_named((char[]){(char)(long_names[i][1][0] | 0x20),
                                             (char)(long_names[i][1][1] | 0x20), 0});
    if (strcmp(plain, "lc") == 0 || strcmp(plain, "l&") == 0)
        return categories_named("lu") | categories_named("ll") | categories_named("lt");
    for (int i = 0; i < N_CATEGORIES; i++)
        if (plain[0] == (category_names[i][0] | 0x20) &&
            (plain[1] == 0 || plain[1] == ' ' || (plain[1] == category_names[i][1] && !plain[2])))
            out |= UINT32_C(1) << i;
    return out;
}

static uint32_t script_named(const char *plain)
{
    for (int i = 1; i < N_SCRIPTS; i++)
        if (same_name(plain, script_names[i]))
            return UINT32_C(1) << i;
    return 0;
}

/* The runs whose number is among `bits`. */
static int32_t ranges_of(const uint32_t *runs, int32_t n_runs, uint32_t bits, char_range *out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < n_runs; i++) {
        uint32_t from = runs[i] >> 5, end = i + 1 < n_runs ? runs[i + 1] >> 5 : AFTER_LAST;
        if (!(bits >> (runs[i] & 31) & 1))
            continue;
        if (n > 0 && out[n - 1].to + 1 == from)
            out[n - 1].to = end - 1;
        else if (n == UNICODE_MOST_RANGES)
            return -1;
        else
            out[n++] = (char_range){from, end - 1};
    }
    return n;
}

static int32_t class_named(const char *name, size_t n, char_range *out)
{
    enum { ANY_WAY, CATEGORY, SCRIPT } which = ANY_WAY;
    char plain[LONGEST_NAME], property[LONGEST_NAME];
    const char *equals = memchr(name, '=', n);
    if (equals) {
        if (!plain_name(name, (size_t)(equals - name), property))
            return -1;
        which = strcmp(property, "sc") == 0 || strcmp(property, "script") == 0            ? SCRIPT
                : strcmp(property, "gc") == 0 || strcmp(property, "generalcategory") == 0 ? CATEGORY
                                                                                          : ANY_WAY;
        if (which == ANY_WAY)
            return -1;
        n -= (size_t)(equals + 1 - name);
        name = equals + 1;
    }
    if (!plain_name(name, n, plain))
        return -1;
    char *rest = !equals && strncmp(plain, "is", 2) == 0 && plain[2] ? plain + 2 : plain;
    uint32_t categories = which == SCRIPT ? 0 : categories_named(rest);
    uint32_t script = which == CATEGORY ? 0 : script_named(rest);
    if (!equals && strcmp(rest, "any") == 0)
        categories = UINT32_MAX;
    if (!equals && strcmp(rest, "assigned") == 0)
        categories = ~categories_named("cn");
    if (!equals && strcmp(rest, "ascii") == 0) {
        out[0] = (char_range){0, 0x7F};
        return 1;
    }
    if (categories)
        return ranges_of(category_runs, sizeof category_runs / sizeof *category_runs, categories,
                         out);
    return script ? ranges_of(script_runs, sizeof script_runs / sizeof *script_runs, script, out)
                  : -1;
}

int32_t unicode_class(const char *name, size_t n, char_range out[static UNICODE_MOST_RANGES])
{
    bool but_not = n > 0 && name[0] == '^';
    int32_t n_ranges = class_named(name + but_not, n - but_not, out);
    if (!but_not || n_ranges < 0)
        return n_ranges;
    char_range ranges[UNICODE_MOST_RANGES];
    if (n_ranges + 2 > UNICODE_MOST_RANGES)
        return -1;
    memcpy(ranges, out, (size_t)n_ranges * sizeof *ranges);
    return ranges_invert(ranges, n_ranges, out);
}
