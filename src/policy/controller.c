/* A few turns do not show whether drafting pays: each writes one token or several, by chance. So
 * drafting has a credit, in plain turns: a turn that was faster than plain ones adds what it
 * gained, a slower one takes what it lost. Drafting continues as long as there is credit; so its
 * loss is bounded by what it was given.
 *
 *   DRAFTING --(no credit left, or controller_pause)--> PAUSED: plain turns
 *       ^                                                  |
 *       +-- 32 tokens were written, the next time 64, ... -+ */
#include "policy/controller.h"

#include "base/usual.h"
#include "common/num.h"

void controller_init(controller *c)
{
    *c = (controller){.credit = USUAL_FIRST_CREDIT, .next_pause = USUAL_FIRST_PAUSE};
}

void controller_pause(controller *c)
{
    c->pause = c->next_pause;
    c->next_pause = min_i32(2 * c->next_pause, USUAL_LAST_PAUSE);
}

/* Adds what a turn with drafting gained, and decides whether the next one drafts. Before drafting
 * is given up, it is compared with the current speed of plain turns. */
static void weigh(controller *c, const controlled_turn *t)
{
    double plain_s = c->plain_s > 0 ? c->plain_s : t->expected_s;
    double won = max_f64(t->n_tokens - t->turn_s / plain_s, -USUAL_MOST_LOST);
    c->tokens += t->n_tokens;
    c->seconds += t->turn_s;
    c->credit = min_f64(c->credit + won, USUAL_MOST_CREDIT);
    if (c->credit >= USUAL_MOST_CREDIT)
        c->next_pause = USUAL_FIRST_PAUSE;
    bool unknown = c->plain_s <= 0 && c->seconds > USUAL_JUDGED_TURNS * plain_s &&
                   c->tokens * plain_s < USUAL_DOUBTFUL_GAIN * c->seconds;
    bool old = c->plain_age >= USUAL_PLAIN_AGE && c->credit < (double)USUAL_MOST_CREDIT / 2;
    if (unknown || old)
        c->asks = true;
    else if (c->credit <= 0)
        controller_pause(c);
}

static void saw_plain(controller *c, double turn_s)
{
    c->plain_s += (turn_s - c->plain_s) * (c->plain_s > 0 ? USUAL_PLAIN_WEIGHT : 1);
    c->plain_age = 0;
}

bool controller_observe(controller *c, const controlled_turn *t)
{
    c->plain_age++;
    if ((c->pause > 0 || c->asks) && t->turn_s > 0 && t->plain)
        saw_plain(c, t->turn_s);
    if (c->asks) {
        c->asks = false;
    } else if (c->pause > 0) {
        c->pause = max_i32(c->pause - t->n_tokens, 0);
        if (c->pause > 0)
            return false;
        c->tokens = c->seconds = 0;
        c->credit = USUAL_LATER_CREDIT;
        return true;
    } else if (!t->drafted && t->turn_s > 0) {
        saw_plain(c, t->turn_s);
    } else if (t->turn_s > 0) {
        bool warm = c->is_warm; /* the first turn is not used for comparison */
        c->is_warm = true;
        if (warm && !t->free)
            weigh(c, t);
    }
    return false;
}
