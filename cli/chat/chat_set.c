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
    char name[32], list[256] = "system";
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

void chat_show_settings(const cli_settings *settings)
{
    char value[32];
    for (int i = 0; i < N_NAMES; i++) {
        show_value(settings, find(names[i].name), value);
        fprintf(stderr, "%-18s %s\n", names[i].name, value);
    }
}
