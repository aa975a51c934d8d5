/* The help texts: see help.h. An option has a line with its meaning. Where a screen has not enough
 * lines, the last options in the table's order share lines, with their values and defaults alone.
 */
#include "cli/args/help.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { N_LINES = 24, N_COLUMNS = 80, INDENT = 27 };

const cli_usage cli_usages[] = {
    {CLI_RUN, "run", "-m MODEL.gguf", "continues a prompt", "",
     "  drey run -m big.gguf -d small.gguf --memory 2G -p \"The sky is blue because\"\n"},
    {CLI_CHAT, "chat", "-m MODEL.gguf", "holds a conversation, turn by turn",
     "Holds a conversation, turn by turn; /help inside lists what else can be typed.\n",
     "  drey chat -m big.gguf -d small.gguf --memory 2G --system \"Be brief.\"\n"},
    {CLI_SERVE, "serve", "-m MODEL.gguf", "an HTTP server for other programs, and a page",
     "An HTTP server: the APIs of OpenAI, Anthropic, ollama and llama.cpp, and a page.\n",
     "  drey serve -m big.gguf -d small.gguf --memory 4G --port 8080\n"},
    {CLI_PREPARE, "prepare", "MODEL.gguf", "packs the weights once, next to the model",
     "Writes a sidecar, MODEL.gguf.drey: the model's weights as the kernels need them,\n"
     "as large as the model. Weights that are streamed then need no packing. drey uses\n"
     "it when it is next to the model; the texts are the same with and without.\n",
     "  drey prepare big.gguf && drey run -m big.gguf --memory 2G -p \"The sky\"\n"},
    {CLI_PLAN, "plan", "-m MODEL.gguf", "what a memory budget would pin and stream",
     "Shows where a memory budget goes, what stays in memory, what passes read, the\n"
     "speed to expect, what 256M more would buy. Loads nothing; measures for a second.\n",
     "  drey plan -m big.gguf -d small.gguf --memory 2G\n"},
    {CLI_PULL, "pull", "NAME|URL", "downloads a model, after showing its plan",
     "Downloads OWNER/NAME[:QUANT], OWNER/NAME/FILE.gguf, hf.co/... or a URL, from\n"
     "Hugging Face (HF_ENDPOINT, HF_TOKEN). Its first megabytes have all that the plan\n"
     "needs, which is shown first. What breaks off is continued by the same command.\n",
     "  drey pull Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M --memory 4G\n"},
    {CLI_LIST, "list", "", "models that are here, by name",
     "Shows the downloaded models: size, type, context, what is next to them (packed\n"
     "weights, heads, a profile) and when they were used. -m takes their names.\n",
     "  drey list\n"},
    {CLI_SHOW, "show", "MODEL", "what a model is, and what drafts for it",
     "Shows what a model is, by its name or file, whether it fits into this machine's\n"
     "memory, and which small model drafts for it.\n",
     "  drey show model.gguf\n"},
    {CLI_RM, "rm", "MODEL...", "removes downloaded models",
     "Removes models of the folder by their names, with the files that drey made for\n"
     "them. It asks first.\n",
     "  drey pull -q OWNER/NAME && drey rm --force $(drey list -q)\n"},
    {CLI_CONVERT, "convert", "FOLDER OUT.gguf", "a model of safetensors becomes a GGUF file",
     "Writes a GGUF file of a model as hubs hold it: a folder with config.json,\n"
     "safetensors and a tokenizer. What drey would not run is refused first.\n",
     "  drey convert Qwen2.5-7B-Instruct qwen.gguf --type q8_0\n"},
    {CLI_QUANTIZE, "quantize", "MODEL.gguf OUTPUT.gguf TYPE", "fewer bits per weight",
     "Writes a model with fewer bits per weight. TYPE is Q8_0, Q6_K, Q5_K_M, Q4_K_M,\n"
     "Q3_K_M, Q2_K, IQ4_XS, F16 or another one of those that man drey lists.\n",
     "  drey quantize big.gguf tiny.gguf Q2_K --allow-requantize\n"},
    {CLI_IMATRIX, "imatrix", "-m MODEL.gguf -o FILE", "what matters in a model, for quantize",
     "Reads a text and writes how much the columns of each matrix matter for it: an\n"
     "importance matrix, which drey quantize --imatrix and llama.cpp take.\n",
     "  drey imatrix -m big.gguf -f wiki.txt -o big.imatrix.gguf\n"},
    {CLI_INSPECT, "inspect", "FILE.gguf", "header, keys and tensors of a file",
     "Checks a GGUF file of any architecture and shows its header, keys and tensors.\n",
     "  drey inspect model.gguf | less\n"},
    {CLI_TOKENIZE, "tokenize", "-m MODEL.gguf", "text to token ids, and back",
     "Turns standard input into a JSON array of token ids.\n",
     "  echo \"Hello, world\" | drey tokenize -m model.gguf\n"},
    {CLI_REPORT, "report", "TRACE.json", "draws what drey run --trace kept",
     "Draws a trace that drey run --trace wrote, as SVG: when the draft, the target's\n"
     "passes and the disk were at work, and how the text grew; or the tree of a turn.\n",
     "  drey report t.json -o t.svg; drey report t.json --turn 5 -o tree.svg\n"},
    {CLI_PERPLEXITY, "perplexity", "-m MODEL.gguf", "how well a model predicts a text",
     "Scores a text, one window after another, each token but the first of a window\n"
     "given those before it. With --exit fast also by where tokens leave early.\n",
     "  drey perplexity -m model.gguf -f wiki.txt --window 1024\n"},
    {CLI_VERIFY, "verify", "-m MODEL.gguf", "shows that texts do not depend on drafting",
     "Writes texts after each prompt, greedy and sampled, without a draft on one\n"
     "thread, and again in every way there is: drafts, policies, budgets, threads,\n"
     "kernels, several at once. Compares each token; exit code 1 if one differs.\n",
     "  drey verify -m big.gguf -d small.gguf -n 16\n"},
    {0, "train", "-m MODEL.gguf", "trains what makes it faster",
     "Lets a model write texts and trains a small file on them, next to the model.\n",
     "  drey train medusa -m big.gguf && drey run -m big.gguf -d medusa -p \"Hello\"\n"},
    {CLI_TRAIN_EXIT, "train exit", "-m MODEL.gguf", "predictors of when tokens may leave early",
     "Lets the target continue prompts, looks at it after every layer, and trains\n"
     "small predictors of whether a token may leave there: MODEL.gguf.drey-exit.\n"
     "Takes minutes; half of the prompts are kept for judging.\n",
     "  drey train exit -m big.gguf -d small.gguf\n"},
    {CLI_TRAIN_MEDUSA, "train medusa", "-m MODEL.gguf", "heads that guess several tokens ahead",
     "Lets the target write texts, and trains heads that guess from its hidden state\n"
     "what it writes next: MODEL.gguf.drey-medusa. The next call continues what was\n"
     "interrupted.\n",
     "  drey train medusa -m big.gguf && drey run -m big.gguf -d medusa -p \"Hello\"\n"},
    {CLI_TRAIN_EAGLE, "train eagle", "-m MODEL.gguf", "a layer that guesses what comes next",
     "Lets the target write texts, and trains one decoder layer that follows it and\n"
     "drafts (EAGLE): MODEL.gguf.eagle.gguf. The next call continues what was\n"
     "interrupted.\n",
     "  drey train eagle -m t.gguf && drey run -m t.gguf -d t.gguf.eagle.gguf -p Hello\n"},
    {CLI_TUNE, "tune", "[-m MODEL.gguf]", "measures what is fastest on this machine",
     "Keeps what it measures in the user's cache directory for run, chat and serve.\n"
     "Alone: which variants of kernels are faster (seconds). With models: passes by\n"
     "rows, the draft's steps and how often its guesses are right (two minutes). It\n"
     "changes speed, never a text.\n",
     "  drey tune && drey tune -m big.gguf -d small.gguf\n"},
    {0, "bench", "", "speeds, and what the machine allows", "",
     "  drey bench machine; drey bench kernels; drey bench disk -m model.gguf\n"
     "  drey bench model -m model.gguf --json result.json\n"},
    {CLI_BENCH_MACHINE, "bench machine", "", "what memory, cores and threads give at most", "",
     "  drey bench machine\n"},
    {CLI_BENCH_DISK, "bench disk", "-m MODEL.gguf", "reads a model's tensors as a pass does", "",
     "  drey bench disk -m model.gguf\n"},
    {CLI_BENCH_KERNELS, "bench kernels", "", "each kernel, against what the machine gives", "",
     "  drey bench kernels\n"},
    {CLI_BENCH_MODEL, "bench model", "-m MODEL.gguf",
     "prompt, text, and a pass by its width, with limits", "",
     "  drey bench model -m model.gguf --json result.json\n"},
};
const size_t cli_n_usages = sizeof cli_usages / sizeof *cli_usages;

const char *command_name(cli_command command)
{
    size_t i = 0;
    while (cli_usages[i].command != command)
        i++;
    return cli_usages[i].name;
}

/* usage is one of the commands whose first word is name. */
static bool is_kind(const cli_usage *usage, const char *name)
{
    size_t n = strlen(name);
    return strncmp(usage->name, name, n) == 0 && usage->name[n] == ' ';
}

const cli_usage *usage_find(int argc, char *const *argv, int *n_words)
{
    const cli_usage *found = NULL;
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        if (strcmp(u->name, argv[1]) == 0) {
            found = u;
            *n_words = 1;
        } else if (argc > 2 && is_kind(u, argv[1]) &&
                   strcmp(u->name + strlen(argv[1]) + 1, argv[2]) == 0) {
            *n_words = 2;
            return u;
        }
    }
    return found;
}

const char *usage_kinds(const cli_usage *usage, const char *between, char out[80])
{
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < cli_n_usages; i++)
        if (is_kind(&cli_usages[i], usage->name))
            n += (size_t)snprintf(out + n, 80 - n, "%s%s", n ? between : "",
                                  cli_usages[i].name + strlen(usage->name) + 1);
    return out;
}

/* ---- Texts ---- */

__attribute__((format(printf, 2, 3))) static void add(help_text *h, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(h->text + h->n, sizeof h->text - h->n, format, args);
    va_end(args);
    for (int i = 0; i < n; i++)
        h->n_lines += h->text[h->n + (size_t)i] == '\n';
    h->n += (size_t)n;
}

/* "-m, --model FILE" */
static int option_words(const cli_option *o, cli_command command, char *out, size_t size)
{
    char argument[160] = "", letter[5] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    if (option_takes_value(o, command))
        option_argument(o, argument);
    return snprintf(out, size, "%s--%s%s%s", letter, o->name, *argument ? " " : "", argument);
}

/* The option and its meaning, on two lines if need be; false: one has not enough columns. */
static bool add_line(help_text *h, const cli_option *o, cli_command command)
{
    char words[240];
    const char *help = option_help(o, command);
    int n = option_words(o, command, words, sizeof words), column = n + 4 > INDENT ? n + 4 : INDENT;
    if (n + 2 > N_COLUMNS)
        return false;
    if (column + (int)strlen(help) > N_COLUMNS)
        add(h, "  %s\n%*s%s\n", words, INDENT, "", help);
    else
        add(h, "  %-*s%s\n", column - 2, words, help);
    return true;
}

/* Continues the line, or begins one: two blanks come before an option, and one where its values
 * fill a line. */
static void add_packed(help_text *h, const cli_option *o, cli_command command, int *column)
{
    char words[300];
    const char *usual = strrchr(option_help(o, command), '(');
    int n = option_words(o, command, words, sizeof words);
    char *values = n > N_COLUMNS - 2 ? strrchr(words, ' ') : NULL;
    if (values) {
        n = (int)(values - words);
        *values++ = '\0';
    } else if (usual && strlen(usual) < 15) {
        n += snprintf(words + n, sizeof words - (size_t)n, " %s", usual);
    }
    if (*column && *column + 2 + n > N_COLUMNS) {
        add(h, "\n");
        *column = 0;
    }
    add(h, "  %s", words);
    *column += 2 + n;
    if (values) {
        add(h, "\n %s\n", values);
        *column = 0;
    }
}

/* Of the command's options, those before n_lines in the table have lines. */
static void add_options(help_text *h, cli_command command, size_t n_lines)
{
    bool packed[CLI_MAX_OPTIONS] = {0};
    int column = 0;
    for (size_t i = 0; i < cli_n_options; i++)
        packed[i] = cli_options[i].commands & command &&
                    (i >= n_lines || !add_line(h, &cli_options[i], command));
    for (size_t i = 0; i < cli_n_options; i++)
        if (packed[i])
            add_packed(h, &cli_options[i], command, &column);
    if (column)
        add(h, "\n");
}

static void make_with(help_text *h, const cli_usage *u, size_t n_lines)
{
    char kinds[80];
    h->n = 0;
    h->n_lines = 0;
    usage_kinds(u, "|", kinds);
    add(h, "usage: drey %s%s%s%s%s [options]\n", u->name, *kinds ? " " : "", kinds,
        *u->operands ? " " : "", u->operands);
    if (*u->about)
        add(h, "%s", u->about);
    else
        add(h, "%c%s.\n", u->summary[0] - 'a' + 'A', u->summary + 1);
    for (size_t i = 0; i < cli_n_usages; i++)
        if (is_kind(&cli_usages[i], u->name))
            add(h, "  drey %-20s%s\n", cli_usages[i].name, cli_usages[i].summary);
    if (u->command)
        add_options(h, u->command, n_lines);
    else
        add(h, "Each has its own --help.\n");
    add(h, "example:\n%s", u->example);
}

static void make_first(help_text *h)
{
    add(h, "drey runs language models that are larger than memory, with a small model's\n"
           "help, and writes exactly the text that the large model alone would have written.\n");
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        char kinds[80], words[160];
        if (strchr(u->name, ' '))
            continue;
        usage_kinds(u, "|", kinds);
        snprintf(words, sizeof words, "%s%s%s%s%s", u->name, *kinds ? " " : "", kinds,
                 *u->operands ? " " : "", u->operands);
        add(h, "  drey %-26s  %s\n", words, u->summary);
    }
    add(h, "  drey --version; drey --completion bash|zsh|fish\n"
           "Each has its own --help; man drey says more. Sizes are binary: 800M, 2.5G.\n"
           "Exit codes: 0, 1 could not, 2 wrong usage, 129, 130, 143 ended by a signal.\n"
           "example:\n"
           "  drey run -m big.gguf -d small.gguf --memory 2G -p \"The sky is blue because\"\n");
}

void help_make(help_text *h, const cli_usage *usage)
{
    *h = (help_text){0};
    if (!usage) {
        make_first(h);
        return;
    }
    size_t n_lines = cli_n_options;
    do
        make_with(h, usage, n_lines);
    while (h->n_lines > N_LINES && n_lines-- > 0);
}
