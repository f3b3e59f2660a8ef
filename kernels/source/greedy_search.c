/* Greedy search: one step of all requests. */
#include <string.h>

#include "cache.h"
#include "loops.h"

#define EXPORTED __attribute__((visibility("default")))

/* The arrays of kernels/searches.py, which documents them. */
typedef struct {
    int64_t max_tokens, end_token, forced_end;
    int32_t *tokens, *lengths, *max_lengths;
    double *log_probs;
    int32_t *loop_limits, *loop_due;
    uint8_t *has_looped, *finished;
    int32_t *chosen;
} Greedy;

/* Append the best candidate of each of the first `num` requests. Request i has row rows[i] of the candidates, [rows,
 * num_candidates], and of the cache, which may be NULL: there, the token becomes the next input, or the row is freed.
 * Returns the number of finished requests, or -1 without any change if one has no capacity left. */
EXPORTED int64_t kvasir_advance_greedy(const Greedy *greedy, const Cache *cache, int64_t num, int64_t num_candidates,
                                       const int64_t *candidates, const float *log_probs, const int64_t *rows) {
    int64_t num_finished = 0;
    for (int64_t request = 0; request < num; request++) {
        if (greedy->lengths[request] >= greedy->max_tokens) return -1;
    }
    for (int64_t request = 0; request < num; request++) {
        int32_t *tokens = greedy->tokens + request * greedy->max_tokens;
        const int64_t length = greedy->lengths[request]++;
        const int at_limit = length + 1 >= greedy->max_lengths[request];
        int32_t token = (int32_t)candidates[rows[request] * num_candidates];
        float gained = log_probs[rows[request] * num_candidates];
        if (greedy->forced_end && at_limit) {
            token = (int32_t)greedy->end_token;
            gained = 0.0f;
        }
        tokens[length] = token;
        greedy->chosen[request] = token;
        greedy->log_probs[request] += gained;
        find_loops(tokens, 1, greedy->max_tokens, length + 1, greedy->loop_limits[request],
                   greedy->loop_due + request, greedy->has_looped + request);
        greedy->finished[request] = token == greedy->end_token || at_limit || greedy->has_looped[request];
        num_finished += greedy->finished[request];
        if (cache != NULL) cache->previous_tokens[rows[request]] = token;
    }
    if (cache != NULL && num_finished > 0) release_finished(cache, num, 1, rows, greedy->finished);
    return num_finished;
}

/* Move the request at index `from` to the index `to`. */
EXPORTED void kvasir_move_greedy(const Greedy *greedy, int64_t from, int64_t to) {
    memcpy(greedy->tokens + to * greedy->max_tokens, greedy->tokens + from * greedy->max_tokens,
           (size_t)greedy->lengths[from] * sizeof *greedy->tokens);
    greedy->lengths[to] = greedy->lengths[from];
    greedy->max_lengths[to] = greedy->max_lengths[from];
    greedy->log_probs[to] = greedy->log_probs[from];
    greedy->loop_limits[to] = greedy->loop_limits[from];
    greedy->loop_due[to] = greedy->loop_due[from];
    greedy->has_looped[to] = greedy->has_looped[from];
}
