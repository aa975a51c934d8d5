/* Tokens with a meaning: see vocabulary.h.
 *
 * A token is named in tokenizer_config.json (else in special_tokens_map.json) by its text, whose id
 * tokenizer.json has, else in config.json by its id. generation_config.json may list further ends,
 * and where it is not there, config.json. The post-processor of tokenizer.json says which it puts
 * around a text. */
#include <stdio.h>
#include <string.h>

#include "convert/vocabulary.h"
#include "template/conversation.h"
#include "text/tokenizer.h"

enum { BOS, EOS, UNK, SEP, PAD, EOT, EOM, N_SPECIAL };
static const struct {
    const char *name, *key;
} special[N_SPECIAL] = {{"bos", "bos_token_id"},     {"eos", "eos_token_id"},
                        {"unk", "unknown_token_id"}, {"sep", "seperator_token_id"},
                        {"pad", "padding_token_id"}, {"eot", "eot_token_id"},
                        {"eom", "eom_token_id"}};

typedef struct around {
    const char *texts[N_SPECIAL]; /* NULL: not said */
    bool said[2], added[2];       /* flags of BOS and EOS: whether they are put around a text */
} around;

/* "text", or an object that has it. */
static const char *text_of(const hub_folder *f, const char *member)
{
    const json_value *v = json_member(f->tokenizer_config.root, member);
    v = v ? v : json_member(f->token_map.root, member);
    return v && v->type == JSON_STRING ? v->text : json_member_text(v, "content");
}

static const char *token_in(const json_value *step)
{
    return json_member_text(json_member(step, "SpecialToken"), "id");
}

/* A template such as [<s>, the text]: at most one token before it, and one after. */
static drey_status read_template(around *a, const json_value *processor, bool has_config,
                                 drey_error *err)
{
    const json_value *list = json_member_array(processor, "single");
    const json_value *step = list ? list->first : NULL;
    const char *first_text = token_in(step), *last_text;
    step = first_text ? step->next : step;
    bool known = json_member(step, "Sequence") != NULL;
    step = known ? step->next : NULL;
    last_text = token_in(step);
    if (!known || (step && (!last_text || step->next)))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the post_processor of tokenizer.json puts more around a text than a token on each "
             "side, which a GGUF file cannot say");
    if (first_text) {
        if (!a->texts[BOS])
            a->texts[BOS] = first_text;
        if (strcmp(first_text, a->texts[BOS]) != 0)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "the post_processor of tokenizer.json puts \"%.40s\" before a text, and bos_token "
                 "is \"%.40s\"",
                 first_text, a->texts[BOS]);
        a->said[BOS] = a->added[BOS] = true;
    }
    if (last_text) {
        if (has_config && a->texts[EOS] && strcmp(last_text, a->texts[EOS]) != 0)
            a->texts[EOT] = a->texts[EOS];
        a->texts[EOS] = last_text;
        a->said[EOS] = a->added[EOS] = true;
    }
    return DREY_OK;
}

/* BERT's and RoBERTa's put ends around a text, as the family does, or the file cannot say it. */
static drey_status read_processor(around *a, const family *of, const json_value *v, bool has_config,
                                  drey_error *err)
{
    const char *type = json_member_text(v, "type");
    bool ends =
        type && (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0);
    if (type && strcmp(type, "TemplateProcessing") == 0)
        return read_template(a, v, has_config, err);
    if (type && (strcmp(type, "ByteLevel") == 0 || (ends && of->adds_ends)))
        return DREY_OK;
    FAIL(err, DREY_ERR_UNSUPPORTED,
         "tokenizer.json has the post_processor \"%.40s\", which drey does not know for %s",
         type ? type : "?", of->name);
}

static drey_status read_around(around *a, const family *of, const hub_folder *f, drey_error *err)
{
    const json_value *config = f->tokenizer_config.root;
    const json_value *post = json_member(f->tokenizer.root, "post_processor");
    const json_value *list = json_member_array(post, "processors");
    char member[32];
    *a = (around){0};
    for (int i = 0; i < EOT; i++) {
        snprintf(member, sizeof member, "%s_token", special[i].name);
        a->texts[i] = text_of(f, member);
    }
    if (!a->texts[BOS])
        a->texts[BOS] = text_of(f, "cls_token");
    if (!a->texts[EOS])
        a->texts[EOS] = a->texts[SEP];
    for (const json_value *v = list ? list->first : post; v; v = list ? v->next : NULL)
        TRY(read_processor(a, of, v, config != NULL, err));
    for (int i = BOS; i <= EOS; i++) {
        bool value;
        snprintf(member, sizeof member, "add_%s_token", special[i].name);
        if (json_member_bool(config, member, &value)) {
            a->said[i] = true;
            a->added[i] = value;
        }
    }
    return DREY_OK;
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

/* The first one of a list. -1: config.json has none. */
static int64_t config_id(const hub_folder *f, const char *name)
{
    char member[32];
    snprintf(member, sizeof member, "%s_token_id", name);
    const json_value *v = config_find(f, member);
    v = v && v->type == JSON_ARRAY ? v->first : v;
    return v ? v->integer : -1;
}

/* Returns the id in a vocabulary that does not list the token among its added ones; -1: none. */
static int64_t vocabulary_id(const token_list *t, const char *text)
{
    for (int32_t i = 0; text && i < t->n; i++)
        if (t->texts[i].text && gguf_is_text(t->texts[i], text))
            return i;
    return -1;
}

/* Returns BART's id, for folders whose files say nothing. */
static int64_t default_id(const family *a, int which)
{
    bool bart = a->naming == NAMING_BART;
    return !bart ? -1 : which == BOS ? 0 : which == EOS ? 2 : which == PAD ? 1 : -1;
}

static drey_status check_id(const char *name, int64_t id, int32_t n_tokens, drey_error *err)
{
    if (id >= n_tokens)
        FAIL(err, DREY_ERR_FORMAT, "the %s token is %lld, and there are %d tokens", name,
             (long long)id, n_tokens);
    return DREY_OK;
}

/* One more, as EOT or EOM. Where both are taken, it may be one that readers know by its name. */
static drey_status add_end(int64_t id, bool named, int64_t ids[N_SPECIAL], drey_error *err)
{
    if (id == ids[EOS] || id == ids[EOT] || id == ids[EOM])
        return DREY_OK;
    int free = ids[EOT] < 0 ? EOT : EOM;
    if (ids[free] < 0)
        ids[free] = id;
    else if (!named)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "eos_token_id lists more than three tokens that end a text, which a GGUF file "
             "cannot say");
    return DREY_OK;
}

/* Several tokens may end a text: those without a known name first. */
static drey_status add_ends(const hub_folder *f, const token_list *t, int64_t ids[N_SPECIAL],
                            drey_error *err)
{
    const json_value *list = json_member(f->generation.root, "eos_token_id");
    list = list ? list : config_find(f, "eos_token_id");
    const json_value *first = list && list->type == JSON_ARRAY ? list->first : list;
    if (first && ids[EOS] < 0)
        ids[EOS] = first->integer;
    for (int pass = 0; pass < 2; pass++) {
        const json_value *v = first;
        for (; v; v = list->type == JSON_ARRAY ? v->next : NULL) {
            TRY(check_id("eos", v->integer, t->n, err));
            bool named = t->types[v->integer] == 3 && tokenizer_names_end(t->texts[v->integer]);
            if (named == (pass == 1))
                TRY(add_end(v->integer, named, ids, err));
        }
    }
    return DREY_OK;
}

/* ---- The chat template ---- */

static drey_status put_one(new_gguf *g, const char *key, const char *text, drey_error *err)
{
    if (strlen(text) > CHAT_TEMPLATE_BYTES)
        FAIL(err, DREY_ERR_FORMAT,
             "the chat template has %zu bytes, and no more than %d are read; shorten it",
             strlen(text), CHAT_TEMPLATE_BYTES);
    new_gguf_text(g, key, text);
    return DREY_OK;
}

/* A template by its name, of a list of them. */
static drey_status put_named(new_gguf *g, const json_value *list, drey_error *err)
{
    static const member_kind kinds[] = {{"name", KIND_TEXT}, {"template", KIND_TEXT}, {0}};
    char key[96];
    for (const json_value *v = list->first; v; v = v->next) {
        const char *name = json_member_text(v, "name"), *text = json_member_text(v, "template");
        TRY(check_members(v->type == JSON_OBJECT ? v : NULL, kinds, false, "a chat_template", err));
        if (!name || !*name || !text || strlen(name) > 40)
            FAIL(err, DREY_ERR_FORMAT,
                 "chat_template of tokenizer_config.json has an item that is no template with a "
                 "name");
        bool usual = strcmp(name, "default") == 0;
        snprintf(key, sizeof key, "tokenizer.chat_template%s%s", usual ? "" : ".",
                 usual ? "" : name);
        TRY(put_one(g, key, text, err));
    }
    return DREY_OK;
}

static drey_status put_template(const hub_folder *f, new_gguf *g, drey_error *err)
{
    static const char key[] = "tokenizer.chat_template";
    static const member_kind kinds[] = {{"chat_template", KIND_TEXT}, {0}};
    const json_value *v = json_member(f->tokenizer_config.root, "chat_template");
    if (v && v->type == JSON_ARRAY)
        return put_named(g, v, err);
    TRY(check_members(f->tokenizer_config.root, kinds, false, "tokenizer_config.json", err));
    const char *text = v ? v->text : f->chat_template;
    return text ? put_one(g, key, text, err) : DREY_OK;
}

/* -1: the model has no such token. */
static drey_status find_id(const family *of, const hub_folder *f, const token_list *t,
                           const char *text, int which, int64_t *id, drey_error *err)
{
    const int64_t stated = config_id(f, special[which].name);
    TRY(check_id(special[which].name, stated, t->n, err));
    *id = id_of(f, text);
    if (*id < 0)
        *id = stated;
    if (*id < 0)
        *id = vocabulary_id(t, text);
    if (*id < 0 && text && which <= EOS)
        FAIL(err, DREY_ERR_FORMAT, "the tokenizer has no token \"%.40s\", which is its %s_token",
             text, special[which].name);
    if (*id < 0)
        *id = default_id(of, which);
    return check_id(special[which].name, *id, t->n, err);
}

drey_status special_keys(const family *of, const hub_folder *f, new_gguf *g, const token_list *t,
                         drey_error *err)
{
    around a;
    char key[96];
    int64_t ids[N_SPECIAL];
    TRY(read_around(&a, of, f, err));
    for (int i = 0; i < N_SPECIAL; i++)
        TRY(find_id(of, f, t, a.texts[i], i, &ids[i], err));
    TRY(add_ends(f, t, ids, err));
    for (int i = 0; i < N_SPECIAL; i++) {
        snprintf(key, sizeof key, "tokenizer.ggml.%s", special[i].key);
        if (ids[i] >= 0)
            new_gguf_u32(g, key, (uint32_t)ids[i]);
    }
    for (int i = BOS; i <= EOS; i++) {
        snprintf(key, sizeof key, "tokenizer.ggml.add_%s_token", special[i].name);
        if (a.said[i] || of->adds_ends)
            new_gguf_bool(g, key, a.added[i] || of->adds_ends);
    }
    return put_template(f, g, err);
}
