/* Attention of the beams of a request over its one int8 cache of the source. Four queries are multiplied with a key that is
 * widened once, and with values that are interleaved once; their scores lie side by side, so that short sentences fill
 * vectors.
 *
 * Each query's bits are those that it gets alone (cached_attention.h): sums of integers are exact, and everything else is
 * computed number by number. */
#ifndef KVASIR_SHARED_ATTENTION_H
#define KVASIR_SHARED_ATTENTION_H

#include <stddef.h>

#include "cached_attention.h"
#include "kernels.h"
#include "vectors.h"

_Static_assert(SHARING_ROWS == 4, "a vector contains four positions of four queries");

/* Sixteen pairs of numbers. */
typedef int16_t pairs __attribute__((vector_size(4 * LANES)));
typedef int8_t two_bytes __attribute__((vector_size(2 * LANES)));

/* Vectors of channels whose sums fit the registers, for four queries. */
#if defined(__AVX512F__)
#define CHANNEL_VECTORS 4
#else
#define CHANNEL_VECTORS 1
#endif

/* Like multiply_pairs, for sixteen sums. */
ALWAYS_INLINE ints multiply_all_pairs(ints sums, pairs a, pairs b) {
#if defined(__AVX512VNNI__)
    return (ints)_mm512_dpwssd_epi32((__m512i)sums, (__m512i)a, (__m512i)b);
#else
    half_ints halves[2];
    shorts from_a[2], from_b[2];
    memcpy(halves, &sums, sizeof sums);
    memcpy(from_a, &a, sizeof a);
    memcpy(from_b, &b, sizeof b);
#pragma clang loop unroll(full)
    for (int i = 0; i < 2; i++) halves[i] = multiply_pairs(halves[i], from_a[i], from_b[i]);
    memcpy(&sums, halves, sizeof sums);
    return sums;
#endif
}

/* The scratch memory of four rows. Each head's part is followed by the next head's. */
typedef struct {
    shorts *queries;    /* [heads, 4, head_dim], in whole vectors */
    float *query_steps; /* [heads, 4] value of one level */
    int32_t *totals;    /* [heads, 4] sum of levels */
    float *scores;      /* [heads, padded_length, 4] */
    int16_t *shares;    /* [heads, padded_length / 2, 4, 2]: two positions of each query */
    int64_t query_vectors, padded_length;
} SharedParts;

/* SHARED_SCRATCH is the size of all parts. */
ALWAYS_INLINE SharedParts divide_shared_scratch(void *scratch, int64_t heads, int64_t head_dim, int64_t length) {
    SharedParts parts = {.query_vectors = ROUND_UP(head_dim, LANES) / LANES, .padded_length = PADDED_LENGTH(length)};
    parts.queries = scratch;
    parts.query_steps = (float *)(parts.queries + heads * SHARING_ROWS * parts.query_vectors);
    parts.totals = (int32_t *)(parts.query_steps + heads * SHARING_ROWS);
    parts.scores = (float *)(parts.totals + heads * SHARING_ROWS);
    parts.shares = (int16_t *)(parts.scores + heads * SHARING_ROWS * parts.padded_length);
    return parts;
}

/* Write the products of four queries [4, head_dim] with all keys to `scores` [length, 4]. */
ALWAYS_INLINE void score_keys_together(const shorts *queries, const int8_t *keys, int64_t width, int64_t head_dim,
                                       int64_t length, quarter_floats scales, const int8_t *next_keys, int64_t next_length,
                                       float *scores) {
    const int64_t vectors = ROUND_UP(head_dim, LANES) / LANES;
    for (int64_t position = 0; position < length; position++, keys += width) {
        if (position % 4 == 0) fetch_four(next_keys, position, next_length, width, head_dim);
        half_ints products[SHARING_ROWS] = {{0}};
        for (int64_t at = 0; at < vectors; at++) {
            bytes narrow = {0};
            memcpy(&narrow, keys + at * LANES, (size_t)at_most_lanes(head_dim - at * LANES));
            const shorts key = __builtin_convertvector(narrow, shorts);
#pragma clang loop unroll(full)
            for (int i = 0; i < SHARING_ROWS; i++) {
                products[i] = multiply_pairs(products[i], queries[i * vectors + at], key);
            }
        }
        const quarter_floats found = __builtin_convertvector(
            int_sums_of_four(products[0], products[1], products[2], products[3]), quarter_floats) * scales;
        memcpy(scores + position * SHARING_ROWS, &found, sizeof found);
    }
}

/* Lanes exchanged: after both, every lane has met those of the same query. */
ALWAYS_INLINE floats other_eight(floats value) {
    return __builtin_shufflevector(value, value, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
}

ALWAYS_INLINE floats other_four(floats value) {
    return __builtin_shufflevector(value, value, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
}

/* Write the levels of the exponentials of `scores` [length, 4], and zeros up to a whole vector, to `shares`, and the sum of
 * each query's levels to `totals` [4]. */
ALWAYS_INLINE void share_out_together(float *scores, int64_t length, int16_t *shares, int32_t *totals) {
    store(scores + length * SHARING_ROWS, spread(-__builtin_inff()));
    floats largest = load(scores);
    for (int64_t at = LANES; at < length * SHARING_ROWS; at += LANES) largest = larger(largest, load(scores + at));
    largest = larger(largest, other_eight(largest));
    largest = larger(largest, other_four(largest));
    ints total = {0};
    for (int64_t at = 0; at < length * SHARING_ROWS; at += LANES) {
        const ints levels =
            rounded_product(exponential(load(scores + at) - largest), spread(SHARE_LEVELS), 0.0f) & SHARE_MASK;
        total += levels;
        const shorts by_query = __builtin_convertvector(
            __builtin_shufflevector(levels, levels, 0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15), shorts);
        memcpy(shares + at, &by_query, sizeof by_query);
    }
    total += (ints)other_eight((floats)total);
    total += (ints)other_four((floats)total);
    memcpy(totals, &total, SHARING_ROWS * sizeof *totals);
}

/* Add `vectors` vectors of channels of two values, times the shares of four queries. The last has `last` channels. */
ALWAYS_INLINE void add_two_values(ints sums[SHARING_ROWS][CHANNEL_VECTORS], const int8_t *first, const int8_t *second,
                                  int vectors, int64_t last, const int16_t *shares) {
    pairs values[CHANNEL_VECTORS];
#pragma clang loop unroll(full)
    for (int vector = 0; vector < vectors; vector++) {
        const size_t count = (size_t)(vector < vectors - 1 ? LANES : last);
        bytes of_first = {0}, of_second = {0};
        memcpy(&of_first, first + vector * LANES, count);
        memcpy(&of_second, second + vector * LANES, count);
        const two_bytes interleaved =
            __builtin_shufflevector(of_first, of_second, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
                                    8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        values[vector] = __builtin_convertvector(interleaved, pairs);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < SHARING_ROWS; i++) {
        int32_t both;
        memcpy(&both, shares + 2 * i, sizeof both);
        const ints share = {both, both, both, both, both, both, both, both, both, both, both, both, both, both, both, both};
#pragma clang loop unroll(full)
        for (int vector = 0; vector < vectors; vector++) {
            sums[i][vector] = multiply_all_pairs(sums[i][vector], (pairs)share, values[vector]);
        }
    }
}

/* Write some channels of the sums of all values, times the shares of four queries. */
ALWAYS_INLINE void sum_channels(const int8_t *values, int64_t width, int vectors, int64_t last, int64_t length,
                                const int16_t *shares, const float *scales, const int8_t *next_values, int64_t next_length,
                                int64_t fetched, float *const *outputs, int64_t offset) {
    ints sums[SHARING_ROWS][CHANNEL_VECTORS] = {{{0}}};
    for (int64_t position = 0; position < length; position += 2, shares += 2 * SHARING_ROWS) {
        if (position % 4 == 0) fetch_four(next_values, position, next_length, width, fetched);
        const int8_t *first = values + position * width;
        /* After the last value it is added again, with a share of zero. */
        add_two_values(sums, first, position + 1 < length ? first + width : first, vectors, last, shares);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < SHARING_ROWS; i++) {
#pragma clang loop unroll(full)
        for (int vector = 0; vector < vectors; vector++) {
            store_some(outputs[i] + offset + vector * LANES,
                       __builtin_convertvector(sums[i][vector], floats) * spread(scales[i]),
                       vector < vectors - 1 ? LANES : last);
        }
    }
}

/* The sums of all values of a head, times the shares of four queries, to `outputs` from `offset` on. */
ALWAYS_INLINE void sum_values_together(const int16_t *shares, const int8_t *values, int64_t width, int64_t head_dim,
                                       int64_t length, const float *scales, const int8_t *next_values, int64_t next_length,
                                       float *const *outputs, int64_t offset) {
    int64_t at = 0;
    for (; at + CHANNEL_VECTORS * LANES <= head_dim; at += CHANNEL_VECTORS * LANES) {
        sum_channels(values + at, width, CHANNEL_VECTORS, LANES, length, shares, scales, next_values, at ? 0 : next_length,
                     head_dim, outputs, offset + at);
    }
    for (; at < head_dim; at += LANES) {
        sum_channels(values + at, width, 1, at_most_lanes(head_dim - at), length, shares, scales, next_values,
                     at ? 0 : next_length, head_dim, outputs, offset + at);
    }
}

ALWAYS_INLINE void attend_heads_together(const CachedAttention *attention, int64_t head_dim, const float *const *queries,
                                         CachedRow row, CachedRow next, void *scratch, float *const *outputs) {
    const int64_t heads = attention->heads, width = heads * head_dim, length = row.length;
    const SharedParts parts = divide_shared_scratch(scratch, heads, head_dim, length);
    const float scale = attention->scale * attention->step;
    for (int64_t head = 0; head < heads; head++) {
        for (int64_t i = 0; i < SHARING_ROWS; i++) {
            const int64_t at = head * SHARING_ROWS + i;
            parts.query_steps[at] =
                quantize_query(queries[i] + head * head_dim, head_dim, parts.queries + at * parts.query_vectors);
        }
    }
    for (int64_t head = 0; head < heads; head++) {
        quarter_floats steps;
        memcpy(&steps, parts.query_steps + head * SHARING_ROWS, sizeof steps);
        score_keys_together(parts.queries + head * SHARING_ROWS * parts.query_vectors, row.keys + head * head_dim, width,
                            head_dim, length, steps * scale, next.keys + head * head_dim, next.length,
                            parts.scores + head * SHARING_ROWS * parts.padded_length);
    }
    for (int64_t head = 0; head < heads; head++) {
        const int64_t first = head * SHARING_ROWS * parts.padded_length;
        share_out_together(parts.scores + first, length, parts.shares + first, parts.totals + head * SHARING_ROWS);
    }
    for (int64_t head = 0; head < heads; head++) {
        float scales[SHARING_ROWS];
        for (int64_t i = 0; i < SHARING_ROWS; i++) {
            /* As in attend_heads, a query that is not finite has no result. */
            const int64_t at = head * SHARING_ROWS + i;
            scales[i] = attention->step / (float)parts.totals[at] + 0.0f * parts.query_steps[at];
        }
        sum_values_together(parts.shares + head * SHARING_ROWS * parts.padded_length, row.values + head * head_dim, width,
                            head_dim, length, scales, next.values + head * head_dim, next.length, outputs, head * head_dim);
    }
}

static void attend_together(const CachedAttention *attention, const float *const *queries, CachedRow row, CachedRow next,
                            void *scratch, float *const *outputs) {
    if (attention->head_dim == 64) {
        attend_heads_together(attention, 64, queries, row, next, scratch, outputs);
    } else if (attention->head_dim == 32) {
        attend_heads_together(attention, 32, queries, row, next, scratch, outputs);
    } else {
        attend_heads_together(attention, attention->head_dim, queries, row, next, scratch, outputs);
    }
}

#endif
