/* Facts about a model that a person asks for first: see model_facts.h. */
#include "cli/models/model_facts.h"

#include "cli/terminal/terminal.h"
#include "common/path.h"
#include "common/size_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Types ---- */

/* The names of general.file_type, as llama.cpp numbers them; NULL: a number without a model. */
static const char *const file_types[] = {
    "F32",    "F16",    "Q4_0",  "Q4_1",    NULL,     NULL,     NULL,     "Q8_0",
    "Q5_0",   "Q5_1",   "Q2_K",  "Q3_K_S",  "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M",
    "Q5_K_S", "Q5_K_M", "Q6_K",  "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS",
    "IQ1_S",  "IQ4_NL", "IQ3_S", "IQ3_M",   "IQ2_S",  "IQ2_M",  "IQ4_XS", "IQ1_M",
    "BF16",   NULL,     NULL,    NULL,      "TQ1_0",  "TQ2_0",  "MXFP4"};

enum { MOST_TYPES = 48 };

typedef struct reading {
    model_facts *facts;
    struct {
        char name[16];
        uint64_t n_bytes;
    } types[MOST_TYPES];
    int n_types;
} reading;

static void count_type(reading *r, const char *type, uint64_t n_bytes)
{
    int i = 0;
    while (i < r->n_types && strcmp(r->types[i].name, type) != 0)
        i++;
    if (i == MOST_TYPES)
        return;
    if (i == r->n_types)
        snprintf(r->types[r->n_types++].name, sizeof r->types[0].name, "%s", type);
    r->types[i].n_bytes += n_bytes;
}

/* The type that most bytes have, where the file does not say what it is. */
static void find_type(reading *r)
{
    uint64_t most = 0;
    for (int i = 0; i < r->n_types && !*r->facts->type; i++)
        most = r->types[i].n_bytes > most ? r->types[i].n_bytes : most;
    for (int i = 0; i < r->n_types && !*r->facts->type; i++)
        if (r->types[i].n_bytes == most)
            snprintf(r->facts->type, sizeof r->facts->type, "%s", r->types[i].name);
}

/* ---- Keys ---- */

static void take_header(void *user, uint32_t version, uint64_t n_keys, uint64_t n_tensors,
                        uint64_t file_bytes)
{
    (void)version;
    (void)n_keys;
    (void)n_tensors;
    ((reading *)user)->facts->n_bytes = file_bytes;
}

/* A key of the architecture, "llama.block_count", and not of a part of it. */
static bool is_of_architecture(const char *name, const char *key)
{
    const char *dot = strchr(name, '.');
    return dot && strcmp(dot + 1, key) == 0;
}

static void take_number(model_facts *f, const char *name, const char *value)
{
    const struct {
        const char *key;
        int64_t *to;
    } numbers[] = {{"context_length", &f->n_context},
                   {"block_count", &f->n_layers},
                   {"embedding_length", &f->n_embd},
                   {"feed_forward_length", &f->n_ff},
                   {"expert_count", &f->n_experts}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (is_of_architecture(name, numbers[i].key))
            *numbers[i].to = strtoll(value, NULL, 10);
}

static void take_key(void *user, const char *name, const char *type, const char *value)
{
    model_facts *f = ((reading *)user)->facts;
    const struct {
        const char *key;
        char *to;
        size_t room;
    } texts[] = {{"general.name", f->name, sizeof f->name},
                 {"general.basename", f->basename, sizeof f->basename},
                 {"general.architecture", f->architecture, sizeof f->architecture},
                 {"general.license", f->license, sizeof f->license},
                 {"tokenizer.ggml.pre", f->pre, sizeof f->pre}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i].key) == 0)
            snprintf(texts[i].to, texts[i].room, "%s", value);
    take_number(f, name, value);
    if (strcmp(name, "tokenizer.ggml.tokens") == 0 && strchr(type, '['))
        f->n_vocab = strtoll(strchr(type, '[') + 1, NULL, 10);
    if (strcmp(name, "tokenizer.ggml.model") == 0)
        f->has_spm = strcmp(value, "gpt2") != 0;
    if (strcmp(name, "tokenizer.chat_template") == 0)
        f->has_template = true;
    if (strcmp(name, "tokenizer.chat_template.tool_use") == 0)
        f->has_tools = true;
    if (strcmp(name, "general.file_type") == 0) {
        uint64_t n = strtoull(value, NULL, 10);
        if (n < sizeof file_types / sizeof *file_types && file_types[n])
            snprintf(f->type, sizeof f->type, "%s", file_types[n]);
    }
}

static void take_tensor(void *user, const char *name, const char *type, const int64_t *dims,
                        int n_dims, uint64_t bytes, uint64_t offset, bool runnable)
{
    reading *r = user;
    int64_t n = 1;
    (void)offset;
    (void)runnable;
    for (int i = 0; i < n_dims; i++)
        n *= dims[i];
    r->facts->n_parameters += n;
    r->facts->has_mtp = r->facts->has_mtp || strstr(name, ".nextn.eh_proj.weight");
    count_type(r, type, bytes);
}

/* Looks at a model that runs: whether its template lists tools. */
static void look_at_template(model_facts *f, const char *path)
{
    drey_model *model = NULL;
    const char *text;
    size_t n;
    f->runs = drey_model_open(&model, path, NULL) == DREY_OK;
    if (!f->runs)
        return;
    drey_model_chat_template(model, &text, &n);
    f->has_tools = f->has_tools || (n > 0 && memmem(text, n, "tools", 5));
    drey_model_close(&model);
}

drey_status model_facts_read(model_facts *f, const char *path, drey_error *err)
{
    reading r = {.facts = f};
    const drey_inspector inspector = {
        .header = take_header, .key = take_key, .tensor = take_tensor, .user = &r};
    *f = (model_facts){.n_bytes = 0};
    TRY(drey_inspect(path, &inspector, err));
    find_type(&r);
    look_at_template(f, path);
    return DREY_OK;
}

/* ---- For people ---- */

const char *model_parameters(char out[16], int64_t n)
{
    double millions = (double)n / 1e6;
    double x = millions < 999.5 ? millions : millions / 1e3;
    int decimals = x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
    snprintf(out, 16, "%.*f%c", decimals, x < 1e9 ? x : 1e9, millions < 999.5 ? 'M' : 'B');
    return out;
}

const char *model_context(char out[24], int64_t n)
{
    bool whole = n >= 1024 && n % 1024 == 0;
    if (n <= 0)
        snprintf(out, 24, "-");
    else
        snprintf(out, 24, "%" PRId64 "%s", whole ? n / 1024 : n, whole ? "K" : "");
    return out;
}

static void show_line(FILE *out, const char *label, const char *text)
{
    if (!*text)
        return;
    fprintf(out, "  %-13s", label);
    print_clean(out, text);
    putc('\n', out);
}

void model_facts_head(FILE *out, const model_facts *f, const char *path)
{
    char n[16], text[96];
    print_clean(out, *f->name ? f->name : path_name(path));
    putc('\n', out);
    if (f->n_parameters > 0)
        show_line(out, "parameters", model_parameters(n, f->n_parameters));
    show_line(out, "type", f->type);
    show_line(out, "size", format_bytes(n, (double)f->n_bytes));
    snprintf(text, sizeof text, "%" PRId64 " tokens", f->n_context);
    show_line(out, "context", f->n_context > 0 ? text : "");
    show_line(out, "architecture", f->architecture);
    snprintf(text, sizeof text, "%" PRId64 ", %" PRId64 " wide", f->n_layers, f->n_embd);
    show_line(out, "layers", f->n_layers > 0 && f->n_embd > 0 ? text : "");
    snprintf(text, sizeof text, "%s%s%s%s, %" PRId64 " tokens",
             f->has_spm ? "SentencePiece" : "byte-level BPE", *f->pre ? " (" : "", f->pre,
             *f->pre ? ")" : "", f->n_vocab);
    show_line(out, "tokenizer", f->n_vocab > 0 ? text : "");
    if (f->n_vocab > 0)
        show_line(out, "chat",
                  !f->has_template ? "no template: it continues texts"
                  : f->has_tools   ? "a template, with tools"
                                   : "a template, without tools");
    show_line(out, "draft", f->has_mtp ? "an MTP block: -d mtp uses it" : "");
    show_line(out, "licence", f->license);
}
