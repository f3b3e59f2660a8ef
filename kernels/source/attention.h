/* Attention in the encoder: each position of a sentence over all of its positions. */
#ifndef KVASIR_ATTENTION_H
#define KVASIR_ATTENTION_H

#include <stddef.h>

#include "kernels.h"
#include "vectors.h"

/* Add `biases` [length] to `scores` [length]. */
ALWAYS_INLINE void add_biases(float *scores, const float *biases, int64_t length) {
    for (int64_t at = 0; at < length; at += LANES) {
        const int64_t count = at_most_lanes(length - at);
        store_some(scores + at, load_some(scores + at, count, 0.0f) + load_some(biases + at, count, 0.0f), count);
    }
}

/* Replace `scores` [length] by their exponentials, and return their sum. The memory must hold whole vectors; numbers after
 * `length` become zero. */
ALWAYS_INLINE float exponentials(float *scores, int64_t length) {
    const float none = -__builtin_inff();
    store(scores + length, spread(none));
    floats largest = load(scores);
    for (int64_t at = LANES; at < length; at += LANES) largest = larger(largest, load(scores + at));
    floats maximum = spread(largest_of(largest)), total = spread(0.0f);
    for (int64_t at = 0; at < length; at += LANES) {
        floats value = exponential(load(scores + at) - maximum);
        total += value;
        store(scores + at, value);
    }
    return sum_of(total);
}

/* Keys and values of one head, and the queries at the same positions, with `stride` numbers from one position to the next. */
typedef struct {
    const float *queries, *keys, *values;
    int64_t stride, length;
    float scale;         /* of products of queries and keys */
    const float *biases; /* [2 * length - 1] at least, added to the scores by the key's offset: the middle is 0. Or NULL */
    float *output;       /* [length, ..], with a third of `stride` */
} Attended;

/* Queries that are multiplied with the same keys and values: as many as fit the registers. */
#if defined(__AVX512F__)
#define QUERIES 2
#else
#define QUERIES 1
#endif

/* `count` queries from position `first` on. A head consists of `chunks` vectors, the last with `last` numbers. The last three
 * are constants where this is inlined for usual sizes. */
ALWAYS_INLINE void attend_queries(const Attended *head, int64_t first, float *scores, int count, int chunks, int64_t last) {
    const int64_t stride = head->stride, length = head->length, padded_length = PADDED_LENGTH(length);
    floats queries[QUERIES][MAX_HEAD_DIM / LANES], sums[QUERIES][MAX_HEAD_DIM / LANES];
#pragma clang loop unroll(full)
    for (int i = 0; i < count; i++) {
        for (int chunk = 0; chunk < chunks; chunk++) {
            const float *query = head->queries + (first + i) * stride + chunk * LANES;
            queries[i][chunk] = load_some(query, chunk < chunks - 1 ? LANES : last, 0.0f) * spread(head->scale);
            sums[i][chunk] = spread(0.0f);
        }
    }
    for (int64_t position = 0; position < length; position += 4) {
        floats products[QUERIES][4] = {{{0}}};
#pragma clang loop unroll(full)
        for (int key = 0; key < 4; key++) {
            /* After the end, the last key again. */
            const float *from = head->keys + (position + key < length ? position + key : length - 1) * stride;
            for (int chunk = 0; chunk < chunks; chunk++) {
                const floats part = load_some(from + chunk * LANES, chunk < chunks - 1 ? LANES : last, 0.0f);
#pragma clang loop unroll(full)
                for (int i = 0; i < count; i++) {
                    products[i][key] = multiply_add(queries[i][chunk], part, products[i][key]);
                }
            }
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < count; i++) {
            const floats *of = products[i];
            const quarter_floats found = sums_of_four(of[0], of[1], of[2], of[3]);
            memcpy(scores + i * padded_length + position, &found, sizeof found);
        }
    }
    float totals[QUERIES];
#pragma clang loop unroll(full)
    for (int i = 0; i < count; i++) {
        if (head->biases) add_biases(scores + i * padded_length, head->biases - (first + i), length);
        totals[i] = exponentials(scores + i * padded_length, length);
    }
    for (int64_t position = 0; position < length; position++) {
        for (int chunk = 0; chunk < chunks; chunk++) {
            const float *value = head->values + position * stride + chunk * LANES;
            const floats part = load_some(value, chunk < chunks - 1 ? LANES : last, 0.0f);
#pragma clang loop unroll(full)
            for (int i = 0; i < count; i++) {
                sums[i][chunk] = multiply_add(spread(scores[i * padded_length + position]), part, sums[i][chunk]);
            }
        }
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < count; i++) {
        for (int chunk = 0; chunk < chunks; chunk++) {
            float *to = head->output + (first + i) * (stride / 3) + chunk * LANES;
            store_some(to, sums[i][chunk] * spread(1.0f / totals[i]), chunk < chunks - 1 ? LANES : last);
        }
    }
}

ALWAYS_INLINE void attend_source_head(const Attended *head, float *scores, int chunks, int64_t last) {
    int64_t position = 0;
    for (; position + QUERIES <= head->length; position += QUERIES) {
        attend_queries(head, position, scores, QUERIES, chunks, last);
    }
    if (position < head->length) attend_queries(head, position, scores, 1, chunks, last);
}

static void attend_in_source(const SourceAttention *attention, const float *fused, int64_t head, int64_t length,
                             void *scratch, float *output) {
    const int64_t head_dim = attention->head_dim, width = attention->heads * head_dim;
    const int64_t chunks = (head_dim + LANES - 1) / LANES;
    const float *queries = fused + head * head_dim;
    const Attended attended = {
        .queries = queries, .keys = queries + width, .values = queries + 2 * width, .stride = 3 * width, .length = length,
        .scale = attention->scale, .output = output + head * head_dim,
        .biases = attention->biases ? attention->biases + head * attention->num_biases + attention->num_biases / 2 : NULL};
    if (head_dim == 64) {
        attend_source_head(&attended, scratch, 4, LANES);
    } else if (head_dim == 32) {
        attend_source_head(&attended, scratch, 2, LANES);
    } else {
        attend_source_head(&attended, scratch, (int)chunks, head_dim - (chunks - 1) * LANES);
    }
}

#endif
