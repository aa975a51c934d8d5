/* Reading a prompt: the target in chunks, then the draft. */
#include "session/prompt.h"

#include "base/usual.h"
#include "common/num.h"
#include "session/session.h"
#include "session/sharing.h"
#include "session/tapped.h"
#include "session/turn.h"
#include "session/verified_text.h"
#include "os/clock.h"
#include "state/cache.h"
#include "state/kept_positions.h"

void prompt_report(void *user, uint64_t done)
{
    const progress_line *p = user;
    const config_progress *to = &p->engine->config.progress;
    if (to->report)
        to->report(to->user, p->what, min_u64(done, p->total), p->total);
}

drey_status prompt_begin(drey_session *s, drey_error *err)
{
    generation *g = &s->text;
    if (s->drafter && !g->draft_knows_prompt)
        TRY(s->drafter->class->begin(s->drafter, s->timeline, s->n_timeline, err));
    g->draft_knows_prompt = true;
    return DREY_OK;
}

void drey_session_prompt(const drey_session *s, int64_t *done, int64_t *total)
{
    const generation *g = &s->text;
    *total = s->state == SESSION_IDLE ? 0 : g->prompt_end - g->prompt_from;
    *done = min_i64(cache_end(&s->target_cache) - g->prompt_from, *total);
}

bool prompt_left(const drey_session *s)
{
    const generation *g = &s->text;
    return prompt_rows_left(s) > 1 ||
           (cache_end(&s->target_cache) < g->prompt_end &&
            (g->prompt_end - g->prompt_from > 1 || !weights_loaded(&s->engine->target.weights)));
}

void prompt_offer(drey_session *s, pass_row *rows, int32_t max_rows, pass_group *group)
{
    int32_t from = cache_end(&s->target_cache), left = prompt_rows_left(s);
    int32_t n = min_i32(min_i32(left, max_rows), s->engine->plan.chunk);
    for (int32_t i = 0; i < n; i++)
        rows[i] = (pass_row){.token = s->timeline[from + i], .parent = i - 1};
    *group = (pass_group){.cache = &s->target_cache,
                          .rows = rows,
                          .n = n,
                          .head = n == left ? HEAD_LAST : HEAD_NONE,
                          .whole = true};
    tapped_offer(s, group);
}

/* Takes the taps. After the last row follows only what the target has chosen. */
static void take_tapped(drey_session *s, const pass_group *group)
{
    int32_t from = cache_end(&s->target_cache) - group->n;
    for (int32_t i = 0; i < group->n; i++) {
        int32_t next = from + i + 1;
        tapped_take(s, group, i, from + i,
                    next < s->n_timeline ? s->timeline[next] : s->accepted.next);
    }
}

void prompt_take(drey_session *s, const pass_group *group)
{
    generation *g = &s->text;
    cache_commit(&s->target_cache, NULL, group->n);
    progress_line line = {s->engine, DREY_PROGRESS_PROMPT,
                          (uint64_t)(g->prompt_end - g->prompt_from)};
    if (!session_reads_input(s)) /* the input has been reported */
        prompt_report(&line, (uint64_t)(cache_end(&s->target_cache) - g->prompt_from));
    if (group->head == HEAD_NONE) {
        take_tapped(s, group);
        return;
    }
    prompt_keep(s, false);
    if (s->drafter && drafter_listens_to(s->drafter->class, take_hidden))
        s->drafter->class->listener->take_hidden(s->drafter, s->n_timeline - 1, group->hidden);
    /* What follows the prompt's last row needs no turn. */
    s->row_of[0] = 0;
    tree_begin(&s->tree, s->timeline[s->n_timeline - 1], s->text.options.grammar);
    turn_choose(s, group);
    take_tapped(s, group);
    verified_text_write(s, group->logits);
}

bool prompt_unread(const drey_session *s)
{
    const drafter *d = session_guesses(s) ? s->drafter : NULL;
    return d && (s->state == SESSION_PROMPT || d->lags) && d->class->reader &&
           d->class->reader->unread(d);
}

int32_t prompt_rows_left(const drey_session *s)
{
    return s->n_timeline - cache_end(&s->target_cache);
}

/* Returns how long the draft of a text that is alone reads before the second token: no longer than
 * eight turns take, or a second if that is more. The rest is read between turns, as in shared
 * passes, so that the text continues after a long prompt. */
static int64_t read_at_once_ns(const drey_session *s)
{
    const double turns_s = USUAL_READ_TURNS * cost_shared(&s->engine->cost, 1, 0);
    return (int64_t)(1e9 * max_f64(turns_s, USUAL_READ_LEAST_S));
}

drey_status prompt_end(drey_session *s, bool shared, drey_error *err)
{
    tree_begin(&s->tree, s->timeline[s->n_timeline - 1], s->text.options.grammar);
    drafter *d = s->drafter;
    if (d)
        TRY(d->class->begin(d, s->timeline, s->n_timeline, err));
    const int64_t until_ns =
        sharing_measures(s->engine) ? clock_ns() + read_at_once_ns(s) : INT64_MAX;
    draft_reading state;
    while (!shared && prompt_unread(s) && clock_ns() < until_ns)
        TRY(d->class->reader->read(d, 0, &state, err));
    if (d)
        d->lags = prompt_unread(s);
    statistics_decode(s);
    s->state = SESSION_DECODE;
    return DREY_OK;
}

/* ---- What is known of it ----
 *
 * Copying costs the time of reading memory, so it comes before reading a disk. */

/* Returns how many tokens both timelines begin with. */
static int32_t n_same_of(const drey_session *a, const drey_session *b)
{
    int32_t n = 0, most = min_i32(a->n_timeline, session_n_verified(b));
    while (n < most && a->timeline[n] == b->timeline[n])
        n++;
    return n;
}

/* Committed rows of which nothing is deferred: they are complete, whatever the session does. */
static int32_t n_complete(const drey_session *s)
{
    return max_i32(cache_end(&s->target_cache) - s->deferred.n, 0);
}

/* The session from which most can be copied; *n_rows: so many are then committed, *n_same: so many
 * tokens any session has. NULL: none has more. */
static drey_session *find_source(const drey_session *s, int32_t *n_rows, int32_t *n_same)
{
    const drey_engine *e = s->engine;
    drey_session *best = NULL;
    for (int32_t i = 0; i < e->n_sessions; i++) {
        drey_session *other = e->sessions[i];
        if (other == s)
            continue;
        int32_t same = n_same_of(s, other);
        int32_t n = min_i32(min_i32(same, n_complete(other)), s->n_timeline - 1);
        n = cache_whole(&other->target_cache, n, other->deferred.n);
        *n_same = max_i32(*n_same, same);
        if (n > *n_rows) {
            *n_rows = n;
            best = other;
        }
    }
    return best;
}

void prompt_take_known(drey_session *s)
{
    text_cache *cache = &s->target_cache;
    drey_statistics *stats = &s->text.stats;
    int32_t own = cache_end(cache), n_rows = own, n_same = min_i32(s->text.n_kept, s->n_timeline);
    int64_t start = clock_ns();
    bool whole = !cache_is_in_file(cache) &&
                 !session_reads_input(s); /* its cache is that of the text alone */
    if (!s->text.options.no_known && s->n_timeline > 0 && whole) {
        drey_session *source = find_source(s, &n_rows, &n_same);
        if (source)
            s->engine->team->copy(s->engine, cache, &source->target_cache, n_rows);
        stats->copied_tokens = cache_end(cache) - own;
        stats->folder_tokens =
            prefix_restore(&s->engine->prefixes, s->timeline, s->n_timeline - 1, cache);
        stats->restored_tokens = cache_end(cache) - own - stats->copied_tokens;
    }
    s->engine->prefixes.count.copied_tokens += stats->copied_tokens;
    stats->restore_s = (double)(clock_ns() - start) * 1e-9;
    stats->cached_tokens = cache_end(cache);
    stats->same_tokens = max_i32(n_same, cache_end(cache));
}

void prompt_keep(drey_session *s, bool is_end)
{
    if (cache_is_in_file(&s->target_cache) || !s->engine->team->is_alone)
        return;
    cache_settle(&s->target_cache, s->deferred.n);
    prefix_keep(&s->engine->prefixes, s->timeline, &s->target_cache, is_end);
}
