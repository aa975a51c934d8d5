/* The processor's counters of energy, in a folder that looks like the system's. */
#include <sys/stat.h>

#include "engine/config.h"
#include "os/energy.h"
#include "support/toy_models.h"

static void put(int package, const char *name, unsigned long long value)
{
    char path[600];
    snprintf(path, sizeof path, "%s/intel-rapl:%d", temp_path("counters"), package);
    mkdir(temp_path("counters"), 0700);
    mkdir(path, 0700);
    snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fprintf(f, "%llu\n", value) > 0 && fclose(f) == 0);
}

TEST(packages_are_added_and_begin_again)
{
    energy_reading none, a, b;
    energy_read(&none, temp_path("nothing is there"));
    put(0, "energy_uj", 5000000);
    put(0, "max_energy_range_uj", 262143000000);
    put(1, "energy_uj", 262142000000);
    put(1, "max_energy_range_uj", 262143000000);
    put(2, "energy_uj", 7); /* and no range */
    energy_read(&a, temp_path("counters"));
    put(0, "energy_uj", 5250000);
    put(1, "energy_uj", 500000);
    put(2, "energy_uj", 700000000);
    energy_read(&b, temp_path("counters"));
    assert_true(energy_between(&a, &b) > 1.749 && energy_between(&a, &b) < 1.751);
    assert_true(energy_between(&none, &b) == 0 && energy_between(&a, &none) == 0);
}

/* Each token moves the counter. */
static bool spend(void *user, int32_t token)
{
    unsigned long long *uj = user;
    put(0, "energy_uj", *uj += 2000000);
    return true;
}

/* What comes before decoding and after the text is not the text's. */
TEST(a_text_has_the_joules_of_its_decoding)
{
    enum { N = 12, N_PROMPT = 4 };
    static const int32_t prompt[N_PROMPT] = {65, 66, 67, 68};
    unsigned long long uj = 900000;
    put(0, "energy_uj", uj);
    put(0, "max_energy_range_uj", 262143000000);
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, N_PROMPT + N, 1);
    char root[512]; /* temp_path's is used again */
    snprintf(root, sizeof root, "%s", temp_path("counters"));
    engine_place p = place_open(&o, &(engine_hooks){.energy_root = root});
    drey_generate_options g;
    drey_generate_options_init(&g);
    g.n_predict = N;
    g.ignore_eos = true;
    g.on_token = spend;
    g.user = &uj;
    drey_statistics t;
    drey_counts c;
    MUST(drey_session_generate, p.session[0], prompt, N_PROMPT, &g, &t);
    assert_int_equal(t.generated_tokens, N);
    assert_true(t.joules > 2 * (N - 2) && t.joules <= 2 * N);
    put(0, "energy_uj", uj += 50000000); /* nobody writes */
    drey_session_reset(p.session[0]);
    MUST(drey_session_generate, p.session[0], prompt, N_PROMPT, &g, &t);
    assert_true(t.joules > 2 * (N - 2) && t.joules <= 2 * N);
    drey_engine_count(p.engine, &c);
    assert_true(c.joules >= t.joules && c.joules <= 4 * N);
    place_close(&p);
}

TEST_GROUP(toys_open, toys_close)
