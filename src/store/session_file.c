/* Sessions in files: see session_file.h. */
#include "store/session_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/new_file.h"
#include "common/num.h"
#include "state/cache.h"
#include "state/kept_positions.h"

enum { VERSION = 1, BUFFER_BYTES = 256 << 10 };
static const char magic[8] = {'d', 'r', 'e', 'y', 's', 'e', 's', 's'};

_Static_assert(sizeof(session_header) == 128, "a header has no holes");

static uint64_t header_hash(const session_header *h)
{
    return hash64_of(h, offsetof(session_header, hash));
}

static uint64_t ids_bytes(const session_header *h)
{
    return ((uint64_t)h->n_tokens + h->n_input) * sizeof(int32_t);
}

static size_t timeline_bytes(const session_header *h)
{
    return (size_t)h->n_tokens * sizeof(int32_t);
}

static size_t input_bytes(const session_header *h)
{
    return (size_t)h->n_input * sizeof(int32_t);
}

static uint64_t pieces_at(const session_header *h)
{
    return sizeof *h + ids_bytes(h) + h->n_note_bytes;
}

/* Parts: the pieces of the positions, then the states after them. */
static int32_t n_parts(const session_header *h, const text_cache *cache)
{
    return h->n_committed > 0 ? cache_n_pieces(cache) + cache_n_states(cache) : 0;
}

static size_t part_bytes(const session_header *h, const text_cache *cache, int32_t i)
{
    const int32_t state = i - cache_n_pieces(cache);
    return state < 0 ? cache_piece_bytes(cache, i, h->n_committed) : cache_state_size(cache, state);
}

/* Returns where a part is; to_cache: where it is to be put. */
static uint8_t *part_of(const session_header *h, const text_cache *cache, int32_t i, bool to_cache)
{
    const int32_t state = i - cache_n_pieces(cache);
    return state < 0 ? cache_piece(cache, i, 0)
                     : cache_state(cache, state, to_cache ? -1 : h->n_committed);
}

/* Returns the file's size by a header that was checked. */
static uint64_t file_bytes(const session_header *h, const text_cache *cache)
{
    uint64_t total = pieces_at(h);
    for (int32_t i = 0; i < n_parts(h, cache); i++)
        total += part_bytes(h, cache, i) + sizeof(uint64_t);
    return total;
}

/* ---- Writing ---- */

static drey_status write_pieces(new_file *f, const session_header *h, const text_cache *cache,
                                drey_error *err)
{
    uint64_t at = pieces_at(h);
    for (int32_t i = 0; i < n_parts(h, cache); i++) {
        const uint8_t *piece = part_of(h, cache, i, false);
        size_t n = part_bytes(h, cache, i);
        uint64_t hash = hash64_of(piece, n);
        TRY(new_file_write(f, at, piece, n, err));
        TRY(new_file_write(f, at + n, &hash, sizeof hash, err));
        at += n + sizeof hash;
    }
    return DREY_OK;
}

static drey_status write_all(new_file *f, const session_header *h, const session_contents *s,
                             const void *note, drey_error *err)
{
    TRY(new_file_reserve(f, file_bytes(h, s->cache), err));
    TRY(new_file_write(f, 0, h, sizeof *h, err));
    TRY(new_file_write(f, sizeof *h, s->timeline, timeline_bytes(h), err));
    TRY(new_file_write(f, sizeof *h + timeline_bytes(h), s->input, input_bytes(h), err));
    TRY(new_file_write(f, sizeof *h + ids_bytes(h), note, (size_t)h->n_note_bytes, err));
    return write_pieces(f, h, s->cache, err);
}

static session_header make_header(const session_contents *s, const void *note, size_t n_note_bytes)
{
    hash64 body;
    session_header h = {.version = VERSION,
                        .n_bytes = sizeof h,
                        .origin = s->origin,
                        .n_tokens = s->n_timeline,
                        .n_committed = cache_whole(s->cache, cache_end(s->cache), 0),
                        .temperature = s->sampling.temperature,
                        .top_p = s->sampling.top_p,
                        .min_p = s->sampling.min_p,
                        .top_k = s->sampling.top_k,
                        .seed = s->sampling.seed,
                        .n_note_bytes = n_note_bytes,
                        .n_input = (uint64_t)s->n_input};
    memcpy(h.magic, magic, sizeof magic);
    hash64_init(&body);
    hash64_add(&body, s->timeline, timeline_bytes(&h));
    hash64_add(&body, s->input, input_bytes(&h));
    hash64_add(&body, note, n_note_bytes);
    h.body_hash = hash64_get(&body);
    h.hash = header_hash(&h);
    return h;
}

uint64_t session_file_bytes(const session_contents *s)
{
    const session_header h = {.n_tokens = s->n_timeline,
                              .n_committed = cache_whole(s->cache, cache_end(s->cache), 0),
                              .n_input = (uint64_t)s->n_input};
    return file_bytes(&h, s->cache);
}

drey_status session_file_write(const char *path, const session_contents *s, const void *note,
                               size_t n_note_bytes, drey_error *err)
{
    const session_header h = make_header(s, note, n_note_bytes);
    new_file f;
    TRY(new_file_open(&f, path, err));
    return new_file_end(&f, write_all(&f, &h, s, note, err), err);
}

/* ---- Reading ---- */

void session_file_close(session_file *f)
{
    file_close(&f->file);
    free(f->ids);
    free(f->note);
    free(f->buffer);
}

static drey_status read_at(const session_file *f, uint64_t at, void *to, size_t n, drey_error *err)
{
    return n ? file_read(&f->file, f->path, at, n, to, NULL, 0, err) : DREY_OK;
}

static drey_status damaged(const session_file *f, drey_error *err)
{
    FAIL(err, DREY_ERR_FORMAT,
         "%s is damaged: what it holds is not what was saved; take another copy, or start again",
         SHOWN_PATH(f->path));
}

/* Checks of the header that do not depend on the session. */
static drey_status check_header(const session_file *f, drey_error *err)
{
    const session_header *h = &f->header;
    if (f->file.n_bytes < sizeof *h || memcmp(h->magic, magic, sizeof magic) != 0)
        FAIL(err, DREY_ERR_FORMAT, "%s is not a saved session; give the path of one",
             SHOWN_PATH(f->path));
    if (h->version != VERSION)
        FAIL(err, DREY_ERR_MISMATCH,
             "%s was saved by another version of drey (format %" PRIu32 ", this one reads %d); "
             "save the session again",
             SHOWN_PATH(f->path), h->version, VERSION);
    if (h->n_bytes != sizeof *h || h->hash != header_hash(h) || h->n_tokens < 0 ||
        h->n_committed < 0 || h->n_input > INT32_MAX ||
        h->n_committed > max_i32(h->n_tokens - 1, 0) || h->n_note_bytes > DREY_MAX_NOTE_BYTES)
        return damaged(f, err);
    return DREY_OK;
}

/* Checks that it fits this session. */
static drey_status check_origin(const session_file *f, const session_contents *s, drey_error *err)
{
    const session_header *h = &f->header;
    const saved_origin *mine = &s->origin;
    if (h->origin.model != mine->model)
        FAIL(err, DREY_ERR_MISMATCH, "%s belongs to another model than %s; load it with its own",
             SHOWN_PATH(f->path), SHOWN_PATH(s->model_path));
    if (h->origin.format != mine->format || h->origin.arithmetic != mine->arithmetic)
        FAIL(err, DREY_ERR_MISMATCH,
             "%s was saved with another kind of cache than this engine's (%s); open the engine "
             "as it was then",
             SHOWN_PATH(f->path), s->kv_name);
    if (memcmp(&h->origin, mine, sizeof *mine) != 0 || f->file.n_bytes != file_bytes(h, s->cache))
        return damaged(f, err);
    int32_t most = max_i32(h->n_tokens, (int32_t)h->n_input);
    if (most > s->n_context)
        FAIL_HINT(err, DREY_ERR_CONTEXT, DREY_HINT_N_CONTEXT,
                  "%s has %d tokens, but the context has room for %d; take a larger context",
                  SHOWN_PATH(f->path), most, s->n_context);
    return DREY_OK;
}

/* Reads n bytes, adds them to the hash and moves *at past them. to NULL: through the buffer. */
static drey_status read_hashed(const session_file *f, uint64_t *at, void *to, uint64_t n,
                               hash64 *hash, drey_error *err)
{
    for (uint64_t done = 0, part; done < n; done += part, *at += part) {
        part = min_u64(n - done, BUFFER_BYTES);
        uint8_t *here = to ? (uint8_t *)to + done : f->buffer;
        TRY(read_at(f, *at, here, (size_t)part, err));
        hash64_add(hash, here, (size_t)part);
    }
    return DREY_OK;
}

/* Stores the ids, if they are wanted, and a note of at most most_note_bytes. */
static drey_status read_body(session_file *f, bool keep_ids, uint64_t most_note_bytes,
                             drey_error *err)
{
    const session_header *h = &f->header;
    bool keep_note = h->n_note_bytes > 0 && h->n_note_bytes <= most_note_bytes;
    uint64_t at = sizeof *h;
    hash64 body;
    f->ids = keep_ids ? malloc((size_t)ids_bytes(h) + sizeof *f->ids) : NULL;
    f->note = keep_note ? malloc((size_t)h->n_note_bytes + 1) : NULL;
    if ((keep_ids && !f->ids) || (keep_note && !f->note))
        FAIL(err, DREY_ERR_MEMORY, "not enough memory to load %s", SHOWN_PATH(f->path));
    hash64_init(&body);
    TRY(read_hashed(f, &at, f->ids, ids_bytes(h), &body, err));
    TRY(read_hashed(f, &at, f->note, h->n_note_bytes, &body, err));
    if (hash64_get(&body) != h->body_hash)
        return damaged(f, err);
    if (f->note)
        f->note[h->n_note_bytes] = 0;
    return DREY_OK;
}

static drey_status check_ids(const session_file *f, int32_t n_vocab, drey_error *err)
{
    for (int64_t i = 0; i < f->header.n_tokens + (int64_t)f->header.n_input; i++)
        if (f->ids[i] < 0 || f->ids[i] >= n_vocab)
            return damaged(f, err);
    return DREY_OK;
}

/* Checks what is read by its hashes: first through the buffer, then into the session's cache,
 * because a disk may return other bytes the second time. */
static drey_status read_pieces(const session_file *f, const text_cache *cache, bool to_cache,
                               drey_error *err)
{
    const session_header *h = &f->header;
    uint64_t at = pieces_at(h), expected;
    for (int32_t i = 0; i < n_parts(h, cache); i++) {
        size_t n = part_bytes(h, cache, i);
        hash64 hash;
        hash64_init(&hash);
        TRY(read_hashed(f, &at, to_cache ? part_of(h, cache, i, true) : NULL, n, &hash, err));
        TRY(read_at(f, at, &expected, sizeof expected, err));
        at += sizeof expected;
        if (hash64_get(&hash) != expected)
            return damaged(f, err);
    }
    return DREY_OK;
}

static drey_status open_file(session_file *f, drey_error *err)
{
    TRY(file_open(&f->file, f->path, false, err));
    f->buffer = malloc(BUFFER_BYTES);
    if (!f->buffer)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory to load %s", SHOWN_PATH(f->path));
    TRY(read_at(f, 0, &f->header, min_size((size_t)f->file.n_bytes, sizeof f->header), err));
    return check_header(f, err);
}

static drey_status read_checked(session_file *f, const session_contents *s, bool keep_note,
                                drey_error *err)
{
    TRY(open_file(f, err));
    TRY(check_origin(f, s, err));
    TRY(read_body(f, true, keep_note ? DREY_MAX_NOTE_BYTES : 0, err));
    TRY(check_ids(f, s->n_vocab, err));
    return read_pieces(f, s->cache, false, err);
}

drey_status session_file_open(session_file *f, const char *path, const session_contents *s,
                              bool keep_note, drey_error *err)
{
    *f = (session_file){.path = path, .file.fd = -1};
    drey_status status = read_checked(f, s, keep_note, err);
    if (status != DREY_OK)
        session_file_close(f);
    return status;
}

/* The file's contents, and its note, which the caller then owns. */
static void give(session_file *f, drey_saved_session *saved)
{
    const session_header *h = &f->header;
    *saved = (drey_saved_session){.sampling = {.temperature = h->temperature,
                                               .top_k = h->top_k,
                                               .top_p = h->top_p,
                                               .min_p = h->min_p,
                                               .seed = h->seed},
                                  .n_tokens = h->n_tokens,
                                  .n_kept = h->n_committed,
                                  .note = f->note,
                                  .n_note_bytes = (size_t)h->n_note_bytes};
    f->note = NULL;
}

drey_status session_file_take(session_file *f, text_cache *cache, int32_t *timeline, int32_t *input,
                              drey_saved_session *saved, drey_error *err)
{
    const session_header *h = &f->header;
    cache_clear(cache);
    TRY(read_pieces(f, cache, true, err));
    cache_restore(cache, h->n_committed);
    memcpy(timeline, f->ids, timeline_bytes(h));
    if (h->n_input)
        memcpy(input, f->ids + h->n_tokens, input_bytes(h));
    give(f, saved);
    return DREY_OK;
}

drey_status drey_saved_session_read(const char *path, size_t most_note_bytes,
                                    drey_saved_session *saved, drey_error *err)
{
    session_file f = {.path = path, .file.fd = -1};
    drey_status status = open_file(&f, err);
    if (status == DREY_OK && f.file.n_bytes < pieces_at(&f.header))
        status = damaged(&f, err);
    if (status == DREY_OK)
        status = read_body(&f, false, most_note_bytes, err);
    if (status == DREY_OK)
        give(&f, saved);
    session_file_close(&f);
    return status;
}
