/* The command line of every subcommand, parsed by one table.
 *
 * An option has one name and one meaning wherever it is taken; the table says which commands take
 * it, how its value is read and between which bounds. So an option of another command is not
 * the same fault as an unknown one. What is written about it is in docs/options (option_texts.h),
 * and a test compares the two. Nothing here prints: a fault is a drey_error of code
 * DREY_ERR_USAGE. */
#pragma once

#include "drey/choices.h"
#include "drey/drey_session.h"
#include "drey/research.h"

typedef enum cli_command {
    CLI_RUN = 1 << 0,
    CLI_PLAN = 1 << 1,
    CLI_INSPECT = 1 << 2,
    CLI_TOKENIZE = 1 << 3,
    CLI_PERPLEXITY = 1 << 4,
    CLI_BENCH_MACHINE = 1 << 5,
    CLI_BENCH_DISK = 1 << 6,
    CLI_BENCH_MODEL = 1 << 7,
    CLI_PREPARE = 1 << 8,
    CLI_BENCH_KERNELS = 1 << 9,
    CLI_TUNE = 1 << 10,
    CLI_REPORT = 1 << 11,
    CLI_TRAIN_EXIT = 1 << 12,
    CLI_TRAIN_MEDUSA = 1 << 13,
    CLI_SERVE = 1 << 14,
    CLI_CHAT = 1 << 15,
    CLI_TRAIN_EAGLE = 1 << 16,
    CLI_VERIFY = 1 << 17,
    CLI_PULL = 1 << 18,
    CLI_QUANTIZE = 1 << 19,
    CLI_CONVERT = 1 << 20,
    CLI_IMATRIX = 1 << 21,
    CLI_LIST = 1 << 22,
    CLI_RM = 1 << 23,
    CLI_SHOW = 1 << 24
} cli_command;

/* Commands of one first word, and those that take a file or a name without -m. */
enum {
    CLI_TRAIN = CLI_TRAIN_EXIT | CLI_TRAIN_MEDUSA | CLI_TRAIN_EAGLE,
    CLI_BENCH = CLI_BENCH_MACHINE | CLI_BENCH_DISK | CLI_BENCH_MODEL | CLI_BENCH_KERNELS,
    CLI_OPERAND = CLI_INSPECT | CLI_PREPARE | CLI_REPORT | CLI_PULL | CLI_CONVERT | CLI_QUANTIZE |
                  CLI_RM | CLI_SHOW
};

enum { CLI_MAX_STOPS = 64, CLI_MAX_OPTIONS = 160, CLI_MAX_NAMES = 64 };

/* Features that predictors use: all there is; without the drafter's own. */
typedef enum cli_features { CLI_FEATURES_ALL, CLI_FEATURES_PLAIN } cli_features;

/* Options of commands that compute with a model, some of which the others take. */
typedef struct cli_common {
    const char *model;
    uint64_t memory_bytes; /* or DREY_MEMORY_* */
    int32_t n_context;     /* 0: the command chooses */
    int32_t n_threads;     /* 0: the cores */
    int32_t prompt_chunk;
    const char *cpu_tier, *units;
    drey_io io;
    drey_kv kv;
    const char *kv_folder; /* for keys and values that memory has no room for; NULL: none */
    uint64_t kv_memory;    /* 0: the plan decides */
    uint64_t read_bytes;   /* 0: the usual */
    const char *sidecar;   /* a file, "none", or NULL: the one next to the model */
    bool verbose;
    int32_t rank_wait_s;     /* 0: the usual time */
    const char *rank_layers; /* layers of each rank; NULL: what fits best */
} cli_common;

typedef struct cli_drafting {
    const char *draft_path; /* NULL unless drafter is DREY_DRAFTER_MODEL */
    drey_drafter drafter;   /* NONE with draft_auto: the command chooses */
    bool draft_auto;
    drey_policy policy;
    int32_t draft_tokens, tree_nodes;
    drey_research research;
    drey_exit exit;
    const char *exit_file; /* NULL: next to the model */
    float exit_threshold;  /* 0: the file's; train exit: what is usual */
} cli_drafting;

/* run, chat: the text; run, perplexity, imatrix: file; tokenize: special; serve, train:
 * n_predict. */
typedef struct cli_text {
    const char *prompt, *file, *system;
    const char *stops[CLI_MAX_STOPS];
    size_t n_stops;
    const char *grammar, *json_schema; /* files; at most one of them */
    int32_t n_predict;
    bool chat, special, ignore_eos, raw_ids, no_provisional_text;
    bool strict;               /* refuse a schema of which no grammar can hold some part */
    const char *stats, *trace; /* files to write */
} cli_text;

/* NULL: as usual, or none; numbers: if given. */
typedef struct cli_serve {
    const char *models; /* a folder, instead of one model */
    const char *host, *api_key, *cors_origin, *alias, *slot_folder;
    const char *api_key_file;  /* one on each line */
    const char *closed;        /* endpoints, with commas */
    const char *chat_template; /* a name or a file */
    bool no_reasoning;
    drey_pooling pooling;
    int32_t port, n_queue, n_connections, timeout_s, grace_s, n_loaded;
    uint64_t body_bytes; /* 0: what is usual */
    uint64_t slot_bytes; /* 0: what is usual */
} cli_serve;

/* chat, serve: what is kept of beginnings of texts. */
typedef struct cli_prefixes {
    uint64_t memory, disk; /* 0: what is usual */
    const char *folder;    /* NULL: none */
} cli_prefixes;

typedef struct cli_plan {
    double disk_bytes_per_s; /* run as well; 0: measure it */
    const char *ranks;       /* a file; NULL: one machine */
    bool no_measure, tensors;
} cli_plan;

/* 0: what is usual. */
typedef struct cli_train {
    int32_t n_hidden; /* exit */
    cli_features features;
    int32_t n_heads, n_vocabulary, n_epochs; /* medusa, eagle */
    float rate;
    bool keep_texts;
} cli_train;

typedef struct cli_bench {
    int32_t n_prompt, n_decode; /* model */
    const char *contexts;       /* as written, NULL: what is usual */
    bool every;
    const char *type; /* kernels; NULL: all. convert: of matrices; NULL: as they are */
    bool list;
    bool sizes;      /* disk */
    bool quick;      /* verify */
    int32_t seconds; /* 0: the usual time */
} cli_bench;

typedef struct cli_tune {
    bool show, forget; /* show or forget measurements, instead of measuring */
} cli_tune;

/* Settings of the command line. Texts are borrowed from argv. */
typedef struct cli_settings {
    cli_command command;
    const char *help; /* "all", a group of options, or "": those that come first; NULL: no help */
    bool given[CLI_MAX_OPTIONS]; /* [i]: cli_options[i] was on the command line */

    cli_common common;
    cli_drafting drafting;
    drey_sampling sampling;
    drey_penalties penalties; /* with the usual breakers */

    bool quiet;
    int32_t n_sessions;  /* 0: 1 */
    const char *prompts; /* tune, train: a file; NULL: the usual ones */
    const char *json;    /* NULL: none */
    const char *output;  /* prepare, train: NULL: next to the model. report: the picture. pull: the
                            folder. convert, quantize: the second operand; imatrix: the file */
    const char *operand; /* inspect, prepare, show, report: the file. pull: a name or URL. convert:
                            the folder. rm: the first name */

    cli_text text;
    cli_serve serve;
    cli_prefixes prefixes;
    cli_plan plan;
    cli_train train;
    cli_bench bench;
    struct {
        bool check, force, planes;
        bool dry_run; /* pull; and the draft of the model as well: */
        bool draft, no_draft;
        const char *names[CLI_MAX_NAMES]; /* [n_names]: rm */
        size_t n_names;
    } prepare; /* force: pull, convert, quantize, imatrix and rm as well */
    struct {
        const char *type;       /* the third operand */
        const char *importance; /* NULL: none */
        bool again;             /* take a model that is quantised already */
    } quantize;
    struct {
        int32_t turn;      /* turn whose tree is drawn */
        const char *turns; /* "3-7"; NULL: in the middle */
    } picture;
    struct {
        bool ids, bos;
    } tokens; /* tokenize */
    struct {
        int32_t window, unscored; /* unscored: of a window's tokens, 0 is 1 */
    } scoring;                    /* perplexity; imatrix: window */
    cli_tune tune;
} cli_settings;

typedef enum cli_value {
    CLI_FLAG,   /* bool, no value */
    CLI_HELP,   /* const char *: a value may follow, or none */
    CLI_TEXT,   /* const char * */
    CLI_STOP,   /* appended to stops */
    CLI_DRAFT,  /* drafter and draft_path */
    CLI_CHOICE, /* an enum of the library's, by the names that it has there */
    CLI_SET,    /* uint64_t: bits by their names there, "a,b" */
    CLI_MEMORY, /* uint64_t: a size, auto or unlimited */
    CLI_SIZE,   /* uint64_t: a size within [least, most] */
    CLI_RATE,   /* double: a size per second */
    CLI_COUNT,  /* int32_t within [least, most] */
    CLI_REAL,   /* float within [least, most] */
    CLI_SEED    /* uint64_t */
} cli_value;

typedef struct cli_option {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    cli_value value;
    unsigned commands; /* cli_command bits */
    size_t offset;     /* offset of the value in cli_settings */
    double least, most;
    const char *(*choice)(int i); /* CLI_CHOICE, CLI_SET: the name of value i; NULL: none has it */
    bool (*parse)(const char *name, int *i); /* and what has a name, other names included */
} cli_option;

extern const cli_option cli_options[];
extern const size_t cli_n_options;

/* Returns whether a value has to follow it: no flag, no --help, and no -d of drey pull. */
bool option_takes_value(const cli_option *option, cli_command command);

/* Reads argv[1..argc), the words after the command's name, and checks that they do not contradict
 * each other. With --help nothing else is checked. Long names are taken whole only: an abbreviation
 * would change its meaning with the next version. A word that is no option names the model where
 * the command takes one and -m is missing. What is unknown is answered with what is near, or with
 * what drey has in place of another program's option: see other_names.h. */
drey_status options_parse(cli_settings *settings, cli_command command, int argc, char *const *argv,
                          drey_error *err);

/* The option of that name, or letter; NULL: none has it. */
const cli_option *option_find(const char *name);
const cli_option *option_find_letter(int letter);

/* Returns whether it was on the command line. */
bool option_given(const cli_settings *settings, const char *name);

/* Reads a value into where the option puts it; text is NULL for a flag. */
drey_status option_store(cli_settings *settings, const cli_option *option, const char *text,
                         drey_error *err);

/* Checks that the options do not contradict each other, and that the command has all that it
 * needs. */
drey_status options_check(const cli_settings *settings, drey_error *err);

/* "800M", "2.5G", "1024K", "2gb", "2 GiB", "123": binary units, blanks before and "B" or "iB" after
 * the letter if need be, in large or small letters, no fractions of bytes. False for anything else,
 * and beyond 64 bits. */
bool size_parse(const char *text, uint64_t *bytes);
/* The same per second, above 0: "500M/s"; "/s" may be left out. */
bool rate_parse(const char *text, double *bytes_per_s);
/* Reads numbers such as "0,12,16": from 0 to most, at most `room` of them. False: it is no such
 * list. */
bool numbers_parse(const char *text, int32_t most, int32_t *numbers, int32_t room, int32_t *n);

/* The command as the user writes it: "bench disk". */
const char *command_name(cli_command command);
