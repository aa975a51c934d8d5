/* The options, their bounds and their values' names, and the commands that take them: see
 * options.h. What the library bounds is bounded by its constants, and its enums have its names. */
#include "cli/args/options.h"

#include "drey/train.h"
#include "serve/front/front.h"
#include "serve/server.h"

#include <stdio.h>
#include <string.h>

enum {
    /* commands that plan memory */
    TRAIN_HEADS = CLI_TRAIN_MEDUSA | CLI_TRAIN_EAGLE,
    TRAIN = CLI_TRAIN_EXIT | TRAIN_HEADS,
    ENGINE = CLI_RUN | CLI_CHAT | CLI_PLAN | CLI_SERVE | CLI_PERPLEXITY | CLI_VERIFY |
             CLI_BENCH_MODEL | CLI_IMATRIX | TRAIN,
    BENCH = CLI_BENCH_MACHINE | CLI_BENCH_DISK | CLI_BENCH_MODEL | CLI_BENCH_KERNELS,
    CORES = ENGINE | CLI_BENCH_MACHINE | CLI_BENCH_KERNELS | CLI_TUNE, /* that compute */
    TEXTS = CLI_RUN | CLI_CHAT | CLI_PLAN | CLI_SERVE,
    EXITS = TEXTS | CLI_PERPLEXITY, /* that passes may end early for */
    SAMPLED = CLI_RUN | CLI_CHAT | CLI_SERVE | CLI_VERIFY,
    RANKS = CLI_RUN | CLI_CHAT | CLI_SERVE /* that work under mpirun */
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
NAMES(fallback)
NAMES(kv)
NAMES(pooling)
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

#define ROW(name, letter, value, commands, member, argument, least, most, choice, parse, help)     \
    {                                                                                              \
        name, letter, value, commands, offsetof(cli_settings, member), least, most, choice, parse, \
            argument, help                                                                         \
    }
#define PLAIN(name, letter, value, commands, member, argument, help)                               \
    ROW(name, letter, value, commands, member, argument, 0, 0, NULL, NULL, help)
#define FLAG(name, letter, commands, member, help)                                                 \
    PLAIN(name, letter, CLI_FLAG, commands, member, NULL, help)
#define TEXT(name, letter, commands, member, argument, help)                                       \
    PLAIN(name, letter, CLI_TEXT, commands, member, argument, help)
#define COUNT(name, letter, commands, member, argument, least, most, help)                         \
    ROW(name, letter, CLI_COUNT, commands, member, argument, least, most, NULL, NULL, help)
#define REAL(name, letter, commands, member, argument, least, most, help)                          \
    ROW(name, letter, CLI_REAL, commands, member, argument, least, most, NULL, NULL, help)
#define SIZE(name, letter, commands, member, argument, least, most, help)                          \
    ROW(name, letter, CLI_SIZE, commands, member, argument, least, most, NULL, NULL, help)
#define CHOICE(name, letter, commands, member, what, help)                                         \
    ROW(name, letter, CLI_CHOICE, commands, member, NULL, 0, 0, what##_name, what##_parse, help)
#define SET(name, letter, commands, member, argument, what, help)                                  \
    ROW(name, letter, CLI_SET, commands, member, argument, 0, 0, what##_name, what##_parse, help)

/* What matters most to a command comes first: see help.c. */
const cli_option cli_options[] = {
    TEXT("model", 'm', ENGINE | CLI_TOKENIZE | CLI_BENCH_DISK | CLI_BENCH_MACHINE | CLI_TUNE,
         common.model, "FILE", "the model that decides the text"),
    PLAIN("draft", 'd', CLI_DRAFT, EXITS | CLI_VERIFY | CLI_TUNE | CLI_TRAIN_EXIT | CLI_PULL,
          drafting.draft_path, NULL, "what guesses ahead (auto)"),
    PLAIN("memory", 0, CLI_MEMORY, ENGINE | CLI_TUNE | CLI_PULL | CLI_QUANTIZE, common.memory_bytes,
          "SIZE|auto|unlimited", "bound on everything in memory (auto)"),

    TEXT("output", 'o', CLI_PREPARE | CLI_REPORT | CLI_PULL | CLI_IMATRIX | TRAIN, output, "PATH",
         "another place for the file that is written"),
    FLAG("check", 0, CLI_PREPARE, prepare.check,
         "read model and sidecar to the last byte and compare"),
    FLAG("dry-run", 0, CLI_PULL, prepare.dry_run, "the plan alone; nothing is downloaded"),
    TEXT("imatrix", 0, CLI_QUANTIZE, quantize.importance, "FILE",
         "which columns of matrices matter (none)"),
    FLAG("allow-requantize", 0, CLI_QUANTIZE, quantize.again,
         "also from a model that is quantised already"),
    FLAG("force", 0, CLI_PREPARE | CLI_PULL | CLI_CONVERT | CLI_QUANTIZE | CLI_IMATRIX,
         prepare.force, "write even where a good sidecar, or another file, is"),
    FLAG("planes", 0, CLI_PREPARE, prepare.planes, "high and low bits apart, for drey run -d self"),
    COUNT("turn", 0, CLI_REPORT, picture.turn, "K", 0, INT32_MAX,
          "the tree of turn K, what was guessed and accepted"),
    TEXT("turns", 0, CLI_REPORT, picture.turns, "FIRST-LAST",
         "the turns to draw (a few in the middle)"),
    FLAG("ids", 0, CLI_TOKENIZE, tokens.ids, "the other way, a JSON array of token ids into text"),
    FLAG("bos", 0, CLI_TOKENIZE, tokens.bos, "begin with BOS if the model wants it"),

    TEXT("models", 0, CLI_SERVE, serve.models, "FOLDER",
         "serves the models of a folder, instead of -m"),
    COUNT("models-max", 0, CLI_SERVE, serve.n_loaded, "N", 0, FRONT_MAX_MODELS,
          "of them loaded at once, 0 for any (0)"),
    TEXT("slot-save-path", 0, CLI_SERVE, serve.slot_folder, "FOLDER",
         "where clients may save sessions"),
    TEXT("host", 0, CLI_SERVE, serve.host, "ADDRESS|PATH.sock", "where it listens (127.0.0.1)"),
    COUNT("port", 0, CLI_SERVE, serve.port, "N", 0, 65535, "its port, 0 for any (8080)"),
    TEXT("alias", 0, CLI_SERVE, serve.alias, "NAME", "the name that the model has for clients"),
    TEXT("chat-template", 0, CLI_SERVE, serve.chat_template, "NAME|FILE",
         "the template of chats, instead of the model's"),
    FLAG("no-reasoning", 0, CLI_SERVE, serve.no_reasoning, "templates leave reasoning out"),
    TEXT("api-key", 0, CLI_SERVE, serve.api_key, "KEY,...", "what clients must send"),
    TEXT("cors-origin", 0, CLI_SERVE, serve.cors_origin, "ORIGIN,...|*",
         "pages that may ask, or localhost"),
    TEXT("closed", 0, CLI_SERVE, serve.closed, "page,metrics,slots",
         "endpoints that are not answered"),
    COUNT("rank-wait", 0, RANKS, common.rank_wait_s, "S", 1, 86400,
          "under mpirun: seconds of silence after which a rank is given up (120)"),
    TEXT("rank-layers", 0, RANKS | CLI_PLAN, common.rank_layers, "N,N,...",
         "layers of each rank, of rank 0 perhaps 0"),
    COUNT("sessions", 0, CLI_PLAN | CLI_SERVE | CLI_BENCH_MODEL, n_sessions, "N", 1,
          DREY_MAX_SESSIONS, "texts that are written at the same time (1)"),
    COUNT("queue", 0, CLI_SERVE, serve.n_queue, "N", 0, SERVE_MAX_QUEUE,
          "requests that may wait (32)"),
    COUNT("connections", 0, CLI_SERVE, serve.n_connections, "N", 1, SERVE_MAX_CONNECTIONS,
          "connections at the same time (64)"),
    SIZE("max-body", 0, CLI_SERVE, serve.body_bytes, "SIZE", SERVE_MIN_BODY, SERVE_MAX_BODY,
         "the largest request that is taken"),
    COUNT("timeout", 0, CLI_SERVE | CLI_PULL, serve.timeout_s, "S", 1, 86400,
          "seconds for a client, usually 30"),
    COUNT("grace", 0, CLI_SERVE, serve.grace_s, "S", 0, 86400,
          "seconds in which it stops, usually 8"),

    PLAIN("disk", 0, CLI_RATE, CLI_PLAN | RANKS, plan.disk_bytes_per_s, "SIZE/s",
          "the disk's speed, instead of measuring it"),
    TEXT("ranks", 0, CLI_PLAN, plan.ranks, "FILE",
         "several machines: NAME MEMORY [DISK/s] on each line"),
    FLAG("no-measure", 0, CLI_PLAN, plan.no_measure, "sizes, and speeds for a stated disk"),
    FLAG("tensors", 0, CLI_PLAN, plan.tensors, "the place of each tensor"),

    TEXT("prompts", 0, CLI_TUNE | CLI_VERIFY | TRAIN, prompts, "FILE",
         "{\"turns\": [\"...\"]} per line (some of drey's own)"),
    FLAG("show", 0, CLI_TUNE, show, "measure nothing; show what was measured"),
    COUNT("hidden", 0, CLI_TRAIN_EXIT, train.n_hidden, "N", 1, 1024,
          "hidden units of a predictor (64)"),
    CHOICE("features", 0, CLI_TRAIN_EXIT, train.features, features,
           "all there is, or without the draft's own"),
    COUNT("heads", 0, CLI_TRAIN_MEDUSA, train.n_heads, "N", 1, DREY_MEDUSA_HEADS,
          "tokens that they guess ahead (4)"),
    COUNT("vocabulary", 0, TRAIN_HEADS, train.n_vocabulary, "N", 1, INT32_MAX,
          "the N most frequent tokens can be guessed (12288)"),
    COUNT("epochs", 0, TRAIN_HEADS, train.n_epochs, "N", 1, 1000,
          "how often each token is seen (2)"),
    REAL("rate", 0, TRAIN_HEADS, train.rate, "X", 1e-6, 1, "of learning (0.002)"),
    FLAG("keep-texts", 0, TRAIN_HEADS, train.keep_texts, "keep OUTPUT.texts for another training"),
    COUNT("window", 0, CLI_PERPLEXITY | CLI_IMATRIX, scoring.window, "N", 2, 1048576,
          "tokens of a window (512)"),
    COUNT("unscored", 0, CLI_PERPLEXITY, scoring.unscored, "N", 1, 1048575,
          "its first tokens, which are only read (1)"),
    COUNT("prompt-tokens", 0, CLI_BENCH_MODEL, bench.n_prompt, "N", 1, 1048576,
          "length of the prompt (512)"),
    COUNT("decode-tokens", 0, CLI_BENCH_MODEL, bench.n_decode, "N", 1, 1048576,
          "length of the text (64)"),
    TEXT("contexts", 0, CLI_BENCH_MODEL, bench.contexts, "N,N,...",
         "positions before a pass (0,4096,16384)"),
    FLAG("every", 0, CLI_BENCH_MODEL, bench.every, "passes of 1, 2, 3 to 64 rows"),
    TEXT("type", 0, CLI_BENCH_KERNELS | CLI_CONVERT, bench.type, "TYPE",
         "the kernels of one type only"),
    FLAG("list", 0, CLI_BENCH_KERNELS, bench.list, "a table of types and tiers"),
    FLAG("sizes", 0, CLI_BENCH_DISK, bench.sizes, "reads of several sizes"),
    COUNT("seconds", 0, CLI_BENCH_DISK, bench.seconds, "N", 1, 3600,
          "how long to read (2 at most)"),
    TEXT("json", 0, BENCH | CLI_PLAN | CLI_PREPARE | CLI_TUNE | CLI_VERIFY | TRAIN, json, "FILE|-",
         "the numbers as JSON, - for standard output"),

    TEXT("prompt", 'p', CLI_RUN, text.prompt, "TEXT", "the prompt (-f, or standard input)"),
    TEXT("file", 'f', CLI_RUN | CLI_PERPLEXITY | CLI_IMATRIX, text.file, "FILE",
         "a file with the prompt"),
    COUNT("predict", 'n', CLI_RUN | CLI_CHAT | CLI_SERVE | CLI_VERIFY | TRAIN, text.n_predict, "N",
          1, INT32_MAX, "most tokens to write (512)"),
    COUNT("context", 'c', TEXTS | CLI_TUNE | CLI_PULL, common.n_context, "N", 2, DREY_MAX_CONTEXT,
          "most tokens of prompt and text"),
    TEXT("kv-folder", 0, ENGINE & ~TRAIN, common.kv_folder, "FOLDER",
         "for keys and values that memory has no room for"),
    FLAG("chat", 0, CLI_RUN, text.chat, "one turn of a chat"),
    TEXT("system", 0, CLI_RUN | CLI_CHAT, text.system, "TEXT", "the system message"),
    PLAIN("stop", 0, CLI_STOP, CLI_RUN | CLI_CHAT, text.stops, "TEXT",
          "ends the text, several may be given"),
    TEXT("json-schema", 0, CLI_RUN | CLI_CHAT, text.json_schema, "FILE",
         "the text is JSON of this schema"),
    FLAG("strict", 0, CLI_RUN | CLI_CHAT, text.strict,
         "refuse a schema that cannot be held as a whole"),
    TEXT("grammar", 0, CLI_RUN | CLI_CHAT, text.grammar, "FILE",
         "the text is one of this grammar (GBNF)"),
    REAL("temp", 0, SAMPLED | TRAIN_HEADS, sampling.temperature, "T", 0, 100,
         "temperature of sampling; the usual 0 takes the likeliest"),
    COUNT("top-k", 0, SAMPLED, sampling.top_k, "K", 0, INT32_MAX, "among the K most likely"),
    REAL("top-p", 0, SAMPLED, sampling.top_p, "P", 0, 1, "among those that make up P"),
    REAL("min-p", 0, SAMPLED, sampling.min_p, "P", 0, 1, "at least P times the most likely"),
    REAL("repeat-penalty", 0, SAMPLED, penalties.repeat, "X", 0.01, 100,
         "divides logits of tokens that were there (1)"),
    REAL("presence-penalty", 0, SAMPLED, penalties.presence, "X", -100, 100,
         "taken from those logits (0)"),
    REAL("frequency-penalty", 0, SAMPLED, penalties.frequency, "X", -100, 100,
         "taken each time they were there (0)"),
    COUNT("repeat-last-n", 0, CLI_RUN | CLI_CHAT, penalties.last_n, "N", -1, INT32_MAX,
          "among the last N tokens, -1: all (64)"),
    REAL("dry-multiplier", 0, CLI_RUN | CLI_CHAT, penalties.dry_multiplier, "X", 0, 100,
         "DRY: against repeated sequences (0)"),
    REAL("dry-base", 0, CLI_RUN | CLI_CHAT, penalties.dry_base, "X", 1, 100, "how it grows (1.75)"),
    COUNT("dry-allowed-length", 0, CLI_RUN | CLI_CHAT, penalties.dry_allowed_length, "N", 0,
          INT32_MAX, "tokens that may repeat (2)"),
    COUNT("dry-last-n", 0, CLI_RUN | CLI_CHAT, penalties.dry_last_n, "N", -1, INT32_MAX,
          "among the last N tokens, -1: all (-1)"),
    PLAIN("seed", 0, CLI_SEED, SAMPLED | TRAIN, sampling.seed, "S", "one seed, one text (0)"),
    SIZE("prefix-memory", 0, CLI_CHAT | CLI_SERVE, prefixes.memory, "SIZE", 1,
         (double)(UINT64_C(1) << 50), "for the beginnings of texts, to use again"),
    TEXT("prefix-folder", 0, CLI_CHAT | CLI_SERVE, prefixes.folder, "FOLDER",
         "where they outlive the process"),
    SIZE("prefix-disk", 0, CLI_CHAT | CLI_SERVE, prefixes.disk, "SIZE", 1,
         (double)(UINT64_C(1) << 50), "the most that this folder takes"),
    TEXT("stats", 0, CLI_RUN, text.stats, "FILE", "statistics, as JSON"),
    TEXT("trace", 0, CLI_RUN, text.trace, "FILE", "what ran when, for drey report"),
    FLAG("no-provisional-text", 0, CLI_RUN | CLI_CHAT, text.no_provisional_text,
         "on a terminal, text only once it is verified"),
    FLAG("special", 0, CLI_RUN | CLI_TOKENIZE, text.special,
         "special tokens in a text count as such"),
    FLAG("ignore-eos", 0, CLI_RUN, text.ignore_eos, "continue after the end of the text"),
    FLAG("raw-ids", 0, CLI_RUN, text.raw_ids, "token ids instead of text"),

    CHOICE("exit", 0, EXITS, drafting.exit, exit,
           "end passes where tokens are decided (fast is lossy)"),
    TEXT("exit-file", 0, EXITS, drafting.exit_file, "FILE", "what says where (next to the model)"),
    REAL("exit-threshold", 0, EXITS | CLI_TRAIN_EXIT, drafting.exit_threshold, "X", 0.01, 1,
         "how sure it has to be"),
    CHOICE("policy", 0, TEXTS | CLI_VERIFY, drafting.policy, policy, "how to draft (auto)"),
    SET("with", 0, TEXTS | CLI_TRAIN_EXIT, drafting.with, "lookup", part,
        "parts of drafting to add"),
    COUNT("draft-tokens", 0, TEXTS, drafting.draft_tokens, "N", 1, DREY_MAX_DRAFTED,
          "length of a chain (8)"),
    COUNT("tree", 0, TEXTS, drafting.tree_nodes, "N", 1, DREY_MAX_DRAFTED,
          "most nodes of a tree (47)"),
    REAL("alpha", 0, TEXTS, drafting.alpha, "X", 1e-6, 0.999,
         "llmcad, edgellm: where drafting ends at first (0.01)"),
    CHOICE("fallback", 0, TEXTS, drafting.fallback, fallback, "how alpha moves (mean)"),
    REAL("fallback-step", 0, TEXTS, drafting.fallback_step, "X", 0.001, 1,
         "alpha's factor after right guesses (0.5)"),
    SET("without", 0, TEXTS, drafting.without, NULL, part, "parts of drafting to leave out"),
    REAL("ahead", 0, TEXTS, drafting.ahead, "X", 1e-6, 1,
         "how likely what is drafted during a pass has to be (0.1)"),
    COUNT("threads", 't', CORES | CLI_QUANTIZE, common.n_threads, "N", 1, DREY_MAX_THREADS,
          "threads (the cores)"),
    TEXT("units", 0, TEXTS | CLI_BENCH_MODEL | CLI_TUNE, common.units, "UNITS|cpu|auto",
         "who computes, as in cpu:0-3=3+cpu:4-7=1"),
    TEXT("cpu", 0, CORES, common.cpu_tier, "amx|avx512|avxvnni|avx2|i8mm|dotprod|neon|ref|float",
         "kernels (best)"),
    FLAG("quiet", 'q',
         CLI_RUN | CLI_CHAT | CLI_SERVE | CLI_PERPLEXITY | CLI_VERIFY | CLI_PREPARE | CLI_TUNE |
             CLI_PULL | CLI_CONVERT | CLI_QUANTIZE | CLI_IMATRIX | TRAIN,
         quiet, "no progress and no statistics"),
    FLAG("verbose", 'v', TEXTS | CLI_PULL, common.verbose, "the memory plan, and all statistics"),
    CHOICE("io", 0, ENGINE | CLI_BENCH_DISK | CLI_BENCH_MACHINE | CLI_TUNE, common.io, io,
           "how to read (auto)"),
    CHOICE("kv", 0, ENGINE | CLI_TUNE, common.kv, kv,
           "keys and values; q8_0 takes half, and is lossy (f16)"),
    SIZE("kv-memory", 0, ENGINE & ~TRAIN, common.kv_memory, "SIZE", 1, (double)(UINT64_C(1) << 50),
         "the most of them in memory (what weights leave)"),
    SIZE("read-size", 0, ENGINE | CLI_BENCH_DISK, common.read_bytes, "SIZE|512K|1M|2M",
         DREY_MIN_READ_BYTES, DREY_MAX_READ_BYTES, "of a streamed read (1M)"),
    TEXT("sidecar", 0, ENGINE | CLI_TUNE, common.sidecar, "FILE|none",
         "what drey prepare wrote (next to the model)"),
    COUNT("prompt-chunk", 0, ENGINE, common.prompt_chunk, "ROWS", 1, DREY_MAX_PROMPT_CHUNK,
          "rows of a prompt's pass"),
    CHOICE("pooling", 0, CLI_SERVE, serve.pooling, pooling, "how texts become vectors"),
    SIZE("slot-save-disk", 0, CLI_SERVE, serve.slot_bytes, "SIZE", 1, (double)(UINT64_C(1) << 50),
         "the most that saved sessions take, usually 1G"),
    REAL("bld-fallback", 0, TEXTS & ~CLI_SERVE, drafting.bld_fallback, "X", 1e-6, 1,
         "bld: how sure the draft has to be (0.6)"),
    REAL("bld-rollback", 0, TEXTS & ~CLI_SERVE, drafting.bld_rollback, "X", 0.001, 100,
         "bld: -log p of tokens that the target takes back (2)"),
    FLAG("help", 'h', ENGINE | CLI_OPERAND | CLI_TOKENIZE | CLI_TUNE | BENCH, help, "this text"),
};
const size_t cli_n_options = sizeof cli_options / sizeof *cli_options;
_Static_assert(sizeof cli_options / sizeof *cli_options <= CLI_MAX_OPTIONS, "given[] is too short");

/* What an option means to some commands, where that differs. */
static const struct {
    unsigned commands;
    const char *name, *help;
} meanings[] = {
    {TRAIN, "model", "the target"},
    {CLI_TOKENIZE, "model", "the model whose tokenizer is used"},
    {RANKS, "disk", "under mpirun: this rank's disk, instead of measuring it"},
    {CLI_BENCH_MACHINE, "model", "read the disk below this model as well"},
    {CLI_PERPLEXITY, "draft", "what names exits' candidates, not auto (none)"},
    {CLI_PERPLEXITY, "exit", "scores by early exits as well: fast"},
    {CLI_TRAIN_EXIT, "draft", "what names the candidates, not auto (lookup)"},
    {CLI_PREPARE, "output", "another place, which --sidecar names then"},
    {CLI_IMATRIX, "output", "the file that is written"},
    {CLI_IMATRIX, "model", "the model whose columns are measured"},
    {CLI_REPORT, "output", "the picture (standard output)"},
    {CLI_PULL, "output", "another folder (DREY_MODELS, or the cache's)"},
    {CLI_CONVERT | CLI_QUANTIZE | CLI_IMATRIX, "force", "write even where a file of that name is"},
    {CLI_CONVERT, "type", "of matrices: f16, bf16, f32, q8_0 (the folder's)"},
    {CLI_PULL, "force", "in spite of its plan, and in place of another file"},
    {CLI_PULL, "timeout", "seconds without a byte (30)"},
    {CLI_PULL, "draft", "what guesses ahead, for the plan (auto)"},
    {CLI_SERVE, "sessions", "texts that are written at the same time (4)"},
    {CLI_TRAIN_EXIT, "prompts", "prompts as for drey tune (80 of its own)"},
    {TRAIN_HEADS, "prompts", "what it answers, as for drey tune (it asks itself)"},
    {CLI_PERPLEXITY | CLI_IMATRIX, "file", "the text (standard input)"},
    {CLI_TRAIN_EXIT, "predict", "tokens of each text (128)"},
    {TRAIN_HEADS, "predict", "tokens of text; of those kept, the first (500000)"},
    {CLI_VERIFY, "predict", "most tokens of a text (64)"},
    {CLI_VERIFY, "policy", "this way to draft alone (several)"},
    {CLI_VERIFY, "temp", "temperature of the sampled texts (0.8)"},
    {CLI_CHAT | CLI_SERVE, "context", "most tokens of a text (4096, or the model's)"},
    {CLI_PLAN | CLI_PULL, "context", "most tokens of prompt and text (1024)"},
    {CLI_TUNE, "context", "with units, attention after up to so many (4096)"},
    {TRAIN_HEADS, "temp", "of the answers, 0 takes the likeliest (0.3)"},
    {CLI_TRAIN_EAGLE, "rate", "of learning (0.001)"},
    {TRAIN, "seed", "of what training begins with (0)"},
    {CLI_TRAIN_EXIT, "exit-threshold", "what a score has to exceed (0.6)"},
    {CLI_SERVE, "quiet", "report nothing but the address"},
    {CLI_PREPARE | CLI_PULL | CLI_CONVERT | CLI_QUANTIZE | CLI_IMATRIX | TRAIN, "quiet",
     "report nothing unless it fails"},
    {CLI_TUNE | CLI_VERIFY, "quiet", "the table alone"},
    {CLI_TUNE, "cpu", "the tier to tune (the best)"},
};

const char *option_help(const cli_option *option, cli_command command)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].commands & command && strcmp(meanings[i].name, option->name) == 0)
            return meanings[i].help;
    return option->help;
}

const char *option_argument(const cli_option *option, char out[160])
{
    drey_drafter_info drafter;
    size_t n = 0;
    *out = '\0';
    if (option->argument) {
        snprintf(out, 160, "%s", option->argument);
    } else if (option->value == CLI_DRAFT) {
        n = (size_t)snprintf(out, 160, "FILE");
        for (int i = 1; drey_drafter_describe((drey_drafter)i, &drafter); i++)
            if (!drafter.takes_model)
                n += (size_t)snprintf(out + n, 160 - n, "|%s", drafter.name);
        snprintf(out + n, 160 - n, "|none|auto");
    } else {
        for (int i = 0; option->choice && option->choice(i); i++)
            n += (size_t)snprintf(out + n, 160 - n, i ? "|%s" : "%s", option->choice(i));
    }
    return out;
}

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
