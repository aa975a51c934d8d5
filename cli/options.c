/* The option table and its parser: see options.h. */
#include "cli/options.h"

#include "cli/terminal.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(cli_settings, member)

enum {
    ENGINE = CLI_RUN | CLI_PLAN | CLI_PERPLEXITY | CLI_BENCH_MODEL, /* commands that plan memory */
    BENCH = CLI_BENCH_MACHINE | CLI_BENCH_DISK | CLI_BENCH_MODEL | CLI_BENCH_KERNELS,
    CORES = ENGINE | CLI_BENCH_MACHINE | CLI_BENCH_KERNELS, /* commands that compute */
    DRAFTING = CLI_RUN | CLI_PLAN,
    OPERAND = CLI_INSPECT | CLI_PREPARE /* commands that take a file without -m */
};

static const double many = INT32_MAX;

const cli_option cli_options[] = {
    {"model", 'm', CLI_TEXT, ENGINE | CLI_TOKENIZE | CLI_BENCH_DISK | CLI_BENCH_MACHINE, AT(model),
     0, 0},
    {"draft", 'd', CLI_DRAFT, DRAFTING, AT(draft_path), 0, 0},
    {"memory", 0, CLI_MEMORY, ENGINE, AT(memory_bytes), 0, 0},
    {"context", 'c', CLI_COUNT, DRAFTING, AT(n_context), 2, INT32_MAX},
    {"threads", 't', CLI_COUNT, CORES, AT(n_threads), 1, 1024},
    {"policy", 0, CLI_POLICY, DRAFTING, AT(policy), 0, 0},
    {"draft-tokens", 0, CLI_COUNT, DRAFTING, AT(draft_tokens), 1, DREY_MAX_DRAFTED},
    {"tree", 0, CLI_COUNT, DRAFTING, AT(tree_nodes), 1, DREY_MAX_DRAFTED},
    {"prompt-chunk", 0, CLI_COUNT, ENGINE, AT(prompt_chunk), 1, 65536},
    {"cpu", 0, CLI_TEXT, CORES, AT(cpu_tier), 0, 0},
    {"io", 0, CLI_IO, ENGINE | CLI_BENCH_DISK | CLI_BENCH_MACHINE, AT(io), 0, 0},
    {"kv", 0, CLI_KV, ENGINE, AT(kv), 0, 0},
    {"read-size", 0, CLI_SIZE, ENGINE | CLI_BENCH_DISK, AT(read_bytes), 0, 0},
    {"sidecar", 0, CLI_TEXT, ENGINE, AT(sidecar), 0, 0},
    {"prompt", 'p', CLI_TEXT, CLI_RUN, AT(prompt), 0, 0},
    {"file", 'f', CLI_TEXT, CLI_RUN | CLI_PERPLEXITY, AT(file), 0, 0},
    {"predict", 'n', CLI_COUNT, CLI_RUN, AT(n_predict), 1, INT32_MAX},
    {"chat", 0, CLI_FLAG, CLI_RUN, AT(chat), 0, 0},
    {"system", 0, CLI_TEXT, CLI_RUN, AT(system), 0, 0},
    {"special", 0, CLI_FLAG, CLI_RUN | CLI_TOKENIZE, AT(special), 0, 0},
    {"temp", 0, CLI_REAL, CLI_RUN, AT(sampling.temperature), 0, 100},
    {"top-k", 0, CLI_COUNT, CLI_RUN, AT(sampling.top_k), 0, INT32_MAX},
    {"top-p", 0, CLI_REAL, CLI_RUN, AT(sampling.top_p), 0, 1},
    {"min-p", 0, CLI_REAL, CLI_RUN, AT(sampling.min_p), 0, 1},
    {"seed", 0, CLI_SEED, CLI_RUN, AT(sampling.seed), 0, 0},
    {"stop", 0, CLI_STOP, CLI_RUN, AT(stops), 0, 0},
    {"ignore-eos", 0, CLI_FLAG, CLI_RUN, AT(ignore_eos), 0, 0},
    {"raw-ids", 0, CLI_FLAG, CLI_RUN, AT(raw_ids), 0, 0},
    {"stats", 0, CLI_TEXT, CLI_RUN, AT(stats), 0, 0},
    {"quiet", 'q', CLI_FLAG, CLI_RUN | CLI_PERPLEXITY | CLI_PREPARE, AT(quiet), 0, 0},
    {"output", 'o', CLI_TEXT, CLI_PREPARE, AT(output), 0, 0},
    {"check", 0, CLI_FLAG, CLI_PREPARE, AT(check), 0, 0},
    {"force", 0, CLI_FLAG, CLI_PREPARE, AT(force), 0, 0},
    {"disk", 0, CLI_RATE, CLI_PLAN, AT(disk_bytes_per_s), 0, 0},
    {"no-measure", 0, CLI_FLAG, CLI_PLAN, AT(no_measure), 0, 0},
    {"tensors", 0, CLI_FLAG, CLI_PLAN, AT(tensors), 0, 0},
    {"sessions", 0, CLI_COUNT, CLI_PLAN, AT(n_sessions), 1, DREY_MAX_SESSIONS},
    {"ids", 0, CLI_FLAG, CLI_TOKENIZE, AT(ids), 0, 0},
    {"bos", 0, CLI_FLAG, CLI_TOKENIZE, AT(bos), 0, 0},
    {"window", 0, CLI_COUNT, CLI_PERPLEXITY, AT(window), 2, 1048576},
    {"unscored", 0, CLI_COUNT, CLI_PERPLEXITY, AT(unscored), 1, 1048575},
    {"prompt-tokens", 0, CLI_COUNT, CLI_BENCH_MODEL, AT(n_prompt), 1, 1048576},
    {"decode-tokens", 0, CLI_COUNT, CLI_BENCH_MODEL, AT(n_decode), 1, 1048576},
    {"contexts", 0, CLI_TEXT, CLI_BENCH_MODEL, AT(contexts), 0, 0},
    {"every", 0, CLI_FLAG, CLI_BENCH_MODEL, AT(every), 0, 0},
    {"svg", 0, CLI_TEXT, CLI_BENCH_MODEL, AT(svg), 0, 0},
    {"type", 0, CLI_TEXT, CLI_BENCH_KERNELS, AT(type), 0, 0},
    {"list", 0, CLI_FLAG, CLI_BENCH_KERNELS, AT(list), 0, 0},
    {"sizes", 0, CLI_FLAG, CLI_BENCH_DISK, AT(sizes), 0, 0},
    {"seconds", 0, CLI_COUNT, CLI_BENCH_DISK, AT(seconds), 1, 3600},
    {"json", 0, CLI_TEXT, BENCH | CLI_PLAN | CLI_PREPARE, AT(json), 0, 0},
    {"help", 'h', CLI_FLAG, ENGINE | OPERAND | CLI_TOKENIZE | BENCH, AT(help), 0, 0},
};
const size_t cli_n_options = sizeof cli_options / sizeof *cli_options;

const char *command_name(cli_command command)
{
    switch (command) {
    case CLI_RUN:
        return "run";
    case CLI_PLAN:
        return "plan";
    case CLI_INSPECT:
        return "inspect";
    case CLI_TOKENIZE:
        return "tokenize";
    case CLI_PERPLEXITY:
        return "perplexity";
    case CLI_BENCH_MACHINE:
        return "bench machine";
    case CLI_BENCH_DISK:
        return "bench disk";
    case CLI_BENCH_MODEL:
        return "bench model";
    case CLI_PREPARE:
        return "prepare";
    case CLI_BENCH_KERNELS:
        return "bench kernels";
    }
    return "";
}

/* ---- Values ---- */

static int unit_shift(char letter)
{
    switch (letter) {
    case 'k':
    case 'K':
        return 10;
    case 'm':
    case 'M':
        return 20;
    case 'g':
    case 'G':
        return 30;
    case 't':
    case 'T':
        return 40;
    default:
        return 0;
    }
}

/* Exact: whole units and the fraction are shifted as integers, not as floating point numbers. */
bool size_parse(const char *text, uint64_t *bytes)
{
    enum { MAX_DIGITS = 6 }; /* of the fraction: 10^6 << 40 still fits into 64 bits */
    uint64_t whole = 0, fraction = 0, scale = 1;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (whole > (UINT64_MAX - digit) / 10)
            return false;
        whole = whole * 10 + digit;
    }
    if (p == text)
        return false;
    bool has_fraction = *p == '.';
    if (has_fraction) {
        const char *first = ++p;
        for (; *p >= '0' && *p <= '9'; p++) {
            fraction = fraction * 10 + (uint64_t)(*p - '0');
            scale *= 10;
            if (p - first >= MAX_DIGITS)
                return false;
        }
        if (p == first)
            return false;
    }
    int shift = unit_shift(*p);
    if (shift) {
        p++;
        if (strcmp(p, "iB") == 0)
            p += 2;
    } else if (has_fraction) {
        return false;
    }
    if (*p || whole > UINT64_MAX >> shift)
        return false;
    uint64_t part = (fraction << shift) / scale;
    if ((whole << shift) > UINT64_MAX - part)
        return false;
    *bytes = (whole << shift) + part;
    return true;
}

/* An option as the user may write it, for messages: "-m (--model)". */
static const char *spelled(const cli_option *option, char out[static 40])
{
    if (option->letter)
        snprintf(out, 40, "-%c (--%s)", option->letter, option->name);
    else
        snprintf(out, 40, "--%s", option->name);
    return out;
}

static drey_status bad_value(const cli_option *option, const char *text, const char *wanted,
                             drey_error *err)
{
    char name[40];
    return fail(err, DREY_ERR_USAGE, "%s takes %s, not \"%.80s\"", spelled(option, name), wanted,
                text);
}

/* Numbers are written as C writes them; infinities, NaN and what is out of bounds are refused. */
static drey_status read_number(const cli_option *option, const char *text, double *number,
                               drey_error *err)
{
    bool whole = option->value == CLI_COUNT;
    char wanted[80], *end;
    if (option->most < many)
        snprintf(wanted, sizeof wanted, "a %snumber from %g to %.9g", whole ? "whole " : "",
                 option->least, option->most);
    else
        snprintf(wanted, sizeof wanted, "a whole number from %g on", option->least);
    *number = strtod(text, &end);
    bool odd = end == text || *end || !isfinite(*number) || text[strspn(text, "-+.0123456789eE")];
    if (odd || *number < option->least || *number > option->most ||
        (whole && *number != floor(*number)))
        return bad_value(option, text, wanted, err);
    return DREY_OK;
}

static drey_status read_seed(const cli_option *option, const char *text, uint64_t *seed,
                             drey_error *err)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return bad_value(option, text, "a whole number of at most 64 bits", err);
    return DREY_OK;
}

static drey_status read_memory(const cli_option *option, const char *text, uint64_t *bytes,
                               drey_error *err)
{
    if (strcmp(text, "auto") == 0)
        *bytes = DREY_MEMORY_AUTO;
    else if (strcmp(text, "unlimited") == 0)
        *bytes = DREY_MEMORY_UNLIMITED;
    else if (!size_parse(text, bytes) || *bytes == 0 || *bytes == DREY_MEMORY_UNLIMITED)
        return bad_value(option, text, "a size such as 800M or 2.5G, or auto", err);
    return DREY_OK;
}

static drey_status read_size(const cli_option *option, const char *text, uint64_t *bytes,
                             drey_error *err)
{
    if (!size_parse(text, bytes) || *bytes < 64 << 10 || *bytes > 64 << 20)
        return bad_value(option, text, "a size from 64K to 64M", err);
    return DREY_OK;
}

static drey_status read_rate(const cli_option *option, const char *text, double *rate,
                             drey_error *err)
{
    char size[64];
    size_t n = strlen(text);
    if (n > 2 && strcmp(text + n - 2, "/s") == 0)
        n -= 2;
    uint64_t bytes = 0;
    if (n < sizeof size) {
        memcpy(size, text, n);
        size[n] = '\0';
        if (!size_parse(size, &bytes))
            bytes = 0;
    }
    if (!bytes)
        return bad_value(option, text, "a speed such as 1.5G/s", err);
    *rate = (double)bytes;
    return DREY_OK;
}

/* Index of text among the names, or -1. */
static int choose(const char *text, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    return -1;
}

static drey_status read_policy(const cli_option *option, const char *text, drey_policy *policy,
                               drey_error *err)
{
    if (!drey_policy_parse(text, policy))
        return bad_value(option, text, "auto, none, sequence or tree", err);
    return DREY_OK;
}

static drey_status read_io(const cli_option *option, const char *text, drey_io *io, drey_error *err)
{
    static const char *const names[] = {"auto", "uring", "pread", "buffered", NULL};
    static const drey_io ways[] = {DREY_IO_AUTO, DREY_IO_URING, DREY_IO_PREAD, DREY_IO_BUFFERED};
    int i = choose(text, names);
    if (i < 0)
        return bad_value(option, text, "auto, uring, pread or buffered", err);
    *io = ways[i];
    return DREY_OK;
}

static drey_status read_kv(const cli_option *option, const char *text, drey_kv *kv, drey_error *err)
{
    static const char *const names[] = {"f16", "q8_0", NULL};
    int i = choose(text, names);
    if (i < 0)
        return bad_value(option, text, "f16 or q8_0", err);
    *kv = i ? DREY_KV_Q8_0 : DREY_KV_F16;
    return DREY_OK;
}

static drey_status read_stop(cli_settings *s, const char *text, drey_error *err)
{
    if (!*text)
        return fail(err, DREY_ERR_USAGE, "--stop takes a text that is not empty");
    if (s->n_stops == CLI_MAX_STOPS)
        return fail(err, DREY_ERR_USAGE, "--stop can be given %d times at most", CLI_MAX_STOPS);
    s->stops[s->n_stops++] = text;
    return DREY_OK;
}

static void read_draft(cli_settings *s, const char *text)
{
    s->draft_path = NULL;
    if (strcmp(text, drey_drafter_name(DREY_DRAFTER_NONE)) == 0)
        s->drafter = DREY_DRAFTER_NONE;
    else if (strcmp(text, drey_drafter_name(DREY_DRAFTER_NGRAM)) == 0)
        s->drafter = DREY_DRAFTER_NGRAM;
    else {
        s->drafter = DREY_DRAFTER_MODEL;
        s->draft_path = text;
    }
}

static drey_status store(cli_settings *s, const cli_option *option, const char *text,
                         drey_error *err)
{
    void *at = (char *)s + option->offset;
    double number = 0;
    drey_status status = DREY_OK;
    switch (option->value) {
    case CLI_FLAG:
        *(bool *)at = true;
        break;
    case CLI_TEXT:
        *(const char **)at = text;
        break;
    case CLI_STOP:
        return read_stop(s, text, err);
    case CLI_DRAFT:
        read_draft(s, text);
        break;
    case CLI_POLICY:
        return read_policy(option, text, at, err);
    case CLI_IO:
        return read_io(option, text, at, err);
    case CLI_KV:
        return read_kv(option, text, at, err);
    case CLI_MEMORY:
        return read_memory(option, text, at, err);
    case CLI_SIZE:
        return read_size(option, text, at, err);
    case CLI_RATE:
        return read_rate(option, text, at, err);
    case CLI_SEED:
        return read_seed(option, text, at, err);
    case CLI_COUNT:
        status = read_number(option, text, &number, err);
        if (status == DREY_OK) /* else it may be no int32_t at all */
            *(int32_t *)at = (int32_t)number;
        break;
    case CLI_REAL:
        status = read_number(option, text, &number, err);
        if (status == DREY_OK)
            *(float *)at = (float)number;
        break;
    }
    return status;
}

/* ---- Words ---- */

static const cli_option *find_long(const char *name, size_t n)
{
    for (size_t i = 0; i < cli_n_options; i++)
        if (strlen(cli_options[i].name) == n && memcmp(cli_options[i].name, name, n) == 0)
            return &cli_options[i];
    return NULL;
}

static const cli_option *find_letter(char letter)
{
    for (size_t i = 0; i < cli_n_options; i++)
        if (cli_options[i].letter == letter)
            return &cli_options[i];
    return NULL;
}

/* Takes one option from argv[*at], which starts with a dash, and its value, which may be the rest
 * of the word ("-n8", "--temp=0.7") or the next word; *at is left at the last word used. */
static drey_status take_option(cli_settings *s, int argc, char *const *argv, int *at,
                               drey_error *err)
{
    const char *word = argv[*at], *value = NULL;
    const cli_option *option;
    int shown = (int)strlen(word); /* of the word in messages: not the value */
    if (word[1] == '-') {
        size_t n = strcspn(word + 2, "=");
        option = find_long(word + 2, n);
        value = word[2 + n] ? word + 3 + n : NULL;
        shown = (int)n + 2;
    } else {
        option = find_letter(word[1]);
        value = word[2] ? word + 2 : NULL;
        shown = 2;
    }
    if (!option)
        return fail(err, DREY_ERR_USAGE, "unknown option %.*s", shown, word);
    if (!(option->commands & s->command))
        return fail(err, DREY_ERR_USAGE, "drey %s takes no %.*s", command_name(s->command), shown,
                    word);
    uint64_t bit = (uint64_t)1 << (option - cli_options);
    if (s->given & bit && option->value != CLI_STOP && option->value != CLI_FLAG)
        return fail(err, DREY_ERR_USAGE, "%.*s is given twice", shown, word);
    s->given |= bit;
    if (option->value == CLI_FLAG) {
        if (value)
            return fail(err, DREY_ERR_USAGE, "%.*s takes no value", shown, word);
        return store(s, option, NULL, err);
    }
    if (!value) {
        if (*at + 1 >= argc)
            return fail(err, DREY_ERR_USAGE, "%.*s needs a value", shown, word);
        value = argv[++*at];
    }
    return store(s, option, value, err);
}

static drey_status take_operand(cli_settings *s, const char *word, drey_error *err)
{
    if (!(s->command & OPERAND) || s->operand)
        return fail(err, DREY_ERR_USAGE, "unexpected argument \"%.80s\"", word);
    s->operand = word;
    return DREY_OK;
}

/* ---- Contradictions ---- */

static bool given(const cli_settings *s, const char *name)
{
    const cli_option *option = find_long(name, strlen(name));
    return s->given >> (option - cli_options) & 1;
}

static drey_status check_drafting(const cli_settings *s, drey_error *err)
{
    bool drafts = s->drafter != DREY_DRAFTER_NONE;
    drey_policy policy = s->policy;
    if (policy == DREY_POLICY_AUTO)
        policy = drafts ? DREY_POLICY_TREE : DREY_POLICY_NONE;
    if (policy != DREY_POLICY_NONE && !drafts)
        return fail(err, DREY_ERR_USAGE, "--policy %s needs a draft: add -d DRAFT.gguf or -d ngram",
                    drey_policy_name(policy));
    if (policy == DREY_POLICY_NONE && drafts)
        return fail(err, DREY_ERR_USAGE,
                    "--policy none and -d contradict each other: leave one "
                    "out");
    if (given(s, "draft-tokens") && policy != DREY_POLICY_SEQUENCE)
        return fail(err, DREY_ERR_USAGE, "--draft-tokens belongs to --policy sequence");
    if (given(s, "tree") && policy != DREY_POLICY_TREE)
        return fail(err, DREY_ERR_USAGE, "--tree belongs to --policy tree and a draft");
    return DREY_OK;
}

static drey_status check_run(const cli_settings *s, drey_error *err)
{
    static const char *const sampled[] = {"top-k", "top-p", "min-p", "seed", NULL};
    if (s->prompt && s->file)
        return fail(err, DREY_ERR_USAGE, "-p and -f contradict each other: there is one prompt");
    if (s->system && !s->chat)
        return fail(err, DREY_ERR_USAGE, "--system needs --chat");
    for (int i = 0; sampled[i]; i++)
        if (given(s, sampled[i]) && !given(s, "temp"))
            return fail(err, DREY_ERR_USAGE,
                        "--%s needs --temp above 0: at temperature 0 the most likely token is "
                        "always taken",
                        sampled[i]);
    if (given(s, "top-p") && s->sampling.top_p <= 0)
        return fail(err, DREY_ERR_USAGE, "--top-p takes a number above 0, up to 1");
    return DREY_OK;
}

static drey_status check(const cli_settings *s, drey_error *err)
{
    if (s->command & OPERAND && !s->operand)
        return fail(err, DREY_ERR_USAGE, "name a %s",
                    s->command == CLI_PREPARE ? "model to prepare" : "file to inspect");
    const cli_option *model = find_long("model", 5);
    if (model->commands & s->command && s->command != CLI_BENCH_MACHINE && !s->model)
        return fail(err, DREY_ERR_USAGE, "name a model with -m MODEL.gguf");
    if (s->command & DRAFTING && check_drafting(s, err) != DREY_OK)
        return DREY_ERR_USAGE;
    if (s->command == CLI_RUN)
        return check_run(s, err);
    if (s->check && s->force)
        return fail(err, DREY_ERR_USAGE,
                    "--check and --force contradict each other: a check writes nothing");
    if (s->command == CLI_BENCH_MACHINE && given(s, "io") && !s->model)
        return fail(err, DREY_ERR_USAGE, "--io needs -m: without a model no disk is read");
    if (s->list && (s->type || s->json))
        return fail(err, DREY_ERR_USAGE, "--list stands alone: nothing is measured");
    if (s->command == CLI_TOKENIZE && s->ids && s->bos)
        return fail(err, DREY_ERR_USAGE,
                    "--ids and --bos contradict each other: BOS is put before "
                    "tokens, not before text");
    return DREY_OK;
}

drey_status options_parse(cli_settings *s, cli_command command, int argc, char *const *argv,
                          drey_error *err)
{
    *s = (cli_settings){.command = command,
                        .n_predict = 512,
                        .window = 512,
                        .n_prompt = 512,
                        .n_decode = 64,
                        .sampling.top_p = 1};
    bool only_operands = false;
    for (int i = 0; i < argc; i++) {
        drey_status status;
        if (only_operands || argv[i][0] != '-' || !argv[i][1]) {
            status = take_operand(s, argv[i], err);
        } else if (strcmp(argv[i], "--") == 0) {
            only_operands = true;
            status = DREY_OK;
        } else {
            status = take_option(s, argc, argv, &i, err);
        }
        if (status != DREY_OK)
            return status;
        if (s->help)
            return DREY_OK;
    }
    return check(s, err);
}
