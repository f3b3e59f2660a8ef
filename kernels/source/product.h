/* Products of quantised rows with an int8 matrix, with bias, ReLU and residual.
 *
 * GROUPS x 16 columns of ROWS rows are summed in registers at once. */
#ifndef KVASIR_PRODUCT_H
#define KVASIR_PRODUCT_H

#include "dot_products.h"
#include "kernels.h"
#include "vectors.h"

/* SPARSE_GROUPS is the number of groups that rows take which skip inputs. */
#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define ROWS 6   /* 6 x 4 sums, 4 columns, 1 number of each row: 29 of 32 registers */
#define GROUPS 4
#define SPARSE_GROUPS 4
#elif defined(__AVXVNNI__)
#define ROWS 6   /* 6 x 2 sums, 2 columns, 1 number of each row: 15 of 16 registers */
#define GROUPS 1
#define SPARSE_GROUPS 2
#define STREAMS 1
#elif defined(__AVX2__)
#define ROWS 4   /* 4 x 2 sums, 1 number of each row, columns, products, ones: 15 of 16 registers */
#define GROUPS 1
#define SPARSE_GROUPS 2
#define STREAMS 1
#elif defined(__ARM_FEATURE_DOTPROD)
#define ROWS 6   /* 6 x 4 sums, 4 columns, 1 number of each row, what is taken off it: 30 of 32 registers */
#define GROUPS 1
#define SPARSE_GROUPS 2
#else
#define ROWS 1
#define GROUPS 1
#define SPARSE_GROUPS 1
#endif

#if defined(ONE_MULTIPLIER)
#include "sums_of_four.h"
#endif

#define PANEL_GROUPS (PANEL_COLUMNS / LANES)

/* With one group, each line of 64 bytes that is read is 256 bytes after the one before, which a processor does not foresee.
 * Up to STREAM_ROWS rows take more groups at once and prefetch what is STREAM_AHEAD bytes further. Fewer than MANY_ROWS rows
 * prefetch a line with every four inputs: all requests of a block at once would keep its products waiting. */
#if defined(STREAMS)
#define STREAM_AHEAD 4096
#define STREAM_ROWS 3
#define MANY_ROWS 16
#endif

/* The cache that fetch_groups fills: 3 is the first level and 2 the second, where more requests can wait. */
#if defined(__AVX512VNNI__)
#define FETCH_INTO 2
#else
#define FETCH_INTO 3
#endif

/* Rows that skip inputs together. More rows have fewer zeros in common; a single one waits for its weights. */
#define SPARSE_ROWS (ROWS < 2 ? ROWS : 2)

/* What belongs to 16 columns. `width` of them exist, which can be zero or less. */
typedef struct {
    int64_t width;
    ints of_zero_point; /* added to the sums */
    floats scales, bias;
} Columns;

ALWAYS_INLINE Columns read_columns(const Linear *linear, int64_t at, int is_whole) {
    Columns columns = {.width = is_whole ? LANES : at_most_lanes(linear->outputs - at)};
    if (columns.width <= 0) return columns;
    memcpy(&columns.of_zero_point, linear->sums + at, (size_t)columns.width * sizeof(int32_t));
    columns.of_zero_point *= LOST - linear->zero_point;
    columns.scales = load_some(linear->scales + at, columns.width, 0.0f);
    columns.bias = load_some(linear->bias + at, columns.width, 0.0f);
    return columns;
}

/* Write a row's numbers in 16 columns from `at` on, from their sums. */
ALWAYS_INLINE void write_sums(const Linear *linear, const Columns *columns, ints sums, int64_t row, int64_t at, int relu,
                              int residual) {
    const int64_t index = row * linear->stride + at;
    floats value = __builtin_convertvector(sums, floats);
    value = multiply_add(value, columns->scales * spread(linear->row_scales[row]), columns->bias);
    if (relu) value = larger(value, spread(0.0f));
    if (residual) value += load_some(linear->residual + index, columns->width, 0.0f);
    store_some(linear->output + index, value, columns->width);
}

/* Prefetch four inputs of `groups` x 16 columns. After the end of a matrix this has no effect. */
ALWAYS_INLINE void fetch_groups(const int8_t *columns, int groups) {
#pragma clang loop unroll(full)
    for (int group = 0; group < groups; group++) __builtin_prefetch(columns + group * CACHE_LINE, 0, FETCH_INTO);
}

/* Add the products of four inputs of `count` rows with `groups` x 16 columns. */
ALWAYS_INLINE void multiply_inputs(const uint8_t *rows, int64_t inputs, const int8_t *columns, int count, int groups,
                                   ints (*sums)[PANEL_GROUPS]) {
#pragma clang loop unroll(full)
    for (int row = 0; row < count; row++) {
        int32_t numbers;
        memcpy(&numbers, rows + row * inputs, sizeof numbers);
#pragma clang loop unroll(full)
        for (int group = 0; group < groups; group++) {
            sums[row][group] = multiply_four(sums[row][group], numbers, columns + group * 4 * LANES);
        }
    }
}

/* `count` rows with `groups` x 16 columns of a panel from `column` on. Meanwhile as many columns at `ahead` are prefetched,
 * unless it is NULL: the first `fours_ahead` x 4 inputs, or all that are in `linear->used`. Before that `lines_ahead` lines
 * are, one with every four inputs; fours_ahead is 0 then. `count`, `groups`, `is_sparse` (inputs that are not in
 * `linear->used` are zero), `is_whole` (all columns exist), `relu` and `residual` are constants where this is inlined, and
 * `ahead` where it is NULL. */
ALWAYS_INLINE void multiply_rows(const Linear *linear, const int8_t *weight, const int8_t *ahead, int64_t lines_ahead,
                                 int64_t fours_ahead, int64_t first_row, int64_t column, int count, int groups, int is_sparse,
                                 int is_whole, int relu, int residual) {
    const int64_t inputs = linear->inputs, block = first_row / SPARSE_ROWS;
    const int32_t *used = is_sparse ? linear->used + block * (inputs / 4) : NULL;
    const int64_t num_fours = is_sparse ? linear->num_used[block] : inputs / 4;
    ints sums[ROWS][PANEL_GROUPS];
#pragma clang loop unroll(full)
    for (int group = 0; group < groups; group++) {
        const ints of_zero_point = read_columns(linear, column + group * LANES, is_whole).of_zero_point;
#pragma clang loop unroll(full)
        for (int row = 0; row < count; row++) sums[row][group] = of_zero_point;
    }
    const uint8_t *rows = linear->quantized + first_row * inputs;
    for (int64_t four = 0; four < lines_ahead; four++) {
        __builtin_prefetch(ahead + four * CACHE_LINE);
        multiply_inputs(rows + 4 * four, inputs, weight + 4 * four * PANEL_COLUMNS, count, groups, sums);
    }
    for (int64_t four = 0; four < fours_ahead; four++) {
        fetch_groups(ahead + 4 * four * PANEL_COLUMNS, groups);
        multiply_inputs(rows + 4 * four, inputs, weight + 4 * four * PANEL_COLUMNS, count, groups, sums);
    }
    for (int64_t four = lines_ahead + fours_ahead; four < num_fours; four++) {
        const int64_t input = 4 * (is_sparse ? used[four] : four);
        if (is_sparse && ahead) fetch_groups(ahead + input * PANEL_COLUMNS, groups);
        multiply_inputs(rows + input, inputs, weight + input * PANEL_COLUMNS, count, groups, sums);
    }
#pragma clang loop unroll(full)
    for (int group = 0; group < groups; group++) {
        const int64_t at = column + group * LANES;
        const Columns columns = read_columns(linear, at, is_whole);
        if (columns.width <= 0) return;
#pragma clang loop unroll(full)
        for (int row = 0; row < count; row++) {
            write_sums(linear, &columns, sums[row][group], first_row + row, at, relu, residual);
        }
    }
}

/* Prefetch one of `parts` parts of `groups` x 16 columns, while rows are multiplied with the columns before them. The
 * matrices of a step are larger than a second-level cache, and a processor has a limited number of requests in flight. */
ALWAYS_INLINE void fetch_part(const int8_t *columns, int64_t inputs, int groups, int64_t part, int64_t parts) {
    const int64_t fours = inputs / 4;
    for (int64_t four = fours * part / parts; four < fours * (part + 1) / parts; four++) {
        fetch_groups(columns + 4 * four * PANEL_COLUMNS, groups);
    }
}

/* Up to `most` rows; `most` is at most ROWS, and a constant where this is inlined. */
ALWAYS_INLINE void multiply_some_rows(const Linear *linear, const int8_t *weight, int64_t row, int64_t column, int64_t count,
                                      int64_t most, int groups, int is_sparse, int is_whole, int relu, int residual) {
#define CASE(number)                                                                                                   \
    case number:                                                                                                       \
        if (number <= most) {                                                                                          \
            multiply_rows(linear, weight, NULL, 0, 0, row, column, number, groups, is_sparse, is_whole, relu, residual);  \
        }                                                                                                              \
        break
    switch (count < most ? count : most) {
#if ROWS > 4
        CASE(6);
        CASE(5);
#endif
#if ROWS > 1
        CASE(4);
        CASE(3);
        CASE(2);
#endif
        CASE(1);
        default: break;
    }
#undef CASE
}

#if defined(STREAMS)
/* All whole blocks of rows, while what they need of the next columns is prefetched. Return the first row that is left. */
ALWAYS_INLINE int64_t multiply_blocks(const Linear *linear, const int8_t *weight, const int8_t *next, int64_t column,
                                      int groups, int is_sparse, int is_whole, int relu, int residual) {
    const int64_t most = is_sparse ? SPARSE_ROWS : ROWS, parts = linear->rows / most;
    const int64_t fours = is_sparse ? 0 : linear->inputs / 4;
    for (int64_t part = 0; part < parts; part++) {
        const int64_t first = fours * part / parts, end = fours * (part + 1) / parts;
        multiply_rows(linear, weight, next + 4 * first * PANEL_COLUMNS, 0, end - first, part * most, column, (int)most, groups,
                      is_sparse, is_whole, relu, residual);
    }
    return parts * most;
}
#elif defined(__AVX512VNNI__)
/* All whole blocks of rows, each with its part of the next panel: all requests of a block at once would keep its products
 * waiting. Many rows have a line with every four inputs, few rows four. Return the first row that is left. */
ALWAYS_INLINE int64_t multiply_blocks(const Linear *linear, const int8_t *weight, const int8_t *next, int64_t column,
                                      int is_whole, int relu, int residual) {
    const int64_t fours = linear->inputs / 4, parts = linear->rows / ROWS;
    for (int64_t part = 0; part < parts; part++) {
        const int64_t first = fours * part / parts, ahead = fours * (part + 1) / parts - first;
        const int8_t *from = next + 4 * first * PANEL_COLUMNS;
        if (PANEL_GROUPS * ahead <= fours) {
            multiply_rows(linear, weight, from, PANEL_GROUPS * ahead, 0, part * ROWS, column, ROWS, GROUPS, 0, is_whole, relu,
                          residual);
        } else {
            multiply_rows(linear, weight, from, 0, ahead, part * ROWS, column, ROWS, GROUPS, 0, is_whole, relu, residual);
        }
    }
    return parts * ROWS;
}
#endif

#if defined(ONE_MULTIPLIER)
/* All whole blocks of rows with 16 columns, four products at once. Return the first row that is left. */
ALWAYS_INLINE int64_t multiply_blocks_of_eights(const Linear *linear, const int8_t *weight, const int8_t *next, int64_t column,
                                               int relu, int residual) {
    const int64_t inputs = linear->inputs, parts = linear->rows / ROWS_IN_EIGHTS;
    Eights eights;
    find_eights(weight, inputs, &eights);
    const Columns columns = read_columns(linear, column, 1);
    for (int64_t part = 0; part < parts; part++) {
        if (next) fetch_part(next, inputs, 1, part, parts);
        ints sums[ROWS_IN_EIGHTS];
        for (int half = 0; half < 2; half++) {
            multiply_eights(linear->quantized + part * ROWS_IN_EIGHTS * inputs, inputs, weight, &eights, half, (Halves *)sums);
        }
#pragma clang loop unroll(full)
        for (int row = 0; row < ROWS_IN_EIGHTS; row++) {
            write_sums(linear, &columns, sums[row], part * ROWS_IN_EIGHTS + row, column, relu, residual);
        }
    }
    return parts * ROWS_IN_EIGHTS;
}
#endif

/* The rows from `row` on. `next` are the columns that are needed after these, or NULL. */
ALWAYS_INLINE void multiply_all_rows(const Linear *linear, const int8_t *weight, const int8_t *next, int64_t row,
                                     int64_t column, int groups, int is_sparse, int is_whole, int relu, int residual) {
    const int64_t most = is_sparse ? SPARSE_ROWS : ROWS, parts = (linear->rows - row) / most;
#if defined(STREAMS)
    if (next && linear->rows < MANY_ROWS) {
        row = multiply_blocks(linear, weight, next, column, groups, is_sparse, is_whole, relu, residual);
        next = NULL;
    }
#if defined(ONE_MULTIPLIER)
    if (is_whole && !is_sparse && linear->rows >= MANY_ROWS && linear->zero_point == 128 && linear->inputs % 8 == 0 &&
        linear->inputs <= MAX_INPUTS_IN_EIGHTS) {
        row = multiply_blocks_of_eights(linear, weight, next, column, relu, residual);
        next = NULL;
    }
#endif
#elif defined(__AVX512VNNI__)
    if (next && !is_sparse) {
        row = multiply_blocks(linear, weight, next, column, is_whole, relu, residual);
        next = NULL;
    }
#endif
    for (int64_t part = 0; row < linear->rows; part++, row += most) {
        if (next && linear->rows >= ROWS && part < parts) fetch_part(next, linear->inputs, groups, part, parts);
        multiply_some_rows(linear, weight, row, column, linear->rows - row, most, groups, is_sparse, is_whole, relu, residual);
    }
}

/* Return the columns from `column` on, or NULL after the last ones. */
ALWAYS_INLINE const int8_t *columns_at(const Linear *linear, int64_t column) {
    const int64_t in_panel = column % PANEL_COLUMNS;
    return column < linear->outputs ? linear->weight + (column - in_panel) * linear->inputs + in_panel * 4 : NULL;
}

#if defined(STREAMS)
/* `count` rows with a panel, `groups` x 16 columns at a time. */
ALWAYS_INLINE void multiply_few_rows(const Linear *linear, int64_t column, int count, int groups, int is_sparse, int relu,
                                     int residual) {
    const int64_t inputs = linear->inputs, ahead = is_sparse ? inputs * PANEL_COLUMNS : STREAM_AHEAD;
    const int8_t *weight = columns_at(linear, column);
    for (int group = 0; group < PANEL_GROUPS; group += groups) {
        const int8_t *from = weight + group * CACHE_LINE;
        multiply_rows(linear, from, from + ahead, 0, is_sparse ? 0 : inputs / 4, 0, column + group * LANES, count, groups,
                      is_sparse, 1, relu, residual);
    }
}

/* A panel with as many columns at once as the registers hold. */
ALWAYS_INLINE void multiply_stream(const Linear *linear, int64_t column, int is_sparse, int relu, int residual) {
    if (linear->rows == 1) {
        multiply_few_rows(linear, column, 1, 4, is_sparse, relu, residual);
    } else if (linear->rows == 2) {
        multiply_few_rows(linear, column, 2, 2, is_sparse, relu, residual);
    } else if (!is_sparse) {
        multiply_few_rows(linear, column, 3, 2, 0, relu, residual);
    }
}

/* Multiply few rows with the panels that are whole, and return the first panel that is left. */
static int64_t multiply_streams(const Linear *linear, int64_t first_panel, int64_t end_panel) {
    if (linear->rows == 0 || linear->rows > (linear->used ? SPARSE_ROWS : STREAM_ROWS)) return first_panel;
    for (; first_panel < end_panel && (first_panel + 1) * PANEL_COLUMNS <= linear->outputs; first_panel++) {
        const int64_t column = first_panel * PANEL_COLUMNS;
        if (linear->relu) {
            multiply_stream(linear, column, 0, 1, 0);
        } else if (linear->used) {
            multiply_stream(linear, column, 1, 0, 1);
        } else if (linear->residual) {
            multiply_stream(linear, column, 0, 0, 1);
        } else {
            multiply_stream(linear, column, 0, 0, 0);
        }
    }
    return first_panel;
}
#endif

static void multiply(const Linear *linear, int64_t first_panel, int64_t end_panel) {
#if defined(STREAMS)
    first_panel = multiply_streams(linear, first_panel, end_panel);
#endif
    const int is_sparse = linear->residual && linear->used;
    const int64_t width = (is_sparse ? SPARSE_GROUPS : GROUPS) * LANES;
    for (int64_t column = first_panel * PANEL_COLUMNS; column < end_panel * PANEL_COLUMNS; column += width) {
        const int8_t *weight = columns_at(linear, column);
        /* Across the border of a panel too: a thread usually gets neighbouring panels. */
        const int8_t *next = columns_at(linear, column + width);
        if (column + width > linear->outputs) {
            if (!weight) continue;
            if (is_sparse) {
                multiply_all_rows(linear, weight, NULL, 0, column, SPARSE_GROUPS, 1, 0, 0, 1);
            } else {
                multiply_all_rows(linear, weight, NULL, 0, column, GROUPS, 0, 0, linear->relu, linear->residual != 0);
            }
        } else if (is_sparse) {
            multiply_all_rows(linear, weight, next, 0, column, SPARSE_GROUPS, 1, 1, 0, 1);
        } else if (linear->relu) {
            multiply_all_rows(linear, weight, next, 0, column, GROUPS, 0, 1, 1, 0);
        } else if (linear->residual) {
            multiply_all_rows(linear, weight, next, 0, column, GROUPS, 0, 1, 0, 1);
        } else {
            multiply_all_rows(linear, weight, next, 0, column, GROUPS, 0, 1, 0, 0);
        }
    }
}

/* Write `first` plus the lanes that are set, and return how many. The memory must hold a whole vector. */
ALWAYS_INLINE int32_t list_lanes(uint32_t lanes, int32_t first, int32_t *to) {
    const ints all = (ints){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + first;
#if defined(__AVX512F__)
    const ints set = (ints)_mm512_maskz_compress_epi32((__mmask16)lanes, (__m512i)all);
    memcpy(to, &set, sizeof set);
#else
    if (lanes == 0xffff) {
        memcpy(to, &all, sizeof all);
    } else {
        for (uint32_t left = lanes; left != 0; left &= left - 1) *to++ = first + __builtin_ctz(left);
    }
#endif
    return __builtin_popcount(lanes);
}

/* Find the inputs that are not zero, for each block of SPARSE_ROWS rows. */
static int find_used(const uint8_t *quantized, int64_t rows, int64_t inputs, int32_t *used, int32_t *num_used) {
    if (LOST != 0) return 0; /* the products of a zero are not zero */
    const int64_t fours = inputs / 4;
    int64_t most = 0, total = 0;
    for (int64_t row = 0; row < rows; row += SPARSE_ROWS, used += fours, num_used++) {
        const int64_t count = rows - row < SPARSE_ROWS ? rows - row : SPARSE_ROWS;
        int32_t found = 0;
        for (int64_t four = 0; four < fours; four += LANES) {
            const int64_t here = at_most_lanes(fours - four);
            ints any = {0};
            for (int64_t i = 0; i < count; i++) {
                ints numbers = {0};
                memcpy(&numbers, quantized + (row + i) * inputs + 4 * four, (size_t)here * 4);
                any |= numbers;
            }
            found += list_lanes(lanes_where(any != 0), (int32_t)four, used + found);
        }
        *num_used = found;
        total += found;
        most += fours;
    }
    /* Blocks of ROWS rows wait less: with more inputs than these they are as fast. */
    return total * 4 < most * 3;
}

#endif
