/* The command line: sizes, values and their bounds, contradictions, words of other programs, and
 * that help texts and completions name every option. */
#include "cli/commands/cmd_bench.h"
#include "cli/terminal/format.h"
#include "cli/args/completion.h"
#include "cli/args/help.h"
#include "cli/args/options.h"
#include "cli/args/other_names.h"
#include "cli/terminal/hints.h"

#include "support/grammar/case_text.h"
#include "support/test.h"
enum { MAX_WORDS = 48 };

/* Splits line at blanks and parses its words; a word "_" stands for an empty one. */
static drey_status parse(cli_settings *s, cli_command command, const char *line, drey_error *err)
{
    static char words[512];
    char *argv[MAX_WORDS];
    int argc = 1;
    argv[0] = "drey";
    assert_true(strlen(line) < sizeof words);
    strcpy(words, line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        assert_true(argc < MAX_WORDS);
        argv[argc++] = strcmp(word, "_") == 0 ? word + 1 : word;
    }
    memset(err, 0, sizeof *err);
    return options_parse(s, command, argc, argv, err);
}

static void accepts(cli_settings *s, cli_command command, const char *line)
{
    drey_error err;
    if (parse(s, command, line, &err) != DREY_OK)
        fail_msg("\"%s\" was refused: %s", line, err.message);
}

/* The message has to hold what the user needs to find the fault. */
static void refuses(cli_command command, const char *line, const char *part)
{
    cli_settings s;
    drey_error err;
    if (parse(&s, command, line, &err) != DREY_ERR_USAGE)
        fail_msg("\"%s\" was taken", line);
    if (err.code != DREY_ERR_USAGE || !strstr(err.message, part))
        fail_msg("\"%s\" says \"%s\" and not \"%s\"", line, err.message, part);
}

/* Checks the refusal of a line "COMMAND: LINE => WORDS". */
static void check_line(void *user, char *text)
{
    char *line = strstr(text, ": "), *part = strstr(text, "=> ");
    assert_true(line && part);
    part[-1] = *line = '\0';
    const cli_usage *usage = cli_usages;
    while (strcmp(usage->name, text) != 0)
        assert_true(++usage < cli_usages + cli_n_usages);
    refuses(usage->command, line + 2 < part ? line + 2 : "", part + 3);
}

TEST(refused_lines)
{
    case_file_read(TEST_DATA "/refused_lines.txt", check_line, NULL, "=> ", 143);
}

/* Words that are one text, with a bar between them: "a|b|"; out: the next one. False: no more. */
static bool next_word(const char **words, char out[32])
{
    size_t n = strcspn(*words, "|");
    if (!**words)
        return false;
    assert_true(n < 32);
    snprintf(out, 32, "%.*s", (int)n, *words);
    *words += n + 1;
    return true;
}

TEST(sizes)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"1", 1},
        {"1024K", 1 << 20},
        {"800M", 800ull << 20},
        {"800m", 800ull << 20},
        {"800MiB", 800ull << 20},
        {"2GB", 2ull << 30},
        {"2 GB", 2ull << 30},
        {"2  GiB", 2ull << 30},
        {"2g", 2ull << 30},
        {"2gb", 2ull << 30},
        {"2 gib", 2ull << 30},
        {"800mB", 800ull << 20},
        {"2048MiB", 2ull << 30},
        {"2.5G", 2684354560},
        {"0.1K", 102},
        {"1.000001T", 1099512727287},
        {"3T", 3ull << 40},
        {"18446744073709551615", UINT64_MAX},
        {"16777215T", 16777215ull << 40},
    };
    const char *bad = "| 1|1 "
                      "|-1|+1|M|1.5|1.|.5G|1.G|1MBB|1B|1KK|1.1234567G|0x10|1e3|1Mi|1,5G|G1|1iB|"
                      "16777216T|18446744073709551616|99999999999G|";
    char word[32];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t bytes = 12345;
        assert_true(size_parse(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (uint64_t bytes; next_word(&bad, word);)
        if (size_parse(word, &bytes))
            fail_msg("\"%s\" was taken as a size", word);
}

TEST(sizes_are_shown_as_they_are_given)
{
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "0.98K"},
                 {800 << 20, "800M"},
                 {2684354560.0, "2.50G"},
                 {1117320768, "1.04G"},
                 {1024.0 * 1024 * 99.96, "100M"},
                 {1024.0 * 999.6, "0.98M"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[16];
        assert_string_equal(format_bytes(out, cases[i].bytes), cases[i].text);
    }
    assert_string_equal(SIZE_TEXT(1541 << 20), "1.50G");
    assert_string_equal(format_bytes_up((char[16]){0}, 1541 << 20), "1.51G");
    assert_string_equal(format_bytes_up((char[16]){0}, 69 << 20), "69.0M");
}

TEST(rates)
{
    static const struct {
        double rate;
        const char *text, *about;
    } cases[] = {{0, "0.00", "0.0"},       {0.04216, "0.0422", "0.042"},
                 {0.354, "0.354", "0.35"}, {0.9996, "1.00", "1.0"},
                 {2.5, "2.50", "2.5"},     {9.96, "9.96", "10"},
                 {9.996, "10.0", "10"},    {99.96, "100", "100"},
                 {1280, "1280", "1280"},   {1e-12, "0.000000000", "0.000000000"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[16];
        assert_string_equal(format_rate(out, cases[i].rate), cases[i].text);
        assert_string_equal(format_rate_about(out, cases[i].rate), cases[i].about);
    }
}

TEST(bars)
{
    char out[11];
    format_bar(out, 10, 0.5, 0.3);
    assert_string_equal(out, "#####---..");
    format_bar(out, 10, 0, 0);
    assert_string_equal(out, "..........");
    format_bar(out, 10, 1, 0);
    assert_string_equal(out, "##########");
    format_bar(out, 10, 0.999, 0.001);
    assert_string_equal(out, "#########-");
    format_bar(out, 10, 0.001, 0.001);
    assert_string_equal(out, "#-........");
}

TEST(defaults)
{
    cli_settings s;
    accepts(&s, CLI_RUN, "-m a.gguf");
    assert_string_equal(s.common.model, "a.gguf");
    assert_int_equal(s.text.n_predict, 512);
    assert_int_equal(s.common.n_context, 0);
    assert_int_equal(s.common.n_threads, 0);
    assert_true(s.common.memory_bytes == DREY_MEMORY_AUTO);
    assert_int_equal(s.drafting.drafter, DREY_DRAFTER_NONE);
    assert_int_equal(s.drafting.policy, DREY_POLICY_AUTO);
    assert_int_equal(s.common.io, DREY_IO_AUTO);
    assert_int_equal(s.common.kv, DREY_KV_F16);
    assert_true(s.sampling.temperature == 0 && s.sampling.top_p == 1);
    assert_false(s.text.chat || s.text.special || s.text.ignore_eos || s.text.raw_ids || s.quiet);
    accepts(&s, CLI_PERPLEXITY, "-m a.gguf");
    assert_int_equal(s.scoring.window, 512);
}

TEST(the_draft_chooses_itself)
{
    cli_settings s;
    accepts(&s, CLI_RUN, "-m t -p x --tree 5");
    assert_true(s.drafting.draft_auto && s.drafting.drafter == DREY_DRAFTER_NONE);
    accepts(&s, CLI_PLAN, "-m t -d auto --policy edgellm");
    assert_true(s.drafting.draft_auto);
    accepts(&s, CLI_CHAT, "-m t");
    assert_true(s.drafting.draft_auto);
    accepts(&s, CLI_CHAT, "-m t -d auto");
    assert_true(s.drafting.draft_auto);
    accepts(&s, CLI_SERVE, "-m t");
    assert_true(s.drafting.draft_auto);
    accepts(&s, CLI_RUN, "-m t -p x --policy std");
    assert_false(s.drafting.draft_auto);
    accepts(&s, CLI_RUN, "-m t -p x -d ./auto");
    assert_false(s.drafting.draft_auto);
    assert_int_equal(s.drafting.drafter, DREY_DRAFTER_MODEL);
    accepts(&s, CLI_RUN, "-m t -p x -d none");
    assert_false(s.drafting.draft_auto);
}

/* The folder's models are not looked at here. */
TEST(names_of_models)
{
    cli_settings s;
    accepts(&s, CLI_RM, "a b c --force");
    assert_int_equal(s.prepare.n_names, 3);
    assert_string_equal(s.prepare.names[2], "c");
    assert_true(s.prepare.force);
    accepts(&s, CLI_SHOW, "a");
    accepts(&s, CLI_LIST, "-q --json -");
    accepts(&s, CLI_PULL, "--draft a/b");
    assert_true(s.prepare.draft && s.drafting.draft_auto && !s.drafting.draft_path);
    assert_string_equal(s.operand, "a/b");
    accepts(&s, CLI_PULL, "a/b -d");
    assert_true(s.prepare.draft);
    accepts(&s, CLI_PULL, "a/b --no-draft");
    assert_true(s.prepare.no_draft && s.drafting.draft_auto);
}

TEST(values)
{
    cli_settings s;
    accepts(&s, CLI_RUN,
            "-mt.gguf -d d.gguf --memory=2.5G -p hello -n8 -c 99 -t 3 --temp 0.5 --top-k 40");
    assert_string_equal(s.common.model, "t.gguf");
    assert_string_equal(s.drafting.draft_path, "d.gguf");
    assert_int_equal(s.drafting.drafter, DREY_DRAFTER_MODEL);
    assert_true(s.common.memory_bytes == 2684354560);
    assert_string_equal(s.text.prompt, "hello");
    assert_int_equal(s.text.n_predict, 8);
    assert_int_equal(s.common.n_context, 99);
    assert_int_equal(s.common.n_threads, 3);
    assert_true(s.sampling.temperature == 0.5f);
    assert_int_equal(s.sampling.top_k, 40);
    accepts(&s, CLI_RUN,
            "-m t -d lookup --policy sequence --draft-tokens 4 --stop a --stop=b --io pread --kv "
            "q8_0 -q "
            "--temp 1e-1 --seed 18446744073709551615 --top-p 0.9 --min-p .05 --memory unlimited");
    assert_int_equal(s.drafting.drafter, DREY_DRAFTER_LOOKUP);
    assert_null(s.drafting.draft_path);
    assert_int_equal(s.drafting.policy, DREY_POLICY_SEQUENCE);
    assert_int_equal(s.drafting.draft_tokens, 4);
    assert_int_equal(s.text.n_stops, 2);
    assert_string_equal(s.text.stops[0], "a");
    assert_string_equal(s.text.stops[1], "b");
    assert_int_equal(s.common.io, DREY_IO_PREAD);
    assert_int_equal(s.common.kv, DREY_KV_Q8_0);
    assert_true(s.quiet);
    assert_true(s.sampling.seed == UINT64_MAX);
    assert_true(s.common.memory_bytes == DREY_MEMORY_UNLIMITED);
    accepts(&s, CLI_RUN, "-m t -p -x -d none --policy none --temp 0 --seed 1");
    assert_string_equal(s.text.prompt, "-x");
    accepts(&s, CLI_RUN, "-m t -p _ -d ./lookup --tree 5");
    assert_string_equal(s.text.prompt, "");
    assert_int_equal(s.drafting.drafter, DREY_DRAFTER_MODEL);
    assert_int_equal(s.drafting.tree_nodes, 5);
    assert_int_equal(s.drafting.research.without, 0);
    accepts(&s, CLI_RUN, "-m t -p x -d self --policy si --without tree,slice");
    assert_int_equal(s.drafting.drafter, DREY_DRAFTER_SELF);
    assert_int_equal(s.drafting.policy, DREY_POLICY_SPECINFER);
    assert_int_equal(s.drafting.research.without,
                     DREY_WITHOUT(DREY_PART_TREE) | DREY_WITHOUT(DREY_PART_SLICE));
    accepts(&s, CLI_RUN, "-m t -p x -d self --policy si --with lookup");
    assert_int_equal(s.drafting.research.with, DREY_WITH(DREY_PART_LOOKUP));
}

TEST(values_of_other_commands)
{
    cli_settings s;
    accepts(&s, CLI_PLAN, "-m t --disk 1.5G/s --tensors");
    assert_true(s.plan.disk_bytes_per_s == 1.5 * 1073741824);
    assert_true(s.plan.tensors);
    assert_false(s.plan.no_measure);
    accepts(&s, CLI_PLAN, "-m t --no-measure --json -");
    assert_true(s.plan.no_measure && s.json);
    accepts(&s, CLI_PLAN, "-m t --disk 100M");
    assert_true(s.plan.disk_bytes_per_s == 100.0 * 1048576);
    accepts(&s, CLI_INSPECT, "-- -odd");
    assert_string_equal(s.operand, "-odd");
    accepts(&s, CLI_TOKENIZE, "-m t --special --ids");
    assert_true(s.text.special && s.tokens.ids);
    accepts(&s, CLI_PREPARE, "m.gguf -o m.drey --force --planes -q");
    assert_string_equal(s.operand, "m.gguf");
    assert_string_equal(s.output, "m.drey");
    assert_true(s.prepare.force && s.prepare.planes && s.quiet && !s.prepare.check);
    accepts(&s, CLI_RUN, "-m t --sidecar none");
    assert_string_equal(s.common.sidecar, "none");
    accepts(&s, CLI_BENCH_MACHINE, "-t 2");
    assert_null(s.common.model);
    accepts(&s, CLI_BENCH_MODEL, "-m a --contexts 0,64 --every");
    assert_string_equal(s.bench.contexts, "0,64");
    assert_true(s.bench.every);
}

TEST(help_operands_and_shares)
{
    cli_settings s;
    accepts(&s, CLI_RUN, "--help --no-such-thing");
    assert_string_equal(s.help, "");
    accepts(&s, CLI_RUN, "-h memory");
    assert_string_equal(s.help, "memory");
    accepts(&s, CLI_RUN, "--help=all -m a");
    assert_string_equal(s.help, "all");
    accepts(&s, CLI_RUN, "t.gguf -p x");
    assert_string_equal(s.common.model, "t.gguf");
    assert_null(s.operand);
    accepts(&s, CLI_TUNE, "t.gguf -d b");
    assert_string_equal(s.common.model, "t.gguf");
    accepts(&s, CLI_RUN, "-m t --memory 50%");
    const uint64_t half = drey_memory_machine() / 2; /* a group's limit may move */
    assert_true(s.common.memory_bytes > half / 2 && s.common.memory_bytes / 2 < half);
}

TEST(words_before_a_text)
{
    cli_settings s;
    accepts(&s, CLI_PULL, "n -v --disk 1G");
    assert_true(s.common.verbose && s.plan.disk_bytes_per_s == 1073741824.0);
    accepts(&s, CLI_CHAT, "-m t --disk 300M/s");
    assert_true(!s.common.verbose && s.plan.disk_bytes_per_s == 300.0 * 1048576);
}

TEST(exits)
{
    cli_settings s;
    accepts(&s, CLI_RUN, "-m t -d none --exit exact --without schedule");
    assert_true(s.drafting.exit == DREY_EXIT_EXACT && !s.drafting.exit_file &&
                s.drafting.exit_threshold == 0);
    accepts(&s, CLI_RUN, "-m t -d b --policy single --exit fast --exit-file f --exit-threshold .9");
    assert_true(s.drafting.policy == DREY_POLICY_SINGLE && s.drafting.exit == DREY_EXIT_FAST);
    assert_true(strcmp(s.drafting.exit_file, "f") == 0 && s.drafting.exit_threshold == 0.9f);
}

TEST(pictures)
{
    cli_settings s;
    accepts(&s, CLI_REPORT, "t.json --turns 3-7 -o t.svg");
    assert_string_equal(s.operand, "t.json");
    assert_string_equal(s.picture.turns, "3-7");
    accepts(&s, CLI_REPORT, "t.json --turn 0");
    assert_int_equal(s.picture.turn, 0);
}

TEST(contexts)
{
    const char *bad =
        "|a|0,|,0|0,0|4,2|-1,2|0 ,2|0,2 |+1|1e3|0,99999999999999999999|0,1,2,3,4,5,6,7,8|";
    char word[32];
    drey_model_bench bench;
    drey_error err;
    assert_int_equal(bench_read_contexts("0,4096,16384", &bench, &err), DREY_OK);
    assert_int_equal(bench.n_contexts, 3);
    assert_int_equal(bench.contexts[2], 16384);
    assert_int_equal(bench_read_contexts("7", &bench, &err), DREY_OK);
    assert_int_equal(bench.n_contexts, 1);
    assert_int_equal(bench_read_contexts("0,1,2,3,4,5,6,7", &bench, &err), DREY_OK);
    assert_int_equal(bench.n_contexts, 8);
    while (next_word(&bad, word))
        if (bench_read_contexts(word, &bench, &err) != DREY_ERR_USAGE)
            fail_msg("\"%s\" was taken as contexts", word);
}

TEST(numbers_of_drafting)
{
    cli_settings s;
    accepts(&s, CLI_RUN, "-m t");
    assert_true(s.drafting.research.ahead == 0 && s.drafting.research.fallback_step == 0);
    accepts(&s, CLI_SERVE, "-m t --ahead 0.001 --alpha 0.3 --fallback-step .25");
    assert_true(s.drafting.research.ahead == 0.001f && s.drafting.research.fallback_step == 0.25f);
    accepts(&s, CLI_RUN, "-m t --policy bld --bld-fallback 0.3 --bld-rollback 5");
    assert_true(s.drafting.research.bld_fallback == 0.3f && s.drafting.research.bld_rollback == 5);
}

/* What the library takes, and nothing else: the CLI, its help and the library have one bound. */
TEST(bounds_are_the_librarys)
{
    static const struct {
        const char *option;
        int64_t least, most;
    } bounds[] = {{"context", 2, DREY_MAX_CONTEXT},
                  {"threads", 1, DREY_MAX_THREADS},
                  {"draft-tokens", 1, DREY_MAX_DRAFTED},
                  {"tree", 1, DREY_MAX_DRAFTED},
                  {"sessions", 1, DREY_MAX_SESSIONS},
                  {"prompt-chunk", 1, DREY_MAX_PROMPT_CHUNK},
                  {"read-size", DREY_MIN_READ_BYTES, DREY_MAX_READ_BYTES}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const cli_option *o = option_find(bounds[i].option);
        cli_settings s;
        drey_error err;
        char text[24];
        int64_t tried[] = {bounds[i].least, bounds[i].most, bounds[i].least - 1,
                           bounds[i].most + 1};
        for (int t = 0; t < 4; t++) {
            snprintf(text, sizeof text, "%lld", (long long)tried[t]);
            assert_int_equal(option_store(&s, o, text, &err), t < 2 ? DREY_OK : DREY_ERR_USAGE);
        }
    }
}

TEST(names_come_back)
{
    drey_io io;
    drey_kv kv;
    int n = 0;
    for (int i = 0; drey_io_name((drey_io)i); i++, n++)
        assert_true(drey_io_parse(drey_io_name((drey_io)i), &io) && (int)io == i);
    for (int i = 0; drey_kv_name((drey_kv)i); i++, n++)
        assert_true(drey_kv_parse(drey_kv_name((drey_kv)i), &kv) && (int)kv == i);
    assert_int_equal(n, 4 + 2);
    io = DREY_IO_PREAD;
    assert_false(drey_io_parse("mmap", &io) || drey_io_parse("", &io) || drey_io_parse(NULL, &io));
    assert_false(drey_kv_parse("q4_0", &kv));
    assert_string_equal(drey_progress_name(DREY_PROGRESS_MEASURE), "measure");
    assert_null(drey_progress_name((drey_progress)(DREY_PROGRESS_MEASURE + 1)));
    assert_string_equal(drey_kernel_figure_name(DREY_KERNEL_ROW), "row");
    assert_string_equal(drey_kernel_figure_name(DREY_KERNEL_PLANES), "planes");
    assert_string_equal(drey_kernel_figure_name(DREY_KERNEL_PART), "part");
    assert_null(drey_kernel_figure_name((drey_kernel_figure)(DREY_KERNEL_PART + 1)));
    assert_int_equal(io, DREY_IO_PREAD);
}

TEST(words)
{
    cli_settings s;
    accepts(&s, CLI_RUN, "-qn8 -mt --stop -q --system=-x --chat");
    assert_true(s.quiet && s.text.n_predict == 8);
    assert_string_equal(s.common.model, "t");
    assert_string_equal(s.text.stops[0], "-q");
    assert_string_equal(s.text.system, "-x");
    accepts(&s, CLI_PREPARE, "--check a -q");
    assert_string_equal(s.operand, "a");
    assert_true(s.prepare.check && s.quiet);
    accepts(&s, CLI_INSPECT, "-");
    assert_string_equal(s.operand, "-");
    accepts(&s, CLI_INSPECT, "-- --help");
    assert_string_equal(s.operand, "--help");
    assert_null(s.help);
}

/* ---- Words that drey does not have ---- */

TEST(near_words_and_other_programs)
{
    cli_settings s;
    accepts(&s, CLI_RUN, "-m a --threads 3 --stop -md");
    assert_string_equal(s.text.stops[0], "-md");
    static const char *const commands[][2] = {{"rum", "did you mean drey run?"},
                                              {"trian", "did you mean drey train?"},
                                              {"quantise", "drey quantize?"},
                                              {"ls", "did you mean drey list?"},
                                              {"ps", "/v1/models"},
                                              {"hlep", "did you mean drey help?"},
                                              {"fly", "unknown command \"fly\"; see"},
                                              {"create", "drey convert"}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        drey_error err;
        other_command(commands[i][0], &err);
        if (!strstr(err.message, commands[i][1]))
            fail_msg("drey %s: %s", commands[i][0], err.message);
    }
}

/* ---- What is written about the options ---- */

/* The option is in text as a whole word after prefix. */
static bool names_option(const char *text, const char *prefix, const char *name)
{
    char word[64];
    int n = snprintf(word, sizeof word, "%s%s", prefix, name);
    for (const char *at = text; (at = strstr(at, word)); at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz-", at[n]) || !at[n])
            return true;
    return false;
}

static void fits_on_a_screen(const char *text)
{
    int n_lines = 0;
    for (const char *line = text; *line; n_lines++) {
        size_t n = strcspn(line, "\n");
        if (n > 80)
            fail_msg("%zu columns: %.*s", n, (int)n, line);
        line += n + (line[n] == '\n');
    }
    if (n_lines > 24)
        fail_msg("%d lines: %s", n_lines, text);
}

/* The rest of a file, which is closed. */
static const char *read_text(FILE *file)
{
    static char text[128 << 10];
    assert_non_null(file);
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_true(n < sizeof text - 1);
    text[n] = '\0';
    return text;
}

/* topic NULL: the short help. */
static const char *help_of(const cli_usage *usage, const char *topic)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(topic ? help_topic(file, usage, topic, false) : help_short(file, usage, false));
    return read_text(file);
}

/* The names of a choice: first, then each after the one before it. */
static void join_choices(const cli_option *o, const char *between, char *out, size_t size)
{
    size_t n = 0;
    for (int i = 0; o->choice(i) && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? between : "", o->choice(i));
    assert_true(n < size);
}

/* A choice's values in the texts are the names that the library has; where it takes only some of
 * them, those that commands take. */
static void has_values(const option_text *text, const cli_option *o)
{
    char values[200], line[200];
    join_choices(o, "|", values, sizeof values);
    if (strcmp(text->argument, values) == 0)
        return;
    for (int i = 0; o->choice(i); i++) {
        cli_settings s;
        drey_error err;
        snprintf(line, sizeof line, "-m a -d b --%s %s", o->name, o->choice(i));
        bool taken = parse(&s, CLI_RUN, line, &err) == DREY_OK;
        if (taken != names_option(text->argument, "", o->choice(i)))
            fail_msg("drey run %s: %s, and docs/options has %s", line,
                     taken ? "taken" : err.message, text->argument);
    }
}

/* docs/options and the table are of the same options, letters, values and commands. */
TEST(each_option_has_its_text)
{
    assert_int_equal(n_option_texts, cli_n_options);
    for (size_t i = 0; i < cli_n_options; i++) {
        const cli_option *o = &cli_options[i];
        const option_text *t = option_text_of(o);
        if (!t)
            fail_msg("docs/options has no section of --%s", o->name);
        char letter[2] = {o->letter, '\0'};
        assert_string_equal(t->letter, letter);
        if (t->commands != o->commands || t->first & ~o->commands)
            fail_msg("docs/options has other commands for --%s: %x and %x", o->name, t->commands,
                     o->commands);
        for (const option_meaning *m = t->meanings; m && m->commands; m++)
            if (m->commands & ~o->commands)
                fail_msg("--%s means \"%s\" to a command that does not take it", o->name, m->line);
        if ((*t->argument == '\0') != (o->value == CLI_FLAG))
            fail_msg("--%s %s: is it a flag?", o->name, t->argument);
        if (!*t->line || !option_group_find(t->group))
            fail_msg("--%s has no line, or no group", o->name);
        if (o->choice)
            has_values(t, o);
    }
    drey_drafter_info drafter;
    for (int i = 1; drey_drafter_describe((drey_drafter)i, &drafter); i++)
        if (!drafter.takes_model)
            assert_true(
                names_option(option_text_of(option_find("draft"))->argument, "", drafter.name));
}

/* The short help has what comes first, and a line for each that it has; --help all has all. */
TEST(help_is_complete)
{
    fits_on_a_screen(help_of(NULL, NULL));
    for (size_t c = 0; c < cli_n_usages; c++) {
        const cli_usage *usage = &cli_usages[c];
        if (!strchr(usage->name, ' ') && !names_option(help_of(NULL, NULL), "\n  ", usage->name))
            fail_msg("drey --help does not have %s", usage->name);
        const char *text = help_of(usage, NULL);
        fits_on_a_screen(text);
        assert_non_null(strstr(text, "example:\n  "));
        for (size_t i = 0; i < cli_n_options; i++) {
            const option_text *t = option_text_of(&cli_options[i]);
            if (t->first & usage->command && !names_option(text, "--", t->name))
                fail_msg("drey %s --help does not name --%s", usage->name, t->name);
        }
        text = help_of(usage, "all");
        for (size_t i = 0; i < cli_n_options; i++)
            if (cli_options[i].commands & usage->command &&
                !names_option(text, "--", cli_options[i].name))
                fail_msg("drey %s --help all does not name --%s", usage->name, cli_options[i].name);
    }
    const char *all = help_of(NULL, "all");
    for (size_t i = 0; i < cli_n_options; i++)
        if (!names_option(all, "--", cli_options[i].name))
            fail_msg("drey help all does not name --%s", cli_options[i].name);
    const char *memory = help_of(NULL, "--memory");
    assert_non_null(strstr(memory, "weights, draft, caches"));
    assert_non_null(strstr(help_of(NULL, "-m"), "--model"));
    assert_non_null(strstr(help_of(&cli_usages[0], "memory"), "Memory:\n"));
}

static void help_says(const char *line, bool known, const char *part)
{
    char words[100];
    char *argv[8] = {"help"};
    int argc = 1;
    drey_error err = {0};
    strcpy(words, line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    FILE *file = tmpfile();
    assert_non_null(file);
    bool said = help_answer(file, argc, argv, false, &err);
    const char *text = read_text(file);
    if (said != known || !strstr(known ? text : err.message, part))
        fail_msg("drey help %s: %s%s", line, text, err.message);
}

TEST(help_answers)
{
    help_says("", true, "Start here:");
    help_says("run", true, "usage: drey run -m MODEL");
    help_says("train exit", true, "usage: drey train exit");
    help_says("run sampling", true, "--top-k K");
    help_says("run --temp", true, "likeliest");
    help_says("bench all", true, "drey bench kernels");
    help_says("drafting", true, "--policy");
    help_says("inspect --temp", false, "drey inspect has no options \"--temp\"");
    help_says("chatt", false, "did you mean drey help chat?");
    help_says("--memroy", false, "did you mean --memory?");
    help_says("nonsense", false, "one of model, memory");
}

/* The help text of command has format, with number in it. */
static void help_has(cli_command command, const char *format, int number)
{
    char wanted[120];
    const cli_usage *usage = cli_usages;
    while (usage->command != command)
        usage++;
    snprintf(wanted, sizeof wanted, "%s (%d)", format, number);
    if (!strstr(help_of(usage, "all"), wanted))
        fail_msg("drey %s --help all does not have \"%s\"", usage->name, wanted);
}

/* The default that a help text gives in brackets is the one that is taken. */
TEST(defaults_are_shown)
{
    cli_settings s;
    help_has(CLI_RUN, "the length of a chain", 8); /* test_policy.c has the same numbers */
    help_has(CLI_PLAN, "the most nodes of a tree", 47);
    accepts(&s, CLI_RUN, "-m a");
    help_has(CLI_RUN, "the most tokens to write", s.text.n_predict);
    accepts(&s, CLI_PERPLEXITY, "-m a");
    help_has(CLI_PERPLEXITY, "tokens of a window", s.scoring.window);
    accepts(&s, CLI_BENCH_MODEL, "-m a");
    help_has(CLI_BENCH_MODEL, "length of the prompt", s.bench.n_prompt);
    help_has(CLI_BENCH_MODEL, "length of the text", s.bench.n_decode);
}

/* A text names every option after prefix, and a choice's values as between joins them. */
static void names_all(const char *text, const char *path, const char *prefix, const char *between)
{
    for (size_t i = 0; i < cli_n_options; i++) {
        const cli_option *o = &cli_options[i];
        char values[160];
        if (!names_option(text, prefix, o->name))
            fail_msg("%s does not name --%s", path, o->name);
        if (!o->choice)
            continue;
        join_choices(o, between, values, sizeof values);
        if (!strstr(text, values))
            fail_msg("%s does not have the values of --%s: %s", path, o->name, values);
    }
}

/* Tiers of processors: those that this build has, which may be all that the file names or not. */
static void tier_is_named(void *user, const char *type, const char *tier, const char *own)
{
    if (!names_option(user, "", tier))
        fail_msg("a completion does not name the tier %s", tier);
}

TEST(completions_are_complete)
{
    static const struct {
        const char *shell, *prefix, *between;
    } texts[] = {{"bash", "--", " "}, {"zsh", "--", " "}, {"fish", "-l ", " "}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *file = tmpfile();
        assert_true(file && completion_write(file, texts[i].shell));
        const char *text = read_text(file);
        names_all(text, texts[i].shell, texts[i].prefix, texts[i].between);
        drey_kernel_list(tier_is_named, (char *)text);
    }
    assert_false(completion_write(stdout, "csh"));
}

/* An option is found by its name or letter alone. */
/* Hints name options of the command that runs, or other commands. */
TEST(hints_name_options_of_their_commands)
{
    char words[HINT_BYTES], word[HINT_BYTES];
    for (size_t u = 0; u < cli_n_usages; u++)
        for (int hint = 0; hint <= DREY_HINT_IMPORTANCE; hint++) {
            const cli_command command = cli_usages[u].command;
            bool other = false; /* the words are about another command */
            hint_words((drey_hint)hint, command, NULL, words);
            for (const char *at = words; command && *at; at += strspn(at, " (),")) {
                size_t n = strcspn(at, " (),");
                snprintf(word, sizeof word, "%.*s", (int)n, at);
                other = strcmp(word, "drey") == 0 || (other && strcmp(word, "or") != 0);
                at += n;
                if (other || word[0] != '-')
                    continue;
                const cli_option *option = NULL;
                for (size_t i = 0; i < cli_n_options; i++)
                    if (strcmp(word + 2 * (word[1] == '-'), cli_options[i].name) == 0 ||
                        (word[1] == cli_options[i].letter && word[2] == '\0'))
                        option = &cli_options[i];
                if (!option || !(option->commands & command))
                    fail_msg("drey %s has no %s, of the hint%s", cli_usages[u].name, word, words);
            }
        }
    assert_string_equal(hint_words(DREY_HINT_FORCE, CLI_QUANTIZE, NULL, words), " (--force)");
    assert_string_equal(hint_words(DREY_HINT_FORCE, CLI_CONVERT, NULL, words), " (--force)");
    assert_string_equal(hint_words(DREY_HINT_FORCE, CLI_PREPARE, NULL, words),
                        " (--output, --force)");
    assert_string_equal(hint_words(DREY_HINT_OUTPUT, CLI_QUANTIZE, NULL, words), "");
    assert_string_equal(hint_words(DREY_HINT_REQUANTIZE, CLI_QUANTIZE, NULL, words),
                        " (--allow-requantize)");
    assert_string_equal(hint_words(DREY_HINT_SIDECAR, CLI_RUN, NULL, words),
                        " (drey prepare MODEL, or --sidecar none)");
    assert_string_equal(hint_words(DREY_HINT_HEADS, CLI_RUN, "my models/it's.gguf", words),
                        " (drey train medusa -m 'my models/it'\\''s.gguf')");
    assert_string_equal(hint_words(DREY_HINT_PLANES, CLI_CHAT, "x.gguf", words),
                        " (drey prepare --planes x.gguf)");
    assert_string_equal(hint_words(DREY_HINT_IMPORTANCE, CLI_QUANTIZE, "x.gguf", words),
                        " (drey imatrix -f TEXT -o FILE -m x.gguf, and --imatrix FILE)");
    assert_string_equal(hint_words(DREY_HINT_N_CONTEXT, CLI_PERPLEXITY, NULL, words), "");
}

TEST(table_is_sound)
{
    for (size_t i = 0; i < cli_n_options; i++) {
        bool named = cli_options[i].value == CLI_CHOICE || cli_options[i].value == CLI_SET;
        assert_true((cli_options[i].choice != NULL) == named);
        assert_true((cli_options[i].parse != NULL) == named);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(cli_options[i].name, cli_options[j].name);
            assert_true(!cli_options[i].letter || cli_options[i].letter != cli_options[j].letter);
        }
    }
}
