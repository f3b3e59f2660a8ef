/* Detection of degenerate loops; server/engine/decoding/loop_detection.py documents it. */
#ifndef KVASIR_LOOPS_H
#define KVASIR_LOOPS_H

#include <stdint.h>

#define LONGEST_LOOP 8

/* Return the least number of tokens until a sequence has more than `limit` repetitions; 0 or less: it has. */
static inline int64_t tokens_missing(const int32_t *tokens, int64_t length, int64_t limit) {
    int64_t missing = limit;
    for (int64_t size = 1; size <= LONGEST_LOOP && size < length; size++) {
        int64_t num_repeated = 0;
        while (num_repeated < length - size &&
               tokens[length - 1 - num_repeated] == tokens[length - 1 - num_repeated - size]) {
            num_repeated++;
        }
        if (size * limit - num_repeated < missing) missing = size * limit - num_repeated;
    }
    return missing;
}

/* Set `loops` [beams] for the beams [beams, max_tokens] of a request that loop, and return whether any does. Nothing is
 * checked before the length `due`, which is set to that of the next check. */
static inline int find_loops(const int32_t *tokens, int64_t beams, int64_t max_tokens, int64_t length, int64_t limit,
                             int32_t *due, uint8_t *loops) {
    if (length < *due) return 0;
    int any = 0;
    int64_t least = limit;
    for (int64_t beam = 0; beam < beams; beam++) {
        const int64_t missing = tokens_missing(tokens + beam * max_tokens, length, limit);
        loops[beam] = missing <= 0;
        any |= loops[beam];
        if (missing > 0 && missing < least) least = missing;
    }
    *due = (int32_t)(length + (least > 1 ? least : 1));
    return any;
}

#endif
