/* Shows which texts grammars accept, for scripts that compare with other programs' tests. Each line
 * of the input is a case, each line of the output its result:
 *
 *     {"kind": "schema", "grammar": "{\"type\": ...}", "texts": ["1", "[]"]}     or gbnf, regex
 *     {"takes": [true, false]}     with "not_held", or     {"refused": "the schema at #/a: ..."} */
#include <stdio.h>
#include <stdlib.h>

#include "common/json_value.h"
#include "common/json_writer.h"
#include "support/grammar/grammar_text.h"

static drey_grammar_kind kind_of(const json_value *v)
{
    return json_member_is(v, "kind", "gbnf")    ? DREY_GRAMMAR_GBNF
           : json_member_is(v, "kind", "regex") ? DREY_GRAMMAR_REGEX
                                                : DREY_GRAMMAR_JSON_SCHEMA;
}

static void put(void *user, const char *bytes, size_t n, const char *from)
{
    (void)from;
    fwrite(bytes, 1, n, user);
}

static void check(const json_value *v)
{
    json_writer w = {.put = put, .user = stdout};
    const char *grammar = json_member_text(v, "grammar");
    const json_value *texts = json_member_array(v, "texts");
    drey_error err = {0};
    test_grammar *g = test_grammar_open(kind_of(v), grammar ? grammar : "", &err);
    json_open(&w, '{');
    if (!g)
        json_put_text(&w, "refused", err.message);
    if (g)
        json_put_array(&w, "takes");
    for (const json_value *t = g && texts ? texts->first : NULL; t; t = t->next) {
        bool whole;
        test_grammar_takes(g, t->text, t->n, &whole);
        json_put_bool(&w, NULL, whole);
    }
    if (g)
        json_close(&w, ']');
    if (g && g->not_held[0])
        json_put_text(&w, "not_held", g->not_held);
    json_close(&w, '}');
    putchar('\n');
    free(g);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        json_document d;
        if (!json_load(&d, line, (size_t)n)) {
            fprintf(stderr, "a line is no JSON: %.60s\n", line);
            return 1;
        }
        check(d.root);
        fflush(stdout);
        json_free(&d);
    }
    free(line);
    return 0;
}
