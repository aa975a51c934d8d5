/* Judges what predictors would have done at the gathered positions: see exit_samples.h. */
#include "train/exit_samples.h"

void exit_walk_begin(exit_walk *w, const exit_samples *s, const exit_predictors *p, int32_t i)
{
    const exit_position *position = &s->position[i];
    *w = (exit_walk){.samples = s, .p = p, .i = i};
    w->candidates = p->source == DREY_EXIT_FROM_TARGET ? &position->own : &position->guessed;
    if (w->candidates->n > 0)
        exit_features_begin(&w->features, w->candidates->n, w->candidates->logp);
}

void exit_walk_next(exit_walk *w, int32_t layer, float *x)
{
    const exit_look *look = exit_look_at(w->samples, w->i, layer);
    exit_features_next(&w->features,
                       w->p->source == DREY_EXIT_FROM_TARGET ? look->own : look->logit);
    exit_features_put(&w->features, x);
}

bool exit_walk_takes(const exit_walk *w, int32_t token)
{
    for (int32_t i = 0; i < w->candidates->n; i++)
        if (w->candidates->token[i] == token)
            return true;
    return false;
}

int32_t exit_final_layer(const exit_samples *s, int32_t i)
{
    int32_t layer = s->n_layers;
    while (layer > s->first && exit_look_at(s, i, layer - 1)->head == s->position[i].final)
        layer--;
    return layer;
}

/* The layer after which position i leaves; n_layers: none. *token: its token. */
static int32_t leave(const exit_samples *s, const exit_rule *rule, const exit_schedule *schedule,
                     int32_t i, exit_judgement *j, int32_t *token)
{
    float x[EXIT_FEATURES];
    exit_walk w;
    exit_walk_begin(&w, s, rule->p, i);
    *token = s->position[i].final;
    if (w.candidates->n == 0)
        return s->n_layers;
    for (int32_t layer = rule->p->first; layer < s->n_layers; layer++) {
        if (!exit_schedule_active(schedule, layer))
            continue;
        exit_walk_next(&w, layer, x);
        j->n_scores++;
        float score = rule->random ? exit_random_score(rule->seed, i, layer)
                                   : exit_score_of(rule->p, layer, x);
        int32_t head = exit_look_at(s, i, layer)->head;
        if (score > rule->threshold && exit_walk_takes(&w, head)) {
            *token = head;
            return layer;
        }
        j->n_refused += score > rule->threshold;
    }
    return s->n_layers;
}

void exit_judge(const exit_samples *s, const exit_rule *rule, bool held_out, exit_judgement *j)
{
    exit_schedule schedule;
    int32_t prompt = -1, token;
    *j = (exit_judgement){0};
    for (int32_t i = 0; i < s->n; i++) {
        if (exit_is_held_out(s, i) != held_out)
            continue;
        if (s->position[i].prompt != prompt)
            exit_schedule_init(&schedule, rule->p, rule->layers, rule->seed);
        prompt = s->position[i].prompt;
        int32_t layer = leave(s, rule, &schedule, i, j, &token);
        exit_schedule_note(&schedule, layer);
        j->n++;
        j->n_agree += token == s->position[i].final;
        j->sum_layers += layer;
        j->exits[layer]++;
    }
}
