/* Property: any JSON is refused as a profile, or its trees are trees, its numbers finite and none
 * negative; as routes, or no share of hits is below 0, above 1, or falls; and as speeds, or none is
 * negative. */
#include "common/json_value.h"
#include "drey/tune.h"
#include "fuzz/fuzz.h"
#include "tune/kept_speeds.h"
#include "tune/measured.h"

#include <math.h>

static void check_tree(const drey_static_tree *t)
{
    FUZZ_CHECK(t->n >= 1 && t->n <= t->width && t->width <= 64);
    FUZZ_CHECK(t->expected_tokens >= 1 && t->pass_s > 0 && t->tokens_per_s > 0);
    for (int32_t i = 1; i < t->n; i++) {
        FUZZ_CHECK(t->parent[i] >= 0 && t->parent[i] < i);
        FUZZ_CHECK(t->rank[i] >= 0 && t->rank[i] < DREY_STATIC_RANKS);
    }
}

static void check_taken(const drey_pair_report *r)
{
    FUZZ_CHECK(r->n_threads >= 1 && r->n_threads <= DREY_MAX_THREADS);
    FUZZ_CHECK(r->trees.n_trees >= 0 && r->trees.n_trees <= DREY_STATIC_TREES);
    FUZZ_CHECK(r->trees.best >= 0 && (r->trees.best < r->trees.n_trees || r->trees.best == 0));
    FUZZ_CHECK(drey_profile_is_sound(&r->profile) && r->profile.trees == &r->trees);
    for (int i = 0; i < DREY_PROFILE_ROWS; i++)
        FUZZ_CHECK(isfinite(r->profile.pass_s[i]) && r->profile.pass_s[i] >= 0);
    for (int rank = 0; rank < DREY_PROFILE_RANKS; rank++)
        for (int bin = 0; bin < DREY_PROFILE_BINS; bin++)
            FUZZ_CHECK(r->profile.right[rank][bin] >= 0 &&
                       r->profile.right[rank][bin] <= r->profile.guessed[rank][bin]);
    for (int32_t i = 0; i < r->trees.n_trees; i++)
        check_tree(&r->trees.tree[i]);
}

static void check_routes(const drey_routes *r)
{
    double before = 0;
    for (int n = 0; n <= DREY_ROUTE_SLOTS + 1; n += 13) {
        double hits = drey_routes_hits(r, n);
        FUZZ_CHECK(hits >= before && hits <= 1);
        before = hits;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static drey_pair_report report;
    json_document json;
    const json_value *root = json_load(&json, (const char *)bytes, n_bytes);
    if (root && profile_parse(root, &report))
        check_taken(&report);
    drey_routes routes;
    if (root && routes_parse(root, &routes))
        check_routes(&routes);
    kept_speeds kept;
    if (root && kept_speeds_parse(root, &kept))
        FUZZ_CHECK(kept.speeds.disk_bytes_per_s >= 0 && kept.speeds.memory_bytes_per_s >= 0 &&
                   kept.speeds.one_ops_per_s >= 0 && kept.speeds.tree_ops_per_s >= 0 &&
                   isfinite(kept.until));
    json_free(&json);
    return 0;
}
