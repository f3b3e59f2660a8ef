/* The best columns of a row of logits, and the sum of their exponentials. */
#ifndef KVASIR_RANKING_H
#define KVASIR_RANKING_H

#include "kernels.h"
#include "vectors.h"

static void insert(Best *best, int64_t num_best, float logit, int64_t token) {
    int64_t index = best->count < num_best ? best->count++ : num_best - 1;
    for (; index > 0 && best->logits[index - 1] < logit; index--) {
        best->logits[index] = best->logits[index - 1];
        best->tokens[index] = best->tokens[index - 1];
    }
    best->logits[index] = logit;
    best->tokens[index] = token;
}

static Sum add_sums(Sum earlier, Sum later) {
    /* Before the first columns the sum is 0, and 0 times any share is 0. */
    float largest = later.largest > earlier.largest ? later.largest : earlier.largest;
    floats shares = {earlier.largest - largest, later.largest - largest};
    shares = exponential(shares);
    return (Sum){largest, earlier.sum * shares[0] + later.sum * shares[1]};
}

/* Return the threshold that a logit must exceed to be among the best. */
ALWAYS_INLINE float threshold_of(const Ranking *ranking, const Best *best) {
    return best->count < ranking->num_best ? -__builtin_inff() : best->logits[ranking->num_best - 1];
}

/* Rank some columns and return the new threshold. Not inlined: few columns get here. */
static __attribute__((noinline)) float insert_some(const Ranking *ranking, const float *logits, int64_t first,
                                                   int64_t count, float floor, Best *best) {
    for (int64_t at = 0; at < count; at += LANES) {
        int64_t width = at_most_lanes(count - at);
        floats ranked = load(logits + at) + load_some(ranking->mask + first + at, width, -__builtin_inff());
        uint32_t lanes = lanes_where((ranked > spread(threshold_of(ranking, best))) & (ranked >= spread(floor)));
        for (; lanes != 0; lanes &= lanes - 1) {
            int lane = __builtin_ctz(lanes);
            if (ranked[lane] > threshold_of(ranking, best)) insert(best, ranking->num_best, ranked[lane], first + at + lane);
        }
    }
    return threshold_of(ranking, best);
}

/* Return a lower bound of the best `num_best` of these columns, so that few others are ranked. The columns are divided into
 * at least `num_best` parts; the bound is the smallest of the parts' maxima. */
static float lower_bound_of_best(const Ranking *ranking, const float *logits, int64_t first, int64_t count) {
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
    const float none = -__builtin_inff();
    const int64_t group = 4 * LANES;
    if (count % LANES != 0) store(logits + count, spread(none));
    if (floor == none) floor = lower_bound_of_best(ranking, logits, first, count);
    floats largest = spread(none);
    float threshold = threshold_of(ranking, best);
    int64_t at = 0;
    /* The mask only lowers logits: if none reaches the threshold, the mask is not read. */
    for (; at + group <= count; at += group) {
        floats here = larger(larger(load(logits + at), load(logits + at + LANES)),
                             larger(load(logits + at + 2 * LANES), load(logits + at + 3 * LANES)));
        largest = larger(here, largest);
        if (lanes_where((here > spread(threshold)) & (here >= spread(floor))) != 0) {
            threshold = insert_some(ranking, logits + at, first + at, group, floor, best);
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
