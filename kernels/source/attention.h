/* Attention of one query over keys and values, int8 or float, and the int8 cache they are appended to. */
#ifndef KVASIR_ATTENTION_H
#define KVASIR_ATTENTION_H

#include <stddef.h>

#include "kernels.h"
#include "vectors.h"

static void append(const CachedAttention *attention, const float *values, int64_t position, int8_t *cache) {
    const int64_t head_dim = attention->head_dim;
    const floats levels = spread(1.0f / attention->step);
    for (int64_t head = 0; head < attention->heads; head++) {
        int8_t *to = cache + (head * attention->cache_len + position) * head_dim;
        for (int64_t at = 0; at < head_dim; at += LANES) {
            int64_t count = at_most_lanes(head_dim - at);
            floats value = load_some(values + head * head_dim + at, count, 0.0f);
            value = smaller(larger(value, spread(-128.0f * attention->step)), spread(127.0f * attention->step));
            bytes level = __builtin_convertvector(rounded_product(value, levels, 0.0f), bytes);
            if (count == LANES) {
                memcpy(to + at, &level, LANES);
            } else {
                memcpy(to + at, &level, (size_t)count);
            }
        }
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

ALWAYS_INLINE void prefetch(const int8_t *from, int64_t size) {
    for (int64_t at = 0; at < size; at += CACHE_LINE) __builtin_prefetch(from + at);
}

/* Keys and values of one head, int8 or float, with `stride` numbers from one position to the next. */
typedef struct {
    const void *keys, *values;
    int64_t stride, length;
    float scale;       /* of products of queries and keys */
    float value_scale; /* of the values */
    const float *biases; /* [length] added to the scores, or NULL */
    const int8_t *next_keys, *next_values; /* of the next row, `next_size` bytes each */
    int64_t next_size;
} Attended;

ALWAYS_INLINE floats load_numbers(const void *numbers, int64_t at, int64_t count, int is_int8) {
    return is_int8 ? load_some_bytes((const int8_t *)numbers + at, count)
                   : load_some((const float *)numbers + at, count, 0.0f);
}

/* A head consists of `chunks` vectors, the last with `last` numbers. Both are constants where this is inlined for usual
 * sizes; `is_int8` always is. */
ALWAYS_INLINE void attend_head(const Attended *head, const float *query, float *scores, float *output, int chunks,
                               int64_t last, int is_int8) {
    const int64_t stride = head->stride, length = head->length;
    floats queries[MAX_HEAD_DIM / LANES], sums[MAX_HEAD_DIM / LANES];
    for (int chunk = 0; chunk < chunks; chunk++) {
        int64_t count = chunk < chunks - 1 ? LANES : last;
        queries[chunk] = load_some(query + chunk * LANES, count, 0.0f) * spread(head->scale);
        sums[chunk] = spread(0.0f);
    }
    /* Rows are far apart: without this every row would wait for memory first. Keys now and values later, because a
     * processor has a limited number of requests in flight. */
    prefetch(head->next_keys, head->next_size);
    for (int64_t position = 0; position < length; position += 4) {
        floats products[4];
        for (int i = 0; i < 4; i++) {
            /* After the end, the last key again. */
            int64_t key = (position + i < length ? position + i : length - 1) * stride;
            products[i] = spread(0.0f);
            for (int chunk = 0; chunk < chunks; chunk++) {
                int64_t count = chunk < chunks - 1 ? LANES : last;
                floats part = load_numbers(head->keys, key + chunk * LANES, count, is_int8);
                products[i] = multiply_add(queries[chunk], part, products[i]);
            }
        }
        quarter_floats sums_of_products = sums_of_four(products[0], products[1], products[2], products[3]);
        memcpy(scores + position, &sums_of_products, sizeof sums_of_products);
    }
    prefetch(head->next_values, head->next_size);
    if (head->biases) {
        for (int64_t at = 0; at < length; at += LANES) {
            const int64_t count = at_most_lanes(length - at);
            floats score = load_some(scores + at, count, 0.0f) + load_some(head->biases + at, count, 0.0f);
            store_some(scores + at, score, count);
        }
    }
    float total = exponentials(scores, length);
    for (int64_t position = 0; position < length; position++) {
        floats probability = spread(scores[position]);
        for (int chunk = 0; chunk < chunks; chunk++) {
            int64_t count = chunk < chunks - 1 ? LANES : last;
            floats part = load_numbers(head->values, position * stride + chunk * LANES, count, is_int8);
            sums[chunk] = multiply_add(probability, part, sums[chunk]);
        }
    }
    for (int chunk = 0; chunk < chunks; chunk++) {
        int64_t count = chunk < chunks - 1 ? LANES : last;
        store_some(output + chunk * LANES, sums[chunk] * spread(head->value_scale / total), count);
    }
}

ALWAYS_INLINE void attend_any_head(const Attended *head, int64_t head_dim, const float *query, float *scores,
                                   float *output, int is_int8) {
    if (head_dim == 64) {
        attend_head(head, query, scores, output, 4, LANES, is_int8);
    } else if (head_dim == 32) {
        attend_head(head, query, scores, output, 2, LANES, is_int8);
    } else {
        int64_t chunks = (head_dim + LANES - 1) / LANES;
        attend_head(head, query, scores, output, (int)chunks, head_dim - (chunks - 1) * LANES, is_int8);
    }
}

static void attend(const CachedAttention *attention, const float *query, const int8_t *keys, const int8_t *values,
                   int64_t length, int64_t next_length, float *scores, float *output) {
    const int64_t head_dim = attention->head_dim, plane = attention->cache_len * head_dim;
    const int64_t row = attention->heads * plane;
    for (int64_t head = 0; head < attention->heads; head++, keys += plane, values += plane) {
        const Attended attended = {
            .keys = keys, .values = values, .stride = head_dim, .length = length,
            .scale = attention->scale * attention->step, .value_scale = attention->step,
            .biases = attention->biases ? attention->biases + (head + 1) * attention->num_biases - length : NULL,
            .next_keys = keys + row, .next_values = values + row, .next_size = next_length * head_dim};
        attend_any_head(&attended, head_dim, query + head * head_dim, scores, output + head * head_dim, 1);
    }
}

static void attend_in_source(const SourceAttention *attention, const float *fused, int64_t head, int64_t length,
                             float *scores, float *output) {
    const int64_t head_dim = attention->head_dim, width = attention->heads * head_dim;
    const float *queries = fused + head * head_dim;
    Attended attended = {.keys = queries + width, .values = queries + 2 * width, .stride = 3 * width,
                         .length = length, .scale = attention->scale, .value_scale = 1.0f};
    for (int64_t position = 0; position < length; position++) {
        if (attention->biases) {
            attended.biases = attention->biases + head * attention->num_biases + attention->num_biases / 2 - position;
        }
        attend_any_head(&attended, head_dim, queries + position * 3 * width, scores,
                        output + position * width + head * head_dim, 0);
    }
}

#endif
