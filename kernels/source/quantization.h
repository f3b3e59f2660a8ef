/* Rows of floats to unsigned bytes, with one scale for each row. */
#ifndef KVASIR_QUANTIZATION_H
#define KVASIR_QUANTIZATION_H

#include "vectors.h"

/* Return the bits of the largest absolute value. The bits of positive floats are ordered like integers; NaN is largest. */
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
        float maximum;
        memcpy(&maximum, &bits, sizeof maximum);
        row_scales[row] = maximum / levels;
        /* A row of zeros has no scale. */
        const floats inverse = spread(maximum > 0.0f ? levels / maximum : 0.0f);
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

#endif
