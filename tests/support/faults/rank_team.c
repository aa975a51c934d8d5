/* See rank_team.h. */
#include "support/faults/rank_team.h"

rank_team team;
team_settings next_team;
const int32_t team_prompt[N_PROMPT] = {5, 77, 140, 9, 201, 33, 60, 7, 120};

static void *serve(void *which)
{
    int32_t rank = (int32_t)(intptr_t)which;
    drey_ranks *r;
    drey_model *m;
    thread_ranks_be(rank);
    MUST(ranks_open, &r, thread_transport(), 0);
    MUST(drey_model_open, &m, team.path[rank]);
    drey_engine_options o = plain_options(m, N_CONTEXT, 1 + rank % 2);
    if (next_team.budget[rank])
        o.memory_bytes = next_team.budget[rank];
    team.status[rank] = drey_ranks_serve(r, &o, NULL);
    drey_ranks_close(&r);
    drey_model_close(&m);
    return NULL;
}

void team_begin(int32_t n, const char *path, int32_t other, const char *other_path, int32_t wait_s)
{
    team = (rank_team){.n = n};
    thread_ranks_begin(n);
    thread_ranks_be(0);
    MUST(ranks_open, &team.ranks, thread_transport(), wait_s);
    thread_ranks_alter(1, next_team.alter_rank_1);
    for (int32_t i = 1; i < n; i++) {
        team.path[i] = i == other ? other_path : path;
        assert_int_equal(pthread_create(&team.thread[i], NULL, serve, (void *)(intptr_t)i), 0);
    }
}

void team_end(void)
{
    drey_ranks_close(&team.ranks);
    for (int32_t i = 1; i < team.n; i++)
        pthread_join(team.thread[i], NULL);
}

void team_compare(const drey_engine_options *o, int32_t n, const char *path,
                  const drey_sampling *sampling, const char *what)
{
    static writing want, got;
    const engine_hooks half = {.set_share = true, .share = 0.5};
    drey_engine_options shared = *o;
    writing_run_tuned(&want, o, NULL, team_prompt, N_PROMPT, N_TEXT, sampling);
    must(want.status, &want.error);
    team_begin(n, path, 0, NULL, 0);
    shared.ranks = team.ranks;
    shared.rank_layers = next_team.division;
    shared.n_rank_layers = next_team.division ? (uint64_t)n : 0;
    if (next_team.budget[0])
        shared.memory_bytes = next_team.budget[0];
    writing_run_tuned(&got, &shared, n % 2 ? &half : NULL, team_prompt, N_PROMPT, N_TEXT, sampling);
    must(got.status, &got.error);
    int32_t next = 0;
    drey_rank_info info;
    for (int32_t i = 0; drey_ranks_describe(team.ranks, i, &info); i++) {
        assert_int_equal(info.first_layer, next);
        assert_true(info.n_layers > 0 || (i == 0 && next_team.division));
        assert_true(info.streamed_bytes_per_pass > 0 || next_team.budget[0] == 0);
        assert_true(info.pinned_bytes + info.streamed_bytes_per_pass > 0);
        next += info.n_layers;
    }
    assert_int_equal(next, o->target->shape.n_layers);
    /* Messages take time, and computing does not count. */
    assert_true(team.ranks->wait.idle_ns > 0);
    team_end();
    for (int32_t i = 1; i < n; i++)
        assert_int_equal(team.status[i], DREY_OK);
    must_be_same(&want, &got, what);
    if (o->drafter == DREY_DRAFTER_NONE) /* else trees may differ, and with them who is asked */
        assert_int_equal(got.stats.experts_used, want.stats.experts_used);
}

const char *team_target_path(void)
{
    static char path[2048];
    snprintf(path, sizeof path, "%s", temp_path("target.gguf"));
    return path;
}

toy_options team_toy(void)
{
    toy_options toy = toy_asked();
    toy.n_layers = 5;
    return toy;
}

drey_model *team_target(void)
{
    temp_dir();
    const toy_options toy = team_toy();
    return toy_open("target.gguf", &toy);
}

drey_model *team_draft(void)
{
    toy_options toy = team_toy();
    toy.noise = 0.005f;
    toy.noise_seed = 3;
    return toy_open("draft.gguf", &toy);
}

drey_engine_options team_options(drey_engine_options o)
{
    o.ranks = team.ranks;
    return o;
}
