/* The options, their bounds and their values' names, and the commands that take them: see
 * options.h. What the library bounds is bounded by its constants, and its enums have its names. */
#include "cli/args/options.h"

#include "drey/train.h"
#include "serve/router/model_router.h"
#include "serve/server.h"

#include <string.h>

enum {
    /* commands that plan memory */
    TRAIN_HEADS = CLI_TRAIN_MEDUSA | CLI_TRAIN_EAGLE,
    ENGINE = CLI_RUN | CLI_CHAT | CLI_PLAN | CLI_SERVE | CLI_PERPLEXITY | CLI_VERIFY |
             CLI_BENCH_MODEL | CLI_IMATRIX | CLI_TRAIN,
    CORES = ENGINE | CLI_BENCH_MACHINE | CLI_BENCH_KERNELS | CLI_TUNE, /* commands that compute */
    TEXTS = CLI_RUN | CLI_CHAT | CLI_PLAN | CLI_SERVE,
    EXITS = TEXTS | CLI_PERPLEXITY, /* commands whose passes may end early */
    SAMPLED = CLI_RUN | CLI_CHAT | CLI_SERVE | CLI_VERIFY,
    RANKS = CLI_RUN | CLI_CHAT | CLI_SERVE /* commands that work under mpirun */
};

/* Names of an enum's values in the library, and the value of a name. */
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
NAMES(fallback)
NAMES(kv)
NAMES(pooling)
NAMES(exit)
#undef NAMES

/* Names of cli_features. */
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

#define ROW(name, letter, value, commands, member, least, most, choice, parse)                     \
    {                                                                                              \
        name, letter, value, commands, offsetof(cli_settings, member), least, most, choice, parse  \
    }
#define PLAIN(name, letter, value, commands, member)                                               \
    ROW(name, letter, value, commands, member, 0, 0, NULL, NULL)
#define FLAG(name, letter, commands, member) PLAIN(name, letter, CLI_FLAG, commands, member)
#define TEXT(name, letter, commands, member) PLAIN(name, letter, CLI_TEXT, commands, member)
#define COUNT(name, letter, commands, member, least, most)                                         \
    ROW(name, letter, CLI_COUNT, commands, member, least, most, NULL, NULL)
#define REAL(name, letter, commands, member, least, most)                                          \
    ROW(name, letter, CLI_REAL, commands, member, least, most, NULL, NULL)
#define SIZE(name, letter, commands, member, least, most)                                          \
    ROW(name, letter, CLI_SIZE, commands, member, least, most, NULL, NULL)
#define CHOICE(name, letter, commands, member, what)                                               \
    ROW(name, letter, CLI_CHOICE, commands, member, 0, 0, what##_name, what##_parse)
#define SET(name, letter, commands, member, what)                                                  \
    ROW(name, letter, CLI_SET, commands, member, 0, 0, what##_name, what##_parse)

/* Options. Their meaning, and the values that they take, are in docs/options: see
 * option_texts.h. */
const cli_option cli_options[] = {
    TEXT("model", 'm', ENGINE | CLI_TOKENIZE | CLI_BENCH_DISK | CLI_BENCH_MACHINE | CLI_TUNE,
         common.model),
    PLAIN("draft", 'd', CLI_DRAFT, EXITS | CLI_VERIFY | CLI_TUNE | CLI_TRAIN_EXIT | CLI_PULL,
          drafting.draft_path),
    FLAG("no-draft", 0, CLI_PULL, prepare.no_draft),
    PLAIN("memory", 0, CLI_MEMORY, ENGINE | CLI_TUNE | CLI_PULL | CLI_QUANTIZE,
          common.memory_bytes),
    TEXT("output", 'o', CLI_PREPARE | CLI_REPORT | CLI_PULL | CLI_IMATRIX | CLI_TRAIN, output),
    FLAG("check", 0, CLI_PREPARE, prepare.check),
    FLAG("dry-run", 0, CLI_PULL, prepare.dry_run),
    TEXT("imatrix", 0, CLI_QUANTIZE, quantize.importance),
    FLAG("allow-requantize", 0, CLI_QUANTIZE, quantize.again),
    FLAG("force", 0, CLI_PREPARE | CLI_PULL | CLI_CONVERT | CLI_QUANTIZE | CLI_IMATRIX | CLI_RM,
         prepare.force),
    FLAG("planes", 0, CLI_PREPARE, prepare.planes),
    COUNT("turn", 0, CLI_REPORT, picture.turn, 0, INT32_MAX),
    TEXT("turns", 0, CLI_REPORT, picture.turns),
    FLAG("ids", 0, CLI_TOKENIZE, tokens.ids),
    FLAG("bos", 0, CLI_TOKENIZE, tokens.bos),
    TEXT("models", 0, CLI_SERVE, serve.models),
    COUNT("models-max", 0, CLI_SERVE, serve.n_loaded, 0, ROUTER_MAX_MODELS),
    TEXT("slot-save-path", 0, CLI_SERVE, serve.slot_folder),
    TEXT("host", 0, CLI_SERVE, serve.host),
    COUNT("port", 0, CLI_SERVE, serve.port, 0, 65535),
    TEXT("alias", 0, CLI_SERVE, serve.alias),
    TEXT("chat-template", 0, CLI_SERVE, serve.chat_template),
    FLAG("no-reasoning", 0, CLI_SERVE, serve.no_reasoning),
    TEXT("api-key", 0, CLI_SERVE, serve.api_key),
    TEXT("api-key-file", 0, CLI_SERVE, serve.api_key_file),
    TEXT("cors-origin", 0, CLI_SERVE, serve.cors_origin),
    TEXT("closed", 0, CLI_SERVE, serve.closed),
    COUNT("rank-wait", 0, RANKS, common.rank_wait_s, 1, 86400),
    TEXT("rank-layers", 0, RANKS | CLI_PLAN, common.rank_layers),
    COUNT("sessions", 0, CLI_PLAN | CLI_SERVE | CLI_BENCH_MODEL, n_sessions, 1, DREY_MAX_SESSIONS),
    COUNT("queue", 0, CLI_SERVE, serve.n_queue, 0, SERVE_MAX_QUEUE),
    COUNT("connections", 0, CLI_SERVE, serve.n_connections, 1, SERVE_MAX_CONNECTIONS),
    SIZE("max-body", 0, CLI_SERVE, serve.body_bytes, SERVE_MIN_BODY, SERVE_MAX_BODY),
    COUNT("timeout", 0, CLI_SERVE | CLI_PULL, serve.timeout_s, 1, 86400),
    COUNT("grace", 0, CLI_SERVE, serve.grace_s, 0, 86400),
    PLAIN("disk", 0, CLI_RATE, CLI_PLAN | CLI_PULL | RANKS, plan.disk_bytes_per_s),
    TEXT("ranks", 0, CLI_PLAN, plan.ranks),
    FLAG("no-measure", 0, CLI_PLAN, plan.no_measure),
    FLAG("tensors", 0, CLI_PLAN, plan.tensors),
    TEXT("prompts", 0, CLI_TUNE | CLI_VERIFY | CLI_TRAIN, prompts),
    FLAG("quick", 0, CLI_VERIFY, bench.quick),
    FLAG("show", 0, CLI_TUNE, tune.show),
    FLAG("forget", 0, CLI_TUNE, tune.forget),
    COUNT("hidden", 0, CLI_TRAIN_EXIT, train.n_hidden, 1, 1024),
    CHOICE("features", 0, CLI_TRAIN_EXIT, train.features, features),
    COUNT("heads", 0, CLI_TRAIN_MEDUSA, train.n_heads, 1, DREY_MEDUSA_HEADS),
    COUNT("vocabulary", 0, TRAIN_HEADS, train.n_vocabulary, 1, INT32_MAX),
    COUNT("epochs", 0, TRAIN_HEADS, train.n_epochs, 1, 1000),
    REAL("rate", 0, TRAIN_HEADS, train.rate, 1e-6, 1),
    FLAG("keep-texts", 0, TRAIN_HEADS, train.keep_texts),
    COUNT("window", 0, CLI_PERPLEXITY | CLI_IMATRIX, scoring.window, 2, 1048576),
    COUNT("unscored", 0, CLI_PERPLEXITY, scoring.unscored, 1, 1048575),
    COUNT("prompt-tokens", 0, CLI_BENCH_MODEL, bench.n_prompt, 1, 1048576),
    COUNT("decode-tokens", 0, CLI_BENCH_MODEL, bench.n_decode, 1, 1048576),
    TEXT("contexts", 0, CLI_BENCH_MODEL, bench.contexts),
    FLAG("every", 0, CLI_BENCH_MODEL, bench.every),
    TEXT("type", 0, CLI_BENCH_KERNELS | CLI_CONVERT, bench.type),
    FLAG("list", 0, CLI_BENCH_KERNELS, bench.list),
    FLAG("sizes", 0, CLI_BENCH_DISK, bench.sizes),
    COUNT("seconds", 0, CLI_BENCH_DISK, bench.seconds, 1, 3600),
    TEXT("json", 0,
         CLI_BENCH | CLI_PLAN | CLI_PREPARE | CLI_TUNE | CLI_VERIFY | CLI_TRAIN | CLI_LIST, json),
    TEXT("prompt", 'p', CLI_RUN, text.prompt),
    TEXT("file", 'f', CLI_RUN | CLI_PERPLEXITY | CLI_IMATRIX, text.file),
    COUNT("predict", 'n', CLI_RUN | CLI_CHAT | CLI_SERVE | CLI_VERIFY | CLI_TRAIN, text.n_predict,
          1, INT32_MAX),
    COUNT("context", 'c', TEXTS | CLI_TUNE | CLI_PULL, common.n_context, 2, DREY_MAX_CONTEXT),
    TEXT("kv-folder", 0, ENGINE & ~CLI_TRAIN, common.kv_folder),
    FLAG("chat", 0, CLI_RUN, text.chat),
    TEXT("system", 0, CLI_RUN | CLI_CHAT, text.system),
    PLAIN("stop", 0, CLI_STOP, CLI_RUN | CLI_CHAT, text.stops),
    TEXT("json-schema", 0, CLI_RUN | CLI_CHAT, text.json_schema),
    FLAG("strict", 0, CLI_RUN | CLI_CHAT, text.strict),
    TEXT("grammar", 0, CLI_RUN | CLI_CHAT, text.grammar),
    REAL("temp", 0, SAMPLED | TRAIN_HEADS, sampling.temperature, 0, 100),
    COUNT("top-k", 0, SAMPLED, sampling.top_k, 0, INT32_MAX),
    REAL("top-p", 0, SAMPLED, sampling.top_p, 0, 1),
    REAL("min-p", 0, SAMPLED, sampling.min_p, 0, 1),
    REAL("repeat-penalty", 0, SAMPLED, penalties.repeat, 0.01, 100),
    REAL("presence-penalty", 0, SAMPLED, penalties.presence, -100, 100),
    REAL("frequency-penalty", 0, SAMPLED, penalties.frequency, -100, 100),
    COUNT("repeat-last-n", 0, CLI_RUN | CLI_CHAT, penalties.last_n, -1, INT32_MAX),
    REAL("dry-multiplier", 0, CLI_RUN | CLI_CHAT, penalties.dry_multiplier, 0, 100),
    REAL("dry-base", 0, CLI_RUN | CLI_CHAT, penalties.dry_base, 1, 100),
    COUNT("dry-allowed-length", 0, CLI_RUN | CLI_CHAT, penalties.dry_allowed_length, 0, INT32_MAX),
    COUNT("dry-last-n", 0, CLI_RUN | CLI_CHAT, penalties.dry_last_n, -1, INT32_MAX),
    PLAIN("seed", 0, CLI_SEED, SAMPLED | CLI_TRAIN, sampling.seed),
    SIZE("prefix-memory", 0, CLI_CHAT | CLI_SERVE, prefixes.memory, 1, (double)(UINT64_C(1) << 50)),
    TEXT("prefix-folder", 0, CLI_CHAT | CLI_SERVE, prefixes.folder),
    SIZE("prefix-disk", 0, CLI_CHAT | CLI_SERVE, prefixes.disk, 1, (double)(UINT64_C(1) << 50)),
    TEXT("stats", 0, CLI_RUN, text.stats),
    TEXT("trace", 0, CLI_RUN, text.trace),
    FLAG("no-provisional-text", 0, CLI_RUN | CLI_CHAT, text.no_provisional_text),
    FLAG("special", 0, CLI_RUN | CLI_TOKENIZE, text.special),
    FLAG("ignore-eos", 0, CLI_RUN, text.ignore_eos),
    FLAG("raw-ids", 0, CLI_RUN, text.raw_ids),
    CHOICE("exit", 0, EXITS, drafting.exit, exit),
    TEXT("exit-file", 0, EXITS, drafting.exit_file),
    REAL("exit-threshold", 0, EXITS | CLI_TRAIN_EXIT, drafting.exit_threshold, 0.01, 1),
    CHOICE("policy", 0, TEXTS | CLI_VERIFY, drafting.policy, policy),
    SET("with", 0, TEXTS | CLI_TRAIN_EXIT, drafting.research.with, part),
    COUNT("draft-tokens", 0, TEXTS, drafting.draft_tokens, 1, DREY_MAX_DRAFTED),
    COUNT("tree", 0, TEXTS, drafting.tree_nodes, 1, DREY_MAX_DRAFTED),
    REAL("alpha", 0, TEXTS, drafting.research.alpha, 1e-6, 0.999),
    CHOICE("fallback", 0, TEXTS, drafting.research.fallback, fallback),
    REAL("fallback-step", 0, TEXTS, drafting.research.fallback_step, 0.001, 1),
    SET("without", 0, TEXTS, drafting.research.without, part),
    REAL("ahead", 0, TEXTS, drafting.research.ahead, 1e-6, 1),
    COUNT("threads", 't', CORES | CLI_QUANTIZE, common.n_threads, 1, DREY_MAX_THREADS),
    TEXT("units", 0, TEXTS | CLI_BENCH_MODEL | CLI_TUNE, common.units),
    TEXT("cpu", 0, CORES, common.cpu_tier),
    FLAG("quiet", 'q',
         CLI_RUN | CLI_CHAT | CLI_SERVE | CLI_PERPLEXITY | CLI_VERIFY | CLI_PREPARE | CLI_TUNE |
             CLI_PULL | CLI_CONVERT | CLI_QUANTIZE | CLI_IMATRIX | CLI_TRAIN | CLI_LIST | CLI_RM,
         quiet),
    FLAG("verbose", 'v', TEXTS | CLI_PULL | CLI_TUNE, common.verbose),
    CHOICE("io", 0, ENGINE | CLI_BENCH_DISK | CLI_BENCH_MACHINE | CLI_TUNE, common.io, io),
    CHOICE("kv", 0, ENGINE | CLI_TUNE, common.kv, kv),
    SIZE("kv-memory", 0, ENGINE & ~CLI_TRAIN, common.kv_memory, 1, (double)(UINT64_C(1) << 50)),
    SIZE("read-size", 0, ENGINE | CLI_BENCH_DISK, common.read_bytes, DREY_MIN_READ_BYTES,
         DREY_MAX_READ_BYTES),
    TEXT("sidecar", 0, ENGINE | CLI_TUNE, common.sidecar),
    COUNT("prompt-chunk", 0, ENGINE, common.prompt_chunk, 1, DREY_MAX_PROMPT_CHUNK),
    CHOICE("pooling", 0, CLI_SERVE, serve.pooling, pooling),
    SIZE("slot-save-disk", 0, CLI_SERVE, serve.slot_bytes, 1, (double)(UINT64_C(1) << 50)),
    REAL("bld-fallback", 0, TEXTS & ~CLI_SERVE, drafting.research.bld_fallback, 1e-6, 1),
    REAL("bld-rollback", 0, TEXTS & ~CLI_SERVE, drafting.research.bld_rollback, 0.001, 100),
    PLAIN("help", 'h', CLI_HELP,
          ENGINE | CLI_OPERAND | CLI_TOKENIZE | CLI_TUNE | CLI_BENCH | CLI_LIST, help),
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

const cli_option *option_find_letter(int letter)
{
    for (size_t i = 0; i < cli_n_options; i++)
        if (letter && cli_options[i].letter == letter)
            return &cli_options[i];
    return NULL;
}

bool option_given(const cli_settings *s, const char *name)
{
    return s->given[option_find(name) - cli_options];
}

bool option_takes_value(const cli_option *option, cli_command command)
{
    return option->value != CLI_FLAG && option->value != CLI_HELP &&
           !(option->value == CLI_DRAFT && command == CLI_PULL);
}
