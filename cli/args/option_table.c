/* The options, their bounds and their values' names, and the commands that take them: see
 * options.h. What the library bounds is bounded by its constants, and its enums have its names. */
#include "cli/args/options.h"

#include "drey/train.h"
#include "serve/server.h"

#include <string.h>

enum {
    /* commands that plan memory */
    TRAIN = CLI_TRAIN_EXIT | CLI_TRAIN_MEDUSA,
    ENGINE = CLI_RUN | CLI_CHAT | CLI_PLAN | CLI_SERVE | CLI_PERPLEXITY | CLI_BENCH_MODEL | TRAIN,
    BENCH = CLI_BENCH_MACHINE | CLI_BENCH_DISK | CLI_BENCH_MODEL | CLI_BENCH_KERNELS,
    CORES = ENGINE | CLI_BENCH_MACHINE | CLI_BENCH_KERNELS | CLI_TUNE, /* that compute */
    TEXTS = CLI_RUN | CLI_CHAT | CLI_PLAN | CLI_SERVE,
    SAMPLED = CLI_RUN | CLI_CHAT | CLI_SERVE
};

/* What the library calls the values of an enum, and what it takes for one. */
#define NAMES(what)                                                                                \
    static const char *what##_name(int i)                                                          \
    {                                                                                              \
        return drey_##what##_name((drey_##what)i);                                                 \
    }                                                                                              \
    static bool what##_parse(const char *name, int *i)                                             \
    {                                                                                              \
        drey_##what found;                                                                         \
        bool known = drey_##what##_parse(name, &found);                                            \
        if (known)                                                                                 \
            *i = (int)found;                                                                       \
        return known;                                                                              \
    }
NAMES(policy)
NAMES(part)
NAMES(io)
NAMES(kv)
NAMES(exit)
#undef NAMES

/* Of cli_features. */
static const char *features_name(int i)
{
    static const char *const names[] = {"all", "plain"};
    return i >= 0 && i <= CLI_FEATURES_PLAIN ? names[i] : NULL;
}
static bool features_parse(const char *name, int *i)
{
    for (int k = 0; features_name(k); k++)
        if (strcmp(name, features_name(k)) == 0) {
            *i = k;
            return true;
        }
    return false;
}

#define OPTION(name, letter, value, commands, member, least, most, choice, parse)                  \
    {                                                                                              \
        name, letter, value, commands, offsetof(cli_settings, member), least, most, choice, parse  \
    }
#define PLAIN(name, letter, value, commands, member)                                               \
    OPTION(name, letter, value, commands, member, 0, 0, NULL, NULL)
#define FLAG(name, letter, commands, member)   PLAIN(name, letter, CLI_FLAG, commands, member)
#define TEXT(name, letter, commands, member)   PLAIN(name, letter, CLI_TEXT, commands, member)
#define STOP(name, letter, commands, member)   PLAIN(name, letter, CLI_STOP, commands, member)
#define DRAFT(name, letter, commands, member)  PLAIN(name, letter, CLI_DRAFT, commands, member)
#define MEMORY(name, letter, commands, member) PLAIN(name, letter, CLI_MEMORY, commands, member)
#define RATE(name, letter, commands, member)   PLAIN(name, letter, CLI_RATE, commands, member)
#define SEED(name, letter, commands, member)   PLAIN(name, letter, CLI_SEED, commands, member)
#define COUNT(name, letter, commands, member, least, most)                                         \
    OPTION(name, letter, CLI_COUNT, commands, member, least, most, NULL, NULL)
#define REAL(name, letter, commands, member, least, most)                                          \
    OPTION(name, letter, CLI_REAL, commands, member, least, most, NULL, NULL)
#define SIZE(name, letter, commands, member, least, most)                                          \
    OPTION(name, letter, CLI_SIZE, commands, member, least, most, NULL, NULL)
#define CHOICE(name, letter, commands, member, what)                                               \
    OPTION(name, letter, CLI_CHOICE, commands, member, 0, 0, what##_name, what##_parse)
#define SET(name, letter, commands, member, what)                                                  \
    OPTION(name, letter, CLI_SET, commands, member, 0, 0, what##_name, what##_parse)

const cli_option cli_options[] = {
    TEXT("model", 'm', ENGINE | CLI_TOKENIZE | CLI_BENCH_DISK | CLI_BENCH_MACHINE | CLI_TUNE,
         model),
    DRAFT("draft", 'd', TEXTS | CLI_TUNE | CLI_TRAIN_EXIT, draft_path),
    MEMORY("memory", 0, ENGINE | CLI_TUNE, memory_bytes),
    COUNT("context", 'c', TEXTS | CLI_TUNE, n_context, 2, DREY_MAX_CONTEXT),
    COUNT("threads", 't', CORES, n_threads, 1, DREY_MAX_THREADS),
    CHOICE("policy", 0, TEXTS, policy, policy),
    SET("without", 0, TEXTS, without, part),
    SET("with", 0, TEXTS, with, part),
    COUNT("draft-tokens", 0, TEXTS, draft_tokens, 1, DREY_MAX_DRAFTED),
    COUNT("tree", 0, TEXTS, tree_nodes, 1, DREY_MAX_DRAFTED),
    CHOICE("exit", 0, TEXTS, exit, exit),
    TEXT("exit-file", 0, TEXTS, exit_file),
    COUNT("prompt-chunk", 0, ENGINE, prompt_chunk, 1, DREY_MAX_PROMPT_CHUNK),
    TEXT("cpu", 0, CORES, cpu_tier),
    TEXT("units", 0, TEXTS | CLI_BENCH_MODEL | CLI_TUNE, units),
    CHOICE("io", 0, ENGINE | CLI_BENCH_DISK | CLI_BENCH_MACHINE | CLI_TUNE, io, io),
    CHOICE("kv", 0, ENGINE | CLI_TUNE, kv, kv),
    SIZE("read-size", 0, ENGINE | CLI_BENCH_DISK, read_bytes, DREY_MIN_READ_BYTES,
         DREY_MAX_READ_BYTES),
    TEXT("sidecar", 0, ENGINE | CLI_TUNE, sidecar),
    TEXT("host", 0, CLI_SERVE, host),
    COUNT("port", 0, CLI_SERVE, port, 0, 65535),
    TEXT("alias", 0, CLI_SERVE, alias),
    TEXT("api-key", 0, CLI_SERVE, api_key),
    TEXT("cors-origin", 0, CLI_SERVE, cors_origin),
    COUNT("queue", 0, CLI_SERVE, n_queue, 0, SERVE_MAX_QUEUE),
    COUNT("connections", 0, CLI_SERVE, n_connections, 1, SERVE_MAX_CONNECTIONS),
    SIZE("max-body", 0, CLI_SERVE, body_bytes, SERVE_MIN_BODY, SERVE_MAX_BODY),
    SIZE("prefix-memory", 0, CLI_CHAT | CLI_SERVE, prefix_memory, 1, (double)(UINT64_C(1) << 50)),
    TEXT("prefix-folder", 0, CLI_CHAT | CLI_SERVE, prefix_folder),
    SIZE("prefix-disk", 0, CLI_CHAT | CLI_SERVE, prefix_disk, 1, (double)(UINT64_C(1) << 50)),
    COUNT("timeout", 0, CLI_SERVE, timeout_s, 1, 86400),
    COUNT("grace", 0, CLI_SERVE, grace_s, 0, 86400),
    TEXT("prompt", 'p', CLI_RUN, prompt),
    TEXT("file", 'f', CLI_RUN | CLI_PERPLEXITY, file),
    COUNT("predict", 'n', CLI_RUN | CLI_CHAT | CLI_SERVE | TRAIN, n_predict, 1, INT32_MAX),
    FLAG("chat", 0, CLI_RUN, chat),
    TEXT("system", 0, CLI_RUN | CLI_CHAT, system),
    FLAG("special", 0, CLI_RUN | CLI_TOKENIZE, special),
    REAL("temp", 0, SAMPLED | CLI_TRAIN_MEDUSA, sampling.temperature, 0, 100),
    COUNT("top-k", 0, SAMPLED, sampling.top_k, 0, INT32_MAX),
    REAL("top-p", 0, SAMPLED, sampling.top_p, 0, 1),
    REAL("min-p", 0, SAMPLED, sampling.min_p, 0, 1),
    SEED("seed", 0, SAMPLED | TRAIN, sampling.seed),
    STOP("stop", 0, CLI_RUN | CLI_CHAT, stops),
    FLAG("ignore-eos", 0, CLI_RUN, ignore_eos),
    FLAG("raw-ids", 0, CLI_RUN, raw_ids),
    FLAG("no-provisional-text", 0, CLI_RUN | CLI_CHAT, no_provisional_text),
    TEXT("stats", 0, CLI_RUN, stats),
    TEXT("trace", 0, CLI_RUN, trace),
    FLAG("quiet", 'q',
         CLI_RUN | CLI_CHAT | CLI_SERVE | CLI_PERPLEXITY | CLI_PREPARE | CLI_TUNE | TRAIN, quiet),
    TEXT("output", 'o', CLI_PREPARE | CLI_REPORT | TRAIN, output),
    COUNT("turn", 0, CLI_REPORT, turn, 0, INT32_MAX),
    TEXT("turns", 0, CLI_REPORT, turns),
    FLAG("check", 0, CLI_PREPARE, check),
    FLAG("force", 0, CLI_PREPARE, force),
    FLAG("planes", 0, CLI_PREPARE, planes),
    RATE("disk", 0, CLI_PLAN, disk_bytes_per_s),
    FLAG("no-measure", 0, CLI_PLAN, no_measure),
    FLAG("tensors", 0, CLI_PLAN, tensors),
    COUNT("sessions", 0, CLI_PLAN | CLI_SERVE | CLI_BENCH_MODEL, n_sessions, 1, DREY_MAX_SESSIONS),
    FLAG("show", 0, CLI_TUNE, show),
    FLAG("ids", 0, CLI_TOKENIZE, ids),
    FLAG("bos", 0, CLI_TOKENIZE, bos),
    COUNT("window", 0, CLI_PERPLEXITY, window, 2, 1048576),
    COUNT("unscored", 0, CLI_PERPLEXITY, unscored, 1, 1048575),
    COUNT("prompt-tokens", 0, CLI_BENCH_MODEL, n_prompt, 1, 1048576),
    COUNT("decode-tokens", 0, CLI_BENCH_MODEL, n_decode, 1, 1048576),
    TEXT("contexts", 0, CLI_BENCH_MODEL, contexts),
    FLAG("every", 0, CLI_BENCH_MODEL, every),
    TEXT("prompts", 0, CLI_TUNE | TRAIN, prompts),
    COUNT("hidden", 0, CLI_TRAIN_EXIT, n_hidden, 1, 1024),
    REAL("exit-threshold", 0, TEXTS | CLI_TRAIN_EXIT, exit_threshold, 0.01, 1),
    CHOICE("features", 0, CLI_TRAIN_EXIT, features, features),
    COUNT("heads", 0, CLI_TRAIN_MEDUSA, n_heads, 1, DREY_MEDUSA_HEADS),
    COUNT("vocabulary", 0, CLI_TRAIN_MEDUSA, n_vocabulary, 1, INT32_MAX),
    COUNT("epochs", 0, CLI_TRAIN_MEDUSA, n_epochs, 1, 1000),
    REAL("rate", 0, CLI_TRAIN_MEDUSA, rate, 1e-6, 1),
    FLAG("keep-texts", 0, CLI_TRAIN_MEDUSA, keep_texts),
    TEXT("type", 0, CLI_BENCH_KERNELS, type),
    FLAG("list", 0, CLI_BENCH_KERNELS, list),
    FLAG("sizes", 0, CLI_BENCH_DISK, sizes),
    COUNT("seconds", 0, CLI_BENCH_DISK, seconds, 1, 3600),
    TEXT("json", 0, BENCH | CLI_PLAN | CLI_PREPARE | CLI_TUNE | TRAIN, json),
    FLAG("help", 'h', ENGINE | CLI_OPERAND | CLI_TOKENIZE | CLI_TUNE | BENCH, help),
};
const size_t cli_n_options = sizeof cli_options / sizeof *cli_options;
_Static_assert(sizeof cli_options / sizeof *cli_options <= CLI_MAX_OPTIONS, "given[] is too short");

const cli_option *option_find(const char *name)
{
    for (size_t i = 0; i < cli_n_options; i++)
        if (strcmp(cli_options[i].name, name) == 0)
            return &cli_options[i];
    return NULL;
}

bool option_given(const cli_settings *s, const char *name)
{
    return s->given[option_find(name) - cli_options];
}

const char *command_name(cli_command command)
{
    switch (command) {
    case CLI_RUN:
        return "run";
    case CLI_CHAT:
        return "chat";
    case CLI_PLAN:
        return "plan";
    case CLI_SERVE:
        return "serve";
    case CLI_INSPECT:
        return "inspect";
    case CLI_TOKENIZE:
        return "tokenize";
    case CLI_PERPLEXITY:
        return "perplexity";
    case CLI_TUNE:
        return "tune";
    case CLI_REPORT:
        return "report";
    case CLI_BENCH_MACHINE:
        return "bench machine";
    case CLI_BENCH_DISK:
        return "bench disk";
    case CLI_BENCH_MODEL:
        return "bench model";
    case CLI_TRAIN_EXIT:
        return "train exit";
    case CLI_TRAIN_MEDUSA:
        return "train medusa";
    case CLI_PREPARE:
        return "prepare";
    case CLI_BENCH_KERNELS:
        return "bench kernels";
    }
    return "";
}
