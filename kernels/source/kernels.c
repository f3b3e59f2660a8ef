/* The kernels, compiled once for each instruction set: KERNELS names the table. */
#include <stddef.h>

#include "kernels.h"
#include "ranking.h"
#include "vectors.h"

#define CACHE_LINE 64

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define NAME "avx512vnni"
#define ROWS 6   /* 6 x 4 sums, 4 columns, 1 number of each row: 29 of 32 registers */
#define GROUPS 4
#elif defined(__AVX2__)
#define NAME "avx2"
#define ROWS 4   /* 4 x 2 sums, 1 number of each row, columns, products, ones: 15 of 16 registers */
#define GROUPS 1
#else
#define NAME "portable"
#define ROWS 1
#define GROUPS 1
#endif

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* sums[i] += the product of four unsigned bytes, the same for all lanes, with the four signed bytes of lane i. Exact: with
 * AVX2 because two weights side by side of one sign are together at most 128, and 2 * 255 * 64 fits into sixteen bits. */
ALWAYS_INLINE ints multiply_four(ints sums, int32_t row, const int8_t *columns) {
#if defined(__AVX512VNNI__)
    __m512i weights = _mm512_loadu_si512(columns);
    return (ints)_mm512_dpbusd_epi32((__m512i)sums, _mm512_set1_epi32(row), weights);
#elif defined(__AVX2__)
    __m256i halves[2];
    memcpy(halves, &sums, sizeof halves);
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; half++) {
        __m256i weights = _mm256_loadu_si256((const __m256i *)(columns + 32 * half));
        __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi32(row), weights);
        halves[half] = _mm256_add_epi32(halves[half], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    memcpy(&sums, halves, sizeof halves);
    return sums;
#else
    for (int lane = 0; lane < LANES; lane++) {
        for (int byte = 0; byte < 4; byte++) {
            sums[lane] += (row >> (8 * byte) & 0xff) * columns[4 * lane + byte];
        }
    }
    return sums;
#endif
}

/* The bits of the largest number, its sign aside. Without their signs floats are ordered as whole numbers are, and what is
 * not a number is the largest. */
ALWAYS_INLINE int32_t largest_magnitude(const float *from, int64_t count) {
    ints largest[4] = {{0}, {0}, {0}, {0}};
    int64_t at = 0;
    for (; at + 4 * LANES <= count; at += 4 * LANES) {
        for (int i = 0; i < 4; i++) {
            largest[i] = __builtin_elementwise_max(largest[i], (ints)load(from + at + i * LANES) & 0x7fffffff);
        }
    }
    for (; at < count; at += LANES) {
        ints magnitude = (ints)load_some(from + at, at_most_lanes(count - at), 0.0f) & 0x7fffffff;
        largest[0] = __builtin_elementwise_max(largest[0], magnitude);
    }
    largest[0] = __builtin_elementwise_max(largest[0], largest[1]);
    largest[2] = __builtin_elementwise_max(largest[2], largest[3]);
    return __builtin_reduce_max(__builtin_elementwise_max(largest[0], largest[2]));
}

ALWAYS_INLINE unsigned_bytes levels_of(floats value, floats inverse, float zero_point) {
    return __builtin_convertvector(rounded_product(value, inverse, zero_point) & 0xff, unsigned_bytes);
}

static void quantize(const float *hidden, int64_t rows, int64_t inputs, int is_positive, uint8_t *quantized,
                     float *row_scales) {
    const float zero_point = is_positive ? 0.0f : 128.0f, levels = is_positive ? 255.0f : 127.0f;
    for (int64_t row = 0; row < rows; row++, hidden += inputs, quantized += inputs) {
        int32_t bits = largest_magnitude(hidden, inputs);
        float most;
        memcpy(&most, &bits, sizeof most);
        row_scales[row] = most / levels;
        /* A row of zeros has no scale, and needs none. */
        const floats inverse = spread(most > 0.0f ? levels / most : 0.0f);
        int64_t at = 0;
        for (; at + LANES <= inputs; at += LANES) {
            unsigned_bytes level = levels_of(load(hidden + at), inverse, zero_point);
            memcpy(quantized + at, &level, LANES);
        }
        if (at < inputs) {
            unsigned_bytes level = levels_of(load_some(hidden + at, inputs - at, 0.0f), inverse, zero_point);
            memcpy(quantized + at, &level, (size_t)(inputs - at));
        }
    }
}

/* `count` rows with GROUPS x 16 columns of a panel that begin at `column`. `count`, `is_whole` (no column is behind the
 * last one), `relu` and `residual` are constants where this is inlined. */
ALWAYS_INLINE void multiply_rows(const Linear *linear, const int8_t *weight, int64_t first_row, int64_t column,
                                 int count, int is_whole, int relu, int residual) {
    const int64_t inputs = linear->inputs, outputs = linear->outputs;
    ints sums[ROWS][GROUPS];
#pragma clang loop unroll(full)
    for (int group = 0; group < GROUPS; group++) {
        int64_t width = is_whole ? LANES : at_most_lanes(outputs - column - group * LANES);
        ints of_zero_point = {0};
        if (is_whole) {
            memcpy(&of_zero_point, linear->sums + column + group * LANES, sizeof of_zero_point);
        } else if (width > 0) {
            memcpy(&of_zero_point, linear->sums + column + group * LANES, (size_t)width * sizeof(int32_t));
        }
        of_zero_point *= -linear->zero_point;
#pragma clang loop unroll(full)
        for (int row = 0; row < count; row++) sums[row][group] = of_zero_point;
    }
    const uint8_t *rows = linear->quantized + first_row * inputs;
    for (int64_t input = 0; input < inputs; input += 4) {
        const int8_t *columns = weight + input * PANEL_COLUMNS;
#pragma clang loop unroll(full)
        for (int row = 0; row < count; row++) {
            int32_t four;
            memcpy(&four, rows + row * inputs + input, sizeof four);
#pragma clang loop unroll(full)
            for (int group = 0; group < GROUPS; group++) {
                sums[row][group] = multiply_four(sums[row][group], four, columns + group * 4 * LANES);
            }
        }
    }
#pragma clang loop unroll(full)
    for (int group = 0; group < GROUPS; group++) {
        const int64_t at = column + group * LANES;
        const int64_t width = is_whole ? LANES : at_most_lanes(outputs - at);
        if (width <= 0) return;
        const floats scales = load_some(linear->scales + at, width, 0.0f);
        const floats bias = load_some(linear->bias + at, width, 0.0f);
#pragma clang loop unroll(full)
        for (int row = 0; row < count; row++) {
            const int64_t place = (first_row + row) * outputs + at;
            floats value = __builtin_convertvector(sums[row][group], floats);
            value = multiply_add(value, scales * spread(linear->row_scales[first_row + row]), bias);
            if (relu) value = larger(value, spread(0.0f));
            if (residual) value += load_some(linear->residual + place, width, 0.0f);
            store_some(linear->output + place, value, width);
        }
    }
}

/* The part of GROUPS x 16 columns that is asked for while some rows are multiplied with the columns before them. Matrices of
 * a step are more than a second-level cache holds, and all at once they would be waited for. */
ALWAYS_INLINE void fetch_part(const int8_t *columns, int64_t inputs, int64_t part, int64_t parts) {
    const int64_t fours = inputs / 4;
    for (int64_t four = fours * part / parts; four < fours * (part + 1) / parts; four++) {
        for (int group = 0; group < GROUPS; group++) {
            __builtin_prefetch(columns + 4 * four * PANEL_COLUMNS + group * CACHE_LINE);
        }
    }
}

/* `next` are the columns that are needed then, or none. */
ALWAYS_INLINE void multiply_all_rows(const Linear *linear, const int8_t *weight, const int8_t *next, int64_t column,
                                     int is_whole, int relu, int residual) {
    const int64_t blocks = linear->rows / ROWS;
    for (int64_t block = 0; block < blocks; block++) {
        if (next) fetch_part(next, linear->inputs, block, blocks);
        multiply_rows(linear, weight, block * ROWS, column, ROWS, is_whole, relu, residual);
    }
    const int64_t row = blocks * ROWS;
    switch (linear->rows - row) {
#if ROWS > 5
        case 5: multiply_rows(linear, weight, row, column, 5, is_whole, relu, residual); break;
#endif
#if ROWS > 4
        case 4: multiply_rows(linear, weight, row, column, 4, is_whole, relu, residual); break;
#endif
#if ROWS > 3
        case 3: multiply_rows(linear, weight, row, column, 3, is_whole, relu, residual); break;
#endif
#if ROWS > 2
        case 2: multiply_rows(linear, weight, row, column, 2, is_whole, relu, residual); break;
#endif
#if ROWS > 1
        case 1: multiply_rows(linear, weight, row, column, 1, is_whole, relu, residual); break;
#endif
        default: break;
    }
}

/* GROUPS x 16 columns that begin at `column`, or none behind the last ones. */
ALWAYS_INLINE const int8_t *columns_at(const Linear *linear, int64_t column) {
    const int64_t in_panel = column % PANEL_COLUMNS;
    return column < linear->outputs ? linear->weight + (column - in_panel) * linear->inputs + in_panel * 4 : NULL;
}

static void multiply(const Linear *linear, int64_t first_panel, int64_t end_panel) {
    for (int64_t column = first_panel * PANEL_COLUMNS; column < end_panel * PANEL_COLUMNS; column += GROUPS * LANES) {
        const int8_t *weight = columns_at(linear, column);
        /* Those of the next panel too: whoever has this one will most often be given that one as well. */
        const int8_t *next = columns_at(linear, column + GROUPS * LANES);
        if (column + GROUPS * LANES > linear->outputs) {
            if (weight) multiply_all_rows(linear, weight, NULL, column, 0, linear->relu, linear->residual != 0);
        } else if (linear->relu) {
            multiply_all_rows(linear, weight, next, column, 1, 1, 0);
        } else if (linear->residual) {
            multiply_all_rows(linear, weight, next, column, 1, 0, 1);
        } else {
            multiply_all_rows(linear, weight, next, column, 1, 0, 0);
        }
    }
}

/* Four sums side by side, so that one addition need not wait for the one before. */
ALWAYS_INLINE floats sum_of_differences(const float *hidden, int64_t width, float mean, int squared) {
    floats sums[4] = {spread(0.0f), spread(0.0f), spread(0.0f), spread(0.0f)};
    int64_t at = 0;
    for (; at + 4 * LANES <= width; at += 4 * LANES) {
        for (int i = 0; i < 4; i++) {
            floats difference = load(hidden + at + i * LANES) - spread(mean);
            sums[i] = squared ? multiply_add(difference, difference, sums[i]) : sums[i] + difference;
        }
    }
    for (; at < width; at += LANES) {
        floats difference = load_some(hidden + at, at_most_lanes(width - at), mean) - spread(mean);
        sums[0] = squared ? multiply_add(difference, difference, sums[0]) : sums[0] + difference;
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static void normalize(float *hidden, int64_t rows, int64_t width, const float *weight, const float *bias,
                      float epsilon) {
    for (int64_t row = 0; row < rows; row++, hidden += width) {
        float mean = sum_of(sum_of_differences(hidden, width, 0.0f, 0)) / (float)width;
        float variance = sum_of(sum_of_differences(hidden, width, mean, 1)) / (float)width;
        floats inverse = spread(1.0f / __builtin_sqrtf(variance + epsilon));
        int64_t at = 0;
        for (; at + LANES <= width; at += LANES) {
            floats value = (load(hidden + at) - spread(mean)) * inverse;
            store(hidden + at, multiply_add(value, load(weight + at), load(bias + at)));
        }
        if (at < width) {
            int64_t count = width - at;
            floats value = (load_some(hidden + at, count, 0.0f) - spread(mean)) * inverse;
            value = multiply_add(value, load_some(weight + at, count, 0.0f), load_some(bias + at, count, 0.0f));
            store_some(hidden + at, value, count);
        }
    }
}

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

/* `scores` [length] become probabilities but for a common divisor, which is returned. There must be room for whole
 * vectors; what is behind `length` becomes zero. */
ALWAYS_INLINE float exponentials(float *scores, int64_t length) {
    const float nothing = -__builtin_inff();
    store(scores + length, spread(nothing));
    floats largest = load(scores);
    for (int64_t at = LANES; at < length; at += LANES) largest = larger(largest, load(scores + at));
    floats most = spread(largest_of(largest)), total = spread(0.0f);
    for (int64_t at = 0; at < length; at += LANES) {
        floats value = exponential(load(scores + at) - most);
        total += value;
        store(scores + at, value);
    }
    return sum_of(total);
}

ALWAYS_INLINE void prefetch(const int8_t *from, int64_t size) {
    for (int64_t at = 0; at < size; at += CACHE_LINE) __builtin_prefetch(from + at);
}

/* Keys and values of one head: int8, or floats, `stride` numbers from one position to the next. */
typedef struct {
    const void *keys, *values;
    int64_t stride, length;
    float scale;       /* of products of queries and keys */
    float value_scale; /* of the values */
    const int8_t *next_keys, *next_values; /* of the next row, `next_size` bytes each */
    int64_t next_size;
} Attended;

ALWAYS_INLINE floats load_numbers(const void *numbers, int64_t at, int64_t count, int is_int8) {
    return is_int8 ? load_some_bytes((const int8_t *)numbers + at, count)
                   : load_some((const float *)numbers + at, count, 0.0f);
}

/* A head is `chunks` vectors, `last` numbers of the last one. Both are constants where this is inlined for usual sizes, and
 * so is `is_int8`. */
ALWAYS_INLINE void attend_head(const Attended *head, const float *query, float *scores, float *output, int chunks,
                               int64_t last, int is_int8) {
    const int64_t stride = head->stride, length = head->length;
    floats queries[MAX_HEAD_DIM / LANES], sums[MAX_HEAD_DIM / LANES];
    for (int chunk = 0; chunk < chunks; chunk++) {
        int64_t count = chunk < chunks - 1 ? LANES : last;
        queries[chunk] = load_some(query + chunk * LANES, count, 0.0f) * spread(head->scale);
        sums[chunk] = spread(0.0f);
    }
    /* Rows lie far apart: without this every row would begin by waiting for memory. Keys now and values later, because a
     * processor has a limited number of requests under way. */
    prefetch(head->next_keys, head->next_size);
    for (int64_t position = 0; position < length; position += 4) {
        floats products[4];
        for (int i = 0; i < 4; i++) {
            /* Behind the end, the last key once more. */
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
            .next_keys = keys + row, .next_values = values + row, .next_size = next_length * head_dim};
        attend_any_head(&attended, head_dim, query + head * head_dim, scores, output + head * head_dim, 1);
    }
}

static void attend_in_source(const SourceAttention *attention, const float *fused, int64_t head, int64_t length,
                             float *scores, float *output) {
    const int64_t head_dim = attention->head_dim, width = attention->heads * head_dim;
    const float *queries = fused + head * head_dim;
    const Attended attended = {.keys = queries + width, .values = queries + 2 * width, .stride = 3 * width,
                               .length = length, .scale = attention->scale, .value_scale = 1.0f};
    for (int64_t position = 0; position < length; position++) {
        attend_any_head(&attended, head_dim, queries + position * 3 * width, scores,
                        output + position * width + head * head_dim, 0);
    }
}

const Kernels KERNELS = {NAME, quantize, multiply, normalize, append, attend, attend_in_source, rank, add_sums};
