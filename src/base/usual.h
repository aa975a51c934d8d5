/* Numbers that are assumed until they are measured: every tuned number outside the kernels, with
 * the measurement that gave it and the page that describes it. No text depends on any of them, only
 * speed.
 *
 * A number with the mark (tuned) is replaced by `drey_tune_pair`: a session with a profile of its
 * models begins with what was measured there. Those with (learnt) hold only at the beginning of a
 * text: its turns replace them. The others are right on every machine that was measured; check them
 * when you port drey to another one. Kernels have their own table (os/cpu_tuning.h). */
#pragma once

/* ---- What passes and steps take (policy/cost.c, plan/plan_expect.c) ---- */

/* Bytes per second of a pass over one row, and of the disk: round numbers below what two cores of
 * both Zen machines did (docs/lab). (tuned, learnt) */
#define USUAL_MEMORY_BYTES_PER_S 30e9
#define USUAL_DISK_BYTES_PER_S   2.5e9
/* A step that reads much is faster than a pass of its target, part of whose time is not reading: a
 * draft of 0.31 GB took 12 ms, 2.45 GB of a target's planes 51, over one to five nodes. This many
 * bytes per second, above this many bytes. (tuned) */
#define USUAL_STEP_SMALL_BYTES        0.3e9
#define USUAL_STEP_BEYOND_BYTES_PER_S 55e9
/* The time of a pass over n rows, in passes over one row: nearly flat up to a tile of 8 rows, then
 * proportional to the rows. With fewer threads than this each row costs more in proportion: two
 * threads of AVX-512 took 1.03, 1.22, 1.5, 2.6, 5.3 and 10 for 2, 4, 8, 16, 32 and 64 rows (the
 * middle of nine measurements of two models on Zen 4 and 5), where this gives 1.08, 1.23, 1.53,
 * 2.6, 4.4 and 8. (tuned, learnt) */
#define USUAL_ROW_WITHIN_TILE 0.05
#define USUAL_TILE_ROWS       8
#define USUAL_ROW_BEYOND_TILE 0.075
#define USUAL_ROW_THREADS     3.0
/* The time of one more node in a draft's step, in steps over one node. (tuned, learnt) */
#define USUAL_STEP_NODE 0.04

/* Weights by which times are learnt (policy/cost.c). A measured time is a moving average: a
 * sample counts for a quarter, and as at most twice the average (steps) or 1.25 times (passes),
 * because a thread that came late says nothing; a pass of other widths counts for a thirty-second,
 * so that a time that was measured at a bad moment is forgotten. Chosen, not measured, as are those
 * that follow. */
#define USUAL_TIME_WEIGHT       0.25
#define USUAL_OTHER_TIME_WEIGHT (1.0 / 32)
#define USUAL_STEP_OUTLIER      2
#define USUAL_PASS_OUTLIER      1.25
/* Part by which a step's time returns to what is expected per turn while nothing is drafted. */
#define USUAL_STEP_FADING (1.0 / 128)
/* The slope over the rows of a pass is fitted to what was measured; the assumed one counts as a
 * measurement of this weight, and the result is between these multiples of it. */
#define USUAL_SLOPE_DOUBT 0.05
#define USUAL_LEAST_SLOPE 0.25
#define USUAL_MOST_SLOPE  8
/* The first step corrects the expected time of passes, by at most this factor, if a step is more
 * than this part of a pass. */
#define USUAL_MOST_CORRECTION 4
#define USUAL_STEP_SAYS       (1.0 / 64)
/* A pass that waits for less than this part of its time waits for a late thread, not the disk. */
#define USUAL_NOTICEABLE_WAIT 0.03
/* A step below this part of a turn costs nothing: lookup takes microseconds. */
#define USUAL_FREE_STEP (1.0 / 256)

/* Mixtures of experts. n tokens of a text, one after the other, choose like n^0.7 that have nothing
 * to do with each other: on published traces of five models they use together n^0.62 to n^0.77
 * times the experts of one. (learnt) */
#define USUAL_EXPERT_UNION 0.7
/* A token finds 1 - (1 - s)^3 of its experts in slots for a share s of them, each layer keeping the
 * latest: 0.27, 0.49, 0.66 and 0.88 of them with slots for 10, 20, 30 and 50 %. On those traces
 * OLMoE had 0.32, 0.53, 0.65 and 0.81, Qwen3-30B 0.52, 0.75, 0.88 and above 0.94. */
#define USUAL_EXPERT_MISSES 3

/* ---- What guesses are worth ---- */

/* Shares of right guesses by rank, for a small model of the target's family: high enough to try
 * drafting (policy/policy_optimal.c: the first three; policy/policy_static.c: at any depth).
 * (tuned, learnt) */
/* clang-format off */
#define USUAL_RANK_SHARES {0.75, 0.12, 0.05, 0.02, 0.01}
/* clang-format on */
/* Odds of a best guess, from the odds that its confidence claims: odds' = 1.5 odds^1.25, fitted to
 * 4,000 positions of code and chat of two pairs of models (tree/calibration.c). (tuned, learnt) */
#define USUAL_ODDS_FACTOR 1.5
#define USUAL_ODDS_POWER  1.25
/* Heads are surer than they should be: odds' = average odds (odds / odds of the usual confidence of
 * that rank)^0.4. Fitted to 2,700 positions of code and chat with the heads of a 1.5B: a third of
 * the guesses that heads were sure of was wrong (docs/lab/2026-11-zen5-heads.md). (learnt) */
/* clang-format off */
#define USUAL_HEADS_CONFIDENCE {0.72, 0.106, 0.043}
/* clang-format on */
#define USUAL_HEADS_POWER 0.4
/* Shares of right guesses of an EAGLE layer, by rank, between chat and code
 * (docs/lab/2026-11-zen5-eagle.md). How sure it is says as little as with heads: one for SmolLM2
 * was right in 6 % of the places where it was surest of all, more than 0.86, and in 8 % of all 752.
 * With a small model's assumption the first turns lose what drafting may lose, and the rest of a
 * text is written without a draft. (measured) */
#define USUAL_EAGLE_SHARES                                                                         \
    {                                                                                              \
        0.34f, 0.11f, 0.05f, 0.035f, 0.025f, 0.02f, 0.015f, 0.015f                                 \
    }
/* Heads are judged by texts like those they were trained on. On what users ask for, a fifth fewer
 * of their best guesses were right. (learnt) */
#define USUAL_HEADS_BEST 0.8f
/* The same for plans, by which drafters are chosen: what a file of heads says of its best
 * guesses, at any depth, times this. Heads of a 1.5B that learnt from answers were right for 0.66
 * of the held-out first tokens and for 0.29 to 0.56 of those of five sets of questions; with this
 * factor the expected tokens per pass are within a twentieth of what MT-Bench and code had, for
 * trees of 2 to 64 rows, and up to a quarter below GSM8K's. */
#define USUAL_HEADS_ELSEWHERE 0.6
/* Shares of right guesses of lookup, by the length of the match (the classes of
 * draft/lookup_drafter.c), times factors by the share of the matches that continue in this way; and
 * of recycled guesses, by rank, after a match of two tokens and of one. From texts of several
 * sorts. (learnt) */
/* clang-format off */
#define USUAL_LOOKUP_LENGTHS {0.12f, 0.3f, 0.42f, 0.52f, 0.62f, 0.72f, 0.8f, 0.88f}
#define USUAL_LOOKUP_SHARES {1, 0.7f, 0.35f, 0.12f}
#define USUAL_LOOKUP_RECYCLED {{0.5f, 0.12f, 0.06f, 0.04f, 0.03f, 0.02f, 0.015f, 0.01f}, \
    {0.25f, 0.1f, 0.06f, 0.04f, 0.03f, 0.02f, 0.015f, 0.01f}}
/* clang-format on */
/* If lookup's best guess has more than this confidence, the small model is not asked: the 0.5B
 * agrees with the 1.5B in 0.84 of all places, and more often where the text has occurred before. */
#define USUAL_LOOKUP_CERTAIN 0.9f
/* The factor for a token that two sources name (draft/blend.c). At 700 places of code, chat and
 * copies where heads and lookup both guessed, tokens that a mixture gave 0.35 were right in 0.62
 * where both had them and in 0.31 where heads alone had; the mean of -log p of the next token fell
 * from 1.36 to 1.24. */
#define USUAL_AGREEMENT 3
/* The weights of the two sources are learnt in four classes of each one's best guess, which end at
 * these confidences; the weights assumed at first count as so many positions, and counts are halved
 * at so many, because texts change. (learnt) */
/* clang-format off */
#define USUAL_BLEND_CLASSES {0.3f, 0.6f, 0.85f}
/* clang-format on */
#define USUAL_BLEND_FIRST_POSITIONS 8
#define USUAL_BLEND_MOST_POSITIONS  256
/* The worth of guesses of a rank is a moving average over the nodes of a text's path
 * (policy/policy_optimal.c): the latest counts for an eighth, and while nothing is drafted it
 * returns to the first assumption by this part per turn. (learnt) */
#define USUAL_WORTH_WEIGHT (1.0f / 8)
#define USUAL_WORTH_FADING 128
/* Shared passes: the promised and the accepted nodes whose ratio is the trust in a session's drafts
 * fade by these parts per turn, with and without a draft; full trust at first counts as so many
 * accepted nodes (policy/shared_drafting.c). (learnt) */
#define USUAL_TRUST_FADING      (1.0 / 32)
#define USUAL_TRUST_IDLE_FADING (1.0 / 256)
#define USUAL_TRUST_NODES       4

/* Tokens per pass by nodes of the tree and steps of the draft, for plans of drafts that were never
 * tuned: between code and chat, a 0.5B for a 1.5B, an EAGLE layer that learnt from as much text as
 * drey trains with, and lookup. In memory `optimal` submits five nodes, of 2.5 steps, and writes
 * 3.6 (code) and 2.5 (chat) tokens with the 0.5B; where passes read, 36 and 46 nodes, of seven
 * steps, and 7.2 and 8.1 (docs/lab/2026-11-papers.md, 2026-11-zen5.md). (tuned) */
/* clang-format off */
#define USUAL_MODEL_YIELDS {{1, 1.75, 1}, {3, 2.6, 2}, {6, 3.4, 3}, {15, 5.0, 5}, \
    {31, 6.7, 7}, {63, 8.6, 10}}
#define USUAL_EAGLE_YIELDS {{1, 1.34, 1}, {3, 1.55, 2}, {7, 1.7, 3}, {15, 1.87, 4}, \
    {31, 2.04, 5}, {63, 2.16, 6}}
#define USUAL_LOOKUP_YIELDS {{1, 1.15, 0}, {3, 1.25, 0}, {7, 1.35, 0}, {15, 1.45, 0}, \
    {31, 1.5, 0}, {63, 1.55, 0}}
/* clang-format on */
/* ---- When something is worth doing ---- */

/* A node that the text reaches less often than this is not worth a row of a pass
 * (policy/policy_optimal.c). */
#define USUAL_LEAST_VALUE 0.002f
/* The same for drafting it while a pass waits (session/overlap.c), which is not free: the pass has
 * to share the memory then, and to wait for a step to end. Of nodes that were worth a thousandth
 * `optimal` used one in 29, of those that were worth a tenth every second one
 * (docs/lab/2026-11-papers.md). */
#define USUAL_LEAST_AHEAD 0.1f
/* The papers name no such number: a policy that follows them to the letter drafts whatever the text
 * may reach at all. */
#define USUAL_LEAST_AHEAD_PAPERS 0.001f
/* `bld`: below this confidence the draft hands over, and the target accepts a token whose
 * probability is above exp(-2) = 0.14. Big Little Decoder (arXiv:2302.07863) tunes both per task;
 * the other points of its curve are in docs/lab/2026-11-thresholds.md. */
#define USUAL_BLD_FALLBACK 0.6f
#define USUAL_BLD_ROLLBACK 2
/* Provisional text that is less likely than this to stay would only flicker. Chosen by eye. */
#define USUAL_LEAST_SHOWN 0.25f
/* Leaves that a text reaches less often than this are not expanded by lookup either, which takes
 * microseconds (policy/policy.c). */
#define USUAL_LEAST_FREE (1.0f / 64)
/* Plain turns that drafting may lose before it pauses: at first, after a pause, and at most,
 * however much it has won; and how long pauses are, in tokens (policy/controller.c). Sixteen turns
 * of one to five tokens are too few to distinguish a gain of a sixth from none. So drafting has a
 * credit instead of being judged once. */
#define USUAL_FIRST_CREDIT 3
#define USUAL_LATER_CREDIT 2
#define USUAL_MOST_CREDIT  10
#define USUAL_FIRST_PAUSE  32
#define USUAL_LAST_PAUSE   256
/* A turn that something else held up counts as at most so many lost ones. The time of a plain turn
 * is a moving average, in which the latest counts for this part, and is out of date after so many
 * turns; one is taken before drafting is given up. If none was seen, one is taken after drafted
 * turns of so many plain ones' time that wrote less than 1.5 times their tokens. */
#define USUAL_MOST_LOST     2
#define USUAL_PLAIN_WEIGHT  0.25
#define USUAL_PLAIN_AGE     32
#define USUAL_JUDGED_TURNS  6
#define USUAL_DOUBTFUL_GAIN 1.5
/* The draft of a text that is alone reads its prompt before the second token for no longer than so
 * many turns, or so many seconds if that is more; the rest between turns (session/prompt.c). */
#define USUAL_READ_TURNS   8
#define USUAL_READ_LEAST_S 1.0
/* Shared passes: drafts read their prompts if drafting is expected to gain more than this part of a
 * turn of all sessions (session/sharing.c). With it eight sessions over a 1.5B in memory run at
 * 0.98 to 1.0 of no draft, where every draft that read its prompt made it 0.89. */
#define USUAL_ENOUGH_TO_READ 0.6
/* Shared passes: tokens that a turn with a draft writes, to say how many turns a text still takes;
 * least rows of prompts in a pass with texts (two tiles: fewer would delay the reader and save
 * little), which may make it so many times as long (session/sharing.c). */
#define USUAL_TURN_TOKENS        2.0
#define USUAL_LEAST_PROMPT_ROWS  16
#define USUAL_PROMPT_PASS_FACTOR 2
/* An unequal share of the first layers has to make a usual pass shorter by this part: passes over
 * prompts, which use every layer, lose a little (plan/plan.c). A front of 0.85 to 0.94 of each of
 * 19 to 21 layers took 145 to 150 ms where an equal share took 211 to 228 (wide6b, 2560 MiB, Zen
 * 5). */
#define USUAL_FRONT_GAIN 0.03
/* The cost in attention of the part of a row that is no whole block, in blocks, for trees of about
 * 16 to 64 nodes (unit/units.c). Boundaries that `tune` finds do not depend on it. */
#define USUAL_TAIL_BLOCKS 2

/* Probability of the token that a grammar names as certain, and no other of the same bytes: 231 of
 * 234 in 14 answers of Qwen's 0.5B (tree/tree.c). */
#define USUAL_FORCED 0.98f

/* ---- Memory ---- */

/* Rows of a draft's head that are kept, the most frequent tokens first. With Qwen2.5's 151,936 the
 * first 32,768, those of the text and the special ones are 97 to 98 % of what was written (code and
 * chat), 65,536 98.6 to 99.3 %, 81,920 99.7 to 99.8 %; tokens per pass (code, trees of 32 nodes)
 * fell from 12.2 to 10.8, to 11.7, and not at all. If a pass writes one token, 32,768 are enough:
 * memory for the others saves more when it holds weights. The last number is the room for more
 * tokens that the text itself has used (engine/gather.c). */
#define USUAL_SLICE_IDS        81920
#define USUAL_SINGLE_SLICE_IDS 32768
#define USUAL_SLICE_ROOM       2048
/* A plan may use this part of the budget for larger chunks of prompts and a larger ring, and half
 * of what it leaves at most: the larger part is for weights. The ring is this part of the budget,
 * between these bounds (plan/plan.c): a larger one would pin less, and those bytes would be read in
 * every pass (docs/inside/streaming.md). */
#define USUAL_SETTING_PART     12
#define USUAL_RING_PART        32
#define USUAL_RING_LEAST_BYTES (8 << 20)
#define USUAL_RING_MOST_BYTES  (48 << 20)
/* The draft's weights are read once: a ring of this size does that at the disk's speed. */
#define USUAL_DRAFT_RING_BYTES (4 << 20)
/* Memory that is not counted elsewhere (engine/gather.c): what a cgroup is charged in advance per
 * processor (up to 256 KiB for each that threads ran on), kernel structures, growth of the
 * libraries, rounding; and the least that cached pages of the process's own files take. */
#define USUAL_SLACK_BYTES        (2 << 20)
#define USUAL_LEAST_CACHED_BYTES (4 << 20)
