/* Products of rows with listed columns. */
#ifndef KVASIR_LISTED_PRODUCT_H
#define KVASIR_LISTED_PRODUCT_H

#include "product.h"

typedef int32_t quarter_ints __attribute__((vector_size(LANES)));

/* Columns are multiplied while those that are this many further on are requested: they are anywhere in memory. With AVX-512 a
 * row alone is done with a column before the next ones are there, so they wait in the second-level cache. */
#define COLUMNS_AHEAD 12
#if defined(__AVX512VNNI__)
#define COLUMNS_AHEAD_OF_ROW 40
#define LEVEL_AHEAD_OF_ROW 2
#else
#define COLUMNS_AHEAD_OF_ROW COLUMNS_AHEAD
#define LEVEL_AHEAD_OF_ROW 3
#endif

/* Four products of rows with columns. The lines of the first columns `ahead` are requested. Loops over lanes would go through
 * memory. */
ALWAYS_INLINE quarter_ints multiply_four_pairs(const uint8_t *const *rows, const int8_t *const *columns,
                                               const int8_t *const *ahead, int num_ahead, int64_t width) {
#if defined(__AVX2__) && !defined(__AVX512VNNI__)
    __m256i sums[4];
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++) sums[i] = _mm256_setzero_si256();
#else
    ints sums[4] = {{0}};
#endif
    for (int64_t input = 0; input < width; input += CACHE_LINE) {
#pragma clang loop unroll(full)
        for (int i = 0; i < num_ahead; i++) {
            if (num_ahead == 1) {
                __builtin_prefetch(ahead[i] + input);
            } else {
                __builtin_prefetch(ahead[i] + input, 0, LEVEL_AHEAD_OF_ROW);
            }
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < 4; i++) {
#if defined(__AVX2__) && !defined(__AVX512VNNI__)
#pragma clang loop unroll(full)
            for (int half = 0; half < CACHE_LINE; half += CACHE_LINE / 2) {
                sums[i] = dot_bytes(sums[i], _mm256_loadu_si256((const __m256i *)(rows[i] + input + half)),
                                    _mm256_loadu_si256((const __m256i *)(columns[i] + input + half)));
            }
#else
            sums[i] = multiply_line(sums[i], rows[i] + input, columns[i] + input);
#endif
        }
    }
#if defined(__AVX2__) && !defined(__AVX512VNNI__)
    const __m256i added = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
    return (quarter_ints)_mm_add_epi32(_mm256_castsi256_si128(added), _mm256_extracti128_si256(added, 1));
#else
    const ints ab = __builtin_shufflevector(sums[0], sums[1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
                    __builtin_shufflevector(sums[0], sums[1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    const ints cd = __builtin_shufflevector(sums[2], sums[3], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
                    __builtin_shufflevector(sums[2], sums[3], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    ints all = __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
               __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    all += __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    all += __builtin_shufflevector(all, all, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    return __builtin_shufflevector(all, all, 0, 1, 2, 3);
#endif
}

/* Swap rows and columns of four times four numbers. */
ALWAYS_INLINE void transpose(quarter_ints *numbers) {
    const quarter_ints low_ab = __builtin_shufflevector(numbers[0], numbers[1], 0, 4, 1, 5);
    const quarter_ints low_cd = __builtin_shufflevector(numbers[2], numbers[3], 0, 4, 1, 5);
    const quarter_ints high_ab = __builtin_shufflevector(numbers[0], numbers[1], 2, 6, 3, 7);
    const quarter_ints high_cd = __builtin_shufflevector(numbers[2], numbers[3], 2, 6, 3, 7);
    numbers[0] = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);
    numbers[1] = __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7);
    numbers[2] = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
    numbers[3] = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7);
}

/* `num_rows` is the constant 1 in one of the two places where this is inlined. */
ALWAYS_INLINE void multiply_listed_rows(const Linear *linear, const ColumnMatrix *matrix, const int64_t *rows,
                                        int64_t num_rows, const int32_t *columns, int64_t count, float *output,
                                        int64_t stride) {
    const int64_t num_ahead = num_rows == 1 ? COLUMNS_AHEAD_OF_ROW : COLUMNS_AHEAD, width = matrix->width;
    const uint8_t *from[LISTED_ROWS];
    for (int64_t i = 0; i < LISTED_ROWS; i++) {
        from[i] = linear->quantized + rows[i < num_rows ? i : num_rows - 1] * linear->inputs;
    }
    for (int64_t at = 0; at < count; at += 4) {
        const int8_t *column[4], *ahead[4];
        quarter_ints factors[4], sums[4];
#pragma clang loop unroll(full)
        for (int i = 0; i < 4; i++) {
            /* The last column stands in for those behind the end. */
            const int64_t place = at + i < count ? at + i : count - 1;
            const int64_t further = place + num_ahead < count ? place + num_ahead : count - 1;
            column[i] = matrix->weights + columns[place] * width;
            ahead[i] = matrix->weights + columns[further] * width;
            memcpy(&factors[i], matrix->factors + columns[place], sizeof factors[i]);
        }
        transpose(factors);
        const quarter_floats scales = (quarter_floats)factors[0], bias = (quarter_floats)factors[1];
        const quarter_ints of_zero_point = factors[2] * (LOST - linear->zero_point);
        if (num_rows == 1) {
            sums[0] = multiply_four_pairs(from, column, ahead, 4, width);
        } else {
#pragma clang loop unroll(full)
            for (int i = 0; i < 4; i++) {
                const int8_t *const same[4] = {column[i], column[i], column[i], column[i]};
                sums[i] = multiply_four_pairs(from, same, ahead + i, 1, width);
            }
            transpose(sums);
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < LISTED_ROWS; i++) {
            if (i >= num_rows) break;
            const quarter_floats value = __builtin_convertvector(sums[i] + of_zero_point, quarter_floats);
            const float row_scale = linear->row_scales[rows[i]];
            const quarter_floats row_scales = {row_scale, row_scale, row_scale, row_scale};
            const quarter_floats found = __builtin_elementwise_fma(value, scales * row_scales, bias);
            memcpy(output + i * stride + at, &found, sizeof found);
        }
    }
}

static void multiply_listed(const Linear *linear, const ColumnMatrix *matrix, const int64_t *rows, int64_t num_rows,
                            const int32_t *columns, int64_t count, float *output, int64_t stride) {
    if (num_rows == 1) {
        multiply_listed_rows(linear, matrix, rows, 1, columns, count, output, stride);
    } else {
        multiply_listed_rows(linear, matrix, rows, num_rows, columns, count, output, stride);
    }
}

#endif
