/* Failing reads, changing files and cancellations: a clear sentence, no verified token is lost, and
 * the next text continues as if nothing had happened. */
#include <fcntl.h>
#include <sys/stat.h>

#include "session/session.h"
#include "support/faults/disk.h"
#include "support/writing.h"

enum {
    N_TEXT = 20,
    N_PROMPT = 5,
    N_TREE = 2,             /* nodes of a tree: */
    N_TURN_MAX = N_TREE + 1 /* tokens of a turn with a draft */
};
static const int32_t prompt[N_PROMPT] = {5, 77, 140, 9, 201};

/* An engine over a toy that is streamed, with or without a draft, and its session. */
typedef struct rig {
    drey_model *target, *draft;
    drey_engine_options options;
    engine_hooks hooks;
    engine_place at;
    drey_error err;
    writing text;
    disk disk;
    int32_t touch_at; /* written token at which the target's file is touched; 0: none */
    const char *touch;
    int32_t fail_at;   /* written token from which on reads fail; 0: none */
    int n_reports;     /* reports of the target's load, */
    int cancel_report; /* the one that cancels the session, */
    int fail_report;   /* and the one from which on reads fail; 0: none */
} rig;

static char target_path[2048], draft_path[2048];

static int make_models(void **state)
{
    temp_dir();
    toy_options toy = toy_asked();
    toy.n_embd = 256;
    toy.n_ff = 1024;
    snprintf(target_path, sizeof target_path, "%s", temp_path("target.gguf"));
    toy_write(target_path, &toy);
    toy.noise = 0.005f;
    toy.noise_seed = 3;
    snprintf(draft_path, sizeof draft_path, "%s", temp_path("draft.gguf"));
    toy_write(draft_path, &toy);
    return 0;
}

/* Reads fail from now on, or no more. */
static void break_disk(rig *r, bool breaks)
{
    atomic_store(&r->disk.n_broken, breaks ? INT32_MAX : 0);
}

static void count_report(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    rig *r = user;
    if (what != DREY_PROGRESS_LOAD_TARGET)
        return;
    r->n_reports++;
    if (r->n_reports == r->cancel_report)
        drey_session_cancel(r->at.session[0]);
    if (r->n_reports == r->fail_report)
        break_disk(r, true);
}

/* share: of each of the target's matrices that is pinned. */
static void rig_open(rig *r, drey_io io, bool with_draft, double share)
{
    *r = (rig){0};
    MUST(drey_model_open, &r->target, target_path);
    r->options = plain_options(r->target, 128, 2);
    r->options.prompt_chunk = 3;
    r->options.read_bytes = 64 << 10; /* more reads to go wrong */
    r->options.io = io;
    r->options.progress = count_report;
    r->options.progress_user = r;
    if (with_draft) {
        MUST(drey_model_open, &r->draft, draft_path);
        r->options.draft = r->draft;
        r->options.drafter = DREY_DRAFTER_MODEL;
        r->options.tree_nodes = N_TREE;
    }
    r->hooks = (engine_hooks){
        .set_share = true, .share = share, .fault = disk_read, .fault_user = &r->disk};
    r->at = place_open(&r->options, &r->hooks);
}

static void rig_close(rig *r)
{
    place_close(&r->at);
    drey_model_close(&r->target);
    drey_model_close(&r->draft);
}

static void touch(const char *path)
{
    const struct timespec past[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0);
}

static bool keep(void *user, int32_t id)
{
    rig *r = user;
    writing_keep_id(&r->text, id);
    if (r->text.n_ids == r->touch_at)
        touch(r->touch);
    if (r->text.n_ids == r->fail_at)
        break_disk(r, true);
    return true;
}

/* Writes on until the text has N_TEXT tokens; the first call takes the prompt. */
static drey_status write_on(rig *r, drey_statistics *stats)
{
    drey_generate_options g = greedy(N_TEXT - r->text.n_ids);
    g.on_token = keep;
    g.user = r;
    bool first = r->at.session[0]->n_timeline == 0;
    return drey_session_generate(r->at.session[0], first ? prompt : NULL, first ? N_PROMPT : 0, &g,
                                 stats, &r->err);
}

static writing expected;

static void write_expected(bool with_draft, double share, drey_io io, int *n_reports)
{
    static rig r;
    drey_statistics stats;
    rig_open(&r, io, with_draft, share);
    must(write_on(&r, &stats), &r.err);
    assert_int_equal(r.text.n_ids, N_TEXT);
    expected = r.text;
    *n_reports = r.n_reports;
    assert_true(share == 1 || stats.read_bytes > 0);
    rig_close(&r);
}

/* A beginning of it. */
static void check_beginning(const rig *r)
{
    assert_memory_equal(r->text.ids, expected.ids, (size_t)r->text.n_ids * sizeof *expected.ids);
}

static const drey_io ways[] = {DREY_IO_AUTO, DREY_IO_PREAD, DREY_IO_BUFFERED};

TEST(cancelled_loads_begin_again)
{
    for (int i = 0; i < 6; i++) {
        bool with_draft = i % 2;
        double share = i < 4 ? 0.4 : 1;
        drey_io io = ways[i % 3];
        int n_reports;
        write_expected(with_draft, share, io, &n_reports);
        static rig r;
        drey_statistics stats;
        rig_open(&r, io, with_draft, share);
        for (int turn = 0; turn < 3; turn++) { /* each load is given up at another place */
            r.n_reports = 0;
            r.cancel_report = 1 + n_reports * turn / 4;
            assert_int_equal(write_on(&r, &stats), DREY_ERR_CANCELLED);
            assert_int_equal(stats.finish, DREY_FINISH_INTERRUPTED);
            assert_int_equal(r.text.n_ids, 0);
        }
        r.cancel_report = 0;
        must(write_on(&r, &stats), &r.err);
        must_be_same_ids(&expected, &r.text, "recovered");
        rig_close(&r);
    }
}

/* Reads of the disk fail for a while, so often that retrying does not help, at any point of load
 * and text: the text stops with what is verified, and continues when the disk is back. How many
 * passes a drafted text takes depends on clocks, and two of them may have been read when the disk
 * fails: after the tokens that are named here at least a third pass is needed. */
TEST(text_continues_when_the_disk_is_back)
{
    static const int32_t fail_at[] = {0, 0, 1, 5, N_TEXT - 3, N_TEXT - 3 * N_TURN_MAX};
    for (int i = 0; i < 6; i++) {
        bool with_draft = i % 2;
        drey_io io = ways[i % 3];
        int n_reports;
        write_expected(with_draft, 0.4, io, &n_reports);
        static rig r;
        drey_statistics stats;
        rig_open(&r, io, with_draft, 0.4);
        r.fail_at = fail_at[i];
        r.fail_report = i == 1 ? n_reports / 2 : 0;
        break_disk(&r, i == 0);
        must_refuse(write_on(&r, &stats), DREY_ERR_IO, "cannot read", &r.err);
        assert_int_equal(stats.finish, DREY_FINISH_ERROR);
        assert_int_equal(stats.generated_tokens, r.text.n_ids);
        assert_true(r.text.n_ids >= r.fail_at && r.text.n_ids < N_TEXT);
        assert_non_null(strstr(r.err.message, "at byte "));
        assert_non_null(strstr(r.err.message, "Input/output error; check the disk"));
        int32_t before = r.text.n_ids;
        assert_int_equal(write_on(&r, &stats), DREY_ERR_IO); /* still gone */
        assert_int_equal(r.text.n_ids, before);
        break_disk(&r, false);
        must(write_on(&r, &stats), &r.err);
        must_be_same_ids(&expected, &r.text, "recovered");
        rig_close(&r);
    }
}

/* The file is touched while the text is written: no token after that, those before stay. */
TEST(changed_model_ends_the_text)
{
    int n_reports;
    write_expected(false, 0.4, DREY_IO_AUTO, &n_reports);
    for (int i = 0; i < 3; i++) {
        static rig r;
        drey_statistics stats;
        rig_open(&r, ways[i], i == 1, 0.4);
        r.touch = target_path;
        r.touch_at = 1 + 4 * i;
        assert_int_equal(write_on(&r, &stats), DREY_ERR_IO);
        assert_true(r.text.n_ids >= r.touch_at && r.text.n_ids < N_TEXT);
        check_beginning(&r);
        if (i != 1) /* a turn without a draft writes one token */
            assert_int_equal(r.text.n_ids, r.touch_at);
        assert_non_null(strstr(r.err.message, target_path));
        assert_non_null(strstr(r.err.message, "has changed while it was in use"));
        assert_int_equal(write_on(&r, &stats), DREY_ERR_IO); /* and for good */
        rig_close(&r);
        make_models(NULL);
    }
}

TEST(changed_between_opening_and_reading)
{
    static rig r;
    drey_statistics stats;
    rig_open(&r, DREY_IO_AUTO, false, 0.4);
    touch(target_path);
    must_refuse(write_on(&r, &stats), DREY_ERR_IO, "has changed", &r.err);
    assert_int_equal(r.text.n_ids, 0);
    place_close(&r.at);
    must_refuse_engine(&r.options, &r.hooks, DREY_ERR_IO, "has changed");
    rig_close(&r);
    make_models(NULL);
}

/* Once all of it is in memory, the file is nobody's business. */
TEST(loaded_model_may_change)
{
    toy_options toy = toy_asked();
    if (toy.experts.n > 0)
        return;      /* its experts are read as long as it writes */
    toy.tied = true; /* so that no embedding is looked up in the file */
    toy_write(target_path, &toy);
    static rig r;
    drey_statistics stats;
    rig_open(&r, DREY_IO_AUTO, false, 1);
    r.touch = target_path;
    r.touch_at = 3;
    must(write_on(&r, &stats), &r.err);
    assert_int_equal(r.text.n_ids, N_TEXT);
    rig_close(&r);
    make_models(NULL);
}

TEST(changed_sidecar_ends_the_text)
{
    int n_reports;
    write_expected(false, 0.4, DREY_IO_AUTO, &n_reports);
    for (int i = 0; i < 2; i++) {
        static rig r;
        drey_statistics stats;
        MUST(drey_model_open, &r.target, target_path);
        toy_prepare(r.target, NULL, false);
        drey_model_close(&r.target);
        char side[2100];
        snprintf(side, sizeof side, "%s.drey", target_path);
        rig_open(&r, DREY_IO_AUTO, false, 0.4);
        r.touch = i ? target_path : side; /* embeddings still come from the model */
        r.touch_at = 5;
        assert_int_equal(write_on(&r, &stats), DREY_ERR_IO);
        assert_true(stats.sidecar);
        assert_int_equal(r.text.n_ids, 5);
        check_beginning(&r);
        const char *says = i ? "target.gguf has changed" : "target.gguf.drey has changed";
        assert_non_null(strstr(r.err.message, says));
        rig_close(&r);
        remove(side);
        make_models(NULL);
    }
}

TEST_GROUP(make_models, temp_dir_tear_down)
