/* Adam, gradients and the training of a predictor, with values worked out by hand. */
#include "exit/exit.h"
#include "support/scene.h"
#include "train/mlp.h"

static void take_arena(arena *a, size_t bytes)
{
    MUST(arena_init, a, bytes, false);
}

/* ---- Adam ---- */

TEST(two_steps_of_adam)
{
    arena a;
    adam o;
    adam_options options;
    adam_options_init(&options);
    options.rate = 0.1f;
    options.beta1 = 0.5f;
    options.beta2 = 0.75f;
    take_arena(&a, adam_bytes(2));
    adam_init(&o, 2, &options, &a);
    MUST(arena_check, &a);
    float w[2] = {1, -1};
    /* The first step is the rate, whatever the gradient's size: m' = g, v' = g g. */
    adam_begin(&o);
    adam_apply(&o, w, (float[]){2, -0.01f}, 0, 2);
    assert_near(w[0], 0.9, 1e-6);
    assert_near(w[1], -0.9, 1e-6);
    /* w[0]: m = 0.5 * 1 + 0.5 * 4 = 2.5, m' = m / 0.75 = 10 / 3;
     * v = 0.75 * 1 + 0.25 * 16 = 4.75, v' = v / (1 - 9 / 16) = 10.857143; 0.1 m' / sqrt(v') =
     * 0.1011628. w[1]: no gradient: m = -0.0025, m' = -0.00333333; v = 0.000018750,
     * v' = 0.0000428571; 0.1 m' / sqrt(v') = -0.0509175. */
    adam_begin(&o);
    adam_apply(&o, w, (float[]){4, 0}, 1, 2); /* in two parts */
    adam_apply(&o, w, (float[]){4, 0}, 0, 1);
    assert_near(w[0], 0.9 - 0.1011628, 1e-6);
    assert_near(w[1], -0.9 + 0.0509175, 1e-6);
    arena_free(&a);
}

TEST(decay_is_apart_from_the_gradient)
{
    arena a;
    adam o;
    adam_options options;
    adam_options_init(&options);
    options.rate = 0.1f;
    options.decay = 0.5f;
    take_arena(&a, adam_bytes(1));
    adam_init(&o, 1, &options, &a);
    float w = 8;
    adam_begin(&o);
    adam_apply(&o, &w, &(float){0}, 0, 1);
    assert_near(w, 8 - 0.1 * 0.5 * 8, 1e-6);
    arena_free(&a);
}

/* ---- Gradients ---- */

/* K = 2, H = 2, two groups. Of the second one with x = (1, 2): unit 0 = 0.5 + 1 - 1 = 0.5, unit 1 =
 * -1 + 0 - 2 = -3, off. z = -1 + 2 * 0.5 = 0, p = 0.5. */
static const float small[11] = {1, 0, -0.5f, -1, 7, 8, 0.5f, -1, 2, 5, -1};

static mlp_samples samples_of(int32_t n, const float *x, const uint8_t *label, const uint8_t *group)
{
    return (mlp_samples){
        .n = n, .n_features = 2, .n_groups = 2, .x = x, .label = label, .group = group};
}

TEST(a_gradient_by_hand)
{
    float g[11] = {0}, unit[2];
    mlp_samples s = samples_of(2, (float[]){1, 2, 1, 2}, (uint8_t[]){1, 0}, (uint8_t[]){1, 1});
    assert_near(mlp_add_gradient(&s, 0, small, 2, g, unit), 0, 1e-6);
    /* dz = p - 1 = -0.5: b2 -0.5; w2 dz * unit; b1 of the group dz * w2 where on; w1 that by x. */
    double want[11] = {-1, 0, -2, 0, 0, 0, -1, 0, -0.25, 0, -0.5};
    for (int i = 0; i < 11; i++)
        assert_near(g[i], want[i], 1e-6);
    mlp_add_gradient(&s, 1, small, 2, g, unit); /* dz = 0.5: they cancel */
    for (int i = 0; i < 11; i++)
        assert_near(g[i], 0, 1e-6);
}

TEST(the_loss_by_hand)
{
    /* z of (1, 2) is 0: log 2 for either label. (3, 2): unit 0 = 2.5, z = 4: log(1 + e^4) - 4. In
     * the other group (-6, 0): unit 0 = 7 - 6 = 1, unit 1 = 8, z = -1 + 2 + 40 = 41: 41 with label
     * 0. */
    mlp_samples s = samples_of(4, (float[]){1, 2, 1, 2, 3, 2, -6, 0}, (uint8_t[]){0, 1, 1, 0},
                               (uint8_t[]){1, 1, 1, 0});
    assert_near(mlp_loss(&s, small, 2), (2 * 0.693147181 + 0.018149928 + 41) / 4, 1e-6);
}

TEST(gradients_are_those_of_the_loss)
{
    enum { K = 5, G = 3, H = 7, N = (K + G + 1) * H + 1 };
    rng r = rng_from(77);
    float w[N], g[N] = {0}, unit[H], x[K];
    for (int i = 0; i < N; i++)
        w[i] = (float)rng_unit(&r) * 2 - 1;
    for (int k = 0; k < K; k++)
        x[k] = (float)rng_unit(&r) * 2 - 1;
    mlp_samples s = {.n = 1,
                     .n_features = K,
                     .n_groups = G,
                     .x = x,
                     .label = (uint8_t[]){1},
                     .group = (uint8_t[]){2}};
    assert_int_equal(mlp_n_parameters(K, G, H), N);
    mlp_add_gradient(&s, 0, w, H, g, unit);
    for (int i = 0; i < N; i++) {
        float kept = w[i];
        w[i] = kept + 0.01f;
        double up = mlp_loss(&s, w, H);
        w[i] = kept - 0.01f;
        double down = mlp_loss(&s, w, H);
        w[i] = kept;
        assert_near(g[i], (up - down) / 0.02, 2e-3);
    }
}

/* ---- Training ---- */

enum { K = 3, H = 16, G = 2, N_SAMPLES = 600, N_LEARN = 500 };

/* The label says whether two features of very different sizes have the same sign: no line parts
 * them. In the second group the features lie elsewhere, and the label is the other one. The third
 * feature never changes. */
static void make_samples(float *x, uint8_t *label, uint8_t *group)
{
    rng r = rng_from(5);
    for (int i = 0; i < N_SAMPLES; i++) {
        float a = (float)rng_unit(&r) * 2 - 1, b = (float)rng_unit(&r) * 2 - 1;
        group[i] = (uint8_t)(i % 2);
        x[K * i] = (group[i] ? -40 : 100) + 20 * a;
        x[K * i + 1] = 0.01f * b;
        x[K * i + 2] = 7;
        label[i] = ((a > 0) == (b > 0)) ^ group[i];
    }
}

static bool stop_early(void *user, double part)
{
    *(double *)user = part;
    return part < 0.1;
}

TEST(training_learns_what_no_line_parts)
{
    enum { N_NUMBERS = G * (K * H + 2 * H + 1) };
    static float x[K * N_SAMPLES], w[N_NUMBERS], again[N_NUMBERS];
    static uint8_t label[N_SAMPLES], group[N_SAMPLES];
    make_samples(x, label, group);
    mlp_samples s = {
        .n = N_LEARN, .n_features = K, .n_groups = G, .x = x, .label = label, .group = group};
    mlp_training t = {.n_hidden = H, .n_epochs = 120, .n_batch = 32, .rate = 0.01f, .seed = 3};
    mlp_numbers out = {w, w + G * K * H, w + G * (K + 1) * H, w + G * (K + 2) * H};
    mlp_numbers out2 = {again, again + G * K * H, again + G * (K + 1) * H, again + G * (K + 2) * H};
    arena a;
    take_arena(&a, mlp_train_bytes(&s, &t));
    assert_true(mlp_train(&s, &t, &out, &a));
    MUST(arena_check, &a);
    assert_int_equal(a.used_bytes, 0);
    int n_right = 0;
    for (int i = N_LEARN; i < N_SAMPLES; i++) {
        exit_mlp m = {.w1 = out.w1 + group[i] * K * H,
                      .b1 = out.b1 + group[i] * H,
                      .w2 = out.w2 + group[i] * H,
                      .b2 = out.b2[group[i]]};
        n_right += (exit_mlp_score(&m, K, H, x + K * i) > 0.5f) == label[i];
    }
    assert_in_range(n_right, 90, 100);
    mlp_train(&s, &t, &out2, &a);
    assert_memory_equal(w, again, sizeof w);
    t.seed = 4;
    mlp_train(&s, &t, &out2, &a);
    assert_memory_not_equal(w, again, sizeof w);
    double done = 0;
    t.progress = stop_early;
    t.user = &done;
    assert_false(mlp_train(&s, &t, &out2, &a));
    assert_near(done, 0.1, 1e-9); /* twelve epochs */
    arena_free(&a);
}
