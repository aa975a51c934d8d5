/* Options that contradict each other or want others: see options.h. */
#include "cli/args/options.h"
#include "common/error.h"

#include <string.h>
#include <sys/stat.h>

#define REFUSE(...) FAIL(err, DREY_ERR_USAGE, __VA_ARGS__)

/* Parts of early exits. */
static const uint64_t of_exits = DREY_WITHOUT(DREY_PART_SCHEDULE) |
                                 DREY_WITHOUT(DREY_PART_PREDICTORS) | DREY_WITHOUT(DREY_PART_HYPER);

static drey_status check_drafting(const cli_settings *s, drey_error *err)
{
    bool drafts = s->drafting.drafter != DREY_DRAFTER_NONE || s->drafting.draft_auto;
    drey_drafter_info drafter;
    drey_drafter_describe(s->drafting.drafter, &drafter);
    drey_policy policy = s->drafting.policy;
    if (policy == DREY_POLICY_AUTO)
        policy = drafts ? DREY_POLICY_OPTIMAL : DREY_POLICY_NONE;
    bool plain = policy == DREY_POLICY_NONE || policy == DREY_POLICY_STD;
    if (policy == DREY_POLICY_DRAFT && !drafter.takes_model)
        REFUSE("--policy draft lets the draft write alone: add -d DRAFT.gguf");
    if (!plain && !drafts)
        REFUSE("--policy %s needs a draft: add -d DRAFT.gguf or -d lookup",
               drey_policy_name(policy));
    if (plain && drafts)
        REFUSE("--policy %s and -d contradict each other: leave one out", drey_policy_name(policy));
    bool chain = policy == DREY_POLICY_SEQUENCE || policy == DREY_POLICY_BLD;
    if (option_given(s, "draft-tokens") && !chain)
        REFUSE("--draft-tokens belongs to --policy sequence or bld");
    bool treeless = chain || policy == DREY_POLICY_DRAFT || policy == DREY_POLICY_SINGLE;
    if (option_given(s, "tree") && (!drafts || treeless))
        REFUSE("--tree belongs to a policy with trees and a draft");
    if (s->drafting.research.without & ~of_exits && !drafts)
        REFUSE("--without needs a draft: add -d DRAFT.gguf or -d lookup");
    if (s->drafting.research.with & ~DREY_WITH(DREY_PART_LOOKUP))
        REFUSE("--with takes \"lookup\": policies have the other parts");
    if (s->drafting.research.with && (!drafts || drafter.looks_up))
        REFUSE("--with lookup adds lookup to another draft: add -d DRAFT.gguf, self or medusa");
    if (s->drafting.research.with & s->drafting.research.without)
        REFUSE("--with lookup and --without lookup contradict each other: leave one out");
    return DREY_OK;
}

static drey_status check_exits(const cli_settings *s, drey_error *err)
{
    static const char *const belongs[] = {"exit-file", "exit-threshold", NULL};
    bool off = s->drafting.exit == DREY_EXIT_OFF;
    for (int i = 0; belongs[i]; i++)
        if (off && option_given(s, belongs[i]))
            REFUSE("--%s needs --exit fast or --exit exact", belongs[i]);
    if (s->command == CLI_PERPLEXITY && s->drafting.exit == DREY_EXIT_EXACT)
        REFUSE("--exit exact scores a text as no exits do: take --exit fast, or leave it out");
    if (s->command == CLI_PERPLEXITY && off && s->drafting.drafter != DREY_DRAFTER_NONE)
        REFUSE("-d needs --exit fast here: a draft only names candidates of early exits");
    if (off && s->drafting.research.without & of_exits)
        REFUSE("--without schedule, predictors or hyper needs --exit fast or --exit exact");
    return DREY_OK;
}

static drey_status check_grammar(const cli_settings *s, drey_error *err)
{
    const char *given = s->text.grammar ? "grammar" : "json-schema";
    if (s->text.grammar && s->text.json_schema)
        REFUSE("--grammar and --json-schema contradict each other: leave one out");
    if (s->text.strict && !s->text.json_schema)
        REFUSE("--strict is about --json-schema: give one, or leave it out");
    if (!s->text.grammar && !s->text.json_schema)
        return DREY_OK;
    if (s->text.ignore_eos)
        REFUSE("--%s says where the text ends: leave --ignore-eos out", given);
    if (s->drafting.exit != DREY_EXIT_OFF)
        REFUSE("--%s and --exit contradict each other: leave one out", given);
    return DREY_OK;
}

static drey_status check_run(const cli_settings *s, drey_error *err)
{
    static const char *const sampled[] = {"top-k", "top-p", "min-p", "seed", NULL};
    if (s->text.prompt && s->text.file)
        REFUSE("-p and -f contradict each other: there is one prompt");
    if (s->text.system && !s->text.chat && s->command == CLI_RUN)
        REFUSE("--system needs --chat");
    for (int i = 0; sampled[i]; i++)
        if (option_given(s, sampled[i]) && !option_given(s, "temp"))
            REFUSE("--%s needs --temp above 0: at temperature 0 the most likely token is "
                   "always taken",
                   sampled[i]);
    if (option_given(s, "top-p") && s->sampling.top_p <= 0)
        REFUSE("--top-p takes a number above 0, up to 1");
    return DREY_OK;
}

static drey_status check_tune(const cli_settings *s, drey_error *err)
{
    static const char *const of_models[] = {"draft",   "memory",  "io",      "kv",
                                            "sidecar", "quiet",   "prompts", "json",
                                            "units",   "context", NULL};
    for (int i = 0; of_models[i] && !s->common.model; i++)
        if (option_given(s, of_models[i]))
            REFUSE("--%s is about models: name one with -m MODEL.gguf", of_models[i]);
    if (s->tune.show && s->prompts)
        REFUSE("--show measures nothing: leave --prompts out");
    return DREY_OK;
}

/* "cpu=3", where what follows a slash is no share: "cpu/slow=4". */
static bool names_shares(const char *units)
{
    for (const char *at = units; at && *at; at += strspn(at, "+")) {
        size_t n = strcspn(at, "+/");
        if (memchr(at, '=', n))
            return true;
        at += strcspn(at, "+");
    }
    return false;
}

static bool are_endpoints(const char *words)
{
    static const char *const known[] = {"page", "metrics", "slots"};
    size_t n;
    for (const char *at = words; *at; at += n + (at[n] == ',')) {
        bool found = false;
        n = strcspn(at, ",");
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            found |= strlen(known[i]) == n && memcmp(known[i], at, n) == 0;
        if (!found)
            return false;
    }
    return true;
}

/* ---- Files ---- */

/* The file that an option names; NULL: none, or standard output. */
static const char *file_of(const cli_settings *s, const char *name)
{
    const char *path = NULL;
    if (option_given(s, name))
        memcpy(&path, (const char *)s + option_find(name)->offset, sizeof path);
    return path && strcmp(path, "-") != 0 ? path : NULL;
}

/* Devices and pipes are nobody's: all may write to /dev/null. */
static bool is_one_file(const char *a, const char *b)
{
    struct stat x, y;
    if (stat(a, &x) != 0 || stat(b, &y) != 0)
        return stat(a, &x) != 0 && stat(b, &y) != 0 && strcmp(a, b) == 0;
    return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Nothing is written over what is read, nor over what is written. */
static drey_status check_files(const cli_settings *s, drey_error *err)
{
    static const char *const written[] = {"output", "json", "stats", "trace"};
    static const char *const read[] = {"model",     "draft",   "prompts", "file",
                                       "exit-file", "sidecar", "ranks"};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        const char *path = file_of(s, written[i]), *other;
        if (!path)
            continue;
        bool over = s->operand && is_one_file(path, s->operand);
        for (size_t k = 0; k < sizeof read / sizeof *read; k++)
            over |= (other = file_of(s, read[k])) && is_one_file(path, other);
        if (over)
            REFUSE("--%s would write over %.200s, which is read; name another file", written[i],
                   path);
        for (size_t k = 0; k < i; k++)
            if ((other = file_of(s, written[k])) && is_one_file(path, other))
                REFUSE("--%s and --%s name one file, %.200s; name two", written[k], written[i],
                       path);
    }
    return DREY_OK;
}

drey_status options_check(const cli_settings *s, drey_error *err)
{
    if (check_files(s, err) != DREY_OK)
        return DREY_ERR_USAGE;
    if (s->drafting.draft_auto && !(s->command & (CLI_RUN | CLI_CHAT | CLI_PLAN | CLI_PULL |
                                                  CLI_SERVE | CLI_VERIFY | CLI_TUNE)))
        REFUSE("-d auto is for drey run, chat, serve, plan, verify and tune: name a draft");
    if (s->command == CLI_CONVERT && !s->output)
        REFUSE("name a model's folder, and the file to write");
    if (s->command == CLI_QUANTIZE && !s->quantize.type)
        REFUSE("name a model, the file to write, and a type such as Q4_K_M");
    if (s->command == CLI_IMATRIX && !s->output)
        REFUSE("name the file to write with -o FILE");
    if (s->command & CLI_OPERAND && !s->operand)
        REFUSE("name a %s", s->command == CLI_PREPARE  ? "model to prepare"
                            : s->command == CLI_PULL   ? "model to download: OWNER/NAME or a URL"
                            : s->command == CLI_REPORT ? "trace, which drey run --trace writes"
                            : s->command == CLI_RM     ? "model to remove: drey list shows them"
                            : s->command == CLI_SHOW   ? "model to show: drey list shows them"
                                                       : "file to inspect");
    if (s->picture.turns && option_given(s, "turn"))
        REFUSE("--turn and --turns contradict each other: one draws a tree, the other a "
               "timeline");
    bool takes_model = option_find("model")->commands & s->command;
    if (s->command == CLI_TUNE && names_shares(s->common.units))
        REFUSE("leave the shares out of --units: they are what is measured");
    if (takes_model && !(s->command & (CLI_BENCH_MACHINE | CLI_TUNE)) && !s->common.model &&
        !s->serve.models)
        REFUSE("name a model with -m MODEL.gguf, or as drey list shows those that are here");
    if (s->serve.models && (s->common.model || s->serve.alias))
        REFUSE("--models serves a folder, whose files name the models: leave -m and --alias out");
    if (option_given(s, "models-max") && !s->serve.models)
        REFUSE("--models-max is about several models: name a folder with --models");
    if (s->serve.closed && !are_endpoints(s->serve.closed))
        REFUSE("--closed takes page, metrics and slots, with commas between them");
    if (s->prepare.draft && s->prepare.no_draft)
        REFUSE("--draft and --no-draft contradict each other: leave one out");
    bool drafts = option_find("draft")->commands & s->command;
    if (drafts && s->command != CLI_TUNE && check_drafting(s, err) != DREY_OK)
        return DREY_ERR_USAGE;
    if (option_find("exit")->commands & s->command && check_exits(s, err) != DREY_OK)
        return DREY_ERR_USAGE;
    if (s->prefixes.disk && !s->prefixes.folder)
        REFUSE("--prefix-disk needs --prefix-folder: name a folder");
    if (s->common.kv_memory && !s->common.kv_folder)
        REFUSE("--kv-memory needs --kv-folder: name a folder on a disk");
    TRY(check_grammar(s, err));
    if (s->command == CLI_RUN)
        return check_run(s, err);
    if (s->plan.ranks && (option_given(s, "memory") || s->plan.tensors))
        REFUSE("--ranks FILE says each rank's memory: leave --memory and --tensors out");
    if (s->command == CLI_PLAN && s->common.rank_layers && !s->plan.ranks)
        REFUSE("--rank-layers divides a model between ranks: name them with --ranks FILE");
    if (s->prepare.check && s->prepare.force)
        REFUSE("--check and --force contradict each other: a check writes nothing");
    if (s->command == CLI_BENCH_MACHINE && option_given(s, "io") && !s->common.model)
        REFUSE("--io needs -m: without a model no disk is read");
    if (s->command == CLI_TUNE)
        return check_tune(s, err);
    if (s->bench.list && (s->bench.type || s->json))
        REFUSE("--list takes no --type and no --json: nothing is measured");
    if (s->command == CLI_TOKENIZE && s->tokens.ids && s->tokens.bos)
        REFUSE("--ids and --bos contradict each other: BOS is put before "
               "tokens, not before text");
    return DREY_OK;
}
