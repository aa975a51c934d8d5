/* drey chat: several turns with a person, or with a pipe.
 *
 * Answers alone go to standard output; prompts, progress and what commands say go to standard
 * error. All messages are put into the model's chat format each time; what that has in common with
 * the session's timeline is not computed again. Nothing is ever cut: what does not fit is said
 * before an answer begins. */
#include "cli/terminal/ask_line.h"
#include "cli/files/cache_folder.h"
#include "cli/commands/commands.h"
#include "cli/terminal/format.h"
#include "cli/files/input.h"
#include "cli/files/json_file.h"
#include "cli/commands/models.h"
#include "cli/terminal/report.h"
#include "cli/terminal/signals.h"
#include "cli/commands/talk.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text_writer.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    USUAL_CONTEXT = 4096,   /* positions, where the model was made for as many */
    MOST_CONTEXT_SHARE = 4, /* -n is at most the context's quarter, unless it was given */
    HELD_BYTES = 1 << 20,
    HELD_BYTES_A_TOKEN = 128,     /* some four bytes of text; rendering touches 25 times as many */
    HELD_BYTES_A_BYTE = 8,        /* of one long message: its copies and its ids, measured 7 */
    HELD_BYTES_A_TYPED_BYTE = 32, /* the line editor's 27 as well */
    HELD_BYTES_A_NOTE_BYTE = 28   /* of a saved conversation that is parsed: measured 9 of messages
                                     and 26 of a list of numbers, which a damaged one may be */
};

typedef struct chat {
    cli_settings settings; /* a copy: /budget changes the budget */
    models models;
    int32_t n_context, n_predict;
    size_t most_bytes;   /* of a message, */
    drey_error too_long; /* and what is said of a longer one */
    progress progress;
    text_writer out;
    asker asker;
    talk talk;
    uint64_t tries; /* of this answer, by /retry: each has its own seed */
    drey_statistics statistics;
    drey_speculation speculation; /* of the last answer, should its engine be closed since */
    drey_exits exits;
    bool disk_failed;  /* that of the kept beginnings, which has been said */
    int64_t n_damaged; /* files of them that were damaged: the same */
    bool ended;        /* /quit */
    bool failed;       /* an answer could not be given, or written */
} chat;

/* Something for the person, unless -q. */
static void say(const chat *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const chat *c, const char *format, ...)
{
    va_list arguments;
    if (c->settings.quiet)
        return;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* ---- Engine and session ---- */

/* Another budget may have room for another draft. */
static drey_status open_session(chat *c, drey_error *err)
{
    return models_start(&c->models, &c->settings, c->n_context, MODELS_SESSION, &c->progress, err);
}

static void choose_lengths(chat *c)
{
    c->n_context = models_context(&c->models, &c->settings, USUAL_CONTEXT);
    models_warn_of_context(&c->models, c->n_context);
    c->n_predict = c->settings.text.n_predict;
    if (!option_given(&c->settings, "predict") && c->n_predict > c->n_context / MOST_CONTEXT_SHARE)
        c->n_predict = c->n_context / MOST_CONTEXT_SHARE;
    if (c->n_predict < 1)
        c->n_predict = 1;
}

/* A message that no context holds, or that takes more memory than the plan has for all of them, is
 * refused while it is read. */
static void choose_limit(chat *c)
{
    input_limit limit;
    limit.n_bytes =
        c->models.held_bytes / (asker_at_terminal() ? HELD_BYTES_A_TYPED_BYTE : HELD_BYTES_A_BYTE);
    snprintf(limit.reason, sizeof limit.reason,
             "a context of %d tokens has no memory for it; give a shorter one or raise -c",
             c->n_context);
    input_limit_context(&limit, c->models.target, c->n_context);
    input_too_long("the message", &limit, &c->too_long);
    c->most_bytes = (size_t)limit.n_bytes;
}

/* That there is a chat format is known before anybody types. */
static drey_status check_template(chat *c, drey_error *err)
{
    drey_status status = talk_add(&c->talk, "user", "hello", 5, err);
    if (status == DREY_OK)
        status = talk_encode(&c->talk, c->models.target, err);
    talk_drop(&c->talk);
    return status;
}

static drey_status begin(chat *c, drey_error *err)
{
    const cli_settings *s = &c->settings;
    TRY(models_open(&c->models, s, err));
    if (s->text.system)
        TRY(talk_set_system(&c->talk, s->text.system, err));
    TRY(check_template(c, err));
    choose_lengths(c);
    /* The conversation's text and ids, and what rendering takes of it: measured, with some room. */
    c->models.held_bytes = HELD_BYTES + (uint64_t)c->n_context * HELD_BYTES_A_TOKEN;
    choose_limit(c);
    return open_session(c, err);
}

/* ---- Answers ---- */

/* How many tokens an answer may have; 0: the conversation does not fit, which has been said. */
static int32_t room_left(const chat *c)
{
    size_t n = c->talk.n_ids;
    if (n >= (size_t)c->n_context) {
        complain(
            "the conversation has %zu tokens, and the context of %d has no room for an answer; "
            "nothing was cut. /reset starts again; -c %zu would hold it",
            n, c->n_context, n + (size_t)c->n_predict);
        return 0;
    }
    int32_t left = c->n_context - (int32_t)n;
    if (left < c->n_predict)
        complain("the context of %d tokens is nearly full: the answer can have %d; /reset starts "
                 "again, a larger -c holds more",
                 c->n_context, left);
    return left < c->n_predict ? left : c->n_predict;
}

/* Says once what has happened to what is kept on the disk. */
static void check_disk(chat *c)
{
    drey_prefixes prefixes;
    drey_engine_prefixes(c->models.engine, &prefixes);
    if (prefixes.disk_failed && !c->disk_failed)
        complain("beginnings of texts cannot be written to their folder any more: the disk is "
                 "full, or fails. They are kept in memory alone; make room, and start the chat "
                 "again");
    if (prefixes.damaged_files > c->n_damaged)
        complain("files in the folder of kept beginnings were damaged; they are deleted and "
                 "computed again");
    c->disk_failed = prefixes.disk_failed;
    c->n_damaged = prefixes.damaged_files;
}

static drey_status write_answer(chat *c, int32_t n_predict, drey_error *err)
{
    const cli_settings *s = &c->settings;
    drey_generate_options options;
    drey_generate_options_init(&options);
    options.n_predict = n_predict;
    options.sampling = s->sampling;
    options.sampling.seed += c->tries;
    options.stops = s->text.stops;
    options.n_stops = s->text.n_stops;
    options.grammar = c->models.grammar;
    c->progress = (progress){.quiet = s->quiet};
    text_writer_begin(&c->out, &c->progress, &options, !s->text.no_provisional_text);
    if (c->asker.terminal)
        terminal_hide_typing();
    drey_status status =
        models_write(&c->models, c->talk.ids, c->talk.n_ids, &options, &c->statistics, err);
    terminal_show_typing();
    signals_unwatch();
    text_writer_end(&c->out);
    progress_clear(&c->progress);
    drey_session_speculation(c->models.session, &c->speculation);
    drey_session_exits(c->models.session, &c->exits);
    check_disk(c);
    return status;
}

/* What stands under an answer. */
static void say_how(const chat *c, bool stopped)
{
    const drey_statistics *s = &c->statistics;
    const char *end = stopped                           ? "; stopped, and what was written stays"
                      : s->finish == DREY_FINISH_LENGTH ? "; cut by its length (-n)"
                                                        : "";
    say(c, "[reused %lld of %zu tokens; %lld written, %.2f/s%s]", (long long)s->cached_tokens,
        c->talk.n_ids, (long long)s->generated_tokens, s->tokens_per_s, end);
}

/* The answer to the messages as they are, which joins them unless nothing was written; `otherwise`
 * says what the caller does then. */
static drey_status answer(chat *c, const char *otherwise, drey_error *err)
{
    c->out.n_kept = 0;
    drey_status status = talk_encode(&c->talk, c->models.target, err);
    int32_t n_predict = status == DREY_OK ? room_left(c) : 0;
    if (n_predict > 0)
        status = write_answer(c, n_predict, err);
    bool stopped = signals_take_interrupt();
    if (status == DREY_ERR_CANCELLED)
        status = DREY_OK;
    if (c->out.n_kept > 0) {
        if (c->out.error == 0 && text_writer_write("\n", 1) != 0)
            c->out.error = EPIPE;
        say_how(c, stopped);
        drey_status added = talk_add(&c->talk, "assistant", c->out.kept, c->out.n_kept,
                                     status == DREY_OK ? err : NULL);
        status = status == DREY_OK ? added : status;
    } else if (n_predict > 0) {
        say(c, "[nothing was written, and %s]", otherwise);
    }
    if (n_predict == 0)
        c->failed = true;
    if (status == DREY_OK && c->out.error && c->out.error != EINTR)
        status = error_set(err, DREY_ERR_IO, "cannot write to standard output: %s",
                           strerror(c->out.error));
    return status;
}

/* A message, and its answer. A message without an answer would come directly before the next one,
 * so it does not stay. */
static drey_status ask(chat *c, const char *text, size_t n, drey_error *err)
{
    TRY(talk_add(&c->talk, "user", text, n, err));
    drey_status status = answer(c, "the message is taken back", err);
    if (!talk_ends_with(&c->talk, "assistant"))
        talk_drop(&c->talk);
    return status;
}

/* ---- Commands ---- */

static drey_status do_reset(chat *c, const char *rest, drey_error *err)
{
    (void)rest;
    (void)err;
    talk_reset(&c->talk);
    say(c, "[a new conversation]");
    return DREY_OK;
}

static drey_status do_retry(chat *c, const char *rest, drey_error *err)
{
    (void)rest;
    if (!talk_ends_with(&c->talk, "assistant"))
        FAIL(err, DREY_ERR_USAGE, "there is no answer to write again");
    drey_chat_message before = talk_take(&c->talk);
    c->tries++;
    drey_status status = answer(c, "the answer before stays", err);
    if (talk_ends_with(&c->talk, "assistant"))
        talk_message_free(&before);
    else
        talk_put_back(&c->talk, &before);
    return status;
}

static drey_status do_save(chat *c, const char *rest, drey_error *err)
{
    if (!*rest)
        FAIL(err, DREY_ERR_USAGE, "/save wants a file: /save talk.drey-session");
    TRY(json_check_path(rest, err)); /* a model would be a dear file to lose */
    char *note = talk_note(&c->talk);
    if (!note)
        FAIL(err, DREY_ERR_MEMORY, "out of memory for the conversation");
    drey_status status = drey_session_save(c->models.session, rest, note, strlen(note), err);
    free(note);
    if (status == DREY_OK)
        say(c, "[saved %zu messages in %s]", c->talk.n, rest);
    return status;
}

static drey_status do_load(chat *c, const char *rest, drey_error *err)
{
    drey_saved_session saved = {0};
    if (!*rest)
        FAIL(err, DREY_ERR_USAGE, "/load wants a file that /save wrote");
    uint64_t most = c->models.held_bytes / HELD_BYTES_A_NOTE_BYTE;
    char size[16];
    talk loaded = {0};
    drey_status status = drey_saved_session_read(rest, (size_t)most, &saved, err);
    if (status == DREY_OK && saved.n_note_bytes > most)
        status = error_set(
            err, DREY_ERR_CONTEXT,
            "the conversation in %s takes %s: a context of %d tokens has no memory for it; "
            "raise -c",
            rest, format_bytes(size, (double)saved.n_note_bytes), c->n_context);
    if (status == DREY_OK)
        status = talk_read_note(&loaded, saved.note, saved.n_note_bytes, err);
    drey_free(saved.note);
    if (status == DREY_OK)
        status = drey_session_load(c->models.session, rest, NULL, err);
    talk_free(status == DREY_OK ? &c->talk : &loaded);
    TRY(status);
    c->talk = loaded;
    say(c, "[loaded %zu messages from %s]", c->talk.n, rest);
    return DREY_OK;
}

static drey_status do_system(chat *c, const char *rest, drey_error *err)
{
    drey_status status = talk_set_system(&c->talk, rest, err);
    if (status == DREY_OK)
        say(c, *rest ? "[the system message is set]" : "[no system message]");
    return status;
}

/* Writes what was computed of the conversation to a file for its owner's eyes. False: there is
 * nothing, or it cannot be written, which is said. */
static bool put_aside(const chat *c, char *path, size_t capacity)
{
    char name[64];
    const int32_t *ids;
    size_t n;
    drey_error err = {0};
    drey_session_timeline(c->models.session, &ids, &n);
    if (n == 0)
        return false;
    snprintf(name, sizeof name, "chat-%ld.drey-session", (long)getpid());
    drey_status status = cache_place(path, capacity, name, &err);
    mode_t usual = umask(077);
    if (status == DREY_OK)
        status = drey_session_save(c->models.session, path, NULL, 0, &err);
    umask(usual);
    if (status != DREY_OK)
        say(c, "[the conversation will be computed again: %s]", err.message);
    return status == DREY_OK;
}

/* Reopens the engine within another budget; the old one comes back where that fails. What was
 * computed of the conversation is used again. */
static drey_status change_budget(chat *c, uint64_t wanted, drey_error *err)
{
    uint64_t before = c->settings.common.memory_bytes;
    char kept[PATH_MAX];
    bool aside = put_aside(c, kept, sizeof kept);
    models_stop(&c->models);
    c->settings.common.memory_bytes = wanted;
    drey_status status = open_session(c, err);
    if (status != DREY_OK) {
        c->settings.common.memory_bytes = before;
        c->ended = open_session(c, NULL) != DREY_OK;
    }
    if (aside && !c->ended)
        drey_session_load(c->models.session, kept, NULL, NULL); /* or it is computed again */
    if (aside)
        unlink(kept);
    return status;
}

static drey_status do_budget(chat *c, const char *rest, drey_error *err)
{
    drey_plan plan;
    uint64_t wanted = DREY_MEMORY_AUTO;
    if (strcmp(rest, "unlimited") == 0)
        wanted = DREY_MEMORY_UNLIMITED;
    else if (*rest && strcmp(rest, "auto") != 0 && !size_parse(rest, &wanted))
        FAIL(err, DREY_ERR_USAGE, "/budget takes a size (2.5G), auto or unlimited");
    drey_status status = *rest ? change_budget(c, wanted, err) : DREY_OK;
    if (c->ended)
        return status;
    drey_engine_plan(c->models.engine, &plan);
    report_plan(stderr, &plan);
    report_draft(stderr, c->models.why);
    return status;
}

static drey_status do_stats(chat *c, const char *rest, drey_error *err)
{
    (void)rest;
    if (c->statistics.generated_tokens == 0)
        FAIL(err, DREY_ERR_USAGE, "there is no answer yet");
    report_statistics(stderr, &c->statistics);
    report_speculation(stderr, &c->speculation);
    report_exits(stderr, &c->exits);
    report_units(stderr, c->models.engine);
    return DREY_OK;
}

static drey_status do_quit(chat *c, const char *rest, drey_error *err)
{
    (void)rest;
    (void)err;
    c->ended = true;
    return DREY_OK;
}

static drey_status do_help(chat *c, const char *rest, drey_error *err)
{
    (void)c;
    (void)rest;
    (void)err;
    fputs("/reset          a new conversation; the system message stays\n"
          "/retry          the last answer once more (with --temp: another one)\n"
          "/save FILE      keeps the conversation, and what was computed for it\n"
          "/load FILE      continues one that was saved\n"
          "/system TEXT    the system message; without a text: none\n"
          "/budget [SIZE]  shows the memory plan; with a size, auto or unlimited: another one\n"
          "/stats          of the last answer\n"
          "/help           this list\n"
          "/quit           ends, as Ctrl-D does\n"
          "Ctrl-C stops an answer; what was written stays. A line that ends in \\ continues in\n"
          "the next one. A message that begins with / is written with a blank in front.\n",
          stderr);
    return DREY_OK;
}

static drey_status do_command(chat *c, char *entry, drey_error *err)
{
    static const struct {
        const char *name;
        drey_status (*run)(chat *c, const char *rest, drey_error *err);
    } commands[] = {{"reset", do_reset}, {"retry", do_retry},   {"save", do_save},
                    {"load", do_load},   {"system", do_system}, {"budget", do_budget},
                    {"stats", do_stats}, {"quit", do_quit},     {"help", do_help}};
    char *rest = entry + strcspn(entry, " \t\n");
    size_t n = (size_t)(rest - entry);
    rest += strspn(rest, " \t\n");
    for (size_t end = strlen(rest); end > 0 && strchr(" \t\n", rest[end - 1]); end--)
        rest[end - 1] = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strlen(commands[i].name) == n - 1 && strncmp(entry + 1, commands[i].name, n - 1) == 0)
            return commands[i].run(c, rest, err);
    FAIL(err, DREY_ERR_USAGE, "there is no command %.*s; /help lists them", (int)n, entry);
}

/* ---- The conversation ---- */

static drey_status take_entry(chat *c, drey_error *err)
{
    asker *a = &c->asker;
    if (strspn(a->entry, " \t\n") == a->n)
        return DREY_OK;
    if (memchr(a->entry, 0, a->n))
        FAIL(err, DREY_ERR_USAGE, "a message cannot hold a NUL byte");
    if (a->entry[0] == '/')
        return do_command(c, a->entry, err);
    c->tries = 0;
    return ask(c, a->entry, a->n, err);
}

/* Ends the process' work where it cannot continue: nobody reads it, or the disk has failed. */
static bool is_fatal(const chat *c)
{
    return c->ended || (c->out.error && c->out.error != EINTR);
}

static void converse(chat *c)
{
    while (!is_fatal(c) && !signals_exit_code()) {
        drey_error err = {0};
        asked got = asker_ask(&c->asker);
        if (got == ASKED_INTERRUPTED && signals_take_interrupt()) {
            fputs("\n(/quit or Ctrl-D ends)\n", stderr);
            continue;
        }
        if (got == ASKED_TOO_LONG) {
            c->failed = true;
            continue;
        }
        if (got != ASKED_ENTRY)
            break;
        if (take_entry(c, &err) == DREY_OK)
            continue;
        complain("%s", err.message); /* no option is given from here on: the hint is not for it */
        /* Who typed a wrong command has seen it; a script has not. */
        c->failed = c->failed || !c->asker.terminal || err.code != DREY_ERR_USAGE;
    }
    if (c->asker.terminal && !signals_exit_code() && !c->ended)
        fputc('\n', stderr);
}

int chat_main(const cli_settings *settings)
{
    chat c = {.settings = *settings, .progress.quiet = settings->quiet, .out.keeps = true};
    drey_error err = {0};
    drey_status status = begin(&c, &err);
    if (status == DREY_OK) {
        models_show_plan(&c.models, c.settings.quiet);
        signals_note();
        asker_init(&c.asker, c.most_bytes, c.too_long.message);
        if (c.asker.terminal)
            say(&c, "Write, and press Enter; /help shows what else there is.");
        converse(&c);
        asker_free(&c.asker);
    }
    models_close(&c.models);
    text_writer_free(&c.out);
    talk_free(&c.talk);
    int failed = exit_with(status, &err), interrupted = signals_exit_code();
    return interrupted ? interrupted : failed ? failed : c.failed;
}
