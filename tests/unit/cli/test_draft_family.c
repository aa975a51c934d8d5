/* Small models that draft for large ones, and names of models in a folder. */
#include "cli/models/draft_family.h"
#include "cli/terminal/terminal.h"
#include "cli/models/model_store.h"
#include "cli/pull/download_line.h"
#include "cli/pull/hub.h"
#include "support/temp_dir.h"
#include "support/test.h"

static model_facts facts(const char *architecture, const char *pre, const char *name,
                         int64_t n_vocab, double billions, int64_t n_context)
{
    model_facts f = {.n_vocab = n_vocab,
                     .n_parameters = (int64_t)(billions * 1e9),
                     .n_context = n_context,
                     .n_bytes = (uint64_t)(billions * 0.6e9)};
    snprintf(f.architecture, sizeof f.architecture, "%s", architecture);
    snprintf(f.pre, sizeof f.pre, "%s", pre);
    snprintf(f.name, sizeof f.name, "%s", name);
    return f;
}

static void has_draft(model_facts f, const char *draft)
{
    const draft_family *family = draft_family_of(&f);
    if (!draft) {
        assert_true(!family || !family->draft);
        return;
    }
    assert_non_null(family);
    assert_non_null(family->draft);
    assert_non_null(strstr(family->draft, draft));
}

/* As published files say it. */
TEST(families_are_known_by_their_keys)
{
    has_draft(facts("llama", "llama-bpe", "Meta Llama 3.1 70B Instruct", 128256, 70.6, 131072),
              "Llama-3.2-1B");
    has_draft(facts("llama", "llama-bpe", "Meta Llama 3 8B Instruct", 128256, 8, 8192), NULL);
    has_draft(facts("llama", "llama-bpe", "Llama 3.2 1B Instruct", 128256, 1.2, 131072), NULL);
    has_draft(facts("llama", "llama-bpe", "DeepSeek R1 Distill Llama 70B", 128256, 70.6, 131072),
              "Distill-Llama-8B");
    has_draft(
        facts("qwen2", "deepseek-r1-qwen", "DeepSeek R1 Distill Qwen 32B", 152064, 32.8, 131072),
        "Distill-Qwen-1.5B");
    has_draft(facts("llama", "", "LLaMA v2", 32000, 13, 4096), "TinyLlama");
    has_draft(facts("llama", "", "mistralai_mistral-7b-instruct-v0.2", 32000, 7.2, 32768), NULL);
    has_draft(facts("llama", "default", "Mistral 7B Instruct v0.3", 32768, 7.2, 32768), NULL);
    has_draft(facts("llama", "tekken", "Mistral Small 24B Instruct 2501", 131072, 23.6, 32768),
              "Mistral-Small-3.1-DRAFT");
    has_draft(facts("llama", "smollm", "Smollm2 1.7B", 49152, 1.7, 8192), "SmolLM2-135M");
    has_draft(facts("qwen2", "qwen2", "Qwen2.5 Coder 32B Instruct", 152064, 32.8, 32768),
              "Qwen2.5-Coder-0.5B");
    has_draft(facts("qwen2", "qwen2", "Qwen2.5 72B Instruct", 152064, 72.7, 32768), "Qwen2.5-0.5B");
    has_draft(facts("qwen2", "qwen2", "Qwen2.5 0.5B Instruct", 151936, 0.63, 32768), NULL);
    has_draft(facts("qwen3", "qwen2", "Qwen3 32B", 151936, 32.8, 40960), "Qwen3-0.6B");
    has_draft(facts("qwen3moe", "qwen2", "Qwen3 30B A3B", 151936, 30.5, 40960), "Qwen3-0.6B");
    has_draft(facts("gemma2", "", "Gemma 2 27b It", 256000, 27.2, 8192), "gemma-2-2b");
    has_draft(facts("gemma3", "", "Gemma 3 27b It", 262208, 27, 131072), "gemma-3-4b");
    has_draft(facts("gemma3", "", "Gemma 3 4b It", 262208, 3.9, 131072), NULL);
    has_draft(facts("gemma3", "", "Gemma 3 1b It", 262144, 1, 32768), "gemma-3-270m");
    has_draft(facts("phi3", "", "Phi 3 Medium 4k Instruct", 32064, 14, 4096), "Phi-3-mini");
    has_draft(facts("phi3", "gpt-4o", "Phi 4 Mini Instruct", 200064, 3.8, 131072), NULL);
    has_draft(facts("granite", "refact", "Granite 3.3 8b Instruct", 49159, 8.2, 131072),
              "granite-3.3-2b");
    has_draft(facts("granite", "refact", "Granite 3.1 8b Instruct", 49155, 8.2, 131072),
              "granite-3.1-1b-a400m");
    has_draft(facts("gpt-oss", "gpt-4o", "Gpt Oss 120b", 201088, 117, 131072), NULL);
    has_draft(facts("olmoe", "olmo", "OLMoE 1B 7B", 50304, 6.9, 4096), NULL);
    has_draft(facts("llama", "llama-bpe", "toy", 400, 0.001, 64), NULL);
    model_facts mixtral = facts("llama", "", "mixtral", 32000, 46.7, 32768);
    mixtral.n_experts = 8;
    has_draft(mixtral, NULL);
    assert_non_null(strstr(draft_family_of(&mixtral)->otherwise, "lookup"));
    char words[300];
    terminal_begin(CLI_PLAN, "my model.gguf", NULL);
    draft_family_words(draft_family_of(&mixtral), &mixtral, 1, words, sizeof words);
    assert_non_null(strstr(words, "drey train medusa -m 'my model.gguf'"));
}

TEST(a_draft_pays_for_much_larger_models)
{
    model_facts large = facts("qwen3", "qwen2", "Qwen3 32B", 151936, 32.8, 40960);
    model_facts small = facts("qwen3", "qwen2", "Qwen3 1.7B", 151936, 2, 40960);
    const draft_family *family = draft_family_of(&large);
    double in_memory = draft_family_gain(family, &large, 0);
    double streamed = draft_family_gain(family, &large, large.n_bytes / 2);
    assert_true(in_memory > 1.5 && in_memory < 3 && streamed > 4 && streamed <= 5);
    assert_true(draft_family_gain(family, &small, 0) < in_memory);
    for (size_t i = 0; draft_family_at(i); i++)
        if (!draft_family_at(i)->draft)
            assert_true(draft_family_gain(draft_family_at(i), &large, 0) <= 1 &&
                        *draft_family_at(i)->otherwise);
}

/* ---- The page ---- */

static char *read_page(const char *path)
{
    static char text[64 << 10];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_true(n < sizeof text - 1);
    text[n] = '\0';
    return text;
}

/* docs/reference/drafts.md has the rows of the table, in its order, and no others. */
TEST(the_page_has_the_table)
{
    const char *page = read_page(TEST_DATA "/../../docs/reference/drafts.md");
    const char *at = strstr(page, "|---|");
    assert_non_null(at);
    at = strchr(at, '\n') + 1;
    for (size_t i = 0; draft_family_at(i); i++) {
        const draft_family *f = draft_family_at(i);
        char row[400];
        if (f->draft)
            snprintf(row, sizeof row, "| %s | %s | `drey pull %s` | %.2f GB |\n", f->name,
                     f->targets, f->draft, f->draft_bytes / 1e9);
        else
            snprintf(row, sizeof row, "| %s | %s | none: %s | |\n", f->name, f->targets,
                     f->otherwise);
        if (strncmp(at, row, strlen(row)) != 0)
            fail_msg("docs/reference/drafts.md: wants %.*s, has %.*s", (int)strlen(row) - 1, row,
                     (int)strcspn(at, "\n"), at);
        at += strlen(row);
    }
    assert_true(*at != '|');
}

/* ---- Names ---- */

static void make_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("x", file);
    fclose(file);
}

static void finds(const model_store *s, const char *word, const char *names)
{
    const stored_model *found[8];
    char got[200] = "";
    size_t n = model_store_find(s, word, found, 8), length = 0;
    for (size_t i = 0; i < n; i++)
        length +=
            (size_t)snprintf(got + length, sizeof got - length, i ? " %s" : "%s", found[i]->name);
    if (strcmp(got, names) != 0)
        fail_msg("%s: %s", word, got);
}

TEST(names_of_the_folders_models)
{
    static const char *const files[] = {
        "Qwen3-8B-Q4_K_M.gguf",  "Qwen3-8B-Q8_0.gguf",   "qwen3-0.6b.gguf", "a.gguf", "a-b.gguf",
        "s-00001-of-00002.gguf", "s-00002-of-00002.gguf"};
    static const char *const found_by[][2] = {
        /* a word, and the names that it finds */
        {"Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B-Q4_K_M"},
        {"qwen3-8b-q4_k_m", "Qwen3-8B-Q4_K_M"},
        {"qwen3-8b:q4_k_m", "Qwen3-8B-Q4_K_M"},
        {"Qwen3:8B", "Qwen3-8B-Q4_K_M Qwen3-8B-Q8_0"},
        {"qwen3:0.6b", "qwen3-0.6b"},
        {"qwen3-8", "Qwen3-8B-Q4_K_M Qwen3-8B-Q8_0"},
        {"qwen3:8", ""},
        {"Qwen/Qwen3-8B-GGUF:Q8_0", "Qwen3-8B-Q8_0"},
        {"hf.co/Qwen/Qwen3-8B-GGUF:Q8_0", "Qwen3-8B-Q8_0"},
        {"https://huggingface.co/Qwen/Qwen3-8B-GGUF/resolve/main/Qwen3-8B-Q8_0.gguf",
         "Qwen3-8B-Q8_0"},
        {"a", "a"}, /* itself, though another one begins so */
        {"A.gguf", "a"},
        {"s", "s"},
        {"b", ""},
        {"", ""},
        {":", ""},
        {"./a", ""},
        {"/a", ""},
        {"x/y/a", ""},
    };
    model_store s;
    const char *folder = temp_dir();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        make_file(folder, files[i]);
    setenv("DREY_MODELS", folder, 1);
    assert_int_equal(model_store_open(&s, NULL), DREY_OK);
    assert_int_equal(s.n, 6);
    for (size_t i = 0; i < sizeof found_by / sizeof *found_by; i++)
        finds(&s, found_by[i][0], found_by[i][1]);
    char part[PATH_MAX];
    const stored_model *found[1];
    assert_int_equal(model_store_find(&s, "s", found, 1), 1);
    assert_int_equal(found[0]->n_files, 2);
    assert_int_equal(found[0]->n_bytes, 2);
    assert_true(stored_model_part(found[0], 1, part));
    assert_non_null(strstr(part, "/s-00002-of-00002.gguf"));
    model_store_close(&s);
}

TEST(addresses_of_the_hub_are_names)
{
    static const char *const names[][2] = {
        {"O/N", "O/N"},
        {"O/N:Q8_0", "O/N:Q8_0"},
        {"hf.co/O/N:Q8_0", "O/N:Q8_0"},
        {"https://huggingface.co/O/N/blob/main/a%20b/F.gguf?x=1#y", "O/N/a b/F.gguf"},
        {"huggingface.co/O/N/tree/main", "O/N"},
        {"hf.co/O/N/resolve/v2/F.gguf", "https://hf.co/O/N/resolve/v2/F.gguf"},
        {"http://hub:80/O/N", "O/N"},
        {"http://hub:80/O/N/resolve/main/F.gguf", "http://hub:80/O/N/resolve/main/F.gguf"},
        {"http://hub:8080/O/N", "http://hub:8080/O/N"},
        {"https://example.org/F.gguf", "https://example.org/F.gguf"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[HUB_WORD_BYTES];
        assert_int_equal(hub_name_of(name, "http://hub:80", names[i][0], NULL), DREY_OK);
        assert_string_equal(name, names[i][1]);
    }
}

/* ---- The moving line ---- */

TEST(a_download_has_a_rate)
{
    const uint64_t mib = 1 << 20;
    download_line d = {0};
    char text[96];
    download_line_count(&d, 10, 100 * mib);
    assert_string_equal(download_line_text(&d, 100 * mib, 950 * mib, text), "100M of 950M");
    for (int i = 1; i <= 20; i++)
        download_line_count(&d, 10 + i, (uint64_t)(100 + 10 * i) * mib);
    assert_string_equal(download_line_text(&d, 300 * mib, 950 * mib, text),
                        "300M of 950M, 10.0M/s, about 65 s left");
    for (int i = 1; i <= 40; i++) /* it has become slower */
        download_line_count(&d, 30 + i, (uint64_t)(300 + i) * mib);
    assert_true(d.rate > 0.99 * (double)mib && d.rate < 1.1 * (double)mib);
    assert_non_null(strstr(download_line_text(&d, 340 * mib, 950 * mib, text), " 1"));
    download_line_count(&d, 80, 0); /* another file */
    assert_true(d.rate <= 0);
}
