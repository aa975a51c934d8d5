/* Decides whether drafting continues, by what its turns gained: see controller.c. Knows no clock:
 * each turn says how long it took. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Controls the drafting of one text at a time. */
typedef struct controller {
    double credit;          /* plain turns that drafting may still lose */
    double tokens, seconds; /* sums over turns that drafted, since the last pause */
    double plain_s;         /* a plain turn; 0: not seen */
    int32_t plain_age;      /* turns since the last one */
    bool asks;              /* the next turn has to be plain, to measure its time */
    bool is_warm;           /* a turn has drafted */
    int32_t pause;          /* tokens that it still takes; 0: none */
    int32_t next_pause;     /* tokens of the one after it */
} controller;

/* A turn that is over. */
typedef struct controlled_turn {
    int32_t n_tokens;  /* written */
    double turn_s;     /* its time; 0: it says nothing, as others shared the pass */
    double expected_s; /* time expected of a plain turn, before one was seen */
    bool drafted;      /* its root was expanded */
    bool plain;        /* the target verified the root alone */
    bool free;         /* drafting took next to no time: it is not judged */
} controlled_turn;

void controller_init(controller *c);
/* Drafting stops for some tokens. */
void controller_pause(controller *c);
/* Takes a turn into account. Returns true if a pause ends with it. */
bool controller_observe(controller *c, const controlled_turn *t);
