/* Expected share of a token's experts that are in a mixture's slots, by its routes or an assumed
 * curve. */
#include "base/usual.h"
#include "common/num.h"
#include "drey/tune.h"
#include "model/arch.h"
#include "model/router.h"
#include "plan/plan.h"

bool drey_routes_are_sound(const drey_routes *r)
{
    bool any = false;
    for (int d = 0; d < DREY_ROUTE_SLOTS; d++)
        any = any || r->distance[d] > 0;
    return any && r->n_experts > 0 && r->n_tokens > 0;
}

double drey_routes_hits(const drey_routes *r, double n_slots)
{
    const int last = DREY_ROUTE_SLOTS - 1; /* all that is further as well */
    double within = 0, all = 0;
    if (n_slots >= r->n_experts)
        return 1;
    for (int d = 0; d <= last; d++) {
        double part = d < last ? min_f64(max_f64(n_slots - d, 0), 1) : 0;
        within += part * r->distance[d];
        all += r->distance[d];
    }
    return all > 0 ? within / all : 0;
}

double plan_expert_hits(const plan_inputs *in, int32_t n_slots)
{
    double share = (double)n_slots / in->model[PLAN_TARGET].experts.most, missing = 1;
    if (in->routes)
        return drey_routes_hits(in->routes, share * in->routes->n_experts);
    for (int i = 0; i < USUAL_EXPERT_MISSES; i++)
        missing *= 1 - share;
    return 1 - missing;
}

double plan_expert_ratio(const plan_inputs *in)
{
    const router_shape *router = &in->model[PLAN_TARGET].shape->experts.router;
    return (double)router->n_experts / max_i32(router->n_used, 1);
}
