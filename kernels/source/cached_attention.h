/* Attention of one query over an int8 cache, and the cache that keys and values are appended to.
 *
 * Queries are rounded to 16 bits and probabilities to 14, so that both products are sums of integers: exact in any order,
 * and twice as fast as those of floats. */
#ifndef KVASIR_CACHED_ATTENTION_H
#define KVASIR_CACHED_ATTENTION_H

#include <stddef.h>

#include "attention.h"
#include "dot_products.h"
#include "kernels.h"
#include "quantization.h"
#include "vectors.h"

#define QUERY_LEVELS 32767.0f
/* A share is a probability in levels: `high` * 128 + `low`, each of seven bits. Two products of seven bits with int8 fit
 * sixteen bits, which AVX2 requires. */
#define LOW_BITS 7
#define LOW_MASK 0x7f
#define SHARE_LEVELS 16383.0f
#define SHARE_MASK 0x3fff

/* Sixteen numbers of a query or key. Registers of 256 bits leave half as many sums to add up as those of 512. */
typedef int16_t shorts __attribute__((vector_size(2 * LANES)));
typedef int32_t half_ints __attribute__((vector_size(2 * LANES)));
typedef int32_t quarter_ints __attribute__((vector_size(LANES)));

/* As many bytes as fit a register. */
#if defined(__AVX512BW__)
#define WIDE 64
#define INTERLEAVE(half, size, a, b) ((wide)_mm512_unpack##half##_epi##size((__m512i)(a), (__m512i)(b)))
#elif defined(__AVX2__)
#define WIDE 32
#define INTERLEAVE(half, size, a, b) ((wide)_mm256_unpack##half##_epi##size((__m256i)(a), (__m256i)(b)))
#else
#define WIDE 16
#endif

typedef int8_t wide __attribute__((vector_size(WIDE)));
typedef int32_t wide_ints __attribute__((vector_size(WIDE)));
typedef float wide_floats __attribute__((vector_size(WIDE)));

static void append(const CachedAttention *attention, const float *values, int64_t position, int8_t *cache) {
    const int64_t width = attention->heads * attention->head_dim;
    const floats levels = spread(1.0f / attention->step);
    int8_t *to = cache + position * width;
    for (int64_t at = 0; at < width; at += LANES) {
        int64_t count = at_most_lanes(width - at);
        floats value = load_some(values + at, count, 0.0f);
        value = smaller(larger(value, spread(-128.0f * attention->step)), spread(127.0f * attention->step));
        bytes level = __builtin_convertvector(rounded_product(value, levels, 0.0f), bytes);
        if (count == LANES) {
            memcpy(to + at, &level, LANES);
        } else {
            memcpy(to + at, &level, (size_t)count);
        }
    }
}

/* Rows are far apart: without this every row would wait for memory first. While four positions are read, those of the next
 * row are requested, because a processor has a limited number of requests in flight. */
ALWAYS_INLINE void fetch_four(const int8_t *next, int64_t position, int64_t next_length, int64_t width, int64_t head_dim) {
    if (position >= next_length) return;
    for (int i = 0; i < 4; i++) {
        for (int64_t at = 0; at < head_dim; at += CACHE_LINE) __builtin_prefetch(next + (position + i) * width + at, 0, 2);
    }
}

/* Round a query [head_dim] to 16 bits and return the value of one level. */
ALWAYS_INLINE float quantize_query(const float *query, int64_t head_dim, shorts *levels) {
    const int32_t bits = largest_magnitude(query, head_dim);
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    const float inverse = largest > 0.0f ? QUERY_LEVELS / largest : 0.0f;
    for (int64_t at = 0; at < head_dim; at += LANES) {
        const floats numbers = load_some(query + at, at_most_lanes(head_dim - at), 0.0f);
        levels[at / LANES] = __builtin_convertvector(rounded_product(numbers, spread(inverse), 0.0f), shorts);
    }
    return largest / QUERY_LEVELS;
}

/* sums[i] += a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1] */
ALWAYS_INLINE half_ints multiply_pairs(half_ints sums, shorts a, shorts b) {
#if defined(__AVX2__)
    return (half_ints)dot_pairs((__m256i)sums, (__m256i)a, (__m256i)b);
#else
    for (int lane = 0; lane < LANES / 2; lane++) {
        sums[lane] += a[2 * lane] * b[2 * lane] + a[2 * lane + 1] * b[2 * lane + 1];
    }
    return sums;
#endif
}

/* The sum of each vector's numbers. */
ALWAYS_INLINE quarter_ints int_sums_of_four(half_ints a, half_ints b, half_ints c, half_ints d) {
    const half_ints ab = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13) +
                         __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
    const half_ints cd = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13) +
                         __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
    const half_ints all = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) +
                          __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(all, all, 0, 1, 2, 3) + __builtin_shufflevector(all, all, 4, 5, 6, 7);
}

/* Offsets of up to four positions, the last of `left` again after the end: the memory may end there. */
typedef struct {
    int64_t of[4];
} Offsets;

ALWAYS_INLINE Offsets four_offsets(int64_t left, int64_t width) {
    Offsets offsets;
    for (int i = 0; i < 4; i++) offsets.of[i] = (i < left ? i : left - 1) * width;
    return offsets;
}

/* Write the products of a query with four keys. */
ALWAYS_INLINE void score_four(const shorts *query, const int8_t *keys, Offsets offsets, int64_t head_dim, float scale,
                              float *scores) {
    half_ints products[4];
    for (int i = 0; i < 4; i++) {
        products[i] = (half_ints){0};
        for (int64_t at = 0; at < head_dim; at += LANES) {
            bytes key = {0};
            memcpy(&key, keys + offsets.of[i] + at, (size_t)at_most_lanes(head_dim - at));
            products[i] = multiply_pairs(products[i], query[at / LANES], __builtin_convertvector(key, shorts));
        }
    }
    const quarter_floats found = __builtin_convertvector(
        int_sums_of_four(products[0], products[1], products[2], products[3]), quarter_floats) * scale;
    memcpy(scores, &found, sizeof found);
}

/* Replace `scores` [length] by the levels of their exponentials, in two parts, and return the sum of the levels. The memory
 * of all three must hold whole vectors; parts after `length` become zero. */
ALWAYS_INLINE int32_t share_out(float *scores, int64_t length, uint8_t *high, uint8_t *low) {
    const float none = -__builtin_inff();
    store(scores + length, spread(none));
    floats largest = load(scores);
    for (int64_t at = LANES; at < length; at += LANES) largest = larger(largest, load(scores + at));
    const floats maximum = spread(largest_of(largest));
    ints total = {0};
    for (int64_t at = 0; at < length; at += LANES) {
        const ints levels =
            rounded_product(exponential(load(scores + at) - maximum), spread(SHARE_LEVELS), 0.0f) & SHARE_MASK;
        total += levels;
        const bytes high_part = __builtin_convertvector(levels >> LOW_BITS, bytes);
        const bytes low_part = __builtin_convertvector(levels & LOW_MASK, bytes);
        memcpy(high + at, &high_part, LANES);
        memcpy(low + at, &low_part, LANES);
    }
    return __builtin_reduce_add(total);
}

/* Sums of WIDE channels: in each, four channels of every sixteen, as interleaving leaves them. */
typedef struct {
    wide_ints high[4], low[4];
} Sums;

#if defined(__AVX2__)
/* sums[i] += the product of four shares, the same for all lanes, with four numbers of lane i. */
ALWAYS_INLINE wide_ints add_products(wide_ints sums, int32_t shares, wide numbers) {
#if defined(__AVX512VNNI__)
    return (wide_ints)_mm512_dpbusd_epi32((__m512i)sums, _mm512_set1_epi32(shares), (__m512i)numbers);
#else
    return (wide_ints)dot_bytes((__m256i)sums, _mm256_set1_epi32(shares), (__m256i)numbers);
#endif
}
#endif

/* Add the first `count` of WIDE channels of four values, times their shares. */
ALWAYS_INLINE void add_four(Sums *sums, const int8_t *from, Offsets offsets, int64_t count, const uint8_t *high_shares,
                            const uint8_t *low_shares) {
    int32_t high, low;
    memcpy(&high, high_shares, sizeof high);
    memcpy(&low, low_shares, sizeof low);
    wide values[4];
    for (int i = 0; i < 4; i++) {
        values[i] = (wide){0};
        memcpy(&values[i], from + offsets.of[i], (size_t)count);
    }
#if defined(__AVX2__)
    const wide first[2] = {INTERLEAVE(lo, 8, values[0], values[1]), INTERLEAVE(hi, 8, values[0], values[1])};
    const wide second[2] = {INTERLEAVE(lo, 8, values[2], values[3]), INTERLEAVE(hi, 8, values[2], values[3])};
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; half++) {
        const wide low_channels = INTERLEAVE(lo, 16, first[half], second[half]);
        const wide high_channels = INTERLEAVE(hi, 16, first[half], second[half]);
        sums->high[2 * half] = add_products(sums->high[2 * half], high, low_channels);
        sums->low[2 * half] = add_products(sums->low[2 * half], low, low_channels);
        sums->high[2 * half + 1] = add_products(sums->high[2 * half + 1], high, high_channels);
        sums->low[2 * half + 1] = add_products(sums->low[2 * half + 1], low, high_channels);
    }
#else
    for (int i = 0; i < 4; i++) {
        for (int channel = 0; channel < WIDE; channel++) {
            sums->high[channel / 4][channel % 4] += (high >> 8 * i & 0xff) * values[i][channel];
            sums->low[channel / 4][channel % 4] += (low >> 8 * i & 0xff) * values[i][channel];
        }
    }
#endif
}

ALWAYS_INLINE void write_channels(const Sums *sums, float scale, int64_t count, float *output) {
#pragma clang loop unroll(full)
    for (int part = 0; part < 4; part++) {
        const wide_floats high = __builtin_convertvector(sums->high[part], wide_floats);
        const wide_floats low = __builtin_convertvector(sums->low[part], wide_floats);
        const wide_floats value = (high * (float)(1 << LOW_BITS) + low) * scale;
#pragma clang loop unroll(full)
        for (int64_t group = 0; group < WIDE / LANES; group++) {
            const int64_t channel = group * LANES + part * 4, left = count - channel;
            if (left >= 4) {
                memcpy(output + channel, (const float *)&value + group * 4, 4 * sizeof(float));
            } else if (left > 0) {
                memcpy(output + channel, (const float *)&value + group * 4, (size_t)left * sizeof(float));
            }
        }
    }
}

/* The scratch memory of a row. Each head's part is followed by the next head's. */
typedef struct {
    shorts *queries;     /* [heads, head_dim], in whole vectors */
    float *query_steps;  /* [heads] value of one level */
    int32_t *totals;     /* [heads] sum of levels */
    float *scores;       /* [heads, padded_length] */
    uint8_t *high, *low; /* the same */
    int64_t query_vectors, padded_length;
} Parts;

/* ATTENTION_SCRATCH is the size of all parts. */
ALWAYS_INLINE Parts divide_scratch(void *scratch, int64_t heads, int64_t head_dim, int64_t length) {
    Parts parts = {.query_vectors = ROUND_UP(head_dim, LANES) / LANES, .padded_length = PADDED_LENGTH(length)};
    parts.queries = scratch;
    parts.query_steps = (float *)(parts.queries + heads * parts.query_vectors);
    parts.totals = (int32_t *)(parts.query_steps + heads);
    parts.scores = (float *)(parts.totals + heads);
    parts.high = (uint8_t *)(parts.scores + heads * parts.padded_length);
    parts.low = parts.high + heads * parts.padded_length;
    return parts;
}

/* The products of a query with all keys, `width` bytes apart. `head_dim` is a constant where this and the next are inlined
 * for usual sizes. */
ALWAYS_INLINE void score_keys(const shorts *query, const int8_t *keys, int64_t width, int64_t head_dim, int64_t length,
                              float scale, const int8_t *next_keys, int64_t next_length, float *scores) {
    int64_t position = 0;
    for (; position + 4 <= length; position += 4) {
        fetch_four(next_keys, position, next_length, width, head_dim);
        score_four(query, keys + position * width, four_offsets(4, width), head_dim, scale, scores + position);
    }
    if (position == length) return;
    fetch_four(next_keys, position, next_length, width, head_dim);
    const Offsets rest = four_offsets(length - position, width);
    score_four(query, keys + position * width, rest, head_dim, scale, scores + position);
}

/* The sum of all values, times their shares. */
ALWAYS_INLINE void sum_values(const uint8_t *high, const uint8_t *low, const int8_t *values, int64_t width,
                              int64_t head_dim, int64_t length, float scale, const int8_t *next_values,
                              int64_t next_length, float *output) {
    for (int64_t at = 0; at < head_dim; at += WIDE, values += WIDE) {
        const int64_t count = head_dim - at < WIDE ? head_dim - at : WIDE;
        const int64_t fetched = at == 0 ? next_length : 0;
        Sums sums = {0};
        int64_t position = 0;
        for (; position + 4 <= length; position += 4) {
            fetch_four(next_values, position, fetched, width, head_dim);
            add_four(&sums, values + position * width, four_offsets(4, width), count, high + position, low + position);
        }
        if (position < length) {
            fetch_four(next_values, position, fetched, width, head_dim);
            const Offsets rest = four_offsets(length - position, width);
            add_four(&sums, values + position * width, rest, count, high + position, low + position);
        }
        write_channels(&sums, scale, count, output + at);
    }
}

/* All heads do the same part of the work before the next part: its steps wait for each other. */
ALWAYS_INLINE void attend_heads(const CachedAttention *attention, int64_t head_dim, const float *query, CachedRow row,
                                CachedRow next, void *scratch, float *output) {
    const int64_t heads = attention->heads, width = heads * head_dim, length = row.length;
    const Parts parts = divide_scratch(scratch, heads, head_dim, length);
    const float scale = attention->scale * attention->step;
    for (int64_t head = 0; head < heads; head++) {
        parts.query_steps[head] =
            quantize_query(query + head * head_dim, head_dim, parts.queries + head * parts.query_vectors);
    }
    for (int64_t head = 0; head < heads; head++) {
        score_keys(parts.queries + head * parts.query_vectors, row.keys + head * head_dim, width, head_dim, length,
                   parts.query_steps[head] * scale, next.keys + head * head_dim, next.length,
                   parts.scores + head * parts.padded_length);
    }
    for (int64_t head = 0; head < heads; head++) {
        float *scores = parts.scores + head * parts.padded_length;
        if (attention->biases) {
            add_biases(scores, attention->biases + (head + 1) * attention->num_biases - length, length);
        }
        parts.totals[head] = share_out(scores, length, parts.high + head * parts.padded_length,
                                       parts.low + head * parts.padded_length);
    }
    for (int64_t head = 0; head < heads; head++) {
        /* A query that is not finite has no result: 0 times its level is NaN. */
        const float value_scale = attention->step / (float)parts.totals[head] + 0.0f * parts.query_steps[head];
        sum_values(parts.high + head * parts.padded_length, parts.low + head * parts.padded_length,
                   row.values + head * head_dim, width, head_dim, length, value_scale, next.values + head * head_dim,
                   next.length, output + head * head_dim);
    }
}

static void attend(const CachedAttention *attention, const float *query, CachedRow row, CachedRow next, void *scratch,
                   float *output) {
    if (attention->head_dim == 64) {
        attend_heads(attention, 64, query, row, next, scratch, output);
    } else if (attention->head_dim == 32) {
        attend_heads(attention, 32, query, row, next, scratch, output);
    } else {
        attend_heads(attention, attention->head_dim, query, row, next, scratch, output);
    }
}

#endif
