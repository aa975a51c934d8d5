/* Writing, and the file: see self_texts.h. */
#include "train/self_texts.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/num.h"
#include "drey/chat.h"
#include "state/cache.h"
#include "template/conversation.h"
#include "session/session_probe.h"
#include "os/float_mode.h"
#include "text/tokenizer.h"
#include "train/token_slice.h"
#include "weights/identity.h"
#include "drey/train.h"

enum {
    N_WRITERS = 16,   /* texts in a pass */
    MOST_FEED = 256,  /* most tokens of a prefix or suffix */
    MOST_ASKED = 160, /* tokens of a user's turn */
    MOST_SAID = 448,  /* the most tokens of an answer */
    HELD_EVERY = 16,
    DROP_BYTES = 2 << 20
};

static const float again_temperature = 0.3f;

/* ---- The file ---- */

typedef struct texts_head {
    char magic[8];
    uint64_t identity; /* identity of the model */
    int32_t n_embd;
    uint32_t prompts; /* a hash of those that are answered; 0: the model wrote them */
} texts_head;

typedef struct run_head {
    uint64_t seed;
    int32_t n, zero;
} run_head;

static const char magic[8] = {'d', 'r', 'e', 'y', 't', 'e', 'x', 't'};

static bool is_held(uint64_t seed)
{
    return seed % HELD_EVERY == 0;
}

static uint64_t run_bytes(int32_t n, int32_t n_embd)
{
    return sizeof(run_head) + (uint64_t)n * (sizeof(int32_t) + (uint64_t)n_embd * 2);
}

static drey_status io_failed(const char *path, const char *what, drey_error *err)
{
    FAIL(err, DREY_ERR_IO, "cannot %s %s: %s", what, SHOWN_PATH(path), strerror(errno));
}

static drey_status put(int fd, const char *path, const void *bytes, size_t n, drey_error *err)
{
    for (const char *at = bytes; n > 0;) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno != EINTR)
            return io_failed(path, "write", err);
        if (done > 0) {
            at += done;
            n -= (size_t)done;
        }
    }
    return DREY_OK;
}

/* False: the file ends before that. */
static bool get(int fd, void *bytes, size_t n, uint64_t offset)
{
    for (char *at = bytes; n > 0;) {
        ssize_t done = pread(fd, at, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
        offset += (uint64_t)done;
    }
    return true;
}

/* Position of a run in the file. */
typedef struct run_place {
    uint64_t seed, at;
    int32_t n;
} run_place;

/* Complete runs of a file. Texts are numbered when they begin and written when they end. They are
 * read in the order of their numbers, which an interruption does not change. */
typedef struct texts_index {
    uint64_t n_bytes; /* the head included */
    int64_t n;        /* positions */
    run_place *run;   /* [n_runs], rising by seed; NULL: none */
    size_t n_runs;
} texts_index;

static void index_free(texts_index *x)
{
    free(x->run);
    x->run = NULL;
    x->n_runs = 0;
}

static int by_seed(const void *a, const void *b)
{
    const run_place *x = a, *y = b;
    return (x->seed > y->seed) - (x->seed < y->seed);
}

static drey_status damaged(const char *path, drey_error *err)
{
    FAIL(err, DREY_ERR_FORMAT, "%s is damaged; remove it", SHOWN_PATH(path));
}

static drey_status index_add(texts_index *x, const run_head *run, drey_error *err)
{
    bool full = (x->n_runs & (x->n_runs - 1)) == 0; /* room for a power of two */
    size_t room = x->n_runs ? 2 * x->n_runs : 1;
    run_place *more = full ? realloc(x->run, room * sizeof *more) : x->run;
    if (!more)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a list of %zu texts", room);
    x->run = more;
    x->run[x->n_runs++] = (run_place){.seed = run->seed, .at = x->n_bytes, .n = run->n};
    return DREY_OK;
}

/* Lists the complete runs from the beginning; the caller frees. */
static drey_status index_make(texts_index *x, int fd, const char *path, int32_t n_embd,
                              drey_error *err)
{
    run_head run;
    uint64_t size = (uint64_t)lseek(fd, 0, SEEK_END);
    drey_status status = DREY_OK;
    *x = (texts_index){.n_bytes = sizeof(texts_head)};
    while (status == DREY_OK && get(fd, &run, sizeof run, x->n_bytes) && run.n > 0 &&
           run.zero == 0 && x->n_bytes + run_bytes(run.n, n_embd) <= size) {
        status = index_add(x, &run, err);
        x->n_bytes += run_bytes(run.n, n_embd);
        x->n += run.n;
    }
    if (x->run)
        qsort(x->run, x->n_runs, sizeof *x->run, by_seed);
    for (size_t i = 1; i < x->n_runs && status == DREY_OK; i++)
        if (x->run[i].seed == x->run[i - 1].seed)
            status = damaged(path, err);
    if (status != DREY_OK)
        index_free(x);
    return status;
}

static uint32_t hash_prompts(const self_texts_job *job)
{
    hash64 h;
    hash64_init(&h);
    for (int32_t i = 0; i < job->n_prompts; i++) {
        hash64_add(&h, &job->prompts[i].n_ids, sizeof job->prompts[i].n_ids);
        hash64_add(&h, job->prompts[i].ids, job->prompts[i].n_ids * sizeof *job->prompts[i].ids);
    }
    return job->n_prompts > 0 ? (uint32_t)hash64_get(&h) | 1 : 0;
}

/* Left by a writer that ended before its first run, perhaps in the middle of the head. */
static bool holds_no_run(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    size_t n = min_size((size_t)size, sizeof magic);
    char begin[sizeof magic];
    return size >= 0 && (size_t)size <= sizeof(texts_head) &&
           (n == 0 || (get(fd, begin, n, 0) && memcmp(begin, magic, n) == 0));
}

static drey_status open_texts(const self_texts_job *job, int32_t n_embd, int *fd, texts_index *x,
                              drey_error *err)
{
    texts_head want = {.n_embd = n_embd, .prompts = hash_prompts(job)}, got;
    memcpy(want.magic, magic, sizeof magic);
    TRY(model_identity(job->engine->target->file, &want.identity, err));
    *fd = open(job->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0)
        return io_failed(job->path, "open", err);
    if (holds_no_run(*fd)) {
        if (ftruncate(*fd, 0) != 0 || lseek(*fd, 0, SEEK_SET) < 0)
            return io_failed(job->path, "cut", err);
        TRY(put(*fd, job->path, &want, sizeof want, err));
    }
    bool there = get(*fd, &got, sizeof got, 0);
    if (there && got.prompts != want.prompts &&
        memcmp(&got, &want, offsetof(texts_head, prompts)) == 0)
        FAIL_HINT(
            err, DREY_ERR_MISMATCH, DREY_HINT_OUTPUT,
            "%s holds texts that answer %s; give the same prompts, remove it, or name another "
            "output",
            SHOWN_PATH(job->path), got.prompts ? "other prompts" : "no prompts");
    if (!there || memcmp(&got, &want, sizeof got) != 0)
        FAIL(err, DREY_ERR_MISMATCH,
             "%s holds no texts of this model; remove it, or name another output",
             SHOWN_PATH(job->path));
    TRY(index_make(x, *fd, job->path, n_embd, err));
    if (ftruncate(*fd, (off_t)x->n_bytes) != 0 || lseek(*fd, 0, SEEK_END) < 0)
        return io_failed(job->path, "cut", err);
    return DREY_OK;
}

/* ---- A writer ---- */

typedef enum writer_state { WRITER_ASKS, WRITER_ANSWERS, WRITER_DONE } writer_state;

typedef struct writer {
    drey_session *session;
    writer_state state;
    uint64_t seed;
    /* [n_feed]: what the model still has to read, except for the first `fed`. */
    const int32_t *feed;
    int32_t n_feed, fed;
    drey_train_prompt begun; /* the beginning that its cache has */
    int32_t said;            /* fed next */
    int32_t n;               /* positions of the run so far */
    int32_t token[MOST_SAID];
    uint16_t *hidden; /* [MOST_SAID][D] */
} writer;

typedef struct writing_room {
    const self_texts_job *job;
    drey_engine *engine;
    writer *writer; /* [N_WRITERS] */
    uint16_t *hidden;
    int32_t prefix[MOST_FEED], n_prefix, suffix[MOST_FEED], n_suffix;
    int fd;
    texts_index index; /* index of the file before writing; its n_bytes: now */
    uint64_t next_seed;
    size_t n_passed;   /* runs of the index whose numbers are lower */
    int64_t n_written; /* positions of those, and of texts that were written now */
    int64_t n_wanted;
    uint64_t dropped; /* bytes of the file that are on the disk */
} writing_room;

static drey_status encode(const tokenizer *t, const char *text, size_t n_bytes, int flags,
                          int32_t *ids, int32_t *n, drey_error *err)
{
    size_t n_ids = 0;
    TRY(tokenizer_encode(t, text, n_bytes, flags, ids, MOST_FEED, &n_ids, err));
    *n = (int32_t)n_ids;
    return DREY_OK;
}

/* The text around the user's. A model without a template, or with one that cannot be run, writes
 * from its first token on. */
static drey_status find_frame(writing_room *r, drey_error *err)
{
    const drey_model *m = r->job->engine->target;
    const tokenizer *t = m->tokenizer;
    gguf_string chat = gguf_text(m->file, "tokenizer.chat_template");
    char *chat_template = chat.text ? strndup(chat.text, chat.n_bytes) : NULL;
    const drey_chat_message nothing = {"user", "x", 1};
    const drey_chat_request request = {
        .messages = &nothing, .n_messages = 1, .chat_template = chat_template};
    chat_text turn = {0};
    if (chat_template && chat_render_for(t, &request, &turn, NULL) == DREY_OK && turn.n_plain > 0) {
        text_range x = turn.plain[turn.n_plain - 1];
        drey_status status =
            encode(t, turn.text, x.begin, DREY_TOKENIZE_SPECIAL | DREY_TOKENIZE_BOS, r->prefix,
                   &r->n_prefix, err);
        if (status == DREY_OK)
            status = encode(t, turn.text + x.end, turn.n_bytes - x.end, DREY_TOKENIZE_SPECIAL,
                            r->suffix, &r->n_suffix, err);
        chat_text_free(&turn);
        free(chat_template);
        TRY(status);
    } else {
        chat_text_free(&turn);
        free(chat_template);
    }
    if (r->n_prefix == 0) {
        r->prefix[0] = max_i32(tokenizer_bos(t) >= 0 ? tokenizer_bos(t) : tokenizer_eos(t), 0);
        r->n_prefix = 1;
    }
    return DREY_OK;
}

/* tokens: borrowed until they are read. */
static void feed(writer *w, const int32_t *tokens, int32_t n)
{
    w->feed = tokens;
    w->n_feed = n;
    w->fed = 0;
}

/* Numbers of texts that answer each prompt once: as many as make one prompt's texts all held out or
 * none. */
static uint64_t round_size(const self_texts_job *job)
{
    return ((uint64_t)job->n_prompts + HELD_EVERY - 1) / HELD_EVERY * HELD_EVERY;
}

/* Continues to the next number of a text that the file did not have before, and counts those that
 * it had. */
static void find_number(writing_room *r)
{
    const self_texts_job *job = r->job;
    const uint64_t size = round_size(job);
    const texts_index *x = &r->index;
    for (;; r->next_seed++) {
        if (job->n_prompts > 0 && r->next_seed % size >= (uint64_t)job->n_prompts)
            r->next_seed += size - r->next_seed % size;
        for (; r->n_passed < x->n_runs && x->run[r->n_passed].seed < r->next_seed; r->n_passed++)
            r->n_written += x->run[r->n_passed].n;
        if (r->n_passed == x->n_runs || x->run[r->n_passed].seed != r->next_seed)
            return;
    }
}

/* Takes that number, and returns how its text begins. */
static drey_train_prompt next_text(writing_room *r, writer *w)
{
    const self_texts_job *job = r->job;
    const uint64_t size = round_size(job);
    w->seed = r->next_seed++;
    return job->n_prompts > 0 ? job->prompts[w->seed % size]
                              : (drey_train_prompt){r->prefix, (size_t)r->n_prefix};
}

/* Greedy answers would be the same in the second round. */
static float answer_temperature(const self_texts_job *job, const writer *w)
{
    bool again = job->n_prompts > 0 && w->seed >= round_size(job);
    return again && job->temperature <= 0 ? again_temperature : job->temperature;
}

/* Begins the next text, or none. The cache keeps the beginning that it has in common with the text
 * before, except for the last token. */
static drey_status begin_text(writing_room *r, writer *w, drey_error *err)
{
    text_cache *cache = probe_target(w->session)->cache;
    find_number(r);
    if (r->n_written >= r->n_wanted) {
        w->state = WRITER_DONE;
        return DREY_OK;
    }
    const drey_train_prompt old = w->begun, new = next_text(r, w);
    int32_t same = 0, most = min_i32((int32_t)min_u64(old.n_ids, new.n_ids - 1), cache_end(cache));
    while (same < most && old.ids[same] == new.ids[same])
        same++;
    same = cache_cut(cache, same);
    feed(w, new.ids + same, (int32_t) new.n_ids - same);
    w->begun = new;
    w->state = r->n_suffix > 0 ? WRITER_ASKS : WRITER_ANSWERS;
    w->n = 0;
    const drey_sampling settings = {.temperature =
                                        r->job->n_prompts > 0 ? answer_temperature(r->job, w) : 1,
                                    .top_p = 0.95f,
                                    .seed = r->job->seed + w->seed * UINT64_C(0x9E3779B9)};
    return probe_settings(w->session, &settings, err);
}

/* Syncs from time to time what was written, and drops it from the page cache, which counts as
 * memory. */
static drey_status let_go(writing_room *r, drey_error *err)
{
    if (r->index.n_bytes - r->dropped < DROP_BYTES)
        return DREY_OK;
    if (fdatasync(r->fd) != 0)
        return io_failed(r->job->path, "write", err);
    posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
    r->dropped = r->index.n_bytes;
    return DREY_OK;
}

static drey_status end_run(writing_room *r, writer *w, drey_error *err)
{
    int32_t d = r->engine->target.layout.shape.n_embd;
    const run_head run = {.seed = w->seed, .n = w->n};
    if (w->n == 0)
        return DREY_OK;
    TRY(put(r->fd, r->job->path, &run, sizeof run, err));
    TRY(put(r->fd, r->job->path, w->token, (size_t)w->n * sizeof *w->token, err));
    TRY(put(r->fd, r->job->path, w->hidden, (size_t)w->n * (size_t)d * sizeof *w->hidden, err));
    r->n_written += w->n;
    r->index.n_bytes += run_bytes(w->n, d);
    w->n = 0;
    return let_go(r, err);
}

/* The model has read all that it was given: takes its token, which it reads next. */
static drey_status take_token(writing_room *r, writer *w, const pass_group *group, drey_error *err)
{
    const drey_engine *e = r->engine;
    sampler *s = probe_sampler(w->session);
    int32_t d = e->target.layout.shape.n_embd, position = cache_end(group->cache);
    int32_t token = sampler_choose(s, group->logits, position);
    w->token[w->n] = token;
    e->kernels->to_f16(w->hidden + (int64_t)w->n * d, group->hidden, d);
    w->n++;
    bool ends = tokenizer_is_end(e->config.target->tokenizer, token);
    if (w->state == WRITER_ASKS && (ends || w->n >= MOST_ASKED)) {
        w->n = 0; /* heads learn to guess the answers, not the prompts */
        w->state = WRITER_ANSWERS;
        drey_sampling settings = s->settings;
        settings.temperature = r->job->temperature;
        TRY(probe_settings(w->session, &settings, err));
        feed(w, r->suffix, r->n_suffix);
    } else if (w->state == WRITER_ANSWERS && (ends || w->n >= MOST_SAID)) {
        TRY(end_run(r, w, err));
        TRY(begin_text(r, w, err));
    } else {
        w->said = token;
        feed(w, &w->said, 1);
    }
    return DREY_OK;
}

/* One pass for all that are writing; false: none is. */
static drey_status write_on(writing_room *r, bool *any, drey_error *err)
{
    drey_engine *e = r->engine;
    pass_group group[N_WRITERS];
    writer *of[N_WRITERS];
    int32_t n = 0, n_left = 0, rows = 0;
    for (int32_t i = 0; i < N_WRITERS; i++)
        n_left += r->writer[i].state != WRITER_DONE;
    *any = n_left > 0;
    for (int32_t i = 0; i < N_WRITERS; i++) {
        writer *w = &r->writer[i];
        if (w->state == WRITER_DONE)
            continue;
        int32_t most = (e->target.ws.limits.max_rows - rows) / n_left--;
        int32_t n_rows = min_i32(w->n_feed - w->fed, most);
        pass_row *row = e->target.ws.rows + rows;
        for (int32_t k = 0; k < n_rows; k++)
            row[k] = (pass_row){.token = w->feed[w->fed + k], .parent = k - 1};
        w->fed += n_rows;
        rows += n_rows;
        group[n] = (pass_group){.cache = probe_target(w->session)->cache,
                                .rows = row,
                                .n = n_rows,
                                .head = w->fed == w->n_feed ? HEAD_LAST : HEAD_NONE};
        of[n++] = w;
    }
    if (n == 0)
        return DREY_OK;
    TRY(pass_run(probe_target(of[0]->session), group, n, err));
    for (int32_t i = 0; i < n; i++) {
        cache_commit(group[i].cache, NULL, group[i].n);
        if (group[i].head == HEAD_LAST)
            TRY(take_token(r, of[i], &group[i], err));
    }
    return DREY_OK;
}

/* ---- All of it ---- */

static drey_status open_room(writing_room *r, drey_error *err)
{
    drey_engine_options o = engine_options_alone(r->job->engine);
    if (r->job->n_prompts == 0)
        TRY(find_frame(r, err));
    o.n_sessions = N_WRITERS;
    int32_t longest = r->n_prefix + MOST_ASKED + r->n_suffix;
    for (int32_t i = 0; i < r->job->n_prompts; i++)
        longest = i > 0 ? max_i32(longest, (int32_t)r->job->prompts[i].n_ids)
                        : (int32_t)r->job->prompts[i].n_ids;
    o.n_context = longest + MOST_SAID;
    const size_t d = (size_t)o.target->shape.n_embd;
    const size_t hidden_bytes = N_WRITERS * MOST_SAID * d * sizeof *r->hidden;
    const engine_hooks hooks = {.more_bytes = hidden_bytes + N_WRITERS * sizeof *r->writer};
    TRY(engine_open(&r->engine, &o, &hooks, err));
    r->writer = calloc(N_WRITERS, sizeof *r->writer);
    r->hidden = malloc(hidden_bytes);
    if (!r->writer || !r->hidden)
        FAIL(err, DREY_ERR_MEMORY, "no memory for %d texts at once", N_WRITERS);
    for (size_t i = 0; i < N_WRITERS; i++) {
        writer *w = &r->writer[i];
        TRY(drey_session_open(&w->session, r->engine, err));
        w->hidden = r->hidden + i * MOST_SAID * d;
    }
    return DREY_OK;
}

static void close_room(writing_room *r)
{
    for (int32_t i = 0; r->writer && i < N_WRITERS; i++)
        drey_session_close(&r->writer[i].session);
    free(r->writer);
    free(r->hidden);
    drey_engine_close(&r->engine);
    index_free(&r->index);
    if (r->fd >= 0)
        close(r->fd);
}

static drey_status write_all(writing_room *r, int64_t *n_kept, drey_error *err)
{
    const self_texts_job *job = r->job;
    TRY(open_texts(job, job->engine->target->shape.n_embd, &r->fd, &r->index, err));
    *n_kept = r->index.n;
    r->n_wanted = job->n_positions;
    find_number(r);
    if (r->n_written >= r->n_wanted)
        return DREY_OK;
    TRY(open_room(r, err));
    for (int32_t i = 0; i < N_WRITERS; i++)
        TRY(begin_text(r, &r->writer[i], err));
    for (bool any = true; any;) {
        TRY(write_on(r, &any, err));
        if (job->progress)
            job->progress(job->user, DREY_PROGRESS_TRAIN,
                          (uint64_t)min_i64(r->n_written, job->n_positions),
                          (uint64_t)job->n_positions);
        if (job->go_on && !job->go_on(job->user))
            FAIL(err, DREY_ERR_CANCELLED, "interrupted; what was written stays in %s",
                 SHOWN_PATH(job->path));
    }
    return DREY_OK;
}

drey_status self_texts_write(const self_texts_job *job, int64_t *n_kept, drey_error *err)
{
    writing_room r = {.job = job, .fd = -1};
    float_mode caller = float_mode_enter();
    drey_status status = write_all(&r, n_kept, err);
    close_room(&r);
    float_mode_leave(caller);
    return status;
}

/* ---- Reading ---- */

/* The caller closes it, and frees the index. */
static drey_status open_to_read(const char *path, int *fd, texts_head *head, texts_index *x,
                                drey_error *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return io_failed(path, "open", err);
    bool good = get(*fd, head, sizeof *head, 0) && memcmp(head->magic, magic, sizeof magic) == 0 &&
                head->n_embd > 0;
    drey_status status =
        good ? index_make(x, *fd, path, head->n_embd, err)
             : error_set(err, DREY_ERR_FORMAT, "%s holds no texts to train with", SHOWN_PATH(path));
    if (status != DREY_OK)
        close(*fd);
    return status;
}

/* The first n_counted tokens of a run. */
static drey_status count_run(int fd, const char *path, const run_place *run, int32_t n_counted,
                             token_slice *s, drey_error *err)
{
    const uint64_t at = run->at + sizeof(run_head);
    for (int32_t from = 0, n; from < n_counted; from += n) {
        int32_t token[MOST_SAID];
        n = min_i32(n_counted - from, MOST_SAID);
        if (!get(fd, token, (size_t)n * sizeof *token, at + (uint64_t)from * sizeof *token))
            return io_failed(path, "read", err);
        for (int32_t i = 0; i < n; i++) {
            if (token[i] < 0 || token[i] >= s->n_vocab)
                return damaged(path, err);
            s->there[token[i]] = true;
            s->learnt[token[i]] += !is_held(run->seed);
        }
    }
    return DREY_OK;
}

drey_status self_texts_count(const char *path, int64_t most, token_slice *s, int64_t *n,
                             drey_error *err)
{
    int fd;
    texts_head head;
    texts_index x;
    TRY(open_to_read(path, &fd, &head, &x, err));
    drey_status status = DREY_OK;
    *n = 0;
    for (size_t i = 0; status == DREY_OK && *n < most && i < x.n_runs; i++) {
        int32_t n_counted = (int32_t)min_i64(x.run[i].n, most - *n);
        status = count_run(fd, path, &x.run[i], n_counted, s, err);
        *n += n_counted;
    }
    index_free(&x);
    close(fd);
    return status;
}

size_t self_texts_bytes(int64_t n, int32_t n_embd)
{
    return arena_size((size_t)n * (size_t)n_embd * sizeof(uint16_t)) +
           arena_size((size_t)n * sizeof(int32_t)) + 2 * arena_size((size_t)n);
}

/* Holds out the last positions where few texts leave none to judge with, or none to train with. */
static void hold_last(self_texts *t)
{
    int64_t n_held = 0, from = t->n - max_i64(t->n / HELD_EVERY, 2);
    for (int64_t i = 0; i < t->n; i++)
        n_held += t->held[i];
    for (int64_t i = 0; i < t->n && (n_held == 0 || n_held == t->n); i++)
        t->held[i] = i >= from;
}

drey_status self_texts_read(self_texts *t, const char *path, int64_t n, int32_t n_embd,
                            const token_slice *s, arena *a, drey_error *err)
{
    int fd;
    texts_head head;
    texts_index x;
    TRY(open_to_read(path, &fd, &head, &x, err));
    *t = (self_texts){.n_embd = n_embd};
    t->hidden = arena_take(a, (size_t)n * (size_t)n_embd * sizeof *t->hidden);
    t->token = arena_take(a, (size_t)n * sizeof *t->token);
    t->left = arena_take(a, (size_t)n * sizeof *t->left);
    t->held = arena_take(a, (size_t)n * sizeof *t->held);
    drey_status status =
        head.n_embd == n_embd
            ? arena_check(a, err)
            : error_set(err, DREY_ERR_MISMATCH, "%s is of another width", SHOWN_PATH(path));
    for (const run_place *run = x.run; status == DREY_OK && t->n < n && run < x.run + x.n_runs;
         run++) {
        int32_t most = (int32_t)min_i64(run->n, n - t->n);
        uint64_t tokens = run->at + sizeof(run_head),
                 states = tokens + (uint64_t)run->n * sizeof(int32_t);
        if (!get(fd, t->token + t->n, (size_t)most * sizeof *t->token, tokens) ||
            !get(fd, t->hidden + t->n * n_embd, (size_t)most * (size_t)n_embd * 2, states))
            status = io_failed(path, "read", err);
        for (int64_t i = t->n; i < t->n + most && status == DREY_OK; i++) {
            if (t->token[i] < 0 || t->token[i] >= s->n_vocab || s->place[t->token[i]] < 0) {
                status = damaged(path, err);
                break;
            }
            t->token[i] = s->place[t->token[i]];
            t->left[i] = (uint8_t)min_i64(t->n + most - 1 - i, 255);
            t->held[i] = is_held(run->seed);
        }
        t->n += most;
        posix_fadvise(fd, (off_t)run->at, (off_t)run_bytes(run->n, n_embd), POSIX_FADV_DONTNEED);
    }
    hold_last(t);
    index_free(&x);
    close(fd);
    return status;
}
