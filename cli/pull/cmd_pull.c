/* drey pull: downloads a model, after the plan that its header allows.
 *
 *   which files are meant -> each header -> the plan -> room on the disk -> the rest -> the sum
 *
 * A header has the sizes of all tensors, so the plan is the one of the whole model: the header's
 * bytes are put into a file that has the model's length and no more bytes. What has come of a model
 * is kept as NAME.part, which is locked as long as a process writes it. NAME.part.of says of which
 * file on the server that is. */
#include "cli/commands/commands.h"
#include "cli/files/cache_folder.h"
#include "cli/pull/header_folder.h"
#include "cli/pull/hub.h"
#include "cli/pull/program.h"
#include "cli/terminal/format.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "common/new_file.h"
#include "common/path.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { USUAL_TIMEOUT_S = 30 };
/* A header is read in this many bytes at first; vocabularies make some MiB of it. */
static const uint64_t first_header = 4 << 20, longest_header = 256 << 20;

/* One file of the model. */
typedef struct pulled {
    const hub_file *from;
    remote_file about;
    char path[PATH_MAX], part[PATH_MAX], of[PATH_MAX], header[PATH_MAX];
    new_file file; /* the part, locked */
    bool is_here;
} pulled;

typedef struct pulling {
    const cli_settings *settings;
    transfer transfer;
    char folder[PATH_MAX];
    header_folder headers;
    hub_files found;
    pulled *files; /* [found.n] */
    progress progress;
    uint64_t before, n_bytes; /* of files that are here, and of all */
} pulling;

static drey_status join(char out[PATH_MAX], const char *folder, const char *name,
                        const char *ending, drey_error *err)
{
    if (snprintf(out, PATH_MAX, "%s/%s%s", folder, name, ending) >= PATH_MAX)
        FAIL(err, DREY_ERR_USAGE, "the path of %.100s is too long", name);
    return DREY_OK;
}

static bool bytes_at(const char *path, uint64_t *n)
{
    struct stat s;
    bool is_file = stat(path, &s) == 0 && S_ISREG(s.st_mode);
    *n = is_file ? (uint64_t)s.st_size : 0;
    return is_file;
}

/* ---- Where it goes ---- */

/* -o, else $DREY_MODELS, else the models in the user's cache folder. */
static drey_status find_folder(pulling *p, drey_error *err)
{
    const char *said = p->settings->output ? p->settings->output : getenv("DREY_MODELS");
    if (said && *said) {
        if (snprintf(p->folder, sizeof p->folder, "%s", said) >= PATH_MAX - 64)
            FAIL(err, DREY_ERR_USAGE, "the path of the folder is too long");
    } else {
        TRY(cache_place(p->folder, PATH_MAX - 64, "models", err));
    }
    char inside[PATH_MAX];
    TRY(join(inside, p->folder, "", "", err));
    new_file_make_folders(inside);
    struct stat s;
    if (stat(p->folder, &s) != 0 || !S_ISDIR(s.st_mode))
        FAIL(err, DREY_ERR_IO, "%s is no folder and cannot be made one", SHOWN_PATH(p->folder));
    return header_folder_open(&p->headers, p->folder, err);
}

static drey_status name_files(pulling *p, drey_error *err)
{
    p->files = calloc((size_t)p->found.n, sizeof *p->files);
    if (!p->files)
        FAIL(err, DREY_ERR_MEMORY, "out of memory");
    for (int32_t i = 0; i < p->found.n; i++)
        p->files[i] = (pulled){.from = &p->found.file[i], .file.fd = -1};
    for (int32_t i = 0; i < p->found.n; i++) {
        pulled *f = &p->files[i];
        TRY(join(f->path, p->folder, f->from->name, "", err));
        TRY(join(f->part, p->folder, f->from->name, ".part", err));
        TRY(join(f->of, p->folder, f->from->name, ".part.of", err));
        TRY(join(f->header, p->headers.path, f->from->name, "", err));
    }
    return DREY_OK;
}

/* Closes and unlocks the part; one without a byte is of no use. */
static void close_part(pulled *f)
{
    struct stat s;
    if (f->file.fd >= 0 && fstat(f->file.fd, &s) == 0 && s.st_size == 0) {
        unlink(f->of);
        unlink(f->file.partial);
    }
    new_file_discard(&f->file);
}

static void clean_up(pulling *p)
{
    for (int32_t i = 0; p->files && i < p->found.n; i++)
        close_part(&p->files[i]);
    header_folder_close(&p->headers);
    free(p->files);
    hub_release(&p->found);
}

/* ---- The header ---- */

/* Its first n bytes, and holes up to its length. */
static drey_status take_header(pulling *p, pulled *f, uint64_t n, drey_error *err)
{
    new_file header = {.fd = open(f->header, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666),
                       .path = p->folder};
    if (header.fd < 0)
        FAIL(err, DREY_ERR_IO, "cannot write to %s: %s", SHOWN_PATH(p->folder), strerror(errno));
    drey_status status = transfer_beginning(&p->transfer, f->from->url, &header, n, &f->about, err);
    if (status == DREY_OK && f->about.in_parts &&
        ftruncate(header.fd, (off_t)(f->about.n_bytes ? f->about.n_bytes : f->from->n_bytes)) != 0)
        status = error_set(err, DREY_ERR_IO, "cannot write to %s: %s", SHOWN_PATH(p->folder),
                           strerror(errno));
    close(header.fd);
    TRY(status);
    if (f->about.n_bytes == 0)
        f->about.n_bytes = f->from->n_bytes;
    if (f->about.n_bytes == 0)
        FAIL(err, DREY_ERR_IO, "%.200s: the server does not say how long it is", f->from->url);
    if (f->from->n_bytes && f->from->n_bytes != f->about.n_bytes)
        FAIL(err, DREY_ERR_IO, "%s: the hub lists %llu bytes, and its server has %llu",
             SHOWN_PATH(f->from->name), (unsigned long long)f->from->n_bytes,
             (unsigned long long)f->about.n_bytes);
    return DREY_OK;
}

/* p->n_bytes: 0 until all are there. */
static drey_status take_headers(pulling *p, uint64_t n, drey_error *err)
{
    uint64_t n_bytes = 0;
    p->n_bytes = 0;
    for (int32_t i = 0; i < p->found.n; i++) {
        TRY(take_header(p, &p->files[i], n, err));
        n_bytes += p->files[i].about.n_bytes;
    }
    p->n_bytes = n_bytes;
    return DREY_OK;
}

/* Headers that are long enough to open the model. Where the server gives no parts of files nothing
 * is known before: *known is false. */
static drey_status find_header(pulling *p, bool *known, drey_error *err)
{
    drey_status status = DREY_OK;
    *known = false;
    for (uint64_t n = first_header; !*known && n <= longest_header; n *= 4) {
        drey_model *model = NULL;
        TRY(take_headers(p, n, err));
        if (!p->files[0].about.in_parts)
            return DREY_OK;
        status = drey_model_open(&model, p->files[0].header, err);
        *known = status == DREY_OK;
        drey_model_close(&model);
        if (n >= p->files[0].about.n_bytes)
            break;
    }
    return status;
}

/* What drey plan would show of it. */
static drey_status show_plan(pulling *p, drey_error *err)
{
    bool known;
    drey_status status = find_header(p, &known, err);
    if (status == DREY_OK && !known && !p->settings->quiet)
        fprintf(stderr, "no plan: the server gives no parts of files, as their headers\n");
    if (status == DREY_OK && known && !p->settings->quiet) {
        cli_settings s = *p->settings;
        s.common.model = p->files[0].header;
        status = plan_show(&s, err);
    }
    if (status == DREY_OK || status == DREY_ERR_CANCELLED || p->n_bytes == 0)
        return status;
    if (!p->settings->prepare.force) {
        const drey_error why = *err;
        return error_set(err, status, "%.400s; --force downloads it all the same", why.message);
    }
    complain("%s", err->message);
    return DREY_OK;
}

/* ---- What is here already ---- */

/* Of which file on the server a part is. */
static void version_of(const pulled *f, char out[256])
{
    snprintf(out, 256, "%llu %s %s\n", (unsigned long long)f->about.n_bytes, f->about.version,
             f->from->sha256);
}

/* Bytes of the part that can be continued. */
static uint64_t usable_bytes(const pulled *f)
{
    char want[256], has[256] = "";
    version_of(f, want);
    FILE *of = fopen(f->of, "r");
    if (of) {
        size_t n = fread(has, 1, sizeof has - 1, of);
        has[n] = '\0';
        fclose(of);
    }
    uint64_t n;
    bool good = bytes_at(f->part, &n) && n <= f->about.n_bytes && strcmp(want, has) == 0;
    return good ? n : 0;
}

/* Empties the part and says of which file it is, on the disk before a byte comes: after a power
 * failure it is continued. */
static drey_status begin_part(const pulled *f, drey_error *err)
{
    char of[256];
    version_of(f, of);
    FILE *file = ftruncate(f->file.fd, 0) == 0 && fsync(f->file.fd) == 0 ? fopen(f->of, "w") : NULL;
    bool written = file && fputs(of, file) >= 0 && fflush(file) == 0 && fsync(fileno(file)) == 0;
    if ((file && fclose(file) != 0) || !written)
        FAIL(err, DREY_ERR_IO, "cannot write %s: %s", SHOWN_PATH(f->of), strerror(errno));
    return DREY_OK;
}

/* Returns whether the file is here, whole. */
static bool is_here(const pulling *p, const pulled *f)
{
    uint64_t n;
    return bytes_at(f->path, &n) && n == f->about.n_bytes && !p->settings->prepare.force;
}

/* Opens and locks the part of a file that is not here; DREY_ERR_IO: another process writes it. */
static drey_status open_part(pulling *p, pulled *f, drey_error *err)
{
    TRY(new_file_resume(&f->file, f->path, ".part", err));
    f->is_here = is_here(p, f); /* another process may just have finished it */
    return f->is_here || usable_bytes(f) > 0 ? DREY_OK : begin_part(f, err);
}

static drey_status check_room(const pulling *p, uint64_t n_bytes, drey_error *err)
{
    struct statvfs disk;
    char need[16], has[16];
    if (statvfs(p->folder, &disk) != 0)
        return DREY_OK;
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (n_bytes > room)
        FAIL(err, DREY_ERR_IO, "the download needs %s of disk space, and %s has %s free",
             format_bytes(need, (double)n_bytes), SHOWN_PATH(p->folder),
             format_bytes(has, (double)room));
    return DREY_OK;
}

static drey_status check_free_name(const pulling *p, const pulled *f, drey_error *err)
{
    if (access(f->path, F_OK) == 0 && !p->settings->prepare.force)
        FAIL(err, DREY_ERR_USAGE, "%s is there and is another file; --force replaces it",
             SHOWN_PATH(f->path));
    return DREY_OK;
}

/* Which files are here, and whether there is room for the others. */
static drey_status look_around(pulling *p, drey_error *err)
{
    uint64_t missing = 0;
    for (int32_t i = 0; i < p->found.n; i++) {
        pulled *f = &p->files[i];
        f->is_here = is_here(p, f);
        if (f->is_here && access(f->part, F_OK) != 0)
            unlink(f->of); /* a process ended before it could */
        if (f->is_here)
            continue;
        TRY(check_free_name(p, f, err));
        if (!p->settings->prepare.dry_run)
            TRY(open_part(p, f, err));
        missing += f->is_here ? 0 : f->about.n_bytes - usable_bytes(f);
    }
    return check_room(p, missing, err);
}

/* ---- The rest ---- */

static void on_bytes(void *user, uint64_t n)
{
    pulling *p = user;
    if (p->before + n < p->n_bytes)
        progress_report(&p->progress, DREY_PROGRESS_LOAD_TARGET, p->before + n, p->n_bytes);
}

/* By sha256sum, which reads from a file that is shared with it: its place shows how far it is. */
static drey_status sum_of(pulling *p, const pulled *f, char out[256], drey_error *err)
{
    char *words[] = {"sha256sum", NULL}, said[256];
    program c;
    size_t n = 0, n_said = 0;
    bool has_out;
    int file = f->file.fd;
    if (lseek(file, 0, SEEK_SET) != 0)
        FAIL(err, DREY_ERR_IO, "cannot read %s: %s", SHOWN_PATH(f->part), strerror(errno));
    TRY(program_start(&c, words, file, err));
    while (program_wait(&c, &has_out)) {
        n += program_read(&c.out, out + n, 255 - n);
        n_said += program_read(&c.said, said + n_said, sizeof said - 1 - n_said);
        off_t at = lseek(file, 0, SEEK_CUR);
        if (signals_exit_code()) {
            program_stop(&c);
            return DREY_ERR_CANCELLED;
        }
        if ((uint64_t)at < f->about.n_bytes)
            progress_report(&p->progress, DREY_PROGRESS_CHECK, (uint64_t)at, f->about.n_bytes);
    }
    out[n] = said[n_said] = '\0';
    if (program_end(&c) != 0)
        FAIL(err, DREY_ERR_IO, "sha256sum failed: %.200s", said);
    return DREY_OK;
}

/* Compares the sum with the hub's. Nobody else writes the part: it is the sum of what gets the
 * name. */
static drey_status check_sum(pulling *p, const pulled *f, drey_error *err)
{
    char sum[256];
    if (!f->from->sha256[0])
        return DREY_OK;
    drey_status status = sum_of(p, f, sum, err);
    progress_clear(&p->progress);
    TRY(status);
    if (strncmp(sum, f->from->sha256, 64) == 0)
        return DREY_OK;
    if (ftruncate(f->file.fd, 0) != 0)
        FAIL(err, DREY_ERR_IO, "cannot write %s: %s", SHOWN_PATH(f->part), strerror(errno));
    FAIL(err, DREY_ERR_IO,
         "%s is not what the hub describes (its SHA-256 is another); it was removed: try again",
         SHOWN_PATH(f->from->name));
}

static drey_status pull_file(pulling *p, pulled *f, drey_error *err)
{
    p->progress.label = "downloading";
    drey_status status =
        transfer_rest(&p->transfer, f->from->url, &f->file, &f->about, on_bytes, p, err);
    progress_clear(&p->progress);
    TRY(status);
    TRY(check_sum(p, f, err));
    TRY(check_free_name(p, f, err));
    TRY(new_file_commit(&f->file, err));
    unlink(f->of);
    return DREY_OK;
}

/* Returns $HF_ENDPOINT without a slash at its end, or Hugging Face. */
static drey_status find_hub(char out[PATH_MAX], drey_error *err)
{
    const char *hub = getenv("HF_ENDPOINT");
    hub = hub && *hub ? hub : "https://huggingface.co";
    size_t n = strlen(hub);
    while (n > 0 && hub[n - 1] == '/')
        n--;
    bool good = hub_is_url(hub) && n < PATH_MAX;
    for (size_t i = 0; i < n; i++)
        good &= hub[i] > ' ' && hub[i] < 0x7f && !strchr("?#\\\"", hub[i]);
    if (!good)
        FAIL(err, DREY_ERR_USAGE,
             "HF_ENDPOINT is no address of a hub, such as https://huggingface.co: %.200s", hub);
    snprintf(out, PATH_MAX, "%.*s", (int)n, hub);
    return DREY_OK;
}

/* A token goes into a line of settings: characters that could end it are not accepted. */
static drey_status check_token(const char *token, drey_error *err)
{
    for (const char *at = token; at && *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_-.", *at))
            FAIL(err, DREY_ERR_USAGE,
                 "HF_TOKEN has characters that no token has; give letters, digits, _, - and .");
    return DREY_OK;
}

/* Returns $HF_TOKEN, for the hub alone; NULL: it is not set. */
static const char *find_token(const char *word)
{
    const char *token = hub_is_url(word) ? NULL : getenv("HF_TOKEN");
    return token && *token ? token : NULL;
}

static drey_status pull_all(pulling *p, drey_error *err)
{
    const cli_settings *s = p->settings;
    char hub[PATH_MAX];
    TRY(find_hub(hub, err));
    TRY(check_token(p->transfer.token, err));
    TRY(hub_find(&p->found, &p->transfer, hub, s->operand, err));
    TRY(find_folder(p, err));
    TRY(name_files(p, err));
    TRY(show_plan(p, err));
    TRY(look_around(p, err));
    for (int32_t i = 0; i < p->found.n && !s->prepare.dry_run; i++) {
        if (!p->files[i].is_here)
            TRY(pull_file(p, &p->files[i], err));
        p->before += p->files[i].about.n_bytes;
    }
    if (!s->prepare.dry_run)
        printf("%s\n", p->files[0].path);
    return DREY_OK;
}

int pull_main(const cli_settings *settings)
{
    pulling p = {.settings = settings,
                 .transfer = {.token = find_token(settings->operand),
                              .timeout_s = option_given(settings, "timeout")
                                               ? settings->serve.timeout_s
                                               : USUAL_TIMEOUT_S},
                 .progress.quiet = settings->quiet,
                 .headers.fd = -1};
    drey_error err = {0};
    signals_note();
    drey_status status = pull_all(&p, &err);
    clean_up(&p);
    if (status == DREY_ERR_CANCELLED && !settings->quiet)
        fprintf(stderr, "what has come is kept: the same command continues\n");
    return exit_with(status, &err);
}
