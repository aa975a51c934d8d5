/* Decides who has memory: see model_budget.h. */
#include "serve/router/model_budget.h"

/* The idle one that was used longest ago; -1: there is none. */
static int32_t longest_idle(const budget_model *models, int32_t n, int32_t which)
{
    int32_t found = -1;
    for (int32_t i = 0; i < n; i++) {
        const budget_model *m = &models[i];
        if (i == which || !m->given || m->leaving || !m->idle)
            continue;
        if (found < 0 || m->used < models[found].used)
            found = i;
    }
    return found;
}

budget_answer budget_ask(const budget_model *models, int32_t n, int32_t which, budget_limits limits,
                         uint64_t *bytes, int32_t *who)
{
    const budget_model *asks = &models[which];
    uint64_t taken = 0;
    int32_t n_loaded = 0;
    bool leaving = false;
    *bytes = asks->want;
    if (asks->floor > limits.budget)
        return BUDGET_NEVER;
    for (int32_t i = 0; i < n; i++) {
        taken += models[i].given;
        n_loaded += models[i].given > 0;
        leaving = leaving || (models[i].given && models[i].leaving);
    }
    bool full = limits.n_loaded > 0 && n_loaded >= limits.n_loaded;
    uint64_t left = taken < limits.budget ? limits.budget - taken : 0;
    if (!full && (limits.budget == UINT64_MAX || asks->want <= left))
        return BUDGET_GIVE;
    if (leaving)
        return BUDGET_WAIT;
    *who = longest_idle(models, n, which);
    if (*who >= 0)
        return BUDGET_EVICT;
    *bytes = left;
    return !full && asks->floor <= left ? BUDGET_GIVE : BUDGET_WAIT;
}
