/* Union of the lists of tokens of a source. */
#include <stdint.h>
#include <string.h>

#define BITS 64 /* of a word */

/* The fields of TokenUnion in kernels/candidates.py. */
typedef struct {
    int64_t num_lists;
    int64_t num_always;
    int64_t num_first;
    int64_t num_tokens;
    int64_t multiple;
    int64_t min_tokens;
    int64_t adds_source;
    const int64_t *offsets;
    const int32_t *tokens;
    const int32_t *always;
} Lists;

static void add(uint64_t *set, const int32_t *tokens, int64_t count) {
    for (int64_t i = 0; i < count; i++) set[tokens[i] / BITS] |= (uint64_t)1 << (tokens[i] % BITS);
}

/* Write the union for a source to `found` in ascending order, and return its size; see kernels/candidates.py. */
__attribute__((visibility("default"))) int64_t kvasir_list_tokens(const Lists *lists, const int32_t *source,
                                                                  int64_t source_len, int32_t *found) {
    const int64_t num_words = (lists->num_tokens + BITS - 1) / BITS;
    uint64_t set[num_words];
    memset(set, 0, sizeof set);
    add(set, lists->always, lists->num_always);
    for (int64_t i = 0; i < source_len; i++) {
        const int32_t token = source[i];
        if (token < 0) continue;
        if (token < lists->num_lists) {
            add(set, lists->tokens + lists->offsets[token], lists->offsets[token + 1] - lists->offsets[token]);
        }
        if (lists->adds_source && token < lists->num_tokens) add(set, &token, 1);
    }
    int64_t size = 0;
    for (int64_t word = 0; word < num_words; word++) size += __builtin_popcountll(set[word]);
    int64_t wanted = (size + lists->multiple - 1) / lists->multiple * lists->multiple;
    if (wanted < lists->min_tokens) wanted = lists->min_tokens;
    if (wanted > lists->num_tokens) wanted = lists->num_tokens;
    for (int64_t token = lists->num_first; size < wanted; token++) {
        const uint64_t bit = (uint64_t)1 << (token % BITS);
        size += !(set[token / BITS] & bit);
        set[token / BITS] |= bit;
    }
    for (int64_t word = 0; word < num_words; word++) {
        for (uint64_t left = set[word]; left; left &= left - 1) {
            *found++ = (int32_t)(word * BITS + __builtin_ctzll(left));
        }
    }
    return size;
}
