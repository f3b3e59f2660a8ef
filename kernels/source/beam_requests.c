/* Beam search of many requests: one step of each, with the hypotheses that it holds. */
#include <string.h>

#include "beams.h"
#include "cache.h"
#include "loops.h"

#define EXPORTED __attribute__((visibility("default")))

/* The arrays of kernels/searches.py, which documents them. */
typedef struct {
    int64_t beam_size, max_tokens, end_token, forced_end;
    float *sums;
    int32_t *tokens, *common, *common_before, *lengths, *max_lengths;
    uint8_t *early_stopping;
    float *running_powers, *held_powers;
    int32_t *loop_limits, *loop_due;
    int32_t *num_held;
    float *held_scores, *held_sums;
    int32_t *held_lengths;
    uint8_t *held_looped;
    int32_t *held_tokens;
    int32_t *chosen;
    int64_t *parents;
    uint8_t *finished;
    int32_t *before; /* [beam_size, max_tokens] tokens of one request while its beams are reordered */
} Requests;

/* Add a hypothesis of `length` tokens, of which the last is `token`, unless enough better ones are held. */
static void hold(const Requests *all, int64_t request, const int32_t *prefix, int64_t length, int32_t token, float sum,
                 int looped) {
    const int64_t first = request * all->beam_size;
    float *scores = all->held_scores + first, *sums = all->held_sums + first;
    int32_t *lengths = all->held_lengths + first, *tokens = all->held_tokens + first * all->max_tokens;
    uint8_t *has_looped = all->held_looped + first;
    const float score = sum / all->held_powers[request * (all->max_tokens + 1) + length];
    int64_t at = all->num_held[request];
    if (at == all->beam_size) {
        if (!(score > scores[at - 1])) return;
        at--;
    } else {
        all->num_held[request]++;
    }
    for (; at > 0 && score > scores[at - 1]; at--) {
        scores[at] = scores[at - 1];
        sums[at] = sums[at - 1];
        lengths[at] = lengths[at - 1];
        has_looped[at] = has_looped[at - 1];
        memcpy(tokens + at * all->max_tokens, tokens + (at - 1) * all->max_tokens, (size_t)lengths[at] * sizeof *tokens);
    }
    scores[at] = score;
    sums[at] = sum;
    lengths[at] = (int32_t)length;
    has_looped[at] = (uint8_t)looped;
    memcpy(tokens + at * all->max_tokens, prefix, (size_t)(length - 1) * sizeof *tokens);
    tokens[at * all->max_tokens + length - 1] = token;
}

/* Continue the beams of a request, `length` tokens long, with `chosen` and `parents`. */
static void reorder(const Requests *all, int64_t request, int64_t length) {
    const int64_t beam_size = all->beam_size, max_tokens = all->max_tokens;
    const int32_t *chosen = all->chosen + request * beam_size;
    const int64_t *parents = all->parents + request * beam_size;
    int32_t *tokens = all->tokens + request * beam_size * max_tokens, *before = all->before;
    int32_t *common = all->common + request * beam_size * beam_size;
    int32_t *common_before = all->common_before + request * beam_size * beam_size;
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
    memcpy(common_before, common, (size_t)(beam_size * beam_size) * sizeof *common);
    for (int64_t beam = 0; beam < beam_size; beam++) {
        for (int64_t other = 0; other < beam_size; other++) {
            const int32_t same = common_before[parents[beam] * beam_size + parents[other]];
            common[beam * beam_size + other] = same + (same == length && chosen[beam] == chosen[other]);
        }
    }
}

/* Advance one request with its candidates [beam_size, num_candidates], and return whether it is finished. */
static int advance(const Requests *all, int64_t request, int64_t num_candidates, int64_t *candidates, float *log_probs) {
    const int64_t beam_size = all->beam_size, max_tokens = all->max_tokens, count = beam_size * num_candidates;
    const int64_t wanted = 2 * beam_size < count ? 2 * beam_size : count;
    const int64_t length = all->lengths[request]++;
    const int at_limit = length + 1 >= all->max_lengths[request];
    float *sums = all->sums + request * beam_size, costs[2 * beam_size];
    int32_t *tokens = all->tokens + request * beam_size * max_tokens, *chosen = all->chosen + request * beam_size;
    int64_t *parents = all->parents + request * beam_size, indices[2 * beam_size];
    if (at_limit && all->forced_end) {
        for (int64_t i = 0; i < count; i++) log_probs[i] = i % num_candidates == 0 ? 0.0f : -__builtin_inff();
        for (int64_t beam = 0; beam < beam_size; beam++) candidates[beam * num_candidates] = all->end_token;
    }
    cheapest(sums, log_probs, num_candidates, count, wanted, costs, indices);
    for (int64_t rank = 0; rank < beam_size; rank++) {
        const int64_t token = candidates[indices[rank]];
        if (!(at_limit || token == all->end_token) || !(-costs[rank] > HARDLY_POSSIBLE)) continue;
        hold(all, request, tokens + indices[rank] / num_candidates * max_tokens, length + 1, (int32_t)token, -costs[rank], 0);
    }
    /* Continuations that do not end come first; the others fill the beams that are left. */
    int64_t kept = 0;
    for (int ends = 0; ends < 2; ends++) {
        for (int64_t rank = 0; rank < wanted && kept < beam_size; rank++) {
            const int64_t token = candidates[indices[rank]];
            if ((at_limit || token == all->end_token) != ends) continue;
            chosen[kept] = (int32_t)token;
            parents[kept] = indices[rank] / num_candidates;
            sums[kept++] = -costs[rank];
        }
    }
    reorder(all, request, length);
    float best = sums[0];
    uint8_t loops[beam_size];
    if (find_loops(tokens, beam_size, max_tokens, length + 1, all->loop_limits[request], all->loop_due + request, loops) &&
        !at_limit) {
        int has_ended = 0;
        for (int64_t beam = 0; beam < beam_size; beam++) {
            if (!loops[beam] || !(sums[beam] > HARDLY_POSSIBLE)) continue;
            const int32_t *looping = tokens + beam * max_tokens;
            hold(all, request, looping, length + 1, looping[length], sums[beam], 1);
            sums[beam] = IMPOSSIBLE;
            has_ended = 1;
        }
        if (has_ended) {
            best = sums[0];
            for (int64_t beam = 1; beam < beam_size; beam++) {
                if (sums[beam] > best || sums[beam] != sums[beam]) best = sums[beam];
            }
        }
    }
    if (at_limit || !(best > HARDLY_POSSIBLE)) return 1; /* true for NaN as well */
    if (all->num_held[request] < beam_size) return 0;
    const float worst = all->held_scores[request * beam_size + beam_size - 1];
    const float possible = best / all->running_powers[request * (max_tokens + 1) + length + 1];
    return all->early_stopping[request] || possible <= worst;
}

/* Advance the first `num` requests by one step. Beam b of request i has row rows[i, b] of the candidates, [num_rows,
 * num_candidates], of which the first `num_ranked` count, and of the cache, which may be NULL: there, beams continue
 * their parents, and rows of finished requests are freed. Returns the number of finished requests; -1 without any change
 * if one has no capacity for another token; -2 if the cache has too few rows. */
EXPORTED int64_t kvasir_advance_beam_requests(const Requests *all, const Cache *cache, int64_t num,
                                              int64_t num_candidates, int64_t num_ranked, const int64_t *candidates,
                                              const float *log_probs, int64_t *rows) {
    const int64_t beam_size = all->beam_size;
    int64_t own_candidates[beam_size * num_ranked], num_finished = 0;
    float own_log_probs[beam_size * num_ranked];
    for (int64_t request = 0; request < num; request++) {
        if (all->lengths[request] >= all->max_tokens) return -1;
    }
    for (int64_t request = 0; request < num; request++) {
        for (int64_t beam = 0; beam < beam_size; beam++) {
            const int64_t first = rows[request * beam_size + beam] * num_candidates;
            memcpy(own_candidates + beam * num_ranked, candidates + first, (size_t)num_ranked * sizeof *candidates);
            memcpy(own_log_probs + beam * num_ranked, log_probs + first, (size_t)num_ranked * sizeof *log_probs);
        }
        all->finished[request] = (uint8_t)advance(all, request, num_ranked, own_candidates, own_log_probs);
        num_finished += all->finished[request];
    }
    if (cache == NULL) return num_finished;
    if (continue_beams(cache, num, beam_size, rows, all->parents, all->chosen, all->finished, all->common_before) != 0) {
        return -2;
    }
    if (num_finished > 0) release_finished(cache, num, beam_size, rows, all->finished);
    return num_finished;
}

#define MOVE(array, size) memcpy(all->array + to * (size), all->array + from * (size), (size_t)(size) * sizeof *all->array)

/* Move the request at index `from` to the index `to`. */
EXPORTED void kvasir_move_beam_request(const Requests *all, int64_t from, int64_t to) {
    const int64_t beam_size = all->beam_size, max_tokens = all->max_tokens;
    for (int64_t beam = 0; beam < beam_size; beam++) {
        memcpy(all->tokens + (to * beam_size + beam) * max_tokens, all->tokens + (from * beam_size + beam) * max_tokens,
               (size_t)all->lengths[from] * sizeof *all->tokens);
    }
    for (int64_t held = 0; held < all->num_held[from]; held++) {
        memcpy(all->held_tokens + (to * beam_size + held) * max_tokens,
               all->held_tokens + (from * beam_size + held) * max_tokens,
               (size_t)all->held_lengths[from * beam_size + held] * sizeof *all->held_tokens);
    }
    MOVE(sums, beam_size);
    MOVE(common, beam_size * beam_size);
    MOVE(lengths, 1);
    MOVE(max_lengths, 1);
    MOVE(early_stopping, 1);
    MOVE(running_powers, max_tokens + 1);
    MOVE(held_powers, max_tokens + 1);
    MOVE(loop_limits, 1);
    MOVE(loop_due, 1);
    MOVE(num_held, 1);
    MOVE(held_scores, beam_size);
    MOVE(held_sums, beam_size);
    MOVE(held_lengths, beam_size);
    MOVE(held_looped, beam_size);
}
