/* drey pull: downloads a model, after the plan that its header allows.
 *
 *   which files are meant -> each header -> the plan -> room on the disk -> the rest -> the sum
 *
 * A header has the sizes of all tensors, so the plan is the one of the whole model: the header's
 * bytes are put into a file that has the model's length and no more bytes. What has come of a model
 * is kept as NAME.part, which is locked as long as a process writes it. NAME.part.of says of which
 * file on the server that is. */
#include "cli/commands/commands.h"
#include "cli/models/ask_yes.h"
#include "cli/models/draft_family.h"
#include "cli/models/model_files.h"
#include "cli/models/model_store.h"
#include "cli/pull/download_line.h"
#include "cli/pull/header_folder.h"
#include "cli/pull/hub.h"
#include "cli/pull/program.h"
#include "cli/typing/ask_line.h"
#include "cli/terminal/hints.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/terminal_page.h"
#include "common/new_file.h"
#include "common/path.h"
#include "common/size_text.h"
#include "drey/tune.h"

#include <ctype.h>
#include <dirent.h>
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

/* A model that is downloaded: the one that was named, or the draft that goes with it. */
typedef struct pulling {
    const cli_settings *settings;
    transfer transfer;
    char folder[PATH_MAX];
    const header_folder *headers;
    hub_files found;
    pulled *files; /* [found.n] */
    bool is_draft;
    progress progress;
    download_line line;
    uint64_t before, n_bytes; /* bytes of files that are here, and of all */
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

/* -o, else the folder of models. */
static drey_status find_folder(pulling *p, header_folder *headers, drey_error *err)
{
    const char *said = p->settings->output;
    if (said && snprintf(p->folder, sizeof p->folder, "%s", said) >= PATH_MAX - 64)
        FAIL(err, DREY_ERR_USAGE, "the path of the folder is too long");
    if (!said)
        TRY(model_store_folder(p->folder, err));
    char inside[PATH_MAX];
    TRY(join(inside, p->folder, "", "", err));
    new_file_make_folders(inside);
    struct stat s;
    if (stat(p->folder, &s) != 0 || !S_ISDIR(s.st_mode))
        FAIL(err, DREY_ERR_IO, "%s is no folder and cannot be made one", SHOWN_PATH(p->folder));
    p->headers = headers;
    return header_folder_open(headers, p->folder, err);
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
        TRY(join(f->header, p->headers->path, f->from->name, "", err));
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
    free(p->files);
    p->files = NULL;
    hub_release(&p->found);
}

/* ---- The header ---- */

/* Its first n bytes, and holes up to its length. */
static drey_status take_header(pulling *p, pulled *f, uint64_t n, drey_error *err)
{
    unlink(f->header); /* it may be a link to a model of that name, which stays as it is */
    new_file header = {
        .fd = open(f->header, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666),
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

/* Shows the plan of drey plan for it, with what is in the folder of headers besides. */
static drey_status show_plan(const pulling *p, drey_error *err)
{
    if (p->settings->quiet)
        return DREY_OK;
    cli_settings s = *p->settings;
    s.common.model = p->files[0].header;
    return plan_show(&s, err);
}

/* Puts a link to a model of the folder next to the header. False: it is the model itself. */
static bool link_neighbour(const pulling *p, const char *name)
{
    char from[PATH_MAX], to[PATH_MAX];
    if (join(from, p->folder, name, "", NULL) != DREY_OK ||
        join(to, p->headers->path, name, "", NULL) != DREY_OK)
        return false;
    char *real = realpath(from, NULL);
    bool linked = real && symlink(real, to) == 0;
    free(real);
    return linked;
}

/* Models that are in the folder already may draft for this one: plans see them next to it. Returns
 * whether there are any. */
static bool link_neighbours(const pulling *p)
{
    bool any = false;
    DIR *folder = opendir(p->folder);
    for (const struct dirent *e; folder && (e = readdir(folder));)
        if (e->d_name[0] != '.' && path_ends(e->d_name, ".gguf"))
            any = link_neighbour(p, e->d_name) || any;
    if (folder)
        closedir(folder);
    return any;
}

/* ---- What is here already ---- */

/* Writes the version of the server's file to which a part belongs. */
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

/* Finds the files that are here, and whether there is room for the others. */
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
        download_line_show(&p->line, &p->progress, p->before + n, p->n_bytes);
}

/* Makes the sum by sha256sum, which reads from a file that is shared with it: its place shows how
 * far it is. */
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
    p->progress.label = "checking";
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
    p->progress.label = p->is_draft ? "downloading the draft" : "downloading";
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

/* Finds the files of a word on the hub. */
static drey_status find_files(pulling *p, const char *said, drey_error *err)
{
    char hub[PATH_MAX], word[HUB_WORD_BYTES];
    TRY(find_hub(hub, err));
    TRY(hub_name_of(word, hub, said, err));
    p->transfer.token = find_token(word);
    TRY(check_token(p->transfer.token, err));
    return hub_find(&p->found, &p->transfer, hub, word, err);
}

static drey_status fetch(pulling *p, drey_error *err)
{
    for (int32_t i = 0; i < p->found.n; i++) {
        if (!p->files[i].is_here)
            TRY(pull_file(p, &p->files[i], err));
        p->before += p->files[i].about.n_bytes;
    }
    return DREY_OK;
}

/* ---- The draft that goes with it ---- */

/* Drafts for the model, by its header. */
typedef struct prospect {
    model_facts facts;
    const draft_family *family; /* NULL: not known, or it has no draft that pays */
    double gain;
    bool has_one; /* a model of the folder drafts for it already */
} prospect;

/* Looks for a draft; the gain is by what a plan with the same budget streams. */
static void look_for_draft(const pulling *p, prospect *x)
{
    const int32_t default_context = 1024, given = p->settings->common.n_context;
    drey_engine_options o;
    drey_plan plan = {0};
    drey_model *model = NULL;
    drey_draft_choice choice = {.draft = NULL};
    *x = (prospect){.gain = 1};
    if (model_facts_read(&x->facts, p->files[0].header, NULL) != DREY_OK ||
        drey_model_open(&model, p->files[0].header, NULL) != DREY_OK)
        return;
    drey_engine_options_init(&o);
    o.target = model;
    o.memory_bytes = p->settings->common.memory_bytes;
    o.n_context = given ? given : default_context;
    drey_plan_make(&o, NULL, &plan, NULL);
    x->has_one =
        link_neighbours(p) && drey_choose_draft(&o, NULL, &choice, NULL) == DREY_OK && choice.draft;
    drey_draft_choice_close(&choice);
    drey_model_close(&model);
    x->family = draft_family_of(&x->facts);
    if (x->family)
        x->gain = draft_family_gain(x->family, &x->facts, plan.streamed_bytes_per_pass);
}

/* DREY_ERR_MISMATCH: the tokens differ. */
static drey_status check_tokens(const pulling *p, const pulling *draft, drey_error *err)
{
    drey_engine_options o;
    drey_planner *planner = NULL;
    drey_model *target = NULL, *small = NULL;
    drey_engine_options_init(&o);
    drey_status status = drey_model_open(&target, p->files[0].header, err);
    if (status == DREY_OK)
        status = drey_model_open(&small, draft->files[0].header, err);
    o.target = target;
    o.draft = small;
    o.drafter = DREY_DRAFTER_MODEL;
    o.n_context = 256; /* any */
    if (status == DREY_OK)
        status = drey_planner_open(&planner, &o, err);
    drey_planner_close(&planner);
    drey_model_close(&small);
    drey_model_close(&target);
    return status;
}

static drey_status find_draft(const pulling *p, pulling *draft, const draft_family *family,
                              drey_error *err)
{
    bool known;
    snprintf(draft->folder, sizeof draft->folder, "%s", p->folder);
    draft->headers = p->headers;
    TRY(find_files(draft, family->draft, err));
    TRY(name_files(draft, err));
    TRY(find_header(draft, &known, err));
    return known ? check_tokens(p, draft, err) : DREY_OK;
}

/* Takes the draft as well; where that is not possible, the model comes alone. */
static drey_status take_draft(const pulling *p, pulling *draft, const prospect *x)
{
    drey_error why = {0};
    drey_status status = find_draft(p, draft, x->family, &why);
    if (status == DREY_OK)
        return DREY_OK;
    for (int32_t i = 0; draft->files && i < draft->found.n; i++)
        unlink(draft->files[i].header); /* no plan is to see it */
    clean_up(draft);
    if (status == DREY_ERR_CANCELLED)
        return status;
    complain("the draft %s is left out: %s", x->family->draft, why.message);
    return DREY_OK;
}

/* Takes the draft that --draft asks for, before the plan, which is that of both. */
static drey_status take_asked_draft(const pulling *p, pulling *draft, const prospect *x)
{
    if (!p->settings->prepare.draft || x->has_one)
        return DREY_OK;
    if (x->family && x->family->draft)
        return take_draft(p, draft, x);
    complain("--draft: no small model is known to have the tokens of this one%s%s",
             x->family ? "; what drafts without one: " : "", x->family ? x->family->otherwise : "");
    return DREY_OK;
}

/* Offers a draft without --draft, after the plan: asks a person, and says it to others. */
static drey_status offer_draft(const pulling *p, pulling *draft, const prospect *x)
{
    const cli_settings *s = p->settings;
    char words[300] = "", question[400], size[16], then[48];
    if (s->prepare.draft || s->prepare.no_draft || s->quiet || x->has_one || !x->family ||
        !x->family->draft)
        return DREY_OK;
    draft_family_words(x->family, &x->facts, x->gain, words, sizeof words);
    if (!*words)
        return DREY_OK;
    if (!asker_at_terminal() || s->prepare.dry_run) {
        fprintf(page_of(stderr), "%s\n", words);
        return DREY_OK;
    }
    snprintf(question, sizeof question, "fetch its draft as well, %s (%s)%s?", x->family->draft,
             format_bytes(size, x->family->draft_bytes),
             draft_family_gain_text(x->gain, &x->facts, then));
    bool wanted = ask_yes(question, true);
    if (signals_exit_code())
        return DREY_ERR_CANCELLED;
    return wanted ? take_draft(p, draft, x) : DREY_OK;
}

/* ---- All ---- */

/* A plan that fails ends the download, unless --force says otherwise. */
static drey_status continue_anyway(const pulling *p, drey_status status, drey_error *err)
{
    if (status == DREY_OK || status == DREY_ERR_CANCELLED || p->n_bytes == 0)
        return status;
    if (!p->settings->prepare.force) {
        const drey_error why = *err;
        return error_set(err, status, "%.400s; --force downloads it all the same", why.message);
    }
    complain("%s", err->message);
    return DREY_OK;
}

static drey_status plan_all(pulling *p, pulling *draft, drey_error *err)
{
    bool known;
    prospect x;
    drey_status status = find_header(p, &known, err);
    if (status == DREY_OK && !known && !p->settings->quiet)
        fprintf(stderr, "no plan: the server gives no parts of files, as their headers\n");
    if (status != DREY_OK || !known)
        return continue_anyway(p, status, err);
    if (p->settings->quiet && !p->settings->prepare.draft)
        return DREY_OK;
    look_for_draft(p, &x);
    TRY(take_asked_draft(p, draft, &x));
    TRY(continue_anyway(p, show_plan(p, err), err));
    return offer_draft(p, draft, &x);
}

/* "4G", "700M": as --memory takes it. */
static const char *size_text(char out[32], uint64_t bytes)
{
    const uint64_t mib = 1 << 20, gib = 1 << 30;
    if (bytes % gib == 0)
        snprintf(out, 32, "%lluG", (unsigned long long)(bytes / gib));
    else
        snprintf(out, 32, "%lluM", (unsigned long long)(bytes / mib));
    return out;
}

/* Prints what a person may type next. */
static void say_next(const pulling *p)
{
    char folder[PATH_MAX], memory[48] = "", size[32];
    const cli_settings *s = p->settings;
    const char *file = p->files[0].from->name;
    model_facts f;
    if (s->quiet || model_facts_read(&f, p->files[0].path, NULL) != DREY_OK || !f.runs)
        return;
    bool stored = model_store_folder(folder, NULL) == DREY_OK && path_same_file(folder, p->folder);
    uint64_t bytes = s->common.memory_bytes;
    if (bytes != DREY_MEMORY_AUTO && bytes != DREY_MEMORY_UNLIMITED)
        snprintf(memory, sizeof memory, " --memory %s", size_text(size, bytes));
    char *name = stored ? strndup(file, model_name_length(file)) : strdup(p->files[0].path);
    const char *word = name ? QUOTED(name) : "";
    fflush(stdout);
    if (*word) {
        fprintf(stderr, "next: drey %s -m ", f.has_template ? "chat" : "run");
        print_clean(stderr, word);
        fprintf(stderr, "%s%s\n", memory, f.has_template ? "" : " -p \"Once upon a time\"");
    }
    free(name);
}

static drey_status pull_all(pulling *p, pulling *draft, header_folder *headers, drey_error *err)
{
    const cli_settings *s = p->settings;
    TRY(find_files(p, s->operand, err));
    TRY(find_folder(p, headers, err));
    TRY(name_files(p, err));
    TRY(plan_all(p, draft, err));
    TRY(look_around(p, err));
    if (draft->found.n > 0)
        TRY(look_around(draft, err));
    if (s->prepare.dry_run)
        return DREY_OK;
    TRY(fetch(p, err));
    TRY(fetch(draft, err));
    printf("%s\n", p->files[0].path);
    say_next(p);
    return DREY_OK;
}

int pull_main(const cli_settings *settings)
{
    pulling p = {.settings = settings,
                 .transfer.timeout_s = option_given(settings, "timeout") ? settings->serve.timeout_s
                                                                         : USUAL_TIMEOUT_S,
                 .progress.quiet = settings->quiet};
    pulling draft = p;
    draft.is_draft = true;
    header_folder headers = {.fd = -1};
    drey_error err = {0};
    signals_note();
    drey_status status = pull_all(&p, &draft, &headers, &err);
    clean_up(&p);
    clean_up(&draft);
    header_folder_close(&headers);
    if (status == DREY_ERR_CANCELLED && !settings->quiet)
        fprintf(stderr, "what has come is kept: the same command continues\n");
    return exit_with(status, &err);
}
