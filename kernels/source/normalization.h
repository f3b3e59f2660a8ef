/* Layer normalisation. */
#ifndef KVASIR_NORMALIZATION_H
#define KVASIR_NORMALIZATION_H

#include "vectors.h"

/* Four independent sums, so that an addition does not wait for the one before. */
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

#endif
