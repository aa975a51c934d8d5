/* Passes on machines that are not here: each unit is a table of times, and units slow each other
 * while they work at the same time. What is divided and how is the strategy's; ratios are found by
 * the search that would measure them on the machine. */
#include <math.h>
#include <stddef.h>

#include "common/error.h"
#include "common/num.h"
#include "drey/bench.h"
#include "tune/search.h"

_Static_assert((int)DREY_SIM_MAX_UNITS <= (int)SEARCH_MAX_UNITS, "the search takes fewer units");

const char *drey_sim_strategy_name(drey_sim_strategy strategy)
{
    static const char *const names[] = {"sequential",  "one unit", "even split",
                                        "alone ratio", "static",   "dynamic"};
    return (unsigned)strategy < sizeof names / sizeof *names ? names[strategy] : NULL;
}

/* ---- Checks ---- */

static bool is_time(double x)
{
    return isfinite(x) && x > 0;
}

static bool unit_is_good(const drey_sim_machine *m, const drey_sim_unit *u)
{
    for (int32_t w = 0; w < m->n_widths; w++)
        if (!is_time(u->linear_s[w]) || !is_time(u->dense_s[w]) || !is_time(u->sparse_s[w]))
            return false;
    return isfinite(u->contention) && u->contention >= 1;
}

static drey_status check(const drey_sim_machine *m, int32_t w, int32_t context, drey_error *err)
{
    if (m->n_units < 1 || m->n_units > DREY_SIM_MAX_UNITS || m->n_widths < 1 ||
        m->n_widths > DREY_SIM_MAX_WIDTHS)
        FAIL(err, DREY_ERR_USAGE, "a simulation has 1 to %d units and 1 to %d widths",
             DREY_SIM_MAX_UNITS, DREY_SIM_MAX_WIDTHS);
    if (w < 0 || w >= m->n_widths || context < 0)
        FAIL(err, DREY_ERR_USAGE, "the simulation has no such width or context");
    for (int32_t i = 0; i < m->n_widths; i++)
        if (i == 0 ? m->widths[0] != 1 : m->widths[i] <= m->widths[i - 1])
            FAIL(err, DREY_ERR_USAGE, "widths of a simulation begin with 1 and ascend");
    for (int32_t u = 0; u < m->n_units; u++)
        if (!unit_is_good(m, &m->units[u]))
            FAIL(
                err, DREY_ERR_USAGE,
                "unit %d of the simulation has a time that is not above 0, or a contention below 1",
                u + 1);
    if (!(m->sync_s >= 0 && m->all_reduce_row_s >= 0 && isfinite(m->sync_s + m->all_reduce_row_s)))
        FAIL(err, DREY_ERR_USAGE, "a simulation's costs of units working together are 0 or more");
    return DREY_OK;
}

/* ---- Units at the same time ---- */

/* When all are done that have so much to do, in seconds alone: slowed for as long as another one is
 * at work, too. */
static double together(const drey_sim_machine *m, const double *alone_s)
{
    double left[DREY_SIM_MAX_UNITS], now = 0;
    for (int32_t u = 0; u < m->n_units; u++)
        left[u] = alone_s[u];
    for (;;) {
        double next = INFINITY;
        int32_t n_busy = 0, first = -1;
        for (int32_t u = 0; u < m->n_units; u++)
            n_busy += left[u] > 0;
        for (int32_t u = 0; u < m->n_units; u++) {
            double until = left[u] * (n_busy > 1 ? m->units[u].contention : 1);
            if (left[u] > 0 && until < next) {
                next = until;
                first = u;
            }
        }
        if (first < 0)
            return now;
        now += next;
        for (int32_t u = 0; u < m->n_units; u++)
            if (left[u] > 0)
                left[u] -= next / (n_busy > 1 ? m->units[u].contention : 1);
        left[first] = 0;
    }
}

typedef struct simulation {
    const drey_sim_machine *machine;
    int32_t w;
    double positions; /* of context */
} simulation;

static double linear_of(void *user, const double *share)
{
    const simulation *s = user;
    double alone_s[DREY_SIM_MAX_UNITS];
    for (int32_t u = 0; u < s->machine->n_units; u++)
        alone_s[u] = share[u] * s->machine->units[u].linear_s[s->w];
    return together(s->machine, alone_s);
}

/* Attention of all rows to the context, and to each other as if all pairs counted. */
static double masked(const simulation *s, int32_t unit)
{
    return (s->positions + s->machine->widths[s->w]) * s->machine->units[unit].dense_s[s->w];
}

/* Whole heads, each by one unit. */
static double attention_by_heads(const simulation *s, const double *share)
{
    double alone_s[DREY_SIM_MAX_UNITS];
    for (int32_t u = 0; u < s->machine->n_units; u++)
        alone_s[u] = share[u] * masked(s, u);
    return together(s->machine, alone_s);
}

/* Inside each head, at a boundary as in drey_sim_pass. */
static double attention_at(void *user, double boundary)
{
    const simulation *s = user;
    const drey_sim_machine *m = s->machine;
    double alone_s[DREY_SIM_MAX_UNITS] = {0}, to_last = max_f64(boundary, 0),
           to_first = max_f64(-boundary, 0);
    int32_t last = m->n_units - 1;
    alone_s[0] =
        m->units[0].dense_s[s->w] * ((1 - to_last) * s->positions + to_first * m->widths[s->w]);
    alone_s[last] += (1 - to_first) * m->units[last].sparse_s[s->w] +
                     to_last * s->positions * m->units[last].dense_s[s->w];
    return together(m, alone_s);
}

/* ---- Strategies ---- */

static void on_first(const simulation *s, drey_sim_pass *p)
{
    p->share[0] = 1;
    p->linear_s = s->machine->units[0].linear_s[s->w];
    p->attention_s = masked(s, 0);
}

static void linear_alone(const simulation *s, double *alone_s)
{
    for (int32_t u = 0; u < s->machine->n_units; u++)
        alone_s[u] = s->machine->units[u].linear_s[s->w];
}

static void tensor_parallel(simulation *s, bool even, drey_sim_pass *p)
{
    const drey_sim_machine *m = s->machine;
    double alone_s[DREY_SIM_MAX_UNITS];
    linear_alone(s, alone_s);
    for (int32_t u = 0; even && u < m->n_units; u++)
        alone_s[u] = 1;
    shares_from_alone(alone_s, m->n_units, p->share);
    p->linear_s = linear_of(s, p->share);
    p->attention_s = attention_by_heads(s, p->share);
    if (m->n_units > 1)
        p->extra_s = m->sync_s + m->all_reduce_row_s * m->widths[s->w];
}

static void hetero_core(simulation *s, bool dynamic, drey_sim_pass *p)
{
    const drey_sim_machine *m = s->machine;
    double alone_s[DREY_SIM_MAX_UNITS];
    linear_alone(s, alone_s);
    p->linear_s = shares_search(linear_of, s, alone_s, m->n_units, p->share);
    p->attention_s = attention_at(s, 0);
    if (dynamic && m->n_units > 1) {
        search_result found = search_least(attention_at, s, -1, 1, 0, 0.01);
        p->boundary = found.at;
        p->attention_s = found.seconds;
    }
    if (m->n_units > 1)
        p->extra_s = m->sync_s;
}

drey_status drey_simulate(const drey_sim_machine *machine, drey_sim_strategy strategy, int32_t w,
                          int32_t context, drey_sim_pass *pass, drey_error *err)
{
    *pass = (drey_sim_pass){0};
    TRY(check(machine, w, context, err));
    simulation s = {.machine = machine, .w = w, .positions = context};
    switch (strategy) {
    case DREY_SIM_SEQUENTIAL:
        s.w = 0;
        on_first(&s, pass);
        break;
    case DREY_SIM_ONE_UNIT:
        on_first(&s, pass);
        break;
    case DREY_SIM_EVEN:
    case DREY_SIM_ALONE_RATIO:
        tensor_parallel(&s, strategy == DREY_SIM_EVEN, pass);
        break;
    case DREY_SIM_STATIC:
    case DREY_SIM_DYNAMIC:
        hetero_core(&s, strategy == DREY_SIM_DYNAMIC, pass);
        break;
    default:
        FAIL(err, DREY_ERR_USAGE, "there is no such strategy of a simulation");
    }
    pass->seconds = pass->linear_s + pass->attention_s + pass->extra_s;
    return DREY_OK;
}
