/* Times of passes and steps, and the best number of nodes: see cost.h. */
#include "policy/cost.h"
#include "base/usual.h"

#include "base/fmath.h"
#include "common/num.h"

/* Time of a pass over more rows, in passes over one: nearly flat up to a tile of 8, then rows cost
 * what they compute. */
static double usual_shape(int32_t n)
{
    return n <= USUAL_TILE_ROWS ? 1 + USUAL_ROW_WITHIN_TILE * (n - 1)
                                : 1 + USUAL_ROW_WITHIN_TILE * (USUAL_TILE_ROWS + 3) +
                                      USUAL_ROW_BEYOND_TILE * (n - 1 - USUAL_TILE_ROWS);
}

/* Time of n rows beyond one, as assumed or measured beforehand, in passes over one. */
static double further_rows(const turn_cost *c, int32_t n)
{
    const int32_t most = DREY_PROFILE_ROWS;
    double beyond = usual_shape(max_i32(n, most)) / usual_shape(most);
    return max_f64(c->shape[min_i32(n, most) - 1] * beyond - 1, 0);
}

static double pass_shape(const turn_cost *c, int32_t n)
{
    return 1 + (1 + c->bend) * further_rows(c, n);
}

static double step_shape(int32_t n)
{
    return n <= 1 ? 1 : 1 + USUAL_STEP_NODE * (n - 1);
}

/* The range that a number of rows falls into: 1, 2-4, then fours up to 16, eights up to 48, ... */
static int32_t range_of(int32_t n)
{
    static const int32_t last[COST_RANGES] = {1, 4, 8, 12, 16, 24, 32, 40, 48, 64, 96, INT32_MAX};
    int32_t i = 0;
    while (n > last[i])
        i++;
    return i;
}

void cost_init(turn_cost *c, uint64_t pass_bytes, uint64_t streamed_bytes, uint64_t step_bytes,
               uint64_t ring_bytes)
{
    const double memory = USUAL_MEMORY_BYTES_PER_S, least = 1e-6;
    *c = (turn_cost){.usual_pass = max_f64((double)pass_bytes / memory, least),
                     .step = max_f64((double)step_bytes / memory, least),
                     .read_s = (double)streamed_bytes / USUAL_DISK_BYTES_PER_S};
    c->usual_step = c->step;
    for (int32_t n = 1; n <= DREY_PROFILE_ROWS; n++)
        c->shape[n - 1] = usual_shape(n);
    if (streamed_bytes)
        c->ring_share = min_f64((double)ring_bytes / (double)streamed_bytes, 1);
}

double cost_union(int32_t n, double most)
{
    double choices = exp_f64(USUAL_EXPERT_UNION * log_f64(n)); /* that are independent */
    return most > 1 ? most * (1 - exp_f64(choices * log_f64(1 - 1 / most))) : 1;
}

void cost_of_experts(turn_cost *c, double share, double most)
{
    c->of_experts = true;
    for (int32_t n = 1; n <= DREY_PROFILE_ROWS; n++) {
        double computed = usual_shape(n);
        c->shape[n - 1] = (1 - share) * computed + share * max_f64(cost_union(n, most), computed);
    }
}

/* An outlier counts as at most so many times the expected time. */
static void follow(double *average, double sample, double most, double part)
{
    *average += (min_f64(sample, most * *average) - *average) * part;
}

/* Ranges that were not measured are interpolated between the nearest measured ones below and
 * above. */
static double scale_of(const turn_cost *c, int32_t range)
{
    int32_t below = range, above = range;
    while (below >= 0 && c->pass[below] <= 0)
        below--;
    while (above < COST_RANGES && c->pass[above] <= 0)
        above++;
    if (below < 0)
        return above < COST_RANGES ? c->pass[above] : c->usual_pass;
    if (above == COST_RANGES || above == below)
        return c->pass[below];
    double share = (double)(range - below) / (above - below);
    return c->pass[below] + share * (c->pass[above] - c->pass[below]);
}

void cost_seed(turn_cost *c, const drey_profile *known)
{
    int32_t n_steps = 0;
    double steps = 0, one = known->pass_s[0];
    for (int32_t n = 1; n <= DREY_PROFILE_ROWS && one > 0; n++)
        if (known->pass_s[n - 1] > 0)
            c->shape[n - 1] = known->pass_s[n - 1] / one;
    if (one > 0) {
        c->usual_step *= one / c->usual_pass;
        c->usual_pass = one;
    }
    for (int32_t nodes = 1; nodes <= DREY_PROFILE_NODES; nodes++)
        if (known->step_s[nodes - 1] > 0) {
            steps += known->step_s[nodes - 1] / step_shape(nodes);
            n_steps++;
        }
    if (n_steps) {
        c->step = c->usual_step = steps / n_steps;
        c->step_measured = true;
    }
}

/* The first step shows how fast weights arrive: a pass that was not measured takes as much more or
 * less than usual. Not if steps read so little that this says nothing about memory. */
static void saw_first_step(turn_cost *c, double one)
{
    const double most = USUAL_MOST_CORRECTION;
    double times = min_f64(max_f64(one / c->usual_step, 1 / most), most);
    c->step = one;
    if (c->usual_step > USUAL_STEP_SAYS * c->usual_pass) {
        c->usual_pass *= times;
        c->usual_step *= times;
    }
}

void cost_saw_step(turn_cost *c, int32_t n, double seconds)
{
    c->draft_s += seconds;
    if (!c->step_measured)
        saw_first_step(c, seconds / step_shape(n));
    follow(&c->step, seconds / step_shape(n), USUAL_STEP_OUTLIER, USUAL_TIME_WEIGHT);
    c->step_measured = true;
}

void cost_saw_catching_up(turn_cost *c, double seconds)
{
    c->draft_s += seconds;
}

/* Time of the latest number of rows in a range that was measured. */
static double seen_s(const turn_cost *c, int32_t range)
{
    return c->pass[range] * pass_shape(c, c->rows[range]);
}

/* The time of rows beyond the first, relative to the shape: least squares, of relative errors, of
 * seconds = one + more further_rows over the measured ranges. The shape's own assumption, `more` =
 * `one`, gets a small weight as well: from one range alone nothing could be derived. */
static double fit_slope(const turn_cost *c)
{
    double a = 0, b = 0, d = 0, x = 0, y = 0; /* (a b, b d) (one, more) = (x, y) */
    for (int32_t i = 0; i < COST_RANGES; i++) {
        if (c->pass[i] <= 0)
            continue;
        double further = further_rows(c, c->rows[i]), s = 1 / seen_s(c, i);
        double w = USUAL_SLOPE_DOUBT * further_rows(c, 8) / c->pass[i];
        a += s * s + w * w;
        b += s * s * further - w * w;
        d += s * s * further * further + w * w;
        x += s;
        y += s * further;
    }
    double one = d * x - b * y, more = a * y - b * x; /* times the determinant, which is above 0 */
    return one > 0 ? min_f64(max_f64(more / one, USUAL_LEAST_SLOPE), USUAL_MOST_SLOPE)
                   : 1 + c->bend;
}

/* Changes the shape's times of widths that were not measured, and not those that were. */
static void bend(turn_cost *c)
{
    double seen[COST_RANGES];
    for (int32_t i = 0; i < COST_RANGES; i++)
        seen[i] = c->pass[i] > 0 ? seen_s(c, i) : 0;
    c->bend = fit_slope(c) - 1;
    for (int32_t i = 0; i < COST_RANGES; i++)
        if (c->pass[i] > 0)
            c->pass[i] = seen[i] / pass_shape(c, c->rows[i]);
}

/* The other ranges follow a little: a time that was measured at a bad moment is forgotten even if
 * its range is avoided. */
static void saw_computing(turn_cost *c, int32_t n_rows, double seconds)
{
    int32_t range = range_of(n_rows);
    double scale = seconds / pass_shape(c, n_rows);
    if (c->pass[range] <= 0)
        c->pass[range] = scale;
    c->rows[range] = n_rows;
    for (int32_t i = 0; i < COST_RANGES; i++)
        if (c->pass[i] > 0)
            follow(&c->pass[i], scale, USUAL_PASS_OUTLIER,
                   i == range ? USUAL_TIME_WEIGHT : USUAL_OTHER_TIME_WEIGHT);
    if (!c->shared)
        bend(c);
}

static void forget_steps(turn_cost *c)
{
    double usual = c->usual_step * scale_of(c, 0) / c->usual_pass;
    c->step += (usual - c->step) * (c->step_measured ? USUAL_STEP_FADING : 1);
}

void cost_saw_pass(turn_cost *c, int32_t n_rows, double wall_s, double wait_s)
{
    wait_s = c->of_experts ? 0 : wait_s;
    double ahead = min_f64(c->draft_s, c->ring_share * c->read_s);
    saw_computing(c, n_rows, max_f64(wall_s - wait_s, 1e-9));
    if (c->read_s > 0 &&
        wait_s > USUAL_NOTICEABLE_WAIT * wall_s) { /* it took as long as its reads */
        c->read_s += (wall_s + ahead - c->read_s) * (c->reads_measured ? USUAL_TIME_WEIGHT : 1);
        c->reads_measured = true;
    } else {
        c->read_s = min_f64(c->read_s, wall_s + ahead);
    }
    if (c->draft_s <= 0)
        forget_steps(c);
    c->turn_s = c->draft_s + wall_s;
    c->draft_s = 0;
}

void cost_saw_disk(turn_cost *c, double read_s)
{
    if (c->read_s > 0 && read_s > 0)
        c->read_s = c->reads_measured ? min_f64(c->read_s, read_s) : read_s;
}

double cost_pass(const turn_cost *c, int32_t n_rows)
{
    return pass_shape(c, n_rows) * scale_of(c, range_of(n_rows));
}

double cost_step(const turn_cost *c, int32_t n)
{
    return step_shape(n) * c->step;
}

bool cost_knows_pass(const turn_cost *c, int32_t n_rows)
{
    return c->pass[range_of(n_rows)] > 0;
}

bool cost_steps_are_free(const turn_cost *c)
{
    return c->step_measured && cost_step(c, 1) < USUAL_FREE_STEP * cost_turn(c, 0, 0);
}

double cost_shared(const turn_cost *c, int32_t n_rows, double draft_s)
{
    double ahead = min_f64(draft_s, c->ring_share * c->read_s);
    return draft_s + max_f64(cost_pass(c, n_rows), c->read_s - ahead);
}

double cost_turn(const turn_cost *c, int32_t n, double draft_s)
{
    return cost_shared(c, 1 + n, draft_s);
}

int32_t cost_choose_among(const turn_cost *c, int32_t n_roots, const float *value, int32_t n,
                          double draft_s, double *tokens_per_s)
{
    double tokens = n_roots, best = 0;
    int32_t chosen = 0;
    for (int32_t i = 0; i <= n; i++) {
        double rate = tokens / cost_shared(c, n_roots + i, draft_s);
        if (rate > best) {
            best = rate;
            chosen = i;
        }
        if (i < n)
            tokens += value[i];
    }
    *tokens_per_s = best;
    return chosen;
}

int32_t cost_choose(const turn_cost *c, const float *value, int32_t n, double draft_s,
                    double *tokens_per_s)
{
    return cost_choose_among(c, 1, value, n, draft_s, tokens_per_s);
}
