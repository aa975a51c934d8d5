/* Other programs' names and near ones: see other_names.h. Each row is for everybody who types what
 * he is used to: llama.cpp's common/arg.cpp and ollama's commands have such names. */
#include "cli/args/other_names.h"

#include "cli/args/help.h"
#include "cli/terminal/hints.h"
#include "common/error.h"

#include <ctype.h>
#include <string.h>

typedef struct other_name {
    const char *names;  /* with blanks between them */
    const char *ours;   /* an option's name, or a command; NULL: there is none */
    const char *advice; /* NULL: ours says all */
} other_name;

static const char leave_out[] = "leave it out";

static const other_name options[] = {
    {"--ctx-size --n-ctx --num-ctx --context-size --max-model-len", "context", NULL},
    {"--n-predict --max-tokens --num-predict --max-new-tokens --n-tokens", "predict", NULL},
    {"--temperature", "temp", NULL},
    {"-md --model-draft --draft-model --spec-draft-model", "draft", NULL},
    {"-s --random-seed", "seed", NULL},
    {"-tb --threads-batch --n-threads --num-thread", "threads", NULL},
    {"-a --served-model-name", "alias", NULL},
    {"-np --parallel --num-parallel", "sessions", NULL},
    {"-b --batch-size -ub --ubatch-size --n-batch", "prompt-chunk", NULL},
    {"-sys --system-prompt --system-message", "system", NULL},
    {"-r --reverse-prompt --stop-sequence", "stop", NULL},
    {"-j --json-schema-file -jf --format", "json-schema", NULL},
    {"--grammar-file", "grammar", NULL},
    {"-ctk --cache-type-k -ctv --cache-type-v --kv-cache-type", "kv", NULL},
    {"--chat-template-file", "chat-template", NULL},
    {"--models-dir", "models", NULL},
    {"--dry-penalty-last-n", "dry-last-n", NULL},
    {"--draft-max --draft-n --spec-draft-n-max --num-speculative-tokens", "draft-tokens", NULL},
    {"--log-disable --silent --no-perf", "quiet", NULL},
    {"--cors-origins --cors", "cors-origin", NULL},
    {"--special-tokens -sp", "special", NULL},
    {"--reasoning-budget -rea --reasoning --think --hidethinking", "no-reasoning", NULL},
    {"-hf -hfr --hf-repo -hff --hf-file -hft -mu --model-url -dr --docker-repo", NULL,
     "fetch the model first, drey pull OWNER/NAME:Q4_K_M, and name the file with -m"},
    {"--no-webui --no-ui", NULL, "write --closed page"},
    {"-cnv --conversation -i --interactive -if --interactive-first -mli --multiline-input", NULL,
     "a conversation is drey chat"},
    {"-st --single-turn", NULL, "one turn of a chat is drey run --chat"},
    {"--mmproj -mm --image --audio", NULL, "images and sound are not taken"},
    {"--lora --lora-scaled --control-vector", NULL,
     "merge the adapter into the model before drey convert"},
    {"--ssl-key-file --ssl-cert-file", NULL, "put a server with TLS, as nginx, before drey serve"},
};

/* Names without a counterpart: a line does without them. */
static const other_name needless[] = {
    {"-ngl --gpu-layers --n-gpu-layers -ngld --gpu-layers-draft --n-gpu-layers-draft --num-gpu "
     "-dev --device -sm --split-mode -ts --tensor-split -mg --main-gpu",
     NULL,
     "no layers are counted, --memory bounds what stays in memory, and --units cpu+cuda or "
     "cpu+opencl lets a device compute with that"},
    {"-ot --override-tensor -cmoe --cpu-moe -ncmoe --n-cpu-moe", NULL,
     "--memory bounds what stays in memory, and drey chooses the experts that do"},
    {"--mlock --no-mmap --mmap --use-mmap --use-mlock --direct-io -dio", NULL,
     "weights are never mapped, what fits into --memory stays there, and --io says how the rest "
     "is read"},
    {"-fa --flash-attn --jinja --no-jinja --cont-batching -cb --no-warmup --warmup --embeddings "
     "--embedding --slots --props --metrics --no-context-shift --kv-unified -kvu",
     NULL, "it does so always, or never; leave it out"},
    {"--draft-min --draft-p-min --draft-p-split --draft-n-min --spec-draft-n-min "
     "--spec-draft-p-min",
     NULL, "--policy says how it drafts, and by itself it chooses well; leave it out"},
    {"--typical --typical-p --mirostat --xtc-probability --xtc-threshold --dynatemp-range "
     "--top-nsigma --samplers --adaptive-target",
     NULL, "it samples with --temp, --top-k, --top-p and --min-p"},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx", NULL,
     "the model's file says how positions are rotated; leave it out"},
    {"--numa --cpu-mask -C --cpu-range -Cr --prio --poll --cpu-strict", NULL,
     "--units names the cores that compute, as in cpu:0-3"},
    {"-e --escape --no-escape --verbose-prompt --color -co --simple-io --log-file -lv --verbosity "
     "--keep --keepalive --nowordwrap --insecure --cache-prompt",
     NULL, leave_out},
};

/* Names that a value may follow. */
static const other_name with_value = {
    "-ngl --gpu-layers --n-gpu-layers -ngld --gpu-layers-draft --n-gpu-layers-draft --num-gpu -dev "
    "--device -sm --split-mode -ts --tensor-split -mg --main-gpu -ot --override-tensor -ncmoe "
    "--n-cpu-moe -fa --flash-attn --draft-min --draft-p-min --draft-p-split --draft-n-min "
    "--spec-draft-n-min --spec-draft-p-min --typical --typical-p --mirostat --xtc-probability "
    "--xtc-threshold --dynatemp-range --top-nsigma --samplers --adaptive-target --rope-scaling "
    "--rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --numa --cpu-mask -C "
    "--cpu-range -Cr --prio --poll --cpu-strict --color --log-file -lv --verbosity --keep "
    "--keepalive",
    NULL, NULL};

static const other_name commands[] = {
    {"ls models tags", "list", NULL},
    {"remove delete uninstall", "rm", NULL},
    {"info describe", "show", NULL},
    {"download get fetch install", "pull", NULL},
    {"generate complete completion prompt ask infer", "run", NULL},
    {"server start api", "serve", NULL},
    {"cli talk repl interactive", "chat", NULL},
    {"quantise", "quantize", NULL},
    {"ppl", "perplexity", NULL},
    {"benchmark llama-bench", "bench", NULL},
    {"fit estimate", "plan", NULL},
    {"train-medusa medusa heads", "train medusa", NULL},
    {"ps", NULL, "what drey serve has loaded is on its page, and at /v1/models"},
    {"stop", NULL, "a server or a text ends at Ctrl-C"},
    {"create", NULL,
     "there are no Modelfiles: drey convert makes a GGUF file, options do the rest"},
    {"cp mv", NULL, "a model is a file: the system's cp and mv will do"},
    {"push signin login", NULL, "it uploads nothing"},
};

/* ---- Near ---- */

/* "--top_k=4" -> "top-k" */
static void bare(const char *word, char out[64])
{
    size_t n = 0;
    for (word += strspn(word, "-"); *word && *word != '=' && n + 1 < 64; word++)
        out[n++] = *word == '_' ? '-' : (char)tolower((unsigned char)*word);
    out[n] = '\0';
}

/* Insertions, removals, changes and swaps of neighbours between two words; at most 99. */
static int distance(const char *a, const char *b)
{
    enum { MOST = 64 };
    int rows[3][MOST + 1], n_a = (int)strlen(a), n_b = (int)strlen(b);
    if (n_a > MOST || n_b > MOST)
        return 99;
    for (int k = 0; k <= n_b; k++)
        rows[0][k] = k;
    for (int i = 1; i <= n_a; i++) {
        int *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (int k = 1; k <= n_b; k++) {
            int least = last[k - 1] + (a[i - 1] != b[k - 1]);
            least = last[k] + 1 < least ? last[k] + 1 : least;
            least = now[k - 1] + 1 < least ? now[k - 1] + 1 : least;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                before[k - 2] + 1 < least)
                least = before[k - 2] + 1;
            now[k] = least;
        }
    }
    return rows[n_a % 3][n_b];
}

/* Keeps the candidate if it is nearer to word than *best, which begins as what still counts as
 * near. A beginning of three letters is as near as one change. */
static bool nearer(const char *word, const char *candidate, int *best)
{
    size_t n = strlen(word);
    int d = 2 * distance(word, candidate) - (n == strlen(candidate));
    if (n >= 3 && strncmp(word, candidate, n) == 0 && candidate[n])
        d = 2;
    if (d >= *best)
        return false;
    *best = d;
    return true;
}

static int still_near(const char *word)
{
    size_t n = strlen(word);
    return n < 3 ? 0 : n < 6 ? 3 : n < 10 ? 5 : 7; /* as `nearer` counts: 1, 2 or 3 changes */
}

bool words_are_near(const char *a, const char *b)
{
    char x[64], y[64];
    bare(a, x);
    bare(b, y);
    return 2 * distance(x, y) <= still_near(x);
}

/* Takes the next of names; false: there are no more. */
static bool next_name(const char **names, char out[64])
{
    *names += strspn(*names, " ");
    size_t n = strcspn(*names, " ");
    snprintf(out, 64, "%.*s", (int)n, *names);
    *names += n;
    return n > 0;
}

static const other_name *find_name(const other_name *table, size_t n, const char *word)
{
    char name[64], wanted[64];
    size_t n_word = strcspn(word, "=");
    snprintf(wanted, sizeof wanted, "%.*s", (int)(n_word < 63 ? n_word : 63), word);
    for (char *c = wanted; *c; c++)
        *c = *c == '_' ? '-' : *c;
    for (size_t i = 0; i < n; i++)
        for (const char *names = table[i].names; next_name(&names, name);)
            if (strcmp(name, wanted) == 0)
                return &table[i];
    return NULL;
}

static const other_name *find_needless(const char *word)
{
    return find_name(needless, sizeof needless / sizeof *needless, word);
}

static const other_name *find_option(const char *word)
{
    const other_name *found = find_name(options, sizeof options / sizeof *options, word);
    return found ? found : find_needless(word);
}

/* The command's option whose name, or name elsewhere, is nearest; NULL: none is near. */
static const cli_option *nearest_option(cli_command command, const char *word)
{
    const cli_option *found = NULL;
    char wanted[64], name[64];
    bare(word, wanted);
    int best = still_near(wanted);
    for (size_t i = 0; i < cli_n_options; i++)
        if ((!command || cli_options[i].commands & command) &&
            nearer(wanted, cli_options[i].name, &best))
            found = &cli_options[i];
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (const char *names = options[i].names; options[i].ours && next_name(&names, name);) {
            const cli_option *ours = option_find(options[i].ours);
            if (name[1] == '-' && (!command || ours->commands & command) &&
                nearer(wanted, name + 2, &best))
                found = ours;
        }
    return found;
}

/* ---- Options ---- */

bool other_is_option(const char *word)
{
    if (word[0] != '-' || word[1] == '-' || !word[1] || !word[2])
        return false;
    return find_option(word) || (word[3] && option_find(word + 1));
}

static void spell(const cli_option *option, char out[48])
{
    if (option->letter)
        snprintf(out, 48, "-%c (--%s)", option->letter, option->name);
    else
        snprintf(out, 48, "--%s", option->name);
}

/* Returns the option meant by a word of the command line; NULL: itself. */
static const cli_option *meant(cli_command command, const char *word)
{
    const bool is_long = strncmp(word, "--", 2) == 0 && word[2];
    const other_name *other = find_option(word);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    if (!other && ((!is_long && !other_is_option(word)) || (is_long && option_find(name + 2))))
        return NULL;
    const cli_option *ours = other && other->ours ? option_find(other->ours)
                             : other              ? NULL
                             : is_long            ? nearest_option(command, word)
                                                  : option_find(word + 1);
    return ours && ours->commands & command ? ours : NULL;
}

/* The argument after one of needless is its value. */
static bool has_value_after(const char *word, const char *next)
{
    return !strchr(word, '=') && next && (next[0] != '-' || isdigit((unsigned char)next[1])) &&
           find_name(&with_value, 1, word);
}

/* Adds a word in the shell's notation. False: it does not fit. */
static bool add_word(char *out, size_t size, size_t *n, const char *word)
{
    const char *quoted = QUOTED(word);
    *n += (size_t)snprintf(out + *n, size - *n, " %s", quoted);
    return *quoted && *n < size;
}

/* The whole line with what was meant, and names of what it leaves out: " (without -fa, --mlock)",
 * else "". False: it is too long to be shown, or one of its options has no place in a line. */
static bool corrected(const other_line *line, char *out, size_t size, char without[160])
{
    size_t n = (size_t)snprintf(out, size, "drey %s", command_name(line->command)), n_without = 0;
    without[0] = '\0';
    for (int i = 1; i < line->argc; i++) {
        const char *word = line->argv[i], *value = strchr(word, '=');
        const cli_option *ours = meant(line->command, word);
        const other_name *other = find_option(word);
        char spelled[48];
        if (find_needless(word)) {
            n_without +=
                (size_t)snprintf(without + n_without, 160 - n_without, "%s%.*s",
                                 n_without ? ", " : " (without ", (int)strcspn(word, "="), word);
            if (n_without + sizeof ")" > 160)
                return false;
            i += has_value_after(word, i + 1 < line->argc ? line->argv[i + 1] : NULL);
            continue;
        }
        if (other && !other->ours)
            return false;
        if (ours && ours->letter)
            snprintf(spelled, sizeof spelled, "-%c", ours->letter);
        else if (ours)
            snprintf(spelled, sizeof spelled, "--%s", ours->name);
        if (!add_word(out, size, &n, ours ? spelled : word) ||
            (ours && value && !add_word(out, size, &n, value + 1)))
            return false;
    }
    if (n_without)
        snprintf(without + n_without, 160 - n_without, ")");
    return true;
}

drey_status other_commands_option(cli_command command, const cli_option *option, const char *word,
                                  drey_error *err)
{
    char others[160];
    size_t n = 0, n_all = 0, n_named = 0;
    for (size_t i = 0; i < cli_n_usages; i++)
        n_all += (option->commands & cli_usages[i].command) != 0;
    for (size_t i = 0; i < cli_n_usages && n_named < 4; i++)
        if (option->commands & cli_usages[i].command)
            n += (size_t)snprintf(others + n, sizeof others - n, "%s%s",
                                  n_named++ == 0                     ? ""
                                  : n_named == n_all || n_named == 4 ? " and "
                                                                     : ", ",
                                  cli_usages[i].name);
    FAIL(err, DREY_ERR_USAGE, "drey %s takes no %s; drey %s %s", command_name(command), word,
         others, n_all == 1 ? "does" : "do");
}

drey_status other_option(const other_line *line, const char *word, drey_error *err)
{
    const cli_command command = line->command;
    const other_name *other = find_option(word);
    const int n = (int)strcspn(word, "=");
    const cli_option *ours = other && other->ours ? option_find(other->ours) : NULL;
    char spelled[48], whole[320], without[160] = "";
    if (ours && command && !(ours->commands & command)) {
        snprintf(whole, sizeof whole, "%.*s, which is --%s", n, word, ours->name);
        return other_commands_option(command, ours, whole, err);
    }
    bool has_line = command && corrected(line, whole, sizeof whole, without);
    if (ours) {
        spell(ours, spelled);
        FAIL(err, DREY_ERR_USAGE, "%.*s is %s in drey%s%s%s", n, word, spelled,
             has_line ? ": " : "", has_line ? whole : "", has_line ? without : "");
    }
    if (other)
        FAIL(err, DREY_ERR_USAGE, "drey has no %.*s: %s%s%s%s", n, word, other->advice,
             has_line ? "; corrected: " : "", has_line ? whole : "", has_line ? without : "");
    ours = word[1] == '-' ? nearest_option(command, word) : option_find(word + 1);
    if (!ours || (command && !(ours->commands & command)))
        FAIL(err, DREY_ERR_USAGE, "unknown option %.*s", n, word);
    if (has_line)
        FAIL(err, DREY_ERR_USAGE, "unknown option %.*s; did you mean: %s%s", n, word, whole,
             without);
    FAIL(err, DREY_ERR_USAGE, "unknown option %.*s; did you mean --%s?", n, word, ours->name);
}

/* ---- Commands ---- */

/* Keeps the candidate, up to its first blank, if it is nearer than *best. */
static bool take_nearer(const char *wanted, const char *candidate, int *best, other_word *near)
{
    other_word name;
    snprintf(name.text, sizeof name.text, "%.*s", (int)strcspn(candidate, " "), candidate);
    if (!nearer(wanted, name.text, best))
        return false;
    *near = name;
    return true;
}

bool nearest_word(const char *word, const char *const *words, other_word *near)
{
    char wanted[64];
    bool found = false;
    bare(word, wanted);
    for (int best = still_near(wanted); *words; words++)
        found = take_nearer(wanted, *words, &best, near) || found;
    return found;
}

bool nearest_command(const char *word, other_word *near)
{
    char wanted[64];
    bare(word, wanted);
    int best = still_near(wanted);
    bool found = take_nearer(wanted, "help", &best, near);
    found = take_nearer(wanted, "version", &best, near) || found;
    for (size_t i = 0; i < cli_n_usages; i++)
        found = (!strchr(cli_usages[i].name, ' ') &&
                 take_nearer(wanted, cli_usages[i].name, &best, near)) ||
                found;
    return found;
}

void other_command(const char *word, drey_error *err)
{
    const other_name *other = find_name(commands, sizeof commands / sizeof *commands, word);
    other_word near;
    if (other && other->ours)
        error_set(err, DREY_ERR_USAGE, "unknown command \"%.80s\"; did you mean drey %s?", word,
                  other->ours);
    else if (other)
        error_set(err, DREY_ERR_USAGE, "drey has no command \"%.80s\": %s", word, other->advice);
    else if (nearest_command(word, &near))
        error_set(err, DREY_ERR_USAGE, "unknown command \"%.80s\"; did you mean drey %s?", word,
                  near.text);
    else
        error_set(err, DREY_ERR_USAGE, "unknown command \"%.80s\"; see drey --help", word);
}
