/* Passes over mixtures of experts: see expert_cost.h. */
#include "policy/expert_cost.h"

#include "base/fmath.h"
#include "base/usual.h"
#include "common/num.h"

enum { ONE, MORE, MISS };

/* n rows, as so many that choose independently. */
static double union_of(const expert_cost *e, double independent)
{
    return e->most > 1 ? e->most * (1 - exp_f64(independent * log_f64(1 - 1 / e->most))) : 1;
}

double expert_union(const expert_cost *e, int32_t n_rows)
{
    return union_of(e, exp_f64(e->spread * log_f64(n_rows)));
}

double expert_missing(const expert_cost *e, int32_t n_rows)
{
    double at_random = expert_union(e, n_rows) * e->used * (1 - e->kept);
    return min_f64(n_rows * e->missing, max_f64(at_random, e->missing));
}

void expert_cost_assume(expert_cost *e, double one_s)
{
    e->usual_s[ONE] = e->usual_s[MORE] = one_s;
    if (!e->measured)
        e->s[ONE] = e->s[MORE] = one_s;
}

void expert_cost_begin(expert_cost *e, double one_s, double miss_s)
{
    e->spread = USUAL_EXPERT_UNION;
    e->usual_s[MISS] = e->s[MISS] = max_f64(miss_s, 1e-9);
    expert_cost_assume(e, one_s);
}

/* ---- What rows use and miss ---- */

static void learn_spread(expert_cost *e, int32_t n_rows, double n_used)
{
    const double nearly_all = 0.97, least = 0.3;
    double together = n_used / e->used;
    if (n_rows < 2 || e->most <= 1 || together <= 1 || together >= nearly_all * e->most)
        return;
    double independent = log_f64(1 - together / e->most) / log_f64(1 - 1 / e->most);
    double spread = min_f64(max_f64(log_f64(independent) / log_f64(n_rows), least), 1);
    e->spread += (spread - e->spread) / 4;
}

static void learn_missing(expert_cost *e, int32_t n_rows, double n_read)
{
    double old = exp_f64(n_rows * log_f64(7.0 / 8));
    e->missing = n_read / n_rows + old * (e->missing - n_read / n_rows);
}

/* ---- The fit ---- */

/* Of relative errors, by least squares. An assumption counts like a pass that is wrong by seven
 * times as much as passes usually are; of `more`, that it is `one`. */
static void normal_equations(const expert_cost *e, double a[EXPERT_COSTS][EXPERT_COSTS + 1])
{
    const double weight = 0.02;
    for (int i = 0; i < EXPERT_COSTS; i++)
        for (int j = 0; j <= EXPERT_COSTS; j++)
            a[i][j] = e->sum[i][j];
    for (int i = 0; i < EXPERT_COSTS; i++) {
        double w = weight / (e->usual_s[i] * e->usual_s[i]);
        a[i][i] += w;
        if (i == MORE) {
            a[ONE][ONE] += w;
            a[ONE][MORE] -= w;
            a[MORE][ONE] -= w;
        } else {
            a[i][EXPERT_COSTS] += w * e->usual_s[i];
        }
    }
}

/* Gauss, without a search for pivots: the matrix is positive definite. */
static void solve(double a[EXPERT_COSTS][EXPERT_COSTS + 1], double *x)
{
    for (int i = 0; i < EXPERT_COSTS; i++)
        for (int k = i + 1; k < EXPERT_COSTS; k++)
            for (int j = EXPERT_COSTS; j >= i; j--)
                a[k][j] -= a[k][i] / a[i][i] * a[i][j];
    for (int i = EXPERT_COSTS - 1; i >= 0; i--) {
        x[i] = a[i][EXPERT_COSTS];
        for (int j = i + 1; j < EXPERT_COSTS; j++)
            x[i] -= a[i][j] * x[j];
        x[i] /= a[i][i];
    }
}

static void fit(expert_cost *e)
{
    const double least = 0.1, least_more = 0.1, most_more = 8, most_miss = 10;
    double a[EXPERT_COSTS][EXPERT_COSTS + 1], x[EXPERT_COSTS];
    normal_equations(e, a);
    solve(a, x);
    e->s[ONE] = max_f64(x[ONE], least * e->usual_s[ONE]);
    e->s[MORE] = min_f64(max_f64(x[MORE], least_more * e->s[ONE]), most_more * e->s[ONE]);
    e->s[MISS] = min_f64(max_f64(x[MISS], least * e->usual_s[MISS]), most_miss * e->usual_s[MISS]);
}

/* What something else held up counts as half as long again as was expected. */
void expert_cost_saw(expert_cost *e, int32_t n_rows, double further, double n_used, double n_read,
                     double seconds)
{
    const double fading = 23.0 / 24, most = 1.5;
    const double x[EXPERT_COSTS] = {1, further, n_read};
    double expected = 0;
    for (int i = 0; i < EXPERT_COSTS; i++)
        expected += e->s[i] * x[i];
    if (e->measured)
        seconds = min_f64(seconds, most * expected);
    for (int i = 0; i < EXPERT_COSTS; i++) {
        for (int j = 0; j < EXPERT_COSTS; j++)
            e->sum[i][j] = fading * e->sum[i][j] + x[i] * x[j] / (seconds * seconds);
        e->sum[i][EXPERT_COSTS] = fading * e->sum[i][EXPERT_COSTS] + x[i] / seconds;
    }
    e->measured = true;
    fit(e);
    learn_spread(e, n_rows, n_used);
    learn_missing(e, n_rows, n_read);
}

double expert_cost_pass(const expert_cost *e, int32_t n_rows, double further)
{
    return e->s[ONE] + e->s[MORE] * further + e->s[MISS] * expert_missing(e, n_rows);
}
