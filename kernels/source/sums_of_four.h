/* Products for processors with AVX2 and one unit for integer multiplications, where both multiplications of dot_bytes wait
 * for the same unit. Included by product.h.
 *
 * Four products are added in sixteen bits before the second multiplication, so that there are half as many of these. For
 * that, 128 is taken off the numbers of rows, which leaves -127 to 127: four products fit if the magnitudes of their weights
 * are LARGEST_SUM together at most. Sums of sixteen bits wrap around, so 128 times the weights is taken off afterwards. */
#ifndef KVASIR_SUMS_OF_FOUR_H
#define KVASIR_SUMS_OF_FOUR_H

#include "dot_products.h"
#include "kernels.h"

#define ROWS_IN_EIGHTS 8 /* 8 sums, 2 columns, 2 numbers of a row, offsets, products, ones: 15 of 16 registers */
#define MAX_INPUTS_IN_EIGHTS 4096
#define LARGEST_SUM 258 /* 127 * 258 = 32766 */

/* Numbers for 16 columns: eight in each half, of 32 or two times 16 bits. */
typedef __m256i Halves[2];

/* What belongs to 16 columns, besides their weights. Inputs are taken in eights. */
typedef struct {
    Halves offsets[MAX_INPUTS_IN_EIGHTS / 8];    /* 128 times the sums of four weights */
    int32_t large[MAX_INPUTS_IN_EIGHTS / 8 + 1]; /* the eights whose sums might not fit; then the number of eights */
} Eights;

ALWAYS_INLINE __m256i products_of_four(__m256i numbers, const int8_t *columns) {
    return _mm256_maddubs_epi16(numbers, _mm256_loadu_si256((const __m256i *)columns));
}

/* Sums of four products, of eight inputs with half of 16 columns. */
ALWAYS_INLINE __m256i products_of_eight(__m256i first, __m256i last, const int8_t *columns) {
    return _mm256_add_epi16(products_of_four(first, columns), products_of_four(last, columns + 4 * PANEL_COLUMNS));
}

/* Whether the magnitudes of four weights are more than LARGEST_SUM anywhere in half of 16 columns. */
ALWAYS_INLINE int has_large_sums(const int8_t *columns) {
    const __m256i first = _mm256_abs_epi8(_mm256_loadu_si256((const __m256i *)columns)),
                  last = _mm256_abs_epi8(_mm256_loadu_si256((const __m256i *)(columns + 4 * PANEL_COLUMNS))),
                  ones = _mm256_set1_epi8(1);
    const __m256i sums = _mm256_add_epi16(_mm256_maddubs_epi16(ones, first), _mm256_maddubs_epi16(ones, last));
    return _mm256_movemask_epi8(_mm256_cmpgt_epi16(sums, _mm256_set1_epi16(LARGEST_SUM))) != 0;
}

ALWAYS_INLINE void find_eights(const int8_t *columns, int64_t inputs, Eights *eights) {
    const __m256i zero_point = _mm256_set1_epi8((char)128);
    int32_t eight = 0, num_large = 0;
    for (; eight < inputs / 8; eight++, columns += 8 * PANEL_COLUMNS) {
        for (int half = 0; half < 2; half++) {
            eights->offsets[eight][half] = products_of_eight(zero_point, zero_point, columns + 32 * half);
        }
        if (has_large_sums(columns) || has_large_sums(columns + 32)) eights->large[num_large++] = eight;
    }
    eights->large[num_large] = eight;
}

ALWAYS_INLINE __m256i add_pairs(__m256i sums, __m256i pairs, __m256i offsets) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_sub_epi16(pairs, offsets), _mm256_set1_epi16(1)));
}

/* Products of ROWS_IN_EIGHTS rows with half of 16 columns, 128 taken off the rows' numbers. `inputs` is a multiple of eight. */
ALWAYS_INLINE void multiply_eights(const uint8_t *rows, int64_t inputs, const int8_t *columns, const Eights *eights, int half,
                                   Halves *products) {
    __m256i sums[ROWS_IN_EIGHTS];
#pragma clang loop unroll(full)
    for (int row = 0; row < ROWS_IN_EIGHTS; row++) sums[row] = _mm256_setzero_si256();
    const int32_t *large = eights->large;
    columns += 32 * half;
    for (int64_t eight = 0;; eight++, large++) {
        for (; eight < *large; eight++) {
#pragma clang loop unroll(full)
            for (int row = 0; row < ROWS_IN_EIGHTS; row++) {
                int32_t numbers[2];
                memcpy(numbers, rows + row * inputs + 8 * eight, sizeof numbers);
                const __m256i pairs = products_of_eight(_mm256_set1_epi32(numbers[0]), _mm256_set1_epi32(numbers[1]),
                                                        columns + 8 * eight * PANEL_COLUMNS);
                sums[row] = add_pairs(sums[row], pairs, eights->offsets[eight][half]);
            }
        }
        if (eight == inputs / 8) break;
        for (int64_t input = 8 * eight; input < 8 * eight + 8; input += 4) {
            const int8_t *weights = columns + input * PANEL_COLUMNS;
            const __m256i offsets = products_of_four(_mm256_set1_epi8((char)128), weights);
#pragma clang loop unroll(full)
            for (int row = 0; row < ROWS_IN_EIGHTS; row++) {
                int32_t numbers;
                memcpy(&numbers, rows + row * inputs + input, sizeof numbers);
                sums[row] = add_pairs(sums[row], products_of_four(_mm256_set1_epi32(numbers), weights), offsets);
            }
        }
    }
#pragma clang loop unroll(full)
    for (int row = 0; row < ROWS_IN_EIGHTS; row++) products[row][half] = sums[row];
}

#endif
