/* Products of rows with listed columns, for registers of 256 bits; listed_product.h has all others.
 *
 * What belongs to sixteen columns is put together in registers. A loop over their lanes, as for masks of AVX-512,
 * goes through memory here, and each number waits for the one before it. */
#ifndef KVASIR_LISTED_AVX2_H
#define KVASIR_LISTED_AVX2_H

#include "product.h"

/* Columns are multiplied while those that are this many further on are requested: they are anywhere in memory. */
#define AHEAD 12

ALWAYS_INLINE __m256i multiply_half_line(__m256i sums, const uint8_t *row, const int8_t *column) {
    return dot_bytes(sums, _mm256_loadu_si256((const __m256i *)row), _mm256_loadu_si256((const __m256i *)column));
}

/* Return four products: of one row with four columns, or of four rows with one column. The lines of the columns `ahead` are
 * requested. */
ALWAYS_INLINE __m128i multiply_four_pairs(const uint8_t *const *rows, const int8_t *const *columns,
                                          const int8_t *const *ahead, int num_ahead, int64_t width) {
    __m256i sums[4];
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++) sums[i] = _mm256_setzero_si256();
    for (int64_t input = 0; input < width; input += CACHE_LINE) {
#pragma clang loop unroll(full)
        for (int i = 0; i < num_ahead; i++) __builtin_prefetch(ahead[i] + input);
#pragma clang loop unroll(full)
        for (int i = 0; i < 4; i++) {
            sums[i] = multiply_half_line(sums[i], rows[i] + input, columns[i] + input);
            sums[i] = multiply_half_line(sums[i], rows[i] + input + 32, columns[i] + input + 32);
        }
    }
    const __m256i added = _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
    return _mm_add_epi32(_mm256_castsi256_si128(added), _mm256_extracti128_si256(added, 1));
}

#define OF_SIXTEEN(numbers, at)                                                                                    \
    {                                                                                                              \
        numbers[at[0]], numbers[at[1]], numbers[at[2]], numbers[at[3]], numbers[at[4]], numbers[at[5]],            \
            numbers[at[6]], numbers[at[7]], numbers[at[8]], numbers[at[9]], numbers[at[10]], numbers[at[11]],      \
            numbers[at[12]], numbers[at[13]], numbers[at[14]], numbers[at[15]]                                     \
    }

/* `is_alone`, which is a constant where this is inlined: there is one row. */
ALWAYS_INLINE void multiply_listed_chunk(const Linear *linear, const int8_t *by_column, int64_t width, const int64_t *rows,
                                         int64_t num_rows, const int32_t *columns, int64_t count, float *output,
                                         int64_t stride, int is_alone) {
    const int together = is_alone ? 4 : 1; /* columns */
    const uint8_t *from[LISTED_ROWS];
    for (int64_t i = 0; i < LISTED_ROWS; i++) {
        from[i] = linear->quantized + rows[i < num_rows ? i : num_rows - 1] * linear->inputs;
    }
    for (int64_t first = 0; first < count; first += LANES) {
        const int64_t here = at_most_lanes(count - first);
        /* The last column stands in for those behind the end. */
        int32_t at[LANES + AHEAD];
        for (int64_t i = 0; i < LANES + AHEAD; i++) at[i] = columns[first + i < count ? first + i : count - 1];
        int32_t sums[LISTED_ROWS][LANES] __attribute__((aligned(CACHE_LINE)));
        for (int lane = 0; lane < LANES; lane += together) {
            const int8_t *column[4], *ahead[4];
#pragma clang loop unroll(full)
            for (int i = 0; i < 4; i++) {
                column[i] = by_column + at[is_alone ? lane + i : lane] * width;
                ahead[i] = by_column + at[is_alone ? lane + AHEAD + i : lane + AHEAD] * width;
            }
            const uint8_t *alone[4] = {from[0], from[0], from[0], from[0]};
            const __m128i found = multiply_four_pairs(is_alone ? alone : from, column, ahead, together, width);
            if (is_alone) {
                memcpy(&sums[0][lane], &found, sizeof found);
            } else {
                int32_t each[4];
                memcpy(each, &found, sizeof each);
#pragma clang loop unroll(full)
                for (int i = 0; i < 4; i++) sums[i][lane] = each[i];
            }
        }
        ListedColumns of_columns = {OF_SIXTEEN(linear->sums, at), OF_SIXTEEN(linear->scales, at), OF_SIXTEEN(linear->bias, at)};
        of_columns.of_zero_point *= -linear->zero_point;
        for (int64_t i = 0; i < (is_alone ? 1 : num_rows); i++) {
            ints of_row;
            memcpy(&of_row, sums[i], sizeof of_row);
            write_listed(linear, &of_columns, of_row, rows[i], here, output + i * stride + first);
        }
    }
}

static void multiply_listed(const Linear *linear, const int8_t *by_column, int64_t width, const int64_t *rows,
                                 int64_t num_rows, const int32_t *columns, int64_t count, float *output, int64_t stride) {
    if (num_rows == 1) {
        multiply_listed_chunk(linear, by_column, width, rows, 1, columns, count, output, stride, 1);
    } else {
        multiply_listed_chunk(linear, by_column, width, rows, num_rows, columns, count, output, stride, 0);
    }
}

#endif
