/* Products of rows with listed columns; listed_avx2.h has those for registers of 256 bits. */
#ifndef KVASIR_LISTED_PRODUCT_H
#define KVASIR_LISTED_PRODUCT_H

#include "product.h"

typedef int32_t Four __attribute__((vector_size(16)));

/* How many columns ahead a listed column is prefetched: they are anywhere in memory. A row alone is done with a column
 * before the next ones are there, so its columns wait in the second-level cache. */
#define COLUMNS_AHEAD_OF_ROWS 12
#define COLUMNS_AHEAD_OF_ROW 40

/* Four sums at once: the sum of each vector's numbers. */
ALWAYS_INLINE Four sums_of_four_ints(ints a, ints b, ints c, ints d) {
    const ints ab = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
                    __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    const ints cd = __builtin_shufflevector(c, d, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29) +
                    __builtin_shufflevector(c, d, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    ints all = __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
               __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    all += __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    all += __builtin_shufflevector(all, all, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    return __builtin_shufflevector(all, all, 0, 1, 2, 3);
}

ALWAYS_INLINE ListedColumns read_listed(const Linear *linear, const int32_t *columns, int64_t count) {
    ListedColumns found = {{0}, {0}, {0}};
    for (int64_t lane = 0; lane < count; lane++) {
        const int64_t index = columns[lane];
        found.of_zero_point[lane] = linear->sums[index];
        found.scales[lane] = linear->scales[index];
        found.bias[lane] = linear->bias[index];
    }
    found.of_zero_point *= LOST - linear->zero_point;
    return found;
}

ALWAYS_INLINE void fetch_column(const int8_t *column, int64_t width, int64_t num_rows) {
    for (int64_t input = 0; input < width; input += CACHE_LINE) {
        if (num_rows == 1) {
            __builtin_prefetch(column + input, 0, 2);
        } else {
            __builtin_prefetch(column + input);
        }
    }
}

/* `num_rows` is the constant 1 in one of the two places where this is inlined. */
ALWAYS_INLINE void multiply_listed_rows(const Linear *linear, const int8_t *by_column, int64_t width, const int64_t *rows,
                                        int64_t num_rows, const int32_t *columns, int64_t count, float *output,
                                        int64_t stride) {
    const uint8_t *from[LISTED_ROWS];
    for (int64_t i = 0; i < LISTED_ROWS; i++) {
        from[i] = linear->quantized + rows[i < num_rows ? i : num_rows - 1] * linear->inputs;
    }
    const int64_t ahead = num_rows == 1 ? COLUMNS_AHEAD_OF_ROW : COLUMNS_AHEAD_OF_ROWS;
    for (int64_t at = 0; at < count; at += LANES) {
        const int64_t here = at_most_lanes(count - at);
        ints sums[LISTED_ROWS] = {{0}};
        /* One row with four columns, or four rows with each column: sums are added up in fours. */
        for (int64_t lane = 0; lane < here; lane += num_rows == 1 ? 4 : 1) {
            const int8_t *column[4];
            for (int64_t i = 0; i < 4; i++) {
                const int64_t place = num_rows > 1 ? lane : lane + i < here ? lane + i : here - 1;
                column[i] = by_column + columns[at + place] * width;
                if (at + place + ahead < count && (i == 0 || num_rows == 1)) {
                    fetch_column(by_column + columns[at + place + ahead] * width, width, num_rows);
                }
            }
            ints products[4] = {{0}};
            for (int64_t input = 0; input < width; input += CACHE_LINE) {
#pragma clang loop unroll(full)
                for (int i = 0; i < 4; i++) {
                    products[i] = multiply_line(products[i], from[i] + input, column[i] + input);
                }
            }
            const Four found = sums_of_four_ints(products[0], products[1], products[2], products[3]);
            if (num_rows == 1) {
                memcpy((int32_t *)&sums[0] + lane, &found, sizeof found);
            } else {
                for (int i = 0; i < LISTED_ROWS; i++) sums[i][lane] = found[i];
            }
        }
        const ListedColumns of_columns = read_listed(linear, columns + at, here);
        for (int64_t i = 0; i < num_rows; i++) {
            write_listed(linear, &of_columns, sums[i], rows[i], here, output + i * stride + at);
        }
    }
}

static void multiply_listed(const Linear *linear, const int8_t *by_column, int64_t width, const int64_t *rows,
                            int64_t num_rows, const int32_t *columns, int64_t count, float *output, int64_t stride) {
    if (num_rows == 1) {
        multiply_listed_rows(linear, by_column, width, rows, 1, columns, count, output, stride);
    } else {
        multiply_listed_rows(linear, by_column, width, rows, num_rows, columns, count, output, stride);
    }
}

#endif
