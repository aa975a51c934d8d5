/* The table of pre-tokenizers: see pretokenizer_rules.h.
 *
 * The expressions are the published ones of each model family (its tokenizer.json); names and what
 * they imply besides are those of llama.cpp's loader. */
#include "text/pretokenizer_rules.h"

#include <string.h>

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS      "|\\s+(?!\\S)|\\s+"
#define LINES       "|\\s*[\\r\\n]+" BLANKS
#define WORD        "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SIGNS       "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define ONE_DIGIT   "\\p{N}"
#define DIGITS      "\\p{N}{1,3}"

const char pretokenizer_gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+" BLANKS;
#define LATER(digits) CONTRACTION WORD "|" digits SIGNS LINES
static const char qwen2_words[] = LATER(ONE_DIGIT);

/* Words are cut where small letters are followed by capitals: gpt-4o, and Mistral's tekken, which
 * has neither contractions nor numbers of several digits. */
#define CASED(before, capitals, small, contraction)                                                \
    before capitals "*" small "+" contraction "|" before capitals "+" small "*" contraction "|"
#define BEFORE   "[^\\r\\n\\p{L}\\p{N}]?"
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_WORDS(contraction, digits)                                                           \
    CASED(BEFORE, CAPITALS, SMALL, contraction) digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" LINES
static const char gpt4o_words[] = CASED_WORDS(CONTRACTION "?", DIGITS);

/* Chinese by itself, and never in other words. PCRE2 has no intersection of classes: a letter or
 * mark is what belongs to none of the other categories. The script is listed, because PCRE2's
 * \p{Han} has more characters since version 10.40. */
#define HAN                                                                                        \
    "\\x{2E80}-\\x{2E99}\\x{2E9B}-\\x{2EF3}\\x{2F00}-\\x{2FD5}\\x{3005}\\x{3007}\\x{3021}-"        \
    "\\x{3029}\\x{3038}-\\x{303B}\\x{3400}-\\x{4DBF}\\x{4E00}-\\x{9FFF}\\x{F900}-\\x{FA6D}"        \
    "\\x{FA70}-\\x{FAD9}\\x{16FE2}-\\x{16FE3}\\x{16FF0}-\\x{16FF6}\\x{20000}-\\x{2A6DF}"           \
    "\\x{2A700}-\\x{2B81E}\\x{2B820}-\\x{2CEAD}\\x{2CEB0}-\\x{2EBE0}\\x{2EBF0}-\\x{2EE5D}"         \
    "\\x{2F800}-\\x{2FA1D}\\x{30000}-\\x{3134A}\\x{31350}-\\x{33479}"
#define NO_HAN(other) "[^" other "\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}" HAN "]"
#define KIMI_K2(han, capitals, small)                                                              \
    "[" han "]+|" CASED(BEFORE, capitals, small, CONTRACTION "?") DIGITS SIGNS LINES

/* Han and kana, as DeepSeek divides them. */
#define EASTERN     "\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}"
#define EASTERN_1   "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define ASCII_SIGNS "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"
static const char deepseek3_words[] =
    ASCII_SIGNS "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
                "| ?[\\p{P}\\p{S}]+[\\r\\n]*" LINES;
static const char deepseek_letters[] =
    "\\s?[A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}"
    "\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}"
    "\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-"
    "\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}"
    "\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-"
    "\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}"
    "\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}"
    "\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}"
    "\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-"
    "\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}"
    "\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-"
    "\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}"
    "\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-"
    "\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-"
    "\\x{118DF}\\x{1E900}-\\x{1E943}]+";
static const char deepseek_signs[] = "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}"
                                     "\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+";
#define DEEPSEEK_LLM(digits)                                                                       \
    {                                                                                              \
        {.expression = "[\\r\\n]"}, {.expression = deepseek_letters},                              \
            {.expression = deepseek_signs},                                                        \
            {.expression = "\\s+$", .compiled = "(?<!\\s)\\s+\\z"}, {.expression = EASTERN_1},     \
            {.expression = digits},                                                                \
    }

#define SENTENCE_SIGNS "\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C}"
#define BLOOM                                                                                      \
    {                                                                                              \
        .expression = " ?[^(\\s|[.,!?" SENTENCE_SIGNS "])]+",                                      \
        .compiled = " ?[^(\\s|.,!?" SENTENCE_SIGNS ")]+"                                           \
    }

/* Characters of words, for \b in tokenizer.json: PCRE2 has more numerals among them. */
#define WORD_CHARACTER                                                                             \
    "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}\\x{24B6}-"             \
    "\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}]"

typedef split_step rule[PRETOKENIZER_STEPS];

static const rule gpt2 = {{.expression = pretokenizer_gpt2}};
static const rule smollm = {{.expression = ONE_DIGIT}, {.expression = pretokenizer_gpt2}};
static const rule qwen2 = {{.expression = qwen2_words}};
static const rule llama3 = {{.expression = LATER(DIGITS)}};
static const rule gpt4o = {{.expression = gpt4o_words}};
static const rule tekken = {{.expression = CASED_WORDS("", ONE_DIGIT)}};
static const rule qwen35 = {{.expression =
                                 CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
                                             "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" LINES}};
static const rule seed_coder = {
    {.expression = CONTRACTION WORD "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" LINES}};
static const rule bailing = {{.expression = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+"
                                            "|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*"
                                            "|\\s*[\\r\\n]" BLANKS}};
#define SPACED(word, after)                                                                        \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?" word "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?" after
static const rule exaone_moe = {
    {.expression = SPACED("(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+", "|\\s*[\\r\\n]" BLANKS),
     .compiled = SPACED("(?:\\p{L}\\p{M}*+(?: \\p{L}\\p{M}*+)*+)++", "|\\s*[\\r\\n]" BLANKS)}};
static const rule jais2 = {{.expression = CONTRACTION WORD
                            "|" DIGITS SIGNS "|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)"
                            "|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)"
                            "|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}"}};
static const rule minicpm5 = {{.expression = DIGITS}, {.expression = LATER("\\p{N}+")}};
static const rule laguna = {{.expression = "(?:\\r?\\n)+(?!\\r?\\n)",
                             .compiled = "(?:\\r?\\n)++[^\\r\\n]*+(?:\\r(?!\\n)[^\\r\\n]*+)*+",
                             .joins_next = true},
                            {.expression = qwen2_words}};
static const rule kimi_k2 = {
    {.expression = KIMI_K2("\\p{Han}", "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]",
                           "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"),
     .compiled = KIMI_K2(HAN, NO_HAN("\\p{Ll}"), NO_HAN("\\p{Lu}\\p{Lt}"))}};
static const rule deepseek_llm = DEEPSEEK_LLM("\\p{N}+");
static const rule deepseek_llm_single = DEEPSEEK_LLM(ONE_DIGIT);
static const rule deepseek_coder = {{.expression = "[\\r\\n]"},
                                    {.expression = "\\s?\\p{L}+"},
                                    {.expression = "\\s?\\p{P}+"},
                                    {.expression = EASTERN_1},
                                    {.expression = ONE_DIGIT}};
static const rule deepseek3 = {
    {.expression = DIGITS}, {.expression = "[" EASTERN "]+"}, {.expression = deepseek3_words}};
static const rule youtu = {
    {.expression = "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}"
                   "\\x{2018}\\x{2019}\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}"
                   "\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|[" EASTERN "]+"},
    {.expression = CASED_WORDS(CONTRACTION "?", ONE_DIGIT)}};
static const rule falcon = {{.expression = "[\\p{P}\\$\\+<=>\\^~\\|`]+"},
                            {.expression = pretokenizer_gpt2},
                            {.expression = "[0-9][0-9][0-9]"}};
static const rule bloom = {BLOOM};
static const rule viking = {BLOOM, {.expression = ONE_DIGIT}};
static const rule chameleon = {
    {.expression = "<sentinel:[0-9]+>"},      {.expression = "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"},
    {.expression = "([\\t\\n]|    |  )"},     {.expression = ONE_DIGIT},
    {.expression = "[\\p{P}!-/:-@\\[-`{-~]"}, {.expression = pretokenizer_gpt2}};
static const rule superbpe = {
    {.expression = "\\p{N}+"},
    {.expression = "(?=(\\d{3})+(?!\\d))", .compiled = "\\d++", .thirds = true}};
static const rule tiny_aya = {{.expression = "\\d{1,3}(?=(?:\\d{3})*\\b)",
                               .compiled = "(?<!\\d)\\d++(?!" WORD_CHARACTER ")",
                               .thirds = true},
                              {.expression = gpt4o_words}};
static const rule afmoe = {
    {.expression = "\\p{AFMoE_digits}", .compiled = "\\p{N}++", .thirds = true},
    {.expression = "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{8C48}-\\x{FAFF}\\x{3040}-\\x{309F}"
                   "\\x{30A0}-\\x{30FF}\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}\\x{E40}-\\x{E7F}"
                   "\\x{E80}-\\x{EFF}\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}"
                   "\\x{A9E0}-\\x{A9FF}\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+"},
    {.expression = deepseek3_words}};

/* A converter takes the first name of a rule with the right ignore_merges. */
static const pretokenizer_family families[] = {
    {"gpt-2", gpt2, false, false},
    {"default", gpt2, false, false},
    {"a.x-4.0", gpt2, false, false},
    {"exaone4", gpt2, false, false},
    {"gigachat", gpt2, false, false},
    {"granite-docling", gpt2, false, false},
    {"jais", gpt2, false, false},
    {"jina-de", gpt2, false, false},
    {"jina-es", gpt2, false, false},
    {"jina-v1-en", gpt2, false, false},
    {"jina-v2-code", gpt2, false, false},
    {"jina-v2-de", gpt2, false, false},
    {"jina-v2-es", gpt2, false, false},
    {"mellum", gpt2, false, false},
    {"modern-bert", gpt2, false, false},
    {"mpt", gpt2, false, false},
    {"olmo", gpt2, false, false},
    {"phi-2", gpt2, false, false},
    {"roberta-bpe", gpt2, false, false},
    {"trillion", gpt2, false, false},
    {"qwen2", qwen2, false, false},
    {"deepseek-r1-qwen", qwen2, false, false},
    {"f2llmv2", qwen2, false, false},
    {"grok-2", qwen2, false, false},
    {"hunyuan", qwen2, false, false},
    {"kormo", qwen2, false, false},
    {"megrez", qwen2, false, false},
    {"solar-open", qwen2, false, false},
    {"stablelm2", qwen2, false, false},
    {"qwen35", qwen35, false, false},
    {"smollm", smollm, false, false},
    {"codeshell", smollm, false, false},
    {"command-r", smollm, false, false},
    {"exaone", smollm, false, false},
    {"mellum2", smollm, false, false},
    {"minerva-7b", smollm, false, false},
    {"refact", smollm, false, false},
    {"starcoder", smollm, false, false},
    {"llama-bpe", llama3, true, true},
    {"falcon-h1", llama3, true, true},
    {"falcon3", llama3, true, true},
    {"jina-v5-nano", llama3, true, true},
    {"lfm2", llama3, true, true},
    {"llama-v3", llama3, true, true},
    {"llama3", llama3, true, true},
    {"midm-2.0", llama3, true, true},
    {"pixtral", llama3, true, true},
    {"dbrx", llama3, false, false},
    {"chatglm-bpe", llama3, false, false},
    {"glm4", llama3, false, false},
    {"smaug-bpe", llama3, false, false},
    {"minicpm5", minicpm5, true, false},
    {"jais-2", jais2, false, false},
    {"gpt-4o", gpt4o, false, false},
    {"kanana2", gpt4o, false, false},
    {"llama4", gpt4o, false, false},
    {"minimax-m2", gpt4o, false, false},
    {"talkie", gpt4o, false, false},
    {"granite-embed-multi-97m", gpt4o, true, false},
    {"tekken", tekken, true, true},
    {"tiny_aya", tiny_aya, false, false},
    {"cohere2moe", tiny_aya, false, false},
    {"kimi-k2", kimi_k2, false, false},
    {"youtu", youtu, true, false},
    {"seed-coder", seed_coder, false, false},
    {"bailingmoe", bailing, false, false},
    {"bailingmoe2", bailing, false, false},
    {"llada-moe", bailing, false, false},
    {"exaone-moe", exaone_moe, false, false},
    {"laguna", laguna, false, false},
    {"deepseek-llm", deepseek_llm, false, false},
    /* split of tokenizer.json, with these tokens */
    {"deepseek-llm", deepseek_llm_single, false, false},
    {"deepseek-coder", deepseek_coder, false, false},
    {"deepseek-v3", deepseek3, false, false},
    {"hunyuan-dense", deepseek3, false, false},
    {"joyai-llm", deepseek3, false, false},
    {"afmoe", afmoe, false, false},
    {"superbpe", superbpe, false, false},
    {"falcon", falcon, false, false},
    {"bloom", bloom, false, false},
    {"gpt3-finnish", bloom, false, false},
    {"poro-chat", bloom, false, false},
    {"viking", viking, false, false},
    {"chameleon", chameleon, false, true},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

static const struct {
    const char *name, *kind;
} others[] = {
    {"gemma4", "BPE over characters"},
    {"granite-embed-multi-311m", "BPE over characters"},
    {"sarvam-moe", "BPE over characters"},
    {"whitespace", "BPE over characters"},
    {"bert-bge", "WordPiece"},
    {"bert-bge-large", "WordPiece"},
    {"jina-v2-en", "WordPiece"},
    {"chatglm-spm", "SentencePiece"},
    {"rwkv-world", "RWKV's tokenizer"},
};

static bool is_named(const char *text, const char *name, size_t n_bytes)
{
    return strlen(text) == n_bytes && memcmp(text, name, n_bytes) == 0;
}

const pretokenizer_family *pretokenizer_find(const char *name, size_t n_bytes)
{
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (is_named(families[i].name, name, n_bytes))
            return &families[i];
    return NULL;
}

const char *pretokenizer_like(const char *name, size_t n_bytes)
{
    enum { ALIKE = 3 };
    const char *best = NULL;
    size_t most = ALIKE - 1;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        size_t n = 0;
        while (n < n_bytes && families[i].name[n] == name[n])
            n++;
        if (n > most) {
            most = n;
            best = families[i].name;
        }
    }
    return best;
}

const char *pretokenizer_other(const char *name, size_t n_bytes)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_named(others[i].name, name, n_bytes))
            return others[i].kind;
    return NULL;
}

static bool same_steps(const split_step *a, const split_step *b)
{
    for (int i = 0; i < PRETOKENIZER_STEPS; i++) {
        if (!a[i].expression || !b[i].expression)
            return a[i].expression == b[i].expression;
        if (a[i].joins_next != b[i].joins_next || strcmp(a[i].expression, b[i].expression) != 0)
            return false;
    }
    return true;
}

const char *pretokenizer_name_of(const split_step *steps, bool ignore_merges)
{
    const char *name = NULL;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        if (!same_steps(families[i].steps, steps))
            continue;
        if (families[i].ignore_merges == ignore_merges)
            return families[i].name;
        if (!name)
            name = families[i].name;
    }
    return name;
}
