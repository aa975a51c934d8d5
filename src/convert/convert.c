/* drey_convert: a folder becomes a file.
 *
 *   folder -> family -> keys, tokenizer, list of tensors -> the header, checked as that of a model
 *          -> tensor after tensor */
#include "drey/convert.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "common/new_file.h"
#include "common/path.h"
#include "convert/tensor_fill.h"
#include "convert/vocabulary.h"
#include "gguf/types.h"
#include "kernel/kernel.h"
#include "model/arch.h"
#include "model/layout.h"
#include "text/tokenizer.h"

/* Numbers of general.file_type: llama.cpp's llama_ftype. */
static const struct {
    const char *name;
    uint32_t type, file_type;
} types[] = {
    {"f16", TYPE_F16, 1}, {"bf16", TYPE_BF16, 32}, {"f32", TYPE_F32, 0}, {"q8_0", TYPE_Q8_0, 7}};
enum { N_TYPES = sizeof types / sizeof *types, MOSTLY_MXFP4 = 38 };

typedef struct conversion {
    const drey_convert_options *options;
    hub_folder folder;
    family family;
    int type; /* index in types */
    new_gguf file;
    rope_factors factors[MOST_ROPE_FACTORS];
    tensor_plan plan;
} conversion;

void drey_convert_options_init(drey_convert_options *options)
{
    *options = (drey_convert_options){0};
}

const char *drey_convert_type(int32_t i)
{
    return i >= 0 && i < N_TYPES ? types[i].name : NULL;
}

/* ---- What was asked for ---- */

static int type_of_number(number_type type)
{
    uint32_t want = type == NUMBER_F16 ? TYPE_F16 : type == NUMBER_BF16 ? TYPE_BF16 : TYPE_F32;
    int i = 0;
    while (types[i].type != want)
        i++;
    return i;
}

/* Returns the type of most of the folder's matrices, by their bytes. */
static int stored_type(const hub_folder *f)
{
    uint64_t n_bytes[NUMBER_OTHER + 1] = {0};
    number_type most = NUMBER_F32;
    for (int32_t p = 0; p < f->n_parts; p++)
        for (uint64_t i = 0; i < f->parts[p].header.n; i++) {
            const safetensor *t = &f->parts[p].header.tensors[i];
            n_bytes[t->type] += t->n_dims > 1 ? t->n_bytes : 0;
        }
    for (number_type t = NUMBER_F32; t < NUMBER_OTHER; t++)
        most = n_bytes[t] > n_bytes[most] ? t : most;
    return type_of_number(most);
}

static drey_status find_type(conversion *c, drey_error *err)
{
    const char *name = c->options->type;
    c->type = -1;
    for (int i = 0; name && i < N_TYPES; i++)
        if (strcasecmp(name, types[i].name) == 0)
            c->type = i;
    if (name && c->type < 0)
        FAIL(err, DREY_ERR_USAGE,
             "a model is not converted to \"%.40s\": take f16, bf16, f32 or q8_0", name);
    return DREY_OK;
}

static drey_status check_place(const drey_convert_options *o, drey_error *err)
{
    struct stat about;
    if (!o->folder || !o->output)
        FAIL(err, DREY_ERR_USAGE, "name a folder and the file to write");
    if (!o->force && stat(o->output, &about) == 0 && S_ISREG(about.st_mode))
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_FORCE,
                  "%s is there already; name another file, or have it overwritten",
                  SHOWN_PATH(o->output));
    return new_file_check(o->output, err);
}

/* ---- The header ---- */

/* The folder's last part as the model's name. */
static void put_general(conversion *c)
{
    char *real = realpath(c->folder.path, NULL);
    const char *name = path_name(real ? real : c->folder.path);
    new_gguf_text(&c->file, "general.type", "model");
    if (*name)
        new_gguf_text(&c->file, "general.name", name);
    bool packed = folder_is_mxfp4(&c->folder) && types[c->type].type != TYPE_Q8_0;
    new_gguf_u32(&c->file, "general.file_type", packed ? MOSTLY_MXFP4 : types[c->type].file_type);
    new_gguf_u32(&c->file, "general.quantization_version", 2);
    free(real);
}

static drey_status make_header(conversion *c, drey_error *err)
{
    new_gguf_begin(&c->file, c->family.arch_name);
    put_general(c);
    TRY(family_keys(&c->family, &c->folder, &c->file, c->factors, err));
    TRY(vocabulary_keys(&c->family, &c->folder, &c->file, err));
    TRY(tensor_plan_make(&c->plan, &c->family, &c->folder, types[c->type].type, c->factors, err));
    TRY(layer_keys(&c->family, &c->folder, &c->plan, &c->file, err));
    for (int64_t i = 0; i < c->plan.n; i++) {
        const made_tensor *t = &c->plan.tensors[i];
        new_gguf_tensor(&c->file, t->name, t->type, t->dims, (uint32_t)t->n_dims, NULL, t->n_bytes);
    }
    return DREY_OK;
}

/* Makes the checks of a model that is opened and whose tensors are bound. */
static drey_status check_model(const gguf *g, drey_error *err)
{
    model_shape shape;
    model_layout layout;
    tokenizer *t = NULL;
    arena memory = {0};
    TRY(model_shape_read(&shape, g, err));
    TRY(tokenizer_open(&t, g, err));
    int32_t n_tokens = tokenizer_n_vocab(t);
    tokenizer_close(&t);
    if (n_tokens > shape.n_vocab)
        FAIL(err, DREY_ERR_FORMAT, "the tokenizer has %d tokens, and the embedding %d rows",
             n_tokens, shape.n_vocab);
    drey_status status = arena_init(&memory, model_layout_bytes(&shape, g), false, err);
    if (status == DREY_OK)
        status = model_layout_init(&layout, g, kernel_select(NULL), &memory, err);
    arena_free(&memory);
    return status;
}

static drey_status check_header(const conversion *c, uint64_t *file_bytes, drey_error *err)
{
    uint8_t *front;
    size_t n;
    gguf *g = NULL;
    TRY(new_gguf_front(&c->file, &front, &n, err));
    *file_bytes = n + c->file.data_bytes;
    drey_status status = gguf_parse(&g, front, n, *file_bytes, err);
    if (status == DREY_OK)
        status = check_model(g, err);
    gguf_close(&g);
    free(front);
    return status;
}

/* ---- All ---- */

static drey_status convert(conversion *c, drey_convert_report *report, drey_error *err)
{
    const drey_convert_options *o = c->options;
    TRY(find_type(c, err));
    TRY(check_place(o, err));
    TRY(hub_folder_open(&c->folder, o->folder, err));
    TRY(family_find(&c->family, &c->folder, err));
    if (c->type < 0)
        c->type = stored_type(&c->folder);
    TRY(make_header(c, err));
    TRY(check_header(c, &report->output_bytes, err));
    snprintf(report->architecture, sizeof report->architecture, "%s", c->family.arch_name);
    snprintf(report->type, sizeof report->type, "%s", types[c->type].name);
    report->n_tensors = c->plan.n;
    report->n_left_out = c->plan.n_left_out;
    tensor_filler filler = {.folder = &c->folder,
                            .plan = &c->plan,
                            .progress = o->progress,
                            .go_on = o->go_on,
                            .user = o->user,
                            .total = c->file.data_bytes};
    drey_status status = new_gguf_stream(&c->file, o->output, tensor_fill, &filler, err);
    tensor_filler_free(&filler);
    return status;
}

drey_status drey_convert(const drey_convert_options *options, drey_convert_report *report,
                         drey_error *err)
{
    drey_convert_report unused;
    conversion c = {.options = options};
    report = report ? report : &unused;
    *report = (drey_convert_report){0};
    drey_status status = convert(&c, report, err);
    tensor_plan_free(&c.plan);
    for (int i = 0; i < MOST_ROPE_FACTORS; i++)
        free(c.factors[i].values);
    new_gguf_free(&c.file);
    hub_folder_close(&c.folder);
    return status;
}
