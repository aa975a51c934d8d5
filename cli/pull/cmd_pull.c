/* drey pull: downloads a model, after the plan that its header allows.
 *
 *   which files are meant -> each header -> the plan -> room on the disk -> the rest -> the sum
 *
 * A header has the sizes of all tensors, so the plan is the one of the whole model: the header's
 * bytes are put into a file that has the model's length and no more bytes. What has come of a model
 * is kept as NAME.part. NAME.part.of says of which file on the server that is. */
#include "cli/commands/commands.h"
#include "cli/files/cache_folder.h"
#include "cli/pull/program.h"
#include "cli/pull/hub.h"
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
    bool is_here;
} pulled;

typedef struct pulling {
    const cli_settings *settings;
    transfer transfer;
    char folder[PATH_MAX], headers[PATH_MAX]; /* headers: removed at the end */
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
    TRY(join(p->headers, p->folder, ".headers-XXXXXX", "", err));
    if (!mkdtemp(p->headers)) {
        p->headers[0] = '\0';
        FAIL(err, DREY_ERR_IO, "nothing can be written to %s: %s", SHOWN_PATH(p->folder),
             strerror(errno));
    }
    return DREY_OK;
}

static drey_status name_files(pulling *p, drey_error *err)
{
    p->files = calloc((size_t)p->found.n, sizeof *p->files);
    if (!p->files)
        FAIL(err, DREY_ERR_MEMORY, "out of memory");
    for (int32_t i = 0; i < p->found.n; i++) {
        pulled *f = &p->files[i];
        f->from = &p->found.file[i];
        TRY(join(f->path, p->folder, f->from->name, "", err));
        TRY(join(f->part, p->folder, f->from->name, ".part", err));
        TRY(join(f->of, p->folder, f->from->name, ".part.of", err));
        TRY(join(f->header, p->headers, f->from->name, "", err));
    }
    return DREY_OK;
}

static void clean_up(pulling *p)
{
    for (int32_t i = 0; p->files && i < p->found.n; i++)
        unlink(p->files[i].header);
    if (p->headers[0])
        rmdir(p->headers);
    free(p->files);
    hub_release(&p->found);
}

/* ---- The header ---- */

/* Its first n bytes, and holes up to its length. */
static drey_status take_header(pulling *p, pulled *f, uint64_t n, drey_error *err)
{
    unlink(f->header);
    TRY(transfer_beginning(&p->transfer, f->from->url, f->header, n, &f->about, err));
    if (f->from->n_bytes && f->from->n_bytes != f->about.n_bytes)
        FAIL(err, DREY_ERR_IO, "%s: the hub lists %llu bytes, and its server has %llu",
             f->from->name, (unsigned long long)f->from->n_bytes,
             (unsigned long long)f->about.n_bytes);
    if (f->about.in_parts && truncate(f->header, (off_t)f->about.n_bytes) != 0)
        FAIL(err, DREY_ERR_IO, "cannot write to %s: %s", SHOWN_PATH(p->folder), strerror(errno));
    return DREY_OK;
}

static drey_status take_headers(pulling *p, uint64_t n, drey_error *err)
{
    p->n_bytes = 0;
    for (int32_t i = 0; i < p->found.n; i++) {
        TRY(take_header(p, &p->files[i], n, err));
        p->n_bytes += p->files[i].about.n_bytes;
    }
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
        s.plan.no_measure = true;
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

/* A part of another file on the server is of no use. */
static drey_status look_at_part(const pulled *f, drey_error *err)
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
    if (good)
        return DREY_OK;
    unlink(f->part);
    of = fopen(f->of, "w");
    if (!of || fputs(want, of) < 0 || fclose(of) != 0)
        FAIL(err, DREY_ERR_IO, "cannot write %s: %s", SHOWN_PATH(f->of), strerror(errno));
    return DREY_OK;
}

/* Which files are here, and whether there is room for the others. */
static drey_status look_around(pulling *p, drey_error *err)
{
    uint64_t missing = 0, n;
    struct statvfs disk;
    for (int32_t i = 0; i < p->found.n; i++) {
        pulled *f = &p->files[i];
        f->is_here = bytes_at(f->path, &n) && n == f->about.n_bytes && !p->settings->prepare.force;
        if (f->is_here)
            continue;
        if (access(f->path, F_OK) == 0 && !p->settings->prepare.force)
            FAIL(err, DREY_ERR_USAGE, "%s is there and is another file; --force replaces it",
                 SHOWN_PATH(f->path));
        TRY(look_at_part(f, err));
        bytes_at(f->part, &n);
        missing += f->about.n_bytes - n;
    }
    if (statvfs(p->folder, &disk) == 0) {
        uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
        char need[16], has[16];
        if (missing > room)
            FAIL(err, DREY_ERR_IO, "the download needs %s of disk space, and %s has %s free",
                 format_bytes(need, (double)missing), SHOWN_PATH(p->folder),
                 format_bytes(has, (double)room));
    }
    return DREY_OK;
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
    char *words[] = {"sha256sum", NULL};
    program c;
    size_t n = 0;
    int file = open(f->part, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        FAIL(err, DREY_ERR_IO, "cannot read %s: %s", SHOWN_PATH(f->part), strerror(errno));
    drey_status status = program_start(&c, words, file, err);
    out[0] = '\0';
    while (status == DREY_OK && program_read(&c, out, 256, &n)) {
        off_t at = lseek(file, 0, SEEK_CUR);
        if (signals_exit_code()) {
            program_stop(&c);
            status = DREY_ERR_CANCELLED;
        } else if ((uint64_t)at < f->about.n_bytes) {
            progress_report(&p->progress, DREY_PROGRESS_CHECK, (uint64_t)at, f->about.n_bytes);
        }
    }
    progress_clear(&p->progress);
    close(file);
    if (status == DREY_OK && program_end(&c) != 0)
        status = error_set(err, DREY_ERR_IO, "sha256sum failed: %.200s", out);
    return status;
}

static drey_status check_sum(pulling *p, const pulled *f, drey_error *err)
{
    char sum[256];
    if (!f->from->sha256[0])
        return DREY_OK;
    TRY(sum_of(p, f, sum, err));
    if (strncmp(sum, f->from->sha256, 64) == 0)
        return DREY_OK;
    unlink(f->part);
    FAIL(err, DREY_ERR_IO,
         "%s is not what the hub describes (its SHA-256 is another); it was removed: try again",
         f->from->name);
}

static drey_status pull_file(pulling *p, const pulled *f, drey_error *err)
{
    p->progress.label = "downloading";
    drey_status status =
        transfer_rest(&p->transfer, f->from->url, f->part, &f->about, on_bytes, p, err);
    progress_clear(&p->progress);
    TRY(status);
    uint64_t n;
    if (bytes_at(f->part, &n) && n != f->about.n_bytes) {
        unlink(f->part);
        FAIL(err, DREY_ERR_IO, "%s: the server sent more than the file's %llu bytes; try again",
             f->from->name, (unsigned long long)f->about.n_bytes);
    }
    TRY(check_sum(p, f, err));
    if (rename(f->part, f->path) != 0)
        FAIL(err, DREY_ERR_IO, "cannot write %s: %s", SHOWN_PATH(f->path), strerror(errno));
    unlink(f->of);
    return DREY_OK;
}

static drey_status pull_all(pulling *p, drey_error *err)
{
    const cli_settings *s = p->settings;
    const char *hub = getenv("HF_ENDPOINT");
    hub = hub && *hub ? hub : "https://huggingface.co";
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

/* A token goes into a line of settings: characters that could end it are not accepted. */
static const char *token_for(const char *word)
{
    const char *token = hub_is_url(word) ? NULL : getenv("HF_TOKEN");
    for (const char *at = token; at && *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_-.", *at))
            return NULL;
    return token && *token ? token : NULL;
}

int pull_main(const cli_settings *settings)
{
    pulling p = {.settings = settings,
                 .transfer = {.token = token_for(settings->operand),
                              .timeout_s = option_given(settings, "timeout")
                                               ? settings->serve.timeout_s
                                               : USUAL_TIMEOUT_S},
                 .progress.quiet = settings->quiet};
    drey_error err = {0};
    signals_note();
    drey_status status = pull_all(&p, &err);
    clean_up(&p);
    if (status == DREY_ERR_CANCELLED && !settings->quiet)
        fprintf(stderr, "what has come is kept: the same command continues\n");
    return exit_with(status, &err);
}
