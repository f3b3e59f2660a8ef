/* The best columns of a row of logits, and the sum of all exponentials. */
#ifndef KVASIR_RANKING_H
#define KVASIR_RANKING_H

#include "kernels.h"
#include "vectors.h"

static void insert(Best *best, int64_t num_best, float logit, int64_t token) {
    int64_t place = best->count < num_best ? best->count++ : num_best - 1;
    for (; place > 0 && best->logits[place - 1] < logit; place--) {
        best->logits[place] = best->logits[place - 1];
        best->tokens[place] = best->tokens[place - 1];
    }
    best->logits[place] = logit;
    best->tokens[place] = token;
}

static Sum add_sums(Sum earlier, Sum later) {
    /* Nothing is known before the first columns, and 0 times anything stays 0. */
    float largest = later.largest > earlier.largest ? later.largest : earlier.largest;
    floats shares = {earlier.largest - largest, later.largest - largest};
    shares = exponential(shares);
    return (Sum){largest, earlier.sum * shares[0] + later.sum * shares[1]};
}

/* What a logit must exceed to be among the best. */
ALWAYS_INLINE float least_of(const Ranking *ranking, const Best *best) {
    return best->count < ranking->num_best ? -__builtin_inff() : best->logits[ranking->num_best - 1];
}

/* Ranks some columns, and returns what others must exceed from then on. Not inlined: few columns get here. */
static __attribute__((noinline)) float insert_some(const Ranking *ranking, const float *logits, int64_t first,
                                                   int64_t count, float floor, Best *best) {
    for (int64_t at = 0; at < count; at += LANES) {
        int64_t width = at_most_lanes(count - at);
        floats ranked = load(logits + at) + load_some(ranking->mask + first + at, width, -__builtin_inff());
        uint32_t lanes = lanes_where((ranked > spread(least_of(ranking, best))) & (ranked >= spread(floor)));
        for (; lanes != 0; lanes &= lanes - 1) {
            int lane = __builtin_ctz(lanes);
            if (ranked[lane] > least_of(ranking, best)) insert(best, ranking->num_best, ranked[lane], first + at + lane);
        }
    }
    return least_of(ranking, best);
}

/* A number that the best `num_best` of these columns reach, so that few of the others are ever ranked: the columns are
 * divided into at least that many parts, and each part's largest reaches the smallest of these. */
static float reached_by_best(const Ranking *ranking, const float *logits, int64_t first, int64_t count) {
    floats largest = spread(-__builtin_inff());
    if (ranking->num_best > LANES / 2) return largest[0];
    for (int64_t at = 0; at + LANES <= count; at += LANES) {
        largest = larger(load(logits + at) + load(ranking->mask + first + at), largest);
    }
    largest = larger(largest, __builtin_shufflevector(largest, largest, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    if (ranking->num_best == 1) return largest_of(largest);
    return -largest_of(-largest);
}

static void rank(const Ranking *ranking, float *logits, int64_t first, int64_t count, float floor, Best *best) {
    const float nothing = -__builtin_inff();
    const int64_t group = 4 * LANES;
    if (count % LANES != 0) store(logits + count, spread(nothing));
    if (floor == nothing) floor = reached_by_best(ranking, logits, first, count);
    floats largest = spread(nothing);
    float least = least_of(ranking, best);
    int64_t at = 0;
    /* No logit is ranked above itself: where none suffices, no mask is looked at. */
    for (; at + group <= count; at += group) {
        floats here = larger(larger(load(logits + at), load(logits + at + LANES)),
                             larger(load(logits + at + 2 * LANES), load(logits + at + 3 * LANES)));
        largest = larger(here, largest);
        if (lanes_where((here > spread(least)) & (here >= spread(floor))) != 0) {
            least = insert_some(ranking, logits + at, first + at, group, floor, best);
        }
    }
    if (at < count) insert_some(ranking, logits + at, first + at, count - at, floor, best);
    if (!ranking->with_sum) return;
    for (; at < count; at += LANES) largest = larger(load(logits + at), largest);
    Sum here = {largest_of(largest), 0.0f};
    floats sum = spread(0.0f);
    for (at = 0; at < count; at += LANES) sum += exponential(load(logits + at) - spread(here.largest));
    here.sum = sum_of(sum);
    best->all = add_sums(best->all, here);
}

#endif
