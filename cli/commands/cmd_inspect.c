/* drey inspect: what is in a GGUF file, of any architecture. First comes what a person asks, then
 * the lists of all keys and tensors, for which the header is read once more. */
#include "cli/commands/commands.h"
#include "cli/models/model_facts.h"
#include "cli/models/model_path.h"
#include "cli/terminal/hints.h"
#include "cli/terminal/terminal.h"
#include "common/size_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TYPES = 48, MAX_TEMPLATES = 16 };

/* Tensors and bytes of a type, for the summary. */
typedef struct weight_type {
    char name[16];
    int n_tensors;
    uint64_t bytes;
    bool runnable;
} weight_type;

/* Summary that is shown first; types beyond the last slot are not counted. */
typedef struct inspection {
    weight_type types[MAX_TYPES];
    int n_types;
    char templates[MAX_TEMPLATES][64]; /* names; "" is the usual one's */
    int n_templates;
} inspection;

static void show_header(void *user, uint32_t version, uint64_t n_keys, uint64_t n_tensors,
                        uint64_t file_bytes)
{
    char size[16];
    (void)user;
    printf("\nGGUF version %" PRIu32 ", %" PRIu64 " key%s, %" PRIu64 " tensor%s, %s\n", version,
           n_keys, n_keys == 1 ? "" : "s", n_tensors, n_tensors == 1 ? "" : "s",
           format_bytes(size, (double)file_bytes));
    printf("keys\n");
}

static void note_template(void *user, const char *key, const char *type, const char *value)
{
    inspection *in = user;
    (void)type;
    (void)value;
    static const char front[] = "tokenizer.chat_template";
    const char *name = key + sizeof front - 1;
    if (strncmp(key, front, sizeof front - 1) != 0 || (*name && *name != '.') ||
        in->n_templates == MAX_TEMPLATES)
        return;
    snprintf(in->templates[in->n_templates++], sizeof in->templates[0], "%s", name + (*name != 0));
}

/* Lists the templates besides the usual one, with their use. */
static void show_templates(const inspection *in)
{
    bool any = false;
    for (int i = 0; i < in->n_templates; i++) {
        const char *name = in->templates[i];
        if (!*name)
            continue;
        printf("%s  ", any ? "" : "chat templates\n");
        print_clean(stdout, name);
        if (strcmp(name, "tool_use") == 0)
            printf(": for chats with tools\n");
        else
            printf(": with drey serve -m %s --chat-template %s\n", terminal_model(), QUOTED(name));
        any = true;
    }
}

static void show_key(void *user, const char *name, const char *type, const char *value)
{
    (void)user;
    printf("  %-12s ", type);
    print_clean(stdout, name);
    fputs(" = ", stdout);
    print_clean(stdout, value);
    putchar('\n');
}

static void count_type(void *user, const char *name, const char *type, const int64_t *dims,
                       int n_dims, uint64_t bytes, uint64_t offset, bool runnable)
{
    inspection *in = user;
    int i = 0;
    (void)name;
    (void)dims;
    (void)n_dims;
    (void)offset;
    while (i < in->n_types && strcmp(in->types[i].name, type) != 0)
        i++;
    if (i == MAX_TYPES)
        return;
    if (i == in->n_types) {
        snprintf(in->types[i].name, sizeof in->types[i].name, "%s", type);
        in->types[i].runnable = runnable;
        in->n_types++;
    }
    in->types[i].n_tensors++;
    in->types[i].bytes += bytes;
}

static void show_tensor(void *user, const char *name, const char *type, const int64_t *dims,
                        int n_dims, uint64_t bytes, uint64_t offset, bool runnable)
{
    bool *in_tensors = user;
    (void)runnable;
    char shape[96] = "", size[16];
    size_t n = 0;
    if (!*in_tensors)
        printf("tensors\n  type            bytes        offset  shape                 name\n");
    *in_tensors = true;
    for (int i = 0; i < n_dims && n < sizeof shape; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRId64, i ? " x " : "", dims[i]);
    printf("  %-9s %11s %13" PRIu64 "  %-21s ", type, format_bytes(size, (double)bytes), offset,
           shape);
    print_clean(stdout, name);
    putchar('\n');
}

static void show_missing(void *user, const char *what)
{
    int *n_missing = user;
    if ((*n_missing)++ == 0)
        printf("drey cannot run this file\n");
    fputs("  ", stdout);
    print_clean(stdout, what);
    putchar('\n');
}

/* Shows the experts of a file that drey can run. */
static void show_experts(const char *path)
{
    drey_model *model = NULL;
    drey_experts e;
    char a[16], b[16], c[16];
    if (drey_model_open(&model, path, NULL) != DREY_OK)
        return;
    if (drey_model_experts(model, &e)) {
        printf("experts\n  %d layers have %d each, %d wide, of which a token uses %d", e.n_layers,
               e.n_experts, e.n_ff, e.n_used);
        if (e.n_ff_shared)
            printf(", and one of %d that all tokens use", e.n_ff_shared);
        printf("\n  router: %s%s", e.router, e.normed ? ", weights that add up to 1" : "");
        if (e.n_groups > 1)
            printf(", of %d of %d groups", e.n_groups_used, e.n_groups);
        printf("\n  experts %s, %s each; the trunk, which every token uses, %s; a token uses %s\n",
               format_bytes(a, (double)e.expert_bytes),
               format_bytes(b, (double)e.expert_bytes / e.n_layers / e.n_experts),
               format_bytes(c, (double)e.trunk_bytes),
               format_bytes((char[16]){0}, (double)(e.trunk_bytes + e.token_bytes)));
    }
    drey_model_close(&model);
}

static int by_bytes(const void *a, const void *b)
{
    const weight_type *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : strcmp(x->name, y->name);
}

/* The most bytes first. */
static void show_types(inspection *in)
{
    char size[16];
    qsort(in->types, (size_t)in->n_types, sizeof *in->types, by_bytes);
    printf("types\n");
    for (int i = 0; i < in->n_types; i++)
        printf("  %-9s %5d tensor%s %8s%s\n", in->types[i].name, in->types[i].n_tensors,
               in->types[i].n_tensors == 1 ? " " : "s",
               format_bytes(size, (double)in->types[i].bytes),
               in->types[i].runnable ? "" : "  (drey cannot run this type)");
}

static drey_status inspect(const char *path, drey_error *err)
{
    inspection in = {.n_types = 0};
    const drey_inspector counting = {.key = note_template, .tensor = count_type, .user = &in};
    bool in_tensors = false;
    const drey_inspector listing = {
        .header = show_header, .key = show_key, .tensor = show_tensor, .user = &in_tensors};
    model_facts facts;
    int n_missing = 0;
    TRY(model_path_explain(path, model_facts_read(&facts, path, err), err));
    TRY(drey_inspect(path, &counting, err));
    model_facts_head(stdout, &facts, path);
    show_types(&in);
    show_templates(&in);
    show_experts(path);
    TRY(drey_missing(path, show_missing, &n_missing, err));
    if (n_missing == 0 && facts.runs)
        puts("drey runs this file");
    return drey_inspect(path, &listing, err);
}

int inspect_main(const cli_settings *settings)
{
    drey_error err = {0};
    return exit_with(inspect(settings->operand, &err), &err);
}
