/* Tokens with a meaning: see vocabulary.h.
 *
 * A token is named in tokenizer_config.json by its text, whose id tokenizer.json has, else in
 * config.json by its id. generation_config.json may list further ends. The post-processor of
 * tokenizer.json says which it puts around a text. */
#include <stdio.h>
#include <string.h>

#include "convert/vocabulary.h"

enum { BOS, EOS, UNK, SEP, PAD, EOT, EOM, N_SPECIAL };
static const struct {
    const char *name, *key;
} special[N_SPECIAL] = {{"bos", "bos_token_id"},     {"eos", "eos_token_id"},
                        {"unk", "unknown_token_id"}, {"sep", "seperator_token_id"},
                        {"pad", "padding_token_id"}, {"eot", "eot_token_id"},
                        {"eom", "eom_token_id"}};

typedef struct around {
    const char *texts[N_SPECIAL]; /* NULL: not said */
    bool said[2], added[2];       /* of BOS and EOS: whether they are put around a text */
} around;

/* "text", or an object that has it. */
static const char *text_of(const json_value *config, const char *member)
{
    const json_value *v = json_member(config, member);
    return v && v->type == JSON_STRING ? v->text : json_member_text(v, "content");
}

static const char *token_in(const json_value *step)
{
    return json_member_text(json_member(step, "SpecialToken"), "id");
}

/* A template such as [<s>, the text]. */
static void read_template(around *a, const json_value *processor, bool has_config)
{
    const json_value *list = json_member_array(processor, "single");
    if (!list || list->n < 2)
        return;
    const json_value *last = list->first;
    while (last->next)
        last = last->next;
    const char *first_text = token_in(list->first), *last_text = token_in(last);
    if (first_text) {
        if (!a->texts[BOS])
            a->texts[BOS] = first_text;
        a->said[BOS] = true;
        a->added[BOS] = strcmp(first_text, a->texts[BOS]) == 0;
    }
    if (last_text) {
        if (has_config && a->texts[EOS] && strcmp(last_text, a->texts[EOS]) != 0)
            a->texts[EOT] = a->texts[EOS];
        a->texts[EOS] = last_text;
        a->said[EOS] = a->added[EOS] = true;
    }
}

static void read_around(around *a, const hub_folder *f)
{
    const json_value *config = f->tokenizer_config.root;
    const json_value *post = json_member(f->tokenizer.root, "post_processor");
    const json_value *list = json_member_array(post, "processors");
    char member[32];
    *a = (around){0};
    for (int i = 0; i < EOT; i++) {
        snprintf(member, sizeof member, "%s_token", special[i].name);
        a->texts[i] = text_of(config, member);
    }
    if (!a->texts[BOS])
        a->texts[BOS] = text_of(config, "cls_token");
    if (!a->texts[EOS])
        a->texts[EOS] = a->texts[SEP];
    for (const json_value *v = list ? list->first : post; v; v = list ? v->next : NULL)
        if (json_member_is(v, "type", "TemplateProcessing"))
            read_template(a, v, config != NULL);
    for (int i = BOS; i <= EOS; i++) {
        bool value;
        snprintf(member, sizeof member, "add_%s_token", special[i].name);
        if (json_member_bool(config, member, &value)) {
            a->said[i] = true;
            a->added[i] = value;
        }
    }
}

/* -1: it has none. */
static int64_t id_of(const hub_folder *f, const char *text)
{
    const json_value *added = json_member_array(f->tokenizer.root, "added_tokens");
    for (const json_value *v = added ? added->first : NULL; text && v; v = v->next) {
        const json_value *id = json_member(v, "id");
        if (json_member_is(v, "content", text) && id && id->is_integer)
            return id->integer;
    }
    return -1;
}

static int64_t config_id(const hub_folder *f, const char *name)
{
    char member[32];
    snprintf(member, sizeof member, "%s_token_id", name);
    const json_value *v = json_member(f->config.root, member);
    return v && v->type == JSON_NUMBER && v->is_integer ? v->integer : -1;
}

/* What BART's are where no file says so. */
static int64_t usual_id(const family *a, int which)
{
    bool bart = a->naming == NAMING_BART;
    return !bart ? -1 : which == BOS ? 0 : which == EOS ? 2 : which == PAD ? 1 : -1;
}

static bool is_among(int64_t id, const int64_t *ids, int n)
{
    for (int i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* generation_config.json, or config.json, may list several tokens that end a text: the first that
 * is not among ids[0..n). */
static int64_t other_end(const hub_folder *f, const int64_t *ids, int n)
{
    const json_value *list = json_member_array(f->generation.root, "eos_token_id");
    if (!list)
        list = json_member_array(f->config.root, "eos_token_id");
    for (const json_value *v = list ? list->first : NULL; v; v = v->next)
        if (v->type == JSON_NUMBER && v->is_integer && !is_among(v->integer, ids, n))
            return v->integer;
    return -1;
}

/* ---- The chat template ---- */

/* A template by its name, of a list of them. */
static void put_named(new_gguf *g, const json_value *list)
{
    char key[96];
    for (const json_value *v = list->first; v; v = v->next) {
        const char *name = json_member_text(v, "name"), *text = json_member_text(v, "template");
        if (!name || !text || strlen(name) > 40)
            continue;
        bool usual = strcmp(name, "default") == 0;
        snprintf(key, sizeof key, "tokenizer.chat_template%s%s", usual ? "" : ".",
                 usual ? "" : name);
        new_gguf_text(g, key, text);
    }
}

static void put_template(const hub_folder *f, new_gguf *g)
{
    const json_value *v = json_member(f->tokenizer_config.root, "chat_template");
    if (v && v->type == JSON_STRING)
        new_gguf_text(g, "tokenizer.chat_template", v->text);
    else if (v && v->type == JSON_ARRAY)
        put_named(g, v);
    else if (f->chat_template)
        new_gguf_text(g, "tokenizer.chat_template", f->chat_template);
}

drey_status special_keys(const family *of, const hub_folder *f, new_gguf *g, int32_t n_tokens,
                         drey_error *err)
{
    around a;
    char key[96];
    int64_t ids[N_SPECIAL];
    read_around(&a, f);
    for (int i = 0; i < N_SPECIAL; i++) {
        int64_t id = id_of(f, a.texts[i]);
        if (id < 0)
            id = i >= EOT ? other_end(f, (int64_t[]){ids[EOS], i > EOT ? ids[EOT] : -1}, 2)
                          : config_id(f, special[i].name);
        if (id < 0)
            id = i == EOS && other_end(f, NULL, 0) >= 0 ? other_end(f, NULL, 0) : usual_id(of, i);
        ids[i] = id;
        if (id >= n_tokens)
            FAIL(err, DREY_ERR_FORMAT, "the %s token is %lld, and there are %d tokens",
                 special[i].name, (long long)id, n_tokens);
        snprintf(key, sizeof key, "tokenizer.ggml.%s", special[i].key);
        if (id >= 0)
            new_gguf_u32(g, key, (uint32_t)id);
    }
    for (int i = BOS; i <= EOS; i++) {
        snprintf(key, sizeof key, "tokenizer.ggml.add_%s_token", special[i].name);
        if (a.said[i] || of->adds_ends)
            new_gguf_bool(g, key, a.added[i] || of->adds_ends);
    }
    put_template(f, g);
    return DREY_OK;
}
