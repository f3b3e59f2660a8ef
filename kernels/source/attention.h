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

/* Keys and values of one head, with `stride` numbers from one position to the next. */
typedef struct {
    const float *keys, *values;
    int64_t stride, length;
    float scale;         /* of products of queries and keys */
    const float *biases; /* [length] added to the scores, or NULL */
} Attended;

/* A head consists of `chunks` vectors, the last with `last` numbers. Both are constants where this is inlined for usual
 * sizes. */
ALWAYS_INLINE void attend_source_head(const Attended *head, const float *query, float *scores, float *output, int chunks,
                                      int64_t last) {
    const int64_t stride = head->stride, length = head->length;
    floats queries[MAX_HEAD_DIM / LANES], sums[MAX_HEAD_DIM / LANES];
    for (int chunk = 0; chunk < chunks; chunk++) {
        int64_t count = chunk < chunks - 1 ? LANES : last;
        queries[chunk] = load_some(query + chunk * LANES, count, 0.0f) * spread(head->scale);
        sums[chunk] = spread(0.0f);
    }
    for (int64_t position = 0; position < length; position += 4) {
        floats products[4];
        for (int i = 0; i < 4; i++) {
            /* After the end, the last key again. */
            const float *key = head->keys + (position + i < length ? position + i : length - 1) * stride;
            products[i] = spread(0.0f);
            for (int chunk = 0; chunk < chunks; chunk++) {
                int64_t count = chunk < chunks - 1 ? LANES : last;
                products[i] = multiply_add(queries[chunk], load_some(key + chunk * LANES, count, 0.0f), products[i]);
            }
        }
        quarter_floats sums_of_products = sums_of_four(products[0], products[1], products[2], products[3]);
        memcpy(scores + position, &sums_of_products, sizeof sums_of_products);
    }
    if (head->biases) add_biases(scores, head->biases, length);
    float total = exponentials(scores, length);
    for (int64_t position = 0; position < length; position++) {
        floats probability = spread(scores[position]);
        for (int chunk = 0; chunk < chunks; chunk++) {
            int64_t count = chunk < chunks - 1 ? LANES : last;
            floats part = load_some(head->values + position * stride + chunk * LANES, count, 0.0f);
            sums[chunk] = multiply_add(probability, part, sums[chunk]);
        }
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
        int64_t count = chunk < chunks - 1 ? LANES : last;
        store_some(output + chunk * LANES, sums[chunk] * spread(1.0f / total), count);
    }
}

static void attend_in_source(const SourceAttention *attention, const float *fused, int64_t head, int64_t length,
                             float *scores, float *output) {
    const int64_t head_dim = attention->head_dim, width = attention->heads * head_dim;
    const int64_t chunks = (head_dim + LANES - 1) / LANES;
    const float *queries = fused + head * head_dim;
    Attended attended = {.keys = queries + width, .values = queries + 2 * width, .stride = 3 * width,
                         .length = length, .scale = attention->scale};
    for (int64_t position = 0; position < length; position++) {
        if (attention->biases) {
            attended.biases = attention->biases + head * attention->num_biases + attention->num_biases / 2 - position;
        }
        const float *query = queries + position * 3 * width;
        float *to = output + position * width + head * head_dim;
        if (head_dim == 64) {
            attend_source_head(&attended, query, scores, to, 4, LANES);
        } else if (head_dim == 32) {
            attend_source_head(&attended, query, scores, to, 2, LANES);
        } else {
            attend_source_head(&attended, query, scores, to, (int)chunks, head_dim - (chunks - 1) * LANES);
        }
    }
}

#endif
