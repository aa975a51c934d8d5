/* The help texts: see help.h. Written by hand: a generated list of thirty options would not fit on
 * a screen, nor put together what belongs together. */
#include "cli/args/help.h"

const char help_drey[] =
    "drey runs language models that are larger than memory, with a small model's\n"
    "help, and writes exactly the text that the large model alone would have written.\n"
    "\n"
    "  drey run -m MODEL.gguf ...       write on from a prompt\n"
    "  drey chat -m MODEL.gguf ...      talk with a model, turn by turn\n"
    "  drey serve -m MODEL.gguf ...     an HTTP server for other programs, and a page\n"
    "  drey prepare MODEL.gguf          packs the weights once, beside the model\n"
    "  drey plan -m MODEL.gguf ...      what a memory budget would pin and stream\n"
    "  drey inspect FILE.gguf           header, keys and tensors of a file\n"
    "  drey tokenize -m MODEL.gguf      text to token ids, and back\n"
    "  drey report TRACE.json           draws what drey run --trace kept\n"
    "  drey perplexity -m MODEL.gguf    how well a model foretells a text\n"
    "  drey train exit|medusa -m MODEL.gguf  learns when tokens may leave early, or\n"
    "                                   to guess several tokens ahead\n"
    "  drey tune [-m MODEL.gguf ...]    measures what is fastest on this machine\n"
    "  drey bench machine|disk|kernels|model  their speed, beside what is possible\n"
    "  drey --version\n"
    "\n"
    "Each has its own --help. Sizes are binary: 800M, 2.5G, 1024K, or plain bytes.\n"
    "Exit codes: 0, 1 could not, 2 wrong usage, 129, 130, 143 ended by a signal.\n"
    "\n"
    "example:\n"
    "  drey run -m big.gguf -d small.gguf --memory 2G -p \"The sky is blue because\"\n";

static const char help_run[] =
    "usage: drey run -m TARGET.gguf [options]            writes on from a prompt\n"
    "  -m, --model FILE         the model that decides the text\n"
    "  -d, --draft FILE|lookup|self|medusa|none|auto  what guesses (auto)\n"
    "  --memory SIZE|auto|unlimited  bound on everything in memory (auto)\n"
    "  -p, --prompt TEXT        the prompt; or -f, --file FILE; or standard input\n"
    "  --chat, --system TEXT    one turn of a chat; --special: special tokens count\n"
    "  -n, --predict N          most tokens to write (512); -c, --context N: of all\n"
    "  --stop TEXT              ends the text, one of several; --ignore-eos: go on\n"
    "  --temp T (0: the most likely token), --top-k K, --top-p P, --min-p P, --seed S\n"
    "  --policy, parts --without, --with; --draft-tokens N (8) or --tree N (47)\n"
    " auto|none|sequence|specinfer|llmcad|edgellm|optimal|bld|draft|std|single|static\n"
    "    tree|fallback|batching|provisional|slice|schedule|predictors|hyper|lookup\n"
    "  --exit off|fast|exact    passes end where tokens are decided; fast is lossy\n"
    "  --exit-file FILE, --exit-threshold X  what says where (beside the model)\n"
    "  -t, --threads N (the cores); --units cpu:0-3=3+cpu:4-7=1|auto  who computes\n"
    "  --cpu TIER, --prompt-chunk ROWS, --io auto|uring|pread|buffered\n"
    "  --kv f16|q8_0            keys and values (f16); q8_0 is half, and lossy\n"
    "  --read-size SIZE         of a streamed read (1M; drey bench disk --sizes)\n"
    "  --sidecar FILE|none      what drey prepare wrote (beside the model, if there)\n"
    "  --stats FILE, --trace FILE  statistics; what ran when, for drey report (JSON)\n"
    "  --no-provisional-text    on a terminal: text only once it is verified\n"
    "  -q, --quiet              text alone; --raw-ids: as ids; -h, --help: this text\n"
    "example:\n"
    "  drey run -m big.gguf -d small.gguf --memory 2G -p \"The sky is blue because\"\n";

static const char help_chat[] =
    "usage: drey chat -m TARGET.gguf [options]           turn by turn; /help inside\n"
    "  -m, --model FILE         the model that decides the text\n"
    "  -d, --draft FILE|lookup|self|medusa|none|auto  what guesses (auto)\n"
    "  --memory SIZE|auto|unlimited  bound on everything in memory (auto)\n"
    "  --system TEXT            the system message\n"
    "  -n, --predict N          most tokens of an answer (512); -c, --context N: of all\n"
    "                           (4096, or what the model was made for)\n"
    "  --stop TEXT              ends an answer, one of several\n"
    "  --temp T (0: the most likely token), --top-k K, --top-p P, --min-p P, --seed S\n"
    "  --prefix-memory SIZE, --prefix-folder DIR, --prefix-disk SIZE  as for serve\n"
    "  --policy           how to draft; with --draft-tokens N (8) or --tree N (47)\n"
    " auto|none|sequence|specinfer|llmcad|edgellm|optimal|bld|draft|std|single|static\n"
    "  --without LIST, --exit off|fast|exact, --exit-file FILE, --exit-threshold X,\n"
    "  --units U, -t, --threads N, --cpu TIER, --prompt-chunk ROWS,\n"
    "  --io auto|uring|pread|buffered, --kv f16|q8_0, --read-size SIZE,\n"
    "  --sidecar FILE|none      as for run\n"
    "  --no-provisional-text    on a terminal: text only once it is verified\n"
    "  -q, --quiet              answers alone; -h, --help: this text\n"
    "\n"
    "example:\n"
    "  drey chat -m big.gguf -d small.gguf --memory 2G --system \"Be brief.\"\n";

static const char help_serve[] =
    "usage: drey serve -m TARGET.gguf [options]\n"
    "An HTTP server for programs that speak OpenAI's API, or llama.cpp's server's.\n"
    "  -m, --model FILE; -d, --draft FILE|lookup|self|medusa|none|auto; --alias NAME\n"
    "  --host ADDRESS|PATH.sock (127.0.0.1), --port N (8080; 0: any)\n"
    "  --api-key KEY,...        asked of all; --cors-origin ORIGIN,...|localhost|*\n"
    "  --sessions N             texts at the same time (4); --queue N: that wait (32)\n"
    "  -c, --context N          tokens of each (4096); -n, --predict N: most to write\n"
    "  --connections N (64), --max-body SIZE, --timeout S (30): of a client\n"
    "  --grace S                for texts, once the server is told to stop (10)\n"
    "  --prefix-memory SIZE, --prefix-folder DIR, --prefix-disk SIZE  kept\n"
    "  --temp T, --top-k K, --top-p P, --min-p P, --seed S  unless asked otherwise\n"
    "  --memory SIZE|auto|unlimited  bound on everything in memory (auto)\n"
    "  --policy, parts --without, --with; --draft-tokens N (8) or --tree N (47)\n"
    " auto|none|sequence|specinfer|llmcad|edgellm|optimal|bld|draft|std|single|static\n"
    "    tree|fallback|batching|provisional|slice|schedule|predictors|hyper|lookup\n"
    "  --exit off|fast|exact, --exit-file FILE, --exit-threshold X  as for drey run\n"
    "  -t, --threads N, --units U, --cpu TIER, --prompt-chunk ROWS, --read-size SIZE\n"
    "  --io auto|uring|pread|buffered; --kv f16|q8_0; --sidecar FILE|none\n"
    "  -q, --quiet              say nothing but the address; -h, --help: this text\n"
    "example:\n"
    "  drey serve -m big.gguf -d small.gguf --memory 4G --port 8080\n";

static const char help_plan[] =
    "usage: drey plan -m TARGET.gguf [options]\n"
    "Shows where a memory budget goes, what stays in memory, what passes read, the\n"
    "speed to expect, what 256M more would buy. Loads nothing; measures for a second.\n"
    "  -m, --model FILE         the model that decides the text\n"
    "  -d, --draft FILE|lookup|self|medusa|none|auto  what guesses (auto)\n"
    "  --memory SIZE|auto|unlimited  bound on everything in memory (auto)\n"
    "  -c, --context N          most tokens of prompt and text (1024)\n"
    "  --disk SIZE/s            the disk's speed, instead of measuring it\n"
    "  --no-measure             measure nothing: sizes, and speeds for a stated disk\n"
    "  --json FILE|-            all numbers as JSON; --tensors: each tensor's place\n"
    "  --sessions N             texts that go on at the same time (1)\n"
    "  --policy, parts --without, --with; --draft-tokens N (8) or --tree N (47)\n"
    " auto|none|sequence|specinfer|llmcad|edgellm|optimal|bld|draft|std|single|static\n"
    "    tree|fallback|batching|provisional|slice|schedule|predictors|hyper|lookup\n"
    "  --exit off|fast|exact    passes end where tokens are decided; fast is lossy\n"
    "  --exit-file FILE, --exit-threshold X  what says where (beside the model)\n"
    "  -t, --threads N (the cores); --units cpu:0-3=3+cpu:4-7=1|auto  who computes\n"
    "  --cpu TIER, --prompt-chunk ROWS, --io auto|uring|pread|buffered\n"
    "  --kv f16|q8_0            keys and values (f16); q8_0 is half, and lossy\n"
    "  --read-size SIZE         of a streamed read (1M; drey bench disk --sizes)\n"
    "  --sidecar FILE|none      what drey prepare wrote (beside the model, if there)\n"
    "  -h, --help               this text\n"
    "example:\n"
    "  drey plan -m big.gguf -d small.gguf --memory 2G\n";

static const char help_prepare[] =
    "usage: drey prepare MODEL.gguf [options]\n"
    "Writes a sidecar, MODEL.gguf.drey: the model's weights as the kernels want them,\n"
    "as large as the model. Weights that are streamed then need no packing. drey uses\n"
    "it when it lies beside the model; the texts are the same with and without.\n"
    "\n"
    "  -o, --output FILE        another place, to be named to run with --sidecar\n"
    "  --check                  read model and sidecar to the last byte and compare\n"
    "  --force                  write even where a good sidecar, or another file, is\n"
    "  --planes                 high and low bits apart: for drey run -d self\n"
    "  --json FILE|-            write what was done as JSON; -: to standard output\n"
    "  -q, --quiet              say nothing unless it fails\n"
    "  -h, --help               this text\n"
    "\n"
    "example:\n"
    "  drey prepare big.gguf && drey run -m big.gguf --memory 2G -p \"The sky\"\n";

static const char help_inspect[] =
    "usage: drey inspect FILE.gguf\n"
    "Checks a GGUF file of any architecture and shows its header, keys and tensors.\n"
    "\n"
    "  -h, --help               this text\n"
    "\n"
    "example:\n"
    "  drey inspect model.gguf | less\n";

static const char help_report[] =
    "usage: drey report TRACE.json [options]\n"
    "Draws a trace that drey run --trace wrote, as SVG: when the draft, the target's\n"
    "passes and the disk were at work, and how the text grew; or the tree of a turn.\n"
    "\n"
    "  -o, --output FILE.svg    the picture (standard output)\n"
    "  --turns FIRST-LAST       the turns to draw (a few in the middle)\n"
    "  --turn K                 the tree of turn K instead: what was guessed, how sure\n"
    "                           the draft was, and what the target accepted\n"
    "  -h, --help               this text\n"
    "\n"
    "example:\n"
    "  drey report t.json -o t.svg; drey report t.json --turn 5 -o tree.svg\n";

static const char help_tune[] =
    "usage: drey tune [-m TARGET.gguf [-d DRAFT.gguf]] [options]\n"
    "Measures once what every run needs, and keeps it in the user's cache directory\n"
    "for run, chat and serve. Alone: which variants of kernels are faster (seconds).\n"
    "With models: passes by rows, the draft's steps, how often its guesses are right\n"
    "(two minutes). It changes speed, never a text.\n"
    "\n"
    "  -m, --model FILE, -d, --draft FILE|lookup|self|medusa|none|auto  as for run\n"
    "  --prompts FILE.jsonl     {\"turns\": [\"...\"]} a line: to draft for (some of drey's own)\n"
    "  --units UNITS            as for run: also how to divide passes between them\n"
    "  -c, --context N          of units: divide attention behind up to so many (4096)\n"
    "  --show                   measure nothing; show what was measured\n"
    "  --json FILE|-            of models: write it as JSON, too\n"
    "  --memory SIZE|auto|unlimited, --io auto|uring|pread|buffered, --kv f16|q8_0,\n"
    "  --sidecar FILE|none      as for run; -q, --quiet: the table alone\n"
    "  -t, --threads N          threads (the cores)\n"
    "  --cpu TIER               the tier to tune (the best)\n"
    "  -h, --help               this text\n"
    "\n"
    "example:\n"
    "  drey tune && drey tune -m big.gguf -d small.gguf\n";

const char help_train[] =
    "usage: drey train exit|medusa -m TARGET.gguf [options]\n"
    "Lets a model write, and trains a small file beside it from what it writes.\n"
    "\n"
    "  exit                     when tokens may leave before the last layer, for\n"
    "                           drey run --exit; drey train exit --help\n"
    "  medusa                   heads that guess the next tokens, for drey run -d\n"
    "                           medusa; drey train medusa --help\n"
    "  -h, --help               this text\n"
    "\n"
    "example:\n"
    "  drey train medusa -m big.gguf && drey run -m big.gguf -d medusa -p \"Hello\"\n";

static const char help_train_exit[] =
    "usage: drey train exit -m TARGET.gguf [options]\n"
    "Lets the target write on from prompts, looks at it behind every layer, and trains\n"
    "small predictors of whether a token may leave there. Minutes; judged by prompts\n"
    "that they have not seen. The file lies beside the model: TARGET.gguf.drey-exit.\n"
    "  -m, --model FILE         the target\n"
    "  -d, --draft FILE|lookup|none  who names the candidates: a draft, the text, or\n"
    "                           the target itself at a late layer (lookup)\n"
    "  -o, --output FILE        another place\n"
    "  --prompts FILE           prompts as for drey tune (80 of its own); half\n"
    "                           of them are kept for judging\n"
    "  -n, --predict N          tokens of each text (128)\n"
    "  --features all|plain     all there is; without the draft's own (the paper's 12)\n"
    "  --hidden N               hidden units of a predictor (64)\n"
    "  --exit-threshold X       what a score has to exceed (0.6)\n"
    "  --seed S                 of what training begins with (0)\n"
    "  --memory SIZE|auto|unlimited  bound on everything in memory (auto)\n"
    "  -t, --threads N          threads (the cores)\n"
    "  --cpu TIER, --prompt-chunk ROWS, --io auto|uring|pread|buffered\n"
    "  --kv f16|q8_0, --read-size SIZE, --sidecar FILE|none  as for drey run\n"
    "  --json FILE|-            write what was found as JSON; -: to standard output\n"
    "  -q, --quiet              say nothing unless it fails; -h, --help: this text\n"
    "example:\n"
    "  drey train exit -m big.gguf -d small.gguf\n";

static const char help_train_medusa[] =
    "usage: drey train medusa -m TARGET.gguf [options]\n"
    "Lets the target write texts of its own, both sides of a talk, and trains heads that\n"
    "guess from its hidden state what it says next: drey run -d medusa uses them. What\n"
    "was interrupted goes on with the next call. Beside the model: TARGET.gguf.drey-medusa.\n"
    "  -m, --model FILE         the target\n"
    "  -o, --output FILE        another place\n"
    "  -n, --predict N          tokens of text; of more that were kept the first (500000)\n"
    "  --prompts FILE           what it answers, as for drey tune (it asks itself)\n"
    "  --heads N                tokens that they guess ahead (4)\n"
    "  --vocabulary N           the N most frequent tokens can be guessed (12288)\n"
    "  --epochs N, --rate X     how often each token is seen (2); of learning (0.002)\n"
    "  --temp T, --seed S       of the texts' answers (0.3; 0: the likeliest tokens)\n"
    "  --keep-texts             keep OUTPUT.texts for another training\n"
    "  --memory SIZE|auto|unlimited  bound on everything in memory (auto)\n"
    "  -t, --threads N          threads (the cores)\n"
    "  --cpu TIER, --prompt-chunk ROWS, --io auto|uring|pread|buffered\n"
    "  --kv f16|q8_0, --read-size SIZE, --sidecar FILE|none  as for drey run\n"
    "  --json FILE|-            write what was found as JSON; -: to standard output\n"
    "  -q, --quiet              say nothing unless it fails; -h, --help: this text\n"
    "example:\n"
    "  drey train medusa -m big.gguf && drey run -m big.gguf -d medusa -p \"Hello\"\n";

static const char help_tokenize[] =
    "usage: drey tokenize -m MODEL.gguf [options] < TEXT\n"
    "Turns standard input into a JSON array of token ids.\n"
    "\n"
    "  -m, --model FILE         the model whose tokenizer is used\n"
    "  --special                special tokens in the text count as such;\n"
    "                           with --ids: they are written out\n"
    "  --bos                    begin with BOS if the model wants it\n"
    "  --ids                    back: a JSON array of token ids into text\n"
    "  -h, --help               this text\n"
    "\n"
    "example:\n"
    "  echo \"Hello, world\" | drey tokenize -m model.gguf\n";

static const char help_perplexity[] =
    "usage: drey perplexity -m MODEL.gguf [-f TEXT] [options]\n"
    "Scores a text, one window after another, each token but the first of a window\n"
    "given those before it.\n"
    "\n"
    "  -m, --model FILE         the model\n"
    "  -f, --file FILE          the text (standard input)\n"
    "  --window N               tokens of a window (512)\n"
    "  --unscored N             of them in front, only read (1)\n"
    "  --memory SIZE|auto|unlimited  bound on everything in memory (auto)\n"
    "  -t, --threads N          threads (the cores)\n"
    "  --cpu TIER, --prompt-chunk ROWS, --io auto|uring|pread|buffered\n"
    "  --kv f16|q8_0            keys and values (f16); q8_0 is half, and lossy\n"
    "  --read-size SIZE         of a streamed read (1M; drey bench disk --sizes)\n"
    "  --sidecar FILE|none      what drey prepare wrote (beside the model, if there)\n"
    "  -q, --quiet              no progress\n"
    "  -h, --help               this text\n"
    "\n"
    "example:\n"
    "  drey perplexity -m model.gguf -f wiki.txt --window 1024\n";

const char help_bench[] =
    "usage: drey bench machine|disk|kernels|model [options]\n"
    "  machine                  what memory, cores and threads give at most\n"
    "  disk -m MODEL.gguf       reading a model's tensors as a pass does\n"
    "  kernels                  each kernel, against what the machine gives\n"
    "  model -m MODEL.gguf      prompt, text, and a pass by its width, against that\n"
    "\n"
    "  -m, --model FILE         the model (disk, model; machine: read the disk too)\n"
    "  --prompt-tokens N, --decode-tokens N  lengths of both (model: 512 and 64)\n"
    "  --contexts N,N,...       positions before a pass (model: 0,4096,16384)\n"
    "  --sessions N, --every    texts at a time; passes of 1, 2, 3 .. 64 rows (model)\n"
    "  --type TYPE, --list      one kernel only; table of types and tiers (kernels)\n"
    "  --memory SIZE|auto|unlimited  bound on everything in memory (model: auto)\n"
    "  --prompt-chunk ROWS, --kv f16|q8_0  rows of a prompt pass; KV cache (model)\n"
    "  -t, --threads N (machine, kernels, model: the cores); --units U as run (model)\n"
    "  --cpu TIER               kernels to use (machine, kernels, model: the best)\n"
    "  --io auto|uring|pread|buffered, --read-size SIZE  how to read (disk, model)\n"
    "  --sizes, --seconds N     of reads, several; how long (disk: 2 at most)\n"
    "  --sidecar FILE|none      what drey prepare wrote (model: beside it, if there)\n"
    "  --json FILE|-            write the numbers as JSON; -: to standard output\n"
    "  -h, --help               this text\n"
    "example:\n"
    "  drey bench machine; drey bench kernels; drey bench disk -m model.gguf\n"
    "  drey bench model -m model.gguf --json result.json\n";

const char *help_text(cli_command command)
{
    switch (command) {
    case CLI_RUN:
        return help_run;
    case CLI_CHAT:
        return help_chat;
    case CLI_SERVE:
        return help_serve;
    case CLI_PLAN:
        return help_plan;
    case CLI_PREPARE:
        return help_prepare;
    case CLI_INSPECT:
        return help_inspect;
    case CLI_TOKENIZE:
        return help_tokenize;
    case CLI_PERPLEXITY:
        return help_perplexity;
    case CLI_TRAIN_EXIT:
        return help_train_exit;
    case CLI_TRAIN_MEDUSA:
        return help_train_medusa;
    case CLI_TUNE:
        return help_tune;
    case CLI_REPORT:
        return help_report;
    case CLI_BENCH_MACHINE:
    case CLI_BENCH_DISK:
    case CLI_BENCH_MODEL:
    case CLI_BENCH_KERNELS:
        return help_bench;
    }
    return help_drey;
}
