/* Settings of drey chat by the options of the command line, whose bounds and messages they share:
 * see chat_set.h. */
#include "cli/chat/chat_set.h"

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

static const cli_option *find(const char *name)
{
    for (int i = 0; i < N_NAMES; i++)
        if (strcmp(name, names[i].name) == 0 || strcmp(name, names[i].option) == 0)
            return option_find(names[i].option);
    return NULL;
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

drey_status chat_set(cli_settings *settings, const char *words, drey_error *err)
{
    char name[32], list[256] = "system, markdown";
    size_t n = strcspn(words, " \t\n=");
    const char *value = words + n + strspn(words + n, " \t\n=");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), words);
    const cli_option *option = find(name);
    if (option && *value)
        return name_setting(name, option_store(settings, option, value, err), err);
    for (int i = 0; i < N_NAMES; i++) {
        size_t end = strlen(list);
        snprintf(list + end, sizeof list - end, ", %s", names[i].name);
    }
    FAIL(err, DREY_ERR_USAGE,
         "/set wants a name and a value, such as /set temperature 0.8; it has %s", list);
}

static void show_value(const cli_settings *settings, const cli_option *option, char out[static 32])
{
    const void *at = (const char *)settings + option->offset;
    float real;
    int32_t count;
    uint64_t seed;
    if (option->value == CLI_REAL) {
        memcpy(&real, at, sizeof real);
        snprintf(out, 32, "%g", (double)real);
    } else if (option->value == CLI_COUNT) {
        memcpy(&count, at, sizeof count);
        snprintf(out, 32, "%d", count);
    } else {
        memcpy(&seed, at, sizeof seed);
        snprintf(out, 32, "%llu", (unsigned long long)seed);
    }
}

void chat_show_settings(FILE *out, const cli_settings *settings)
{
    char value[32];
    for (int i = 0; i < N_NAMES; i++) {
        const cli_option *option = find(names[i].name);
        show_value(settings, option, value);
        bool greedy = strcmp(option->name, "temp") == 0 && settings->sampling.temperature <= 0;
        fprintf(out, "%-18s %s%s\n", names[i].name, value,
                greedy ? " (greedy, as is usual here: always the likeliest token)" : "");
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
