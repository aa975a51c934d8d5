/* Settings of drey chat by the options of the command line, whose bounds and messages they share:
 * see chat_set.h. */
#include "cli/chat/chat_set.h"

#include "cli/args/other_names.h"
#include "common/error.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *option; /* name: as other programs call it; the option's is taken as well */
} names[] = {{"temperature", "temp"},
             {"top-k", "top-k"},
             {"top-p", "top-p"},
             {"min-p", "min-p"},
             {"repeat-penalty", "repeat-penalty"},
             {"presence-penalty", "presence-penalty"},
             {"frequency-penalty", "frequency-penalty"},
             {"seed", "seed"},
             {"n-predict", "predict"}};
enum { N_NAMES = sizeof names / sizeof *names };

/* Returns the index in names; -1: none. */
static int find(const char *name)
{
    for (int i = 0; i < N_NAMES; i++)
        if (strcmp(name, names[i].name) == 0 || strcmp(name, names[i].option) == 0)
            return i;
    return -1;
}

const char *chat_setting_name(const char *words, char name[static CHAT_NAME_BYTES])
{
    static const char between[] = " \t\n=", parameter[] = "parameter"; /* as ollama has it */
    size_t n = strcspn(words, between);
    const char *value = words + n + strspn(words + n, between);
    if (n == sizeof parameter - 1 && strncmp(words, parameter, n) == 0 && *value)
        return chat_setting_name(value, name);
    snprintf(name, CHAT_NAME_BYTES, "%.*s", (int)(n < CHAT_NAME_BYTES ? n : CHAT_NAME_BYTES - 1),
             words);
    return value;
}

/* A message about an option's value becomes one about the setting. */
static drey_status name_setting(const char *name, drey_status status, drey_error *err)
{
    char message[sizeof err->message];
    const char *takes = status != DREY_OK && err ? strstr(err->message, " takes ") : NULL;
    if (takes) {
        snprintf(message, sizeof message, "%s", takes);
        snprintf(err->message, sizeof err->message, "/set %.32s%.400s", name, message);
    }
    return status;
}

static drey_status no_such_setting(const char *name, const char *value, drey_error *err)
{
    static const char *const contexts[] = {"num_ctx", "num-ctx",  "n_ctx",    "n-ctx",       "ctx",
                                           "context", "ctx-size", "ctx_size", "context-size"};
    const char *all[N_NAMES + 4] = {"system", "markdown", "verbose"};
    char list[256] = "";
    other_word near;
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++)
        if (strcmp(name, contexts[i]) == 0)
            FAIL(err, DREY_ERR_USAGE,
                 "the context is set when the chat starts: drey chat -c %.20s; /save first keeps "
                 "the conversation",
                 *value ? value : "N");
    for (int i = 0; i < N_NAMES; i++)
        all[3 + i] = names[i].name;
    if (nearest_word(name, all, &near))
        FAIL(err, DREY_ERR_USAGE, "there is no setting %s; did you mean /set %s%s%.80s?", name,
             near.text, *value ? " " : "", value);
    for (int i = 0; all[i]; i++) {
        size_t end = strlen(list);
        snprintf(list + end, sizeof list - end, "%s%s", i ? ", " : "", all[i]);
    }
    FAIL(err, DREY_ERR_USAGE, "there is no setting %s; there are %s", name, list);
}

drey_status chat_set(cli_settings *settings, const char *name, const char *value, drey_error *err)
{
    const int i = find(name);
    if (i < 0)
        return no_such_setting(name, value, err);
    const cli_option *option = option_find(names[i].option);
    return *value ? name_setting(name, option_store(settings, option, value, err), err) : DREY_OK;
}

/* The value in words. */
static void show_value(const cli_settings *settings, int i, char out[static CHAT_VALUE_BYTES])
{
    const cli_option *option = option_find(names[i].option);
    const void *at = (const char *)settings + option->offset;
    float real;
    int32_t count;
    uint64_t seed;
    if (option->value == CLI_REAL) {
        memcpy(&real, at, sizeof real);
        bool greedy = strcmp(option->name, "temp") == 0 && real <= 0;
        snprintf(out, CHAT_VALUE_BYTES, "%g%s", (double)real,
                 greedy ? " (greedy, as is usual here: always the likeliest token)" : "");
    } else if (option->value == CLI_COUNT) {
        memcpy(&count, at, sizeof count);
        snprintf(out, CHAT_VALUE_BYTES, "%d", count);
    } else {
        memcpy(&seed, at, sizeof seed);
        snprintf(out, CHAT_VALUE_BYTES, "%llu", (unsigned long long)seed);
    }
}

const char *chat_setting(const cli_settings *settings, const char *name,
                         char value[static CHAT_VALUE_BYTES])
{
    const int i = find(name);
    show_value(settings, i, value);
    return names[i].name;
}

void chat_show_settings(FILE *out, const cli_settings *settings)
{
    char value[CHAT_VALUE_BYTES];
    for (int i = 0; i < N_NAMES; i++) {
        show_value(settings, i, value);
        fprintf(out, "%-18s %s\n", names[i].name, value);
    }
}

/* ---- What the model's file recommends ---- */

typedef struct recommended {
    char *out; /* [n] of [capacity] */
    size_t n, capacity;
} recommended;

static void take_key(void *user, const char *key, const char *type, const char *value)
{
    static const struct {
        const char *key, *name; /* of the file, and of the setting */
    } known[] = {{"general.sampling.temp", "temperature"},
                 {"general.sampling.top_k", "top-k"},
                 {"general.sampling.top_p", "top-p"},
                 {"general.sampling.min_p", "min-p"},
                 {"general.sampling.penalty_repeat", "repeat-penalty"}};
    recommended *r = user;
    double number;
    (void)type;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(key, known[i].key) == 0 && sscanf(value, "%lf", &number) == 1 &&
            r->n < r->capacity)
            r->n += (size_t)snprintf(r->out + r->n, r->capacity - r->n, "%s%s %.3g",
                                     r->n ? ", " : "", known[i].name, number);
}

void chat_read_recommended(const char *model_path, char *out, size_t capacity)
{
    recommended r = {.out = out, .capacity = capacity};
    const drey_inspector inspector = {.key = take_key, .user = &r};
    out[0] = '\0';
    drey_inspect(model_path, &inspector, NULL);
}
