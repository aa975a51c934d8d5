/* drey chat: several turns with a person, or with a pipe.
 *
 * Answers alone go to standard output; prompts, progress and what commands say go to standard
 * error. All messages are put into the model's chat format each time; what that has in common with
 * the session's timeline is not computed again. Nothing is ever cut: what does not fit is said
 * before an answer begins. */
#include "cli/args/other_names.h"
#include "cli/typing/ask_line.h"
#include "cli/chat/chat_set.h"
#include "cli/files/cache_folder.h"
#include "cli/commands/commands.h"
#include "cli/files/input.h"
#include "cli/files/json_file.h"
#include "cli/commands/models.h"
#include "cli/models/model_facts.h"
#include "cli/terminal/terminal_page.h"
#include "cli/terminal/report.h"
#include "cli/terminal/signals.h"
#include "cli/chat/talk.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text_writer.h"
#include "cli/chat/warm_up.h"
#include "common/size_text.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    USUAL_CONTEXT = 4096, /* positions, where the model was made for as many */
    USUAL_ANSWER = 512,   /* tokens: with room for fewer a context is nearly full */
    HELD_BYTES = 1 << 20,
    HELD_BYTES_PER_TOKEN = 128, /* some four bytes of text; rendering touches 25 times as many */
    /* bytes for each byte of one long message: its copies and its ids, measured 7 */
    HELD_BYTES_PER_BYTE = 8,
    HELD_BYTES_PER_TYPED_BYTE = 32, /* the line editor's 27 as well */
    HELD_BYTES_PER_NOTE_BYTE =
        28 /* for each byte of a saved conversation that is parsed: measured 9 of messages and 26
              of a list of numbers, which a damaged one may be */
};

typedef struct chat {
    cli_settings settings; /* a copy: /budget changes the budget */
    models models;
    int32_t n_context;
    uint64_t draft_bytes; /* bytes of the draft that are loaded besides the target */
    size_t most_bytes;    /* the most bytes of a message, */
    drey_error too_long;  /* and what is said of a longer one */
    progress progress;
    text_writer out;
    asker asker;
    talk talk;
    warm_up warm;
    char *file; /* [n_file]: of /read, for the next message; NULL: none */
    size_t n_file;
    uint64_t tries;        /* attempts at this answer, by /retry: each has its own seed */
    bool cut;              /* the last answer ended before its end: talk.ids are all up to there */
    char recommended[160]; /* sampling, by the model's file; "": it says nothing */
    bool plain;            /* answers have no colours */
    drey_statistics statistics;
    /* speculation of the last answer, should its engine be closed since */
    drey_speculation speculation;
    drey_exits exits;
    bool disk_failed;  /* the disk of the kept beginnings failed, and that was reported */
    int64_t n_damaged; /* files of them that were damaged: the same */
    bool ended;        /* /quit */
    bool failed;       /* an answer could not be given, or written */
} chat;

/* Something for the person, unless -q. */
static void say(const chat *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const chat *c, const char *format, ...)
{
    char line[800];
    va_list arguments;
    if (c->settings.quiet)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    print_clean(page_of(stderr), line);
    fputc('\n', page_of(stderr));
}

/* A line that moves, unless -q, until progress_clear. */
static void wait_for(chat *c, const char *word)
{
    progress_silence(&c->progress, c->settings.quiet);
    progress_wait(&c->progress, word);
}

/* ---- Engine and session ---- */

/* Another budget may have room for another draft. */
static drey_status open_session(chat *c, drey_error *err)
{
    drey_plan plan;
    wait_for(c, "planning");
    drey_status status =
        models_start(&c->models, &c->settings, c->n_context, MODELS_SESSION, &c->progress, err);
    progress_clear(&c->progress);
    if (status == DREY_OK) {
        drey_engine_plan(c->models.engine, &plan);
        c->draft_bytes = plan.draft_bytes;
    }
    return status;
}

/* Chooses the context, and the length of answers: without -n all that the context has room for. */
static void choose_lengths(chat *c)
{
    c->n_context = models_context(&c->models, &c->settings, USUAL_CONTEXT);
    models_warn_of_context(&c->models, c->n_context);
    if (!option_given(&c->settings, "predict"))
        c->settings.text.n_predict = c->n_context;
}

/* A message that no context holds, or that takes more memory than the plan has for all of them, is
 * refused while it is read. */
static void choose_limit(chat *c)
{
    input_limit limit;
    limit.n_bytes = c->models.held_bytes /
                    (asker_at_terminal() ? HELD_BYTES_PER_TYPED_BYTE : HELD_BYTES_PER_BYTE);
    snprintf(limit.reason, sizeof limit.reason,
             "a context of %d tokens has no memory for it; give a shorter one or raise -c",
             c->n_context);
    input_limit_context(&limit, c->models.target, c->n_context);
    input_too_long("the message", &limit, &c->too_long);
    c->most_bytes = (size_t)limit.n_bytes;
}

/* Checks that there is a chat format before anybody types. */
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
    progress_wait(&c->progress, "opening the model");
    TRY(models_open(&c->models, s, err));
    progress_clear(&c->progress);
    if (models_serve_rank(&c->models)) {
        c->ended = true;
        return models_serve(&c->models, s, err);
    }
    drey_model_info info;
    drey_model_describe(c->models.target, &info);
    chat_read_recommended(info.path, c->recommended, sizeof c->recommended);
    if (s->text.system)
        TRY(talk_set_system(&c->talk, s->text.system, err));
    TRY(check_template(c, err));
    choose_lengths(c);
    /* The conversation's text and ids, and what rendering takes of it: measured, with some room. */
    c->models.held_bytes = HELD_BYTES + (uint64_t)c->n_context * HELD_BYTES_PER_TOKEN;
    choose_limit(c);
    return open_session(c, err);
}

/* ---- Answers ---- */

/* Returns how many tokens an answer may have; 0: the conversation does not fit, which has been
 * said. */
static int32_t room_left(const chat *c)
{
    size_t n = c->talk.n_ids;
    const int32_t most = c->settings.text.n_predict;
    const int32_t wanted = most < USUAL_ANSWER ? most : USUAL_ANSWER;
    if (n >= (size_t)c->n_context) {
        complain_wrong(
            "the conversation has %zu tokens, and the context of %d has no room for an answer; "
            "nothing was cut. /reset starts again; -c %zu would hold it",
            n, c->n_context, n + (size_t)wanted);
        return 0;
    }
    int32_t left = c->n_context - (int32_t)n;
    if (left < wanted)
        complain("the context of %d tokens is nearly full: the answer can have %d; /reset "
                 "starts again, a larger -c holds more",
                 c->n_context, left);
    return left < most ? left : most;
}

/* Says once what has happened to what is kept on the disk. */
static void check_disk(chat *c)
{
    drey_prefixes prefixes;
    drey_engine_prefixes(c->models.engine, &prefixes);
    if (prefixes.disk_failed && !c->disk_failed)
        complain("beginnings of texts cannot be written to their folder any more: the disk "
                 "is full, or fails. They are kept in memory alone; make room, and start the chat "
                 "again");
    if (prefixes.damaged_files > c->n_damaged)
        complain("files in the folder of kept beginnings were damaged; they are deleted "
                 "and computed again");
    c->disk_failed = prefixes.disk_failed;
    c->n_damaged = prefixes.damaged_files;
}

/* more: the text before continues. */
static drey_status write_answer(chat *c, int32_t n_predict, bool more, drey_error *err)
{
    const cli_settings *s = &c->settings;
    drey_generate_options options;
    drey_generate_options_init(&options);
    options.n_predict = n_predict;
    options.sampling = s->sampling;
    options.sampling.penalties = &s->penalties;
    options.sampling.seed += c->tries;
    options.stops = s->text.stops;
    options.n_stops = s->text.n_stops;
    options.grammar = c->models.grammar;
    c->progress = (progress){.quiet = s->quiet, .draft_bytes = c->draft_bytes};
    text_writer_begin(&c->out, &c->progress, &options,
                      (text_look){.drafts = !s->text.no_provisional_text,
                                  .wraps = true,
                                  .styled = !c->plain,
                                  .resumes = more});
    progress_wait(&c->progress, "reading the prompt");
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

static void show_statistics(const chat *c)
{
    report_statistics(page_of(stderr), &c->statistics);
    report_speculation(page_of(stderr), &c->speculation);
    report_exits(page_of(stderr), &c->exits);
    report_units(page_of(stderr), c->models.engine);
}

/* Prints the line under an answer, and how to have more of one that did not come to its end. */
static void say_how(const chat *c, bool stopped)
{
    const drey_statistics *s = &c->statistics;
    bool full = c->talk.n_ids + (size_t)s->generated_tokens >= (size_t)c->n_context;
    char end[120] = "", rate[20] = "";
    if (stopped)
        snprintf(end, sizeof end, "; stopped, and what was written stays: /more continues it");
    else if (s->finish == DREY_FINISH_LENGTH && full)
        snprintf(end, sizeof end, "; cut, as the context is full: -c %lld has room for more",
                 2 * (long long)c->n_context);
    else if (s->finish == DREY_FINISH_LENGTH)
        snprintf(end, sizeof end, "; cut by n-predict: /more continues it");
    report_failed_units(c->models.engine);
    if (s->tokens_per_s > 0)
        snprintf(rate, sizeof rate, ", %s/s", format_rate((char[16]){0}, s->tokens_per_s));
    say(c, "[%lld token%s%s; context %zu of %d%s]", (long long)s->generated_tokens,
        s->generated_tokens == 1 ? "" : "s", rate, c->talk.n_ids + (size_t)s->generated_tokens,
        c->n_context, end);
    if (c->settings.common.verbose && !c->settings.quiet)
        show_statistics(c);
}

/* Keeps what was written, and of an answer that has more to say all its ids. */
static drey_status keep_answer(chat *c, bool more, drey_error *err)
{
    const int32_t *ids;
    size_t n;
    drey_status status = more ? talk_extend(&c->talk, c->out.kept, c->out.n_kept, err)
                              : talk_add(&c->talk, "assistant", c->out.kept, c->out.n_kept, err);
    drey_session_timeline(c->models.session, &ids, &n);
    c->cut = status == DREY_OK && c->statistics.finish != DREY_FINISH_STOP &&
             talk_take_ids(&c->talk, ids, n, NULL) == DREY_OK;
    return status;
}

/* Writes after talk.ids: an answer, or more of the last one. It joins the messages unless nothing
 * was written; `otherwise` says what happens then. */
static drey_status write_on(chat *c, bool more, const char *otherwise, drey_error *err)
{
    c->out.n_kept = 0;
    c->cut = false;
    int32_t n_predict = room_left(c);
    drey_status status = n_predict > 0 ? write_answer(c, n_predict, more, err) : DREY_OK;
    bool stopped = signals_take_interrupt();
    if (status == DREY_ERR_CANCELLED)
        status = DREY_OK;
    if (c->out.n_kept > 0) {
        if (c->out.error == 0 && text_writer_write("\n", 1) != 0)
            c->out.error = EPIPE;
        say_how(c, stopped);
        drey_status kept = keep_answer(c, more, status == DREY_OK ? err : NULL);
        status = status == DREY_OK ? kept : status;
    } else if (n_predict > 0) {
        say(c, "[nothing was written, and %s]", otherwise);
    }
    if (n_predict == 0)
        c->failed = true;
    if (status == DREY_OK && c->out.error && c->out.error != EINTR)
        status = text_writer_refuse(c->out.error, err);
    return status;
}

/* The answer to the messages as they are. */
static drey_status answer(chat *c, const char *otherwise, drey_error *err)
{
    drey_status status = talk_encode(&c->talk, c->models.target, err);
    c->failed = c->failed || status != DREY_OK;
    return status == DREY_OK ? write_on(c, false, otherwise, err) : status;
}

static void forget_file(chat *c)
{
    free(c->file);
    c->file = NULL;
    c->n_file = 0;
}

/* A message after the file that goes with it; the caller frees. NULL: no memory. */
static char *with_file(const chat *c, const char *text, size_t n)
{
    char *whole = malloc(c->n_file + n + 1);
    if (!whole)
        return NULL;
    memcpy(whole, c->file, c->n_file);
    memcpy(whole + c->n_file, text, n);
    whole[c->n_file + n] = 0;
    return whole;
}

/* A message, and its answer. A message without an answer would come directly before the next one,
 * so it does not stay. */
static drey_status ask(chat *c, const char *text, size_t n, drey_error *err)
{
    char *whole = NULL;
    const bool has_file = c->file;
    if (c->file && c->n_file + n > c->most_bytes)
        FAIL(err, DREY_ERR_USAGE, "with its file, %s; /read without a name forgets the file",
             c->too_long.message);
    if (c->file && !(whole = with_file(c, text, n)))
        FAIL(err, DREY_ERR_MEMORY, "out of memory for the message");
    drey_status status =
        talk_add(&c->talk, "user", whole ? whole : text, whole ? c->n_file + n : n, err);
    free(whole);
    TRY(status);
    forget_file(c);
    status = answer(c,
                    has_file ? "the message is taken back, and its file: /read it again"
                             : "the message is taken back",
                    err);
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
    c->cut = false;
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
    if (status == DREY_OK && c->asker.terminal && c->settings.sampling.temperature <= 0)
        say(c,
            "[at temperature 0 an answer is always the same: /set temperature 0.8, then /retry]");
    return status;
}

static drey_status do_more(chat *c, const char *rest, drey_error *err)
{
    (void)rest;
    if (!c->cut)
        FAIL(err, DREY_ERR_USAGE, "there is no answer that was cut or stopped");
    if (c->models.grammar)
        FAIL(err, DREY_ERR_USAGE, "a text of a grammar or a schema cannot be continued");
    return write_on(c, true, "the answer stays as it is", err);
}

static drey_status do_save(chat *c, const char *rest, drey_error *err)
{
    if (!*rest)
        FAIL(err, DREY_ERR_USAGE, "/save wants a file: /save talk.drey-session");
    TRY(json_check_path(rest, err)); /* a model would be a dear file to lose */
    char *note = talk_note(&c->talk);
    if (!note)
        FAIL(err, DREY_ERR_MEMORY, "out of memory for the conversation");
    wait_for(c, "saving");
    drey_status status = drey_session_save(c->models.session, rest, note, strlen(note), err);
    progress_clear(&c->progress);
    free(note);
    if (status == DREY_OK)
        say(c, "[saved %zu message%s in %s]", c->talk.n, c->talk.n == 1 ? "" : "s", rest);
    return status;
}

static drey_status do_load(chat *c, const char *rest, drey_error *err)
{
    drey_saved_session saved = {0};
    if (!*rest)
        FAIL(err, DREY_ERR_USAGE, "/load wants a file that /save wrote");
    uint64_t most = c->models.held_bytes / HELD_BYTES_PER_NOTE_BYTE;
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
    wait_for(c, "loading");
    if (status == DREY_OK)
        status = drey_session_load(c->models.session, rest, NULL, err);
    progress_clear(&c->progress);
    talk_free(status == DREY_OK ? &c->talk : &loaded);
    TRY(status);
    c->talk = loaded;
    c->cut = false;
    say(c, "[loaded %zu message%s from %s]", c->talk.n, c->talk.n == 1 ? "" : "s", rest);
    return DREY_OK;
}

static drey_status do_system(chat *c, const char *rest, drey_error *err)
{
    drey_status status = talk_set_system(&c->talk, rest, err);
    c->cut = false;
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
        const bool quiet = c->settings.quiet;
        c->settings.common.memory_bytes = before;
        c->settings.quiet = true; /* it is as it was */
        c->ended = open_session(c, NULL) != DREY_OK;
        c->settings.quiet = quiet;
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
    if (*rest && c->models.ranks)
        FAIL(err, DREY_ERR_USAGE,
             "several ranks keep the budgets that they began with: start the chat again with "
             "another --memory");
    if (*rest)
        TRY(change_budget(c, wanted, err));
    drey_engine_plan(c->models.engine, &plan);
    report_plan(page_of(stderr), &plan, c->models.drafter,
                c->models.ahead.outlook.alone_smallest_bytes);
    report_draft(page_of(stderr), c->models.why);
    return DREY_OK;
}

static drey_status do_stats(chat *c, const char *rest, drey_error *err)
{
    (void)rest;
    if (c->statistics.generated_tokens == 0)
        FAIL(err, DREY_ERR_USAGE, "there is no answer yet");
    show_statistics(c);
    return DREY_OK;
}

static drey_status do_undo(chat *c, const char *rest, drey_error *err)
{
    (void)rest;
    if (!talk_ends_with(&c->talk, "assistant"))
        FAIL(err, DREY_ERR_USAGE, "there is no message to take back");
    talk_drop(&c->talk);
    c->cut = false;
    if (talk_ends_with(&c->talk, "user"))
        talk_drop(&c->talk);
    say(c, "[the last message and its answer are taken back]");
    return DREY_OK;
}

static void show_system(const chat *c)
{
    FILE *out = page_of(stderr);
    fprintf(out, "%-18s ", "system");
    print_clean(out, talk_system(&c->talk));
    fputc('\n', out);
}

static void show_settings(const chat *c)
{
    FILE *out = page_of(stderr);
    if (talk_system(&c->talk))
        show_system(c);
    chat_show_settings(out, &c->settings);
    fprintf(out, "%-18s %s\n", "markdown", c->plain ? "off" : "on");
    fprintf(out, "%-18s %s\n", "verbose", c->settings.common.verbose ? "on" : "off");
    if (c->recommended[0])
        fprintf(out, "%-18s %s (says the model's file; /set changes each)\n", "recommended",
                c->recommended);
}

/* A setting that is on or off; without a value it stays. */
static drey_status set_switch(const chat *c, const char *name, const char *value, bool *is_on,
                              drey_error *err)
{
    if (*value && strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
        FAIL(err, DREY_ERR_USAGE, "/set %s takes on or off", name);
    if (*value)
        *is_on = strcmp(value, "on") == 0;
    say(c, "[%s is %s]", name, *is_on ? "on" : "off");
    return DREY_OK;
}

static drey_status do_set(chat *c, const char *rest, drey_error *err)
{
    char name[CHAT_NAME_BYTES], now[CHAT_VALUE_BYTES];
    const char *value = chat_setting_name(rest, name);
    bool styled = !c->plain;
    if (!*name) {
        show_settings(c);
        return DREY_OK;
    }
    if (strcmp(name, "system") == 0 && *value)
        return do_system(c, value, err);
    if (strcmp(name, "system") == 0) {
        if (talk_system(&c->talk))
            show_system(c);
        else
            say(c, "[no system message]");
        return DREY_OK;
    }
    if (strcmp(name, "verbose") == 0)
        return set_switch(c, name, value, &c->settings.common.verbose, err);
    if (strcmp(name, "markdown") == 0) {
        drey_status status = set_switch(c, name, value, &styled, err);
        c->plain = !styled;
        return status;
    }
    TRY(chat_set(&c->settings, name, value, err));
    const char *full = chat_setting(&c->settings, name, now);
    say(c, "[%s is %s]", full, now);
    return DREY_OK;
}

static drey_status do_show(chat *c, const char *rest, drey_error *err)
{
    (void)rest;
    (void)err;
    char size[16];
    drey_plan plan;
    drey_model_info info;
    FILE *out = page_of(stderr);
    drey_model_describe(c->models.target, &info);
    fprintf(out, "%-18s ", "model");
    print_clean(out, *info.name ? info.name : info.path);
    fprintf(out, ", %s, %s parameters, %s\n", info.architecture,
            model_parameters((char[16]){0}, info.n_parameters),
            format_bytes(size, (double)info.weight_bytes));
    if (c->talk.n > 0 && !c->cut) /* else the ids are those that /more continues */
        talk_encode(&c->talk, c->models.target, NULL);
    fprintf(out, "%-18s %zu of %d tokens\n", "context", c->talk.n > 0 ? c->talk.n_ids : 0,
            c->n_context);
    show_settings(c);
    drey_engine_plan(c->models.engine, &plan);
    report_plan(page_of(stderr), &plan, c->models.drafter,
                c->models.ahead.outlook.alone_smallest_bytes);
    report_draft(page_of(stderr), c->models.why);
    return DREY_OK;
}

/* The longest run of backquotes in a text, so that a fence around it can be longer. */
static int longest_run(const char *text)
{
    int longest = 0;
    for (const char *p = text; *p; p++) {
        int n = (int)strspn(p, "`");
        longest = n > longest ? n : longest;
        p += n ? n - 1 : 0;
    }
    return longest;
}

/* A file as part of the next message: a block of code with its name. */
static drey_status do_read(chat *c, const char *rest, drey_error *err)
{
    enum { MOST_FENCE = 64 };
    char *text = NULL, fence[MOST_FENCE + 1] = "";
    size_t n = 0;
    input_limit limit = {.n_bytes = c->most_bytes};
    forget_file(c);
    if (!*rest) {
        say(c, "[no file goes with the next message]");
        return DREY_OK;
    }
    snprintf(limit.reason, sizeof limit.reason, "no message of this context can hold; raise -c");
    TRY(input_read(rest, "the file", &limit, &text, &n, err));
    int run = memchr(text, 0, n) ? -1 : longest_run(text);
    if (run < 0 || run >= MOST_FENCE) {
        free(text);
        FAIL(err, DREY_ERR_USAGE, "%s is no text file", rest);
    }
    memset(fence, '`', (size_t)(run < 3 ? 3 : run + 1));
    const char *slash = strrchr(rest, '/'), *name = slash ? slash + 1 : rest;
    size_t capacity = n + strlen(name) + 2 * MOST_FENCE + 32;
    c->file = malloc(capacity);
    if (c->file)
        c->n_file = (size_t)snprintf(c->file, capacity, "File %s:\n%s\n%s%s%s\n\n", name, fence,
                                     text, n > 0 && text[n - 1] == '\n' ? "" : "\n", fence);
    free(text);
    if (!c->file)
        FAIL(err, DREY_ERR_MEMORY, "out of memory for the file");
    say(c, "[%s goes with the next message]", name);
    return DREY_OK;
}

static drey_status do_quit(chat *c, const char *rest, drey_error *err)
{
    (void)rest;
    (void)err;
    c->ended = true;
    return DREY_OK;
}

static drey_status do_help(chat *c, const char *rest, drey_error *err);

static const struct {
    const char *usage, *does; /* as /help and Tab have it */
    drey_status (*run)(chat *c, const char *rest, drey_error *err);
    bool waits; /* it needs the engine, which may be loading */
} commands[] = {
    {"/reset", "a new conversation; the system message stays", do_reset, false},
    {"/retry", "the last answer once more; another one at a temperature above 0", do_retry, true},
    {"/more", "continues an answer that was cut or stopped", do_more, true},
    {"/undo", "takes the last message and its answer back", do_undo, false},
    {"/save FILE", "keeps the conversation, and what was computed for it", do_save, true},
    {"/load FILE", "continues one that was saved", do_load, true},
    {"/read FILE", "a text file as part of the next message", do_read, false},
    {"/system TEXT", "the system message; without a text: none", do_system, false},
    {"/set [NAME [VALUE]]", "temperature, top-k, top-p, seed, n-predict, ...; alone: all values",
     do_set, false},
    {"/show", "model, settings and memory plan", do_show, true},
    {"/budget [SIZE]", "how memory is used; /budget 4G sets another limit, as do auto, unlimited",
     do_budget, true},
    {"/stats", "speed, drafting and reads of the last answer", do_stats, true},
    {"/help", "this list", do_help, false},
    {"/quit", "ends, as /bye, /exit and Ctrl-D do", do_quit, false},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

/* Names that other programs have for them. */
static const struct {
    const char *name, *usage;
} other_commands[] = {{"/bye", "/quit"},
                      {"/exit", "/quit"},
                      {"/clear", "/reset"},
                      {"/regen", "/retry"},
                      {"/?", "/help"}};
enum { N_OTHER_COMMANDS = sizeof other_commands / sizeof *other_commands };

static drey_status do_help(chat *c, const char *rest, drey_error *err)
{
    (void)c;
    (void)rest;
    (void)err;
    FILE *out = page_of(stderr);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "%-19s %s\n", commands[i].usage, commands[i].does);
    fputs("Ctrl-C stops an answer; what was written stays. A line that ends in \\ continues in "
          "the next one, and \"\"\" begins and ends a message of several lines. Tab completes "
          "commands and names of files. A message that begins with / is written with a blank in "
          "front.\n",
          out);
    return DREY_OK;
}

/* For Tab: all of them, NULL after them. */
static void list_commands(const char *usages[static N_COMMANDS + 1])
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        usages[i] = commands[i].usage;
    usages[N_COMMANDS] = NULL;
}

/* Loads weights while the person types. */
static void wait_for_weights(chat *c)
{
    if (warm_up_runs(&c->warm))
        wait_for(c, "loading the weights");
    warm_up_end(&c->warm);
    progress_clear(&c->progress);
}

/* A command by its first n characters; -1: there is none. */
static int find_command(const char *name, size_t n)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcspn(commands[i].usage, " ") == n && strncmp(name, commands[i].usage, n) == 0)
            return i;
    for (int i = 0; i < N_OTHER_COMMANDS; i++)
        if (strlen(other_commands[i].name) == n && strncmp(name, other_commands[i].name, n) == 0)
            return find_command(other_commands[i].usage, strlen(other_commands[i].usage));
    return -1;
}

static drey_status no_such_command(const char *entry, size_t n, const char *rest, drey_error *err)
{
    const char *all[N_COMMANDS + N_OTHER_COMMANDS + 1];
    char name[64];
    other_word near;
    list_commands(all);
    for (int i = 0; i <= N_OTHER_COMMANDS; i++)
        all[N_COMMANDS + i] = i < N_OTHER_COMMANDS ? other_commands[i].name : NULL;
    snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), entry);
    if (strcmp(name, "/model") == 0 || strcmp(name, "/models") == 0)
        FAIL(err, DREY_ERR_USAGE,
             "the model is chosen when the chat starts: drey chat -m %.80s; drey list shows those "
             "that are here",
             *rest ? rest : "NAME");
    if (nearest_word(name, all, &near))
        FAIL(err, DREY_ERR_USAGE, "there is no command %s; did you mean %s%s%.80s?", name,
             near.text, *rest ? " " : "", rest);
    FAIL(err, DREY_ERR_USAGE,
         "there is no command %s; /help lists them, and a message that begins with / is written "
         "with a blank in front",
         name);
}

static drey_status do_command(chat *c, char *entry, drey_error *err)
{
    char *rest = entry + strcspn(entry, " \t\n");
    size_t n = (size_t)(rest - entry);
    rest += strspn(rest, " \t\n");
    for (size_t end = strlen(rest); end > 0 && strchr(" \t\n", rest[end - 1]); end--)
        rest[end - 1] = 0;
    const int i = find_command(entry, n);
    if (i < 0)
        return no_such_command(entry, n, rest, err);
    if (commands[i].waits)
        wait_for_weights(c);
    return commands[i].run(c, rest, err);
}

/* ---- The conversation ---- */

/* A person who types these alone wants to leave: shells and other programs end by them. */
static bool is_farewell(const char *entry)
{
    return strcmp(entry, "exit") == 0 || strcmp(entry, "quit") == 0;
}

static drey_status take_entry(chat *c, drey_error *err)
{
    asker *a = &c->asker;
    if (strspn(a->entry, " \t\n") == a->n)
        return DREY_OK;
    if (memchr(a->entry, 0, a->n))
        FAIL(err, DREY_ERR_USAGE, "a message cannot hold a NUL byte");
    if (a->entry[0] == '/' && !a->block)
        return do_command(c, a->entry, err);
    if (a->terminal && !a->block && is_farewell(a->entry))
        return do_quit(c, "", err);
    c->tries = 0;
    wait_for_weights(c);
    return ask(c, a->entry, a->n, err);
}

/* Ends the process' work where it cannot continue: nobody reads it, the disk has failed, or another
 * rank. */
static bool is_fatal(const chat *c)
{
    return c->ended || (c->out.error && c->out.error != EINTR) ||
           drey_engine_check(c->models.engine, NULL) != DREY_OK;
}

static void converse(chat *c)
{
    while (!is_fatal(c) && !signals_exit_code()) {
        drey_error err = {0};
        asked got = asker_ask(&c->asker);
        if (got == ASKED_INTERRUPTED && signals_take_interrupt()) {
            fputs("\n[/bye or Ctrl-D ends]\n", stderr);
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
        complain_wrong("%s",
                       err.message); /* no option is given from here on: the hint is not for it */
        /* Who typed a wrong command has seen it; a script has not. */
        c->failed = c->failed || !c->asker.terminal || err.code != DREY_ERR_USAGE;
    }
    if (c->asker.piped.wrong) {
        complain_wrong("standard input %s", c->asker.piped.wrong);
        c->failed = true;
    }
    if (c->asker.terminal && !signals_exit_code() && !c->ended)
        fputc('\n', stderr);
}

/* Loads weights while somebody types. Beginnings that are kept for later are those of real messages
 * alone. */
static void load_early(chat *c)
{
    if (!c->asker.terminal || c->models.prefixes.memory_bytes > 0 ||
        talk_add(&c->talk, "user", "hello", 5, NULL) != DREY_OK)
        return;
    drey_status status = talk_encode(&c->talk, c->models.target, NULL);
    talk_drop(&c->talk);
    if (status == DREY_OK && c->talk.n_ids < (size_t)c->n_context) {
        c->progress.quiet = true; /* until somebody waits for it */
        c->progress.draft_bytes = c->draft_bytes;
        warm_up_begin(&c->warm, c->models.session, c->talk.ids, c->talk.n_ids);
    }
}

int chat_main(const cli_settings *settings)
{
    chat c = {.settings = *settings, .progress.quiet = settings->quiet, .out.keeps = true};
    const char *usages[N_COMMANDS + 1];
    drey_error err = {0};
    drey_status status = begin(&c, &err);
    if (status == DREY_OK && !c.ended) {
        models_show_plan(&c.models, &c.settings);
        signals_note();
        list_commands(usages);
        asker_init(&c.asker, c.most_bytes, c.too_long.message, usages);
        if (c.asker.terminal && !c.settings.quiet)
            suggest("type a message and press Enter; /help lists the commands");
        load_early(&c);
        converse(&c);
        warm_up_cancel(&c.warm);
        asker_free(&c.asker);
    }
    models_close(&c.models);
    text_writer_free(&c.out);
    talk_free(&c.talk);
    forget_file(&c);
    int failed = exit_with(status, &err), interrupted = signals_exit_code();
    models_leave_ranks(&c.models);
    return interrupted ? interrupted : failed ? failed : c.failed;
}
