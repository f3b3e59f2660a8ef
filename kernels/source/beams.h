/* Ranking of the continuations of beams. */
#ifndef KVASIR_BEAMS_H
#define KVASIR_BEAMS_H

#include <stdint.h>

#define IMPOSSIBLE -1e9f      /* the sum of an unused beam */
#define HARDLY_POSSIBLE -5e8f /* lower sums belong to unused beams; half of the search's "minus infinity" */

/* NaN comes last, as in NumPy. */
static inline int precedes(float a, float b) { return a < b || (a == a && b != b); }

/* Find the cheapest `wanted` of `count` continuations, cheapest first and equal ones in order. */
static inline void cheapest(const float *sums, const float *log_probs, int64_t num_candidates, int64_t count, int64_t wanted,
                            float *costs, int64_t *indices) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        float cost = -sums[i / num_candidates] - log_probs[i];
        if (found == wanted && !precedes(cost, costs[found - 1])) continue;
        int64_t at = found < wanted ? found++ : wanted - 1;
        for (; at > 0 && precedes(cost, costs[at - 1]); at--) {
            costs[at] = costs[at - 1];
            indices[at] = indices[at - 1];
        }
        costs[at] = cost;
        indices[at] = i;
    }
}

#endif
