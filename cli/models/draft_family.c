/* Finds the small model that drafts for a large one: see draft_family.h.
 *
 * A family is known by what its files say: architecture, pre-tokenizer, number of tokens, name, and
 * the number of weights, because a draft pays for much larger models only. The first row that fits
 * is taken. Whether the tokens are the same to the last one is checked when both headers are
 * there. */
#include "cli/models/draft_family.h"

#include "cli/terminal/terminal.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* Advice for a dense model and for a mixture of experts without a small model. */
static const char dense[] =
    "drey prepare --planes MODEL and -d self, or drey train medusa -m MODEL";
static const char mixture[] = "-d lookup, or drey train medusa -m MODEL";

typedef struct row {
    draft_family family;
    const char *architectures; /* with a blank between them */
    const char *pre;           /* NULL: any, as for the next two */
    const char *word;          /* in the name: letters and digits alone count */
    int64_t n_vocab[2];        /* from, to; 0, 0: any */
    double least;              /* weights in billions; fewer are not drafted for */
    int64_t least_context;
    bool experts; /* mixtures alone */
} row;

/* clang-format off */
static const row rows[] = {
    {{"DeepSeek R1 Distill Llama", "70B", "unsloth/DeepSeek-R1-Distill-Llama-8B-GGUF:Q4_K_M", 4.92e9, dense},
     .architectures = "llama", .word = "r1distillllama", .n_vocab = {128256, 128256}, .least = 30},
    {{"DeepSeek R1 Distill Llama", "8B", NULL, 0, dense},
     .architectures = "llama", .word = "r1distillllama"},
    {{"DeepSeek R1 Distill Qwen", "7B to 32B", "unsloth/DeepSeek-R1-Distill-Qwen-1.5B-GGUF:Q4_K_M", 1.12e9, dense},
     .architectures = "qwen2", .pre = "deepseek-r1-qwen", .least = 5},
    {{"Llama 3.1, 3.2, 3.3", "3B to 405B", "bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M", 0.81e9, dense},
     .architectures = "llama", .pre = "llama-bpe", .n_vocab = {128256, 128256}, .least = 2.5, .least_context = 8193},
    {{"Llama 3, the first", "8B, 70B", NULL, 0, dense},
     .architectures = "llama", .pre = "llama-bpe", .n_vocab = {128256, 128256}, .least = 2.5},
    {{"SmolLM2", "360M, 1.7B", "bartowski/SmolLM2-135M-Instruct-GGUF:Q4_K_M", 0.105e9, dense},
     .architectures = "llama", .pre = "smollm", .n_vocab = {49152, 49152}, .least = 0.3},
    {{"Mistral Small 3", "24B", "bartowski/alamios_Mistral-Small-3.1-DRAFT-0.5B-GGUF:Q4_K_M", 0.4e9, dense},
     .architectures = "llama", .pre = "tekken", .n_vocab = {131072, 131072}, .least = 20},
    {{"Mistral Nemo", "12B", NULL, 0, dense}, .architectures = "llama", .pre = "tekken"},
    {{"Mixtral", "8x7B, 8x22B", NULL, 0, mixture}, .architectures = "llama", .experts = true},
    {{"Mistral", "7B", NULL, 0, dense}, .architectures = "llama", .word = "mistral"},
    {{"Llama 2", "7B to 70B", "TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF:Q4_K_M", 0.67e9, dense},
     .architectures = "llama", .n_vocab = {32000, 32000}, .least = 5},
    {{"Qwen 2.5 Coder", "1.5B to 32B", "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:Q4_K_M", 0.49e9, dense},
     .architectures = "qwen2", .pre = "qwen2", .word = "coder", .n_vocab = {151936, 152064}, .least = 1.4},
    {{"Qwen 2.5, Qwen 2, QwQ", "1.5B to 72B, 57B-A14B", "Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M", 0.49e9, dense},
     .architectures = "qwen2 qwen2moe", .pre = "qwen2", .n_vocab = {151936, 152064}, .least = 1.4},
    {{"Qwen 3", "1.7B to 32B, 30B-A3B, 235B-A22B", "unsloth/Qwen3-0.6B-GGUF:Q4_K_M", 0.40e9, dense},
     .architectures = "qwen3 qwen3moe", .pre = "qwen2", .n_vocab = {151936, 151936}, .least = 1.4},
    {{"Gemma 2", "9B, 27B", "bartowski/gemma-2-2b-it-GGUF:Q4_K_M", 1.71e9, dense},
     .architectures = "gemma2", .least = 5},
    {{"Gemma 2", "2B", NULL, 0, dense}, .architectures = "gemma2"},
    {{"Gemma 3", "12B, 27B", "ggml-org/gemma-3-4b-it-GGUF:Q4_K_M", 2.49e9, dense},
     .architectures = "gemma3", .n_vocab = {262145, 262208}, .least = 9},
    {{"Gemma 3", "1B", "ggml-org/gemma-3-270m-it-GGUF:Q8_0", 0.29e9, dense},
     .architectures = "gemma3", .n_vocab = {262144, 262144}, .least = 0.9},
    {{"Gemma 3", "4B", NULL, 0, dense}, .architectures = "gemma3", .least = 2},
    {{"Phi 3 medium", "14B", "microsoft/Phi-3-mini-4k-instruct-gguf/Phi-3-mini-4k-instruct-q4.gguf", 2.39e9, dense},
     .architectures = "phi3", .n_vocab = {32000, 32064}, .least = 9},
    {{"Phi 3 mini, 3.5, 4", "3.8B, 14B", NULL, 0, dense}, .architectures = "phi3"},
    {{"Granite 3.3", "8B", "ibm-granite/granite-3.3-2b-instruct-GGUF:Q4_K_M", 1.55e9, dense},
     .architectures = "granite", .n_vocab = {49159, 49160}, .least = 5},
    {{"Granite 3.0 to 3.2", "8B", "bartowski/granite-3.1-1b-a400m-instruct-GGUF:Q4_K_M", 0.82e9, dense},
     .architectures = "granite", .n_vocab = {49152, 49156}, .least = 5},
    {{"Granite 3", "2B", NULL, 0, dense}, .architectures = "granite"},
    {{"Granite 3, mixtures", "1B-A400M, 3B-A800M", NULL, 0, mixture}, .architectures = "granitemoe"},
    {{"OLMoE", "7B-A1B", NULL, 0, mixture}, .architectures = "olmoe"},
    {{"gpt-oss", "20B, 120B", NULL, 0, mixture}, .architectures = "gpt-oss"},
    {{"T5, flan-T5", "base to XXL", NULL, 0, "flan-t5-small or t5-small, made by drey convert, with -d"},
     .architectures = "t5", .least = 0.2},
    {{"BART", "large", NULL, 0, "distilbart-cnn-6-6, made by drey convert, with -d"},
     .architectures = "bart", .least = 0.35},
};
/* clang-format on */

enum { N_ROWS = sizeof rows / sizeof *rows };

const draft_family *draft_family_at(size_t i)
{
    return i < N_ROWS ? &rows[i].family : NULL;
}

/* ---- Which one ---- */

static bool has_architecture(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; n > 0 && (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

/* "DeepSeek-R1 Distill Llama 8B" has "r1distillllama". */
static bool name_has(const char *name, const char *word)
{
    char plain[160];
    size_t n = 0;
    for (; *name && n < sizeof plain - 1; name++)
        if (isalnum((unsigned char)*name))
            plain[n++] = (char)tolower((unsigned char)*name);
    plain[n] = '\0';
    return strstr(plain, word);
}

static bool fits(const row *r, const model_facts *f)
{
    bool any_vocab = r->n_vocab[1] == 0;
    return has_architecture(r->architectures, f->architecture) &&
           (!r->pre || strcmp(r->pre, f->pre) == 0) &&
           (!r->word || name_has(f->name, r->word) || name_has(f->basename, r->word)) &&
           (any_vocab || (f->n_vocab >= r->n_vocab[0] && f->n_vocab <= r->n_vocab[1])) &&
           (double)f->n_parameters >= r->least * 1e9 && f->n_context >= r->least_context &&
           (!r->experts || f->n_experts > 0);
}

const draft_family *draft_family_of(const model_facts *f)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (fits(&rows[i], f))
            return &rows[i].family;
    return NULL;
}

/* ---- What it brings ---- */

/* Usual numbers: bytes per second of memory and of a disk; of trees of a small model of the
 * family the nodes' cost in passes over one row, the tokens of a pass, and the draft's steps. */
static const double memory_per_s = 30e9, disk_per_s = 2.5e9, least_gain = 1.2;
static const struct {
    double rows, tokens, steps;
} trees[] = {{1.05, 1.75, 1}, {1.15, 2.6, 2}, {1.4, 3.4, 3}, {2.2, 5.0, 5}};

/* Each row of a mixture asks for its own experts: 1.0 to 2.1 times were measured. */
static const double mixture_gain = 2;

double draft_family_gain(const draft_family *family, const model_facts *target,
                         uint64_t streamed_bytes)
{
    if (!family->draft)
        return 1;
    if (target->n_experts > 0)
        return mixture_gain;
    double row_s = (double)target->n_bytes / memory_per_s, best = 1;
    double read_s = (double)streamed_bytes / disk_per_s, alone_s = fmax(read_s, row_s);
    double step_s = family->draft_bytes / memory_per_s;
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        double turn_s = fmax(read_s, row_s * trees[i].rows) + step_s * trees[i].steps;
        best = fmax(best, trees[i].tokens * alone_s / turn_s);
    }
    return best;
}

const char *draft_family_gain_text(double gain, const model_facts *target, char out[48])
{
    snprintf(out, 48, ", then %s %.*f times as fast", target->n_experts > 0 ? "up to" : "about",
             gain < 2.95 && target->n_experts == 0, gain);
    return out;
}

/* A text in which MODEL is the model that the command is about. */
static void put_advice(const char *advice, char *out, size_t room)
{
    static const char word[] = "MODEL";
    size_t n = strlen(out);
    for (const char *at = advice, *next; *at && n < room; at = next) {
        bool is_word = strncmp(at, word, sizeof word - 1) == 0;
        next = at + (is_word ? sizeof word - 1 : 1);
        n += (size_t)snprintf(out + n, room - n, "%.*s", is_word ? INT_MAX : 1,
                              is_word ? terminal_model() : at);
    }
}

void draft_family_words(const draft_family *family, const model_facts *target, double gain,
                        char *out, size_t room)
{
    char then[48];
    *out = '\0';
    if (!family->draft) {
        snprintf(out, room, "for %s no small model has these tokens: ", family->name);
        put_advice(family->otherwise, out, room);
    } else if (gain >= least_gain) {
        snprintf(out, room, "for %s: drey pull %s%s", family->name, family->draft,
                 draft_family_gain_text(gain, target, then));
    }
}

void draft_family_hint(const char *path, uint64_t streamed_bytes, char *out, size_t room)
{
    model_facts f;
    const draft_family *family = NULL;
    *out = '\0';
    if (model_facts_read(&f, path, NULL) == DREY_OK)
        family = draft_family_of(&f);
    if (family)
        draft_family_words(family, &f, draft_family_gain(family, &f, streamed_bytes), out, room);
}
