/* Beam search: ranking of continuations, and assignment of rows to beams. */
#include <string.h>

#include "beams.h"

#define EXPORTED __attribute__((visibility("default")))

/* The arrays of kernels/searches.py, which documents their shapes. */
typedef struct {
    int64_t beam_size, max_tokens, end_token;
    float *sums;
    int32_t *tokens, *lengths;
    const int32_t *max_lengths;
    int32_t *chosen;
    int64_t *parents;
    int64_t *ended_requests;
    float *ended_sums;
    int32_t *ended_tokens;
    int32_t *before;
} Beams;

/* Advance the first `num` requests by one step; see RunningBeams.advance. Returns the number of finished hypotheses, or -1
 * without any change if a request has no capacity for another token. */
EXPORTED int64_t kvasir_advance_beams(const Beams *beams, int64_t num, int64_t num_candidates, const int64_t *candidates,
                                      const float *log_probs) {
    const int64_t beam_size = beams->beam_size, max_tokens = beams->max_tokens, count = beam_size * num_candidates;
    const int64_t wanted = 2 * beam_size < count ? 2 * beam_size : count;
    float costs[2 * beam_size];
    int64_t indices[2 * beam_size], num_ended = 0;
    int32_t *before = beams->before;
    for (int64_t request = 0; request < num; request++) {
        if (beams->lengths[request] >= max_tokens) return -1;
    }
    for (int64_t request = 0; request < num; request++, candidates += count, log_probs += count) {
        float *sums = beams->sums + request * beam_size;
        int32_t *tokens = beams->tokens + request * beam_size * max_tokens;
        int32_t *chosen = beams->chosen + request * beam_size;
        int64_t *parents = beams->parents + request * beam_size;
        const int64_t length = beams->lengths[request]++;
        const int at_limit = length + 1 >= beams->max_lengths[request];
        cheapest(sums, log_probs, num_candidates, count, wanted, costs, indices);
        for (int64_t rank = 0; rank < beam_size; rank++) {
            const int64_t token = candidates[indices[rank]];
            if (!(at_limit || token == beams->end_token) || !(-costs[rank] > HARDLY_POSSIBLE)) continue;
            int32_t *hypothesis = beams->ended_tokens + num_ended * max_tokens;
            memcpy(hypothesis, tokens + indices[rank] / num_candidates * max_tokens, (size_t)length * sizeof *tokens);
            hypothesis[length] = (int32_t)token;
            beams->ended_requests[num_ended] = request;
            beams->ended_sums[num_ended++] = -costs[rank];
        }
        /* Continuations that do not end come first; the others fill the beams that are left. */
        int64_t kept = 0;
        for (int ends = 0; ends < 2; ends++) {
            for (int64_t rank = 0; rank < wanted && kept < beam_size; rank++) {
                const int64_t token = candidates[indices[rank]];
                if ((at_limit || token == beams->end_token) != ends) continue;
                chosen[kept] = (int32_t)token;
                parents[kept] = indices[rank] / num_candidates;
                sums[kept++] = -costs[rank];
            }
        }
        int moves = 0;
        for (int64_t beam = 0; beam < beam_size; beam++) moves |= parents[beam] != beam;
        for (int64_t beam = 0; moves && beam < beam_size; beam++) {
            memcpy(before + beam * length, tokens + beam * max_tokens, (size_t)length * sizeof *tokens);
        }
        for (int64_t beam = 0; beam < beam_size; beam++) {
            int32_t *to = tokens + beam * max_tokens;
            if (parents[beam] != beam) memcpy(to, before + parents[beam] * length, (size_t)length * sizeof *tokens);
            to[length] = chosen[beam];
        }
    }
    return num_ended;
}

/* Assign rows to the children of beams, [num, beam_size] each; see children_in_rows in kernels/cache_rows.py. Overwrites
 * `rows` and returns the number of rows to copy. */
EXPORTED int64_t kvasir_children_in_rows(int64_t num, int64_t beam_size, int64_t *rows, const int64_t *parents,
                                         int64_t *sources, int64_t *destinations) {
    int64_t num_copied = 0, num_dead = 0;
    int64_t own[beam_size];
    for (int64_t request = 0; request < num; request++, rows += beam_size, parents += beam_size) {
        memcpy(own, rows, sizeof own);
        for (int64_t beam = 0; beam < beam_size; beam++) {
            int continues = 0;
            for (int64_t child = 0; child < beam_size; child++) continues |= parents[child] == beam;
            if (!continues) destinations[num_dead++] = own[beam];
        }
        for (int64_t child = 0; child < beam_size; child++) {
            int is_first = 1;
            for (int64_t earlier = 0; earlier < child; earlier++) is_first &= parents[earlier] != parents[child];
            rows[child] = own[parents[child]];
            if (is_first) continue;
            sources[num_copied] = rows[child];
            rows[child] = destinations[num_copied++];
        }
    }
    return num_copied;
}
