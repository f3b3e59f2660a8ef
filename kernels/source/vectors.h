/* Vectors of sixteen numbers. The compiler splits them for processors with narrower registers.
 *
 * All arithmetic uses explicit fused multiply-adds and one fixed order of sums, so that the bits of a row's result depend
 * neither on its place in the batch nor on the other rows. */
#ifndef KVASIR_VECTORS_H
#define KVASIR_VECTORS_H

#include <stdint.h>
#include <string.h>

#include "kernels.h"

#define LANES 16
#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef int8_t bytes __attribute__((vector_size(LANES)));
typedef uint8_t unsigned_bytes __attribute__((vector_size(LANES)));
typedef float half_floats __attribute__((vector_size(2 * LANES)));
typedef float quarter_floats __attribute__((vector_size(LANES)));

ALWAYS_INLINE floats spread(float value) {
    return (floats){value, value, value, value, value, value, value, value,
                    value, value, value, value, value, value, value, value};
}

ALWAYS_INLINE floats load(const float *from) {
    floats value;
    memcpy(&value, from, sizeof value);
    return value;
}

ALWAYS_INLINE void store(float *to, floats value) { memcpy(to, &value, sizeof value); }

/* Load the first `count` of sixteen numbers; the others are `fill`. */
ALWAYS_INLINE floats load_some(const float *from, int64_t count, float fill) {
    if (count == LANES) return load(from);
    floats value = spread(fill);
    memcpy(&value, from, (size_t)count * sizeof(float));
    return value;
}

ALWAYS_INLINE void store_some(float *to, floats value, int64_t count) {
    if (count == LANES) return store(to, value);
    memcpy(to, &value, (size_t)count * sizeof(float));
}

ALWAYS_INLINE floats load_some_bytes(const int8_t *from, int64_t count) {
    bytes value = {0};
    if (count == LANES) {
        memcpy(&value, from, LANES);
    } else {
        memcpy(&value, from, (size_t)count);
    }
    return __builtin_convertvector(value, floats);
}

ALWAYS_INLINE int64_t at_most_lanes(int64_t count) { return count < LANES ? count : LANES; }

/* Maximum and minimum of each lane, `b` if one is NaN: one instruction; a maximum that ignores NaN takes three. */
ALWAYS_INLINE floats larger(floats a, floats b) {
    ints from_a = a > b;
    return (floats)((from_a & (ints)a) | (~from_a & (ints)b));
}
ALWAYS_INLINE floats smaller(floats a, floats b) {
    ints from_a = a < b;
    return (floats)((from_a & (ints)a) | (~from_a & (ints)b));
}
ALWAYS_INLINE floats multiply_add(floats a, floats b, floats c) { return __builtin_elementwise_fma(a, b, c); }

/* Four sums at once: the sum of each vector's numbers, always in the same order. */
ALWAYS_INLINE quarter_floats sums_of_four(floats a, floats b, floats c, floats d) {
    floats ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    floats cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                __builtin_shufflevector(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    floats all = __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
                 __builtin_shufflevector(ab, cd, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    all += __builtin_shufflevector(all, all, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    all += __builtin_shufflevector(all, all, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    return __builtin_shufflevector(all, all, 0, 4, 8, 12);
}

ALWAYS_INLINE float sum_of(floats value) { return sums_of_four(value, value, value, value)[0]; }

ALWAYS_INLINE float largest_of(floats value) {
    value = larger(value, __builtin_shufflevector(value, value, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    value = larger(value, __builtin_shufflevector(value, value, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
    value = larger(value, __builtin_shufflevector(value, value, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
    value = larger(value, __builtin_shufflevector(value, value, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
    return value[0];
}

/* Round a * b + offset to the nearest integer, in the lowest byte of each lane. For numbers of at most 2 ** 22, a sum with
 * 1.5 * 2 ** 23 has no digits after the point. NaN becomes any byte. */
ALWAYS_INLINE ints rounded_product(floats a, floats b, float offset) {
    return (ints)multiply_add(a, b, spread(12582912.0f + offset));
}

typedef _Bool lane_mask __attribute__((ext_vector_type(LANES)));

/* Return one bit for each lane in which a comparison is true. */
ALWAYS_INLINE uint32_t lanes_where(ints comparison) {
    lane_mask mask = __builtin_convertvector(comparison, lane_mask);
    uint16_t bits;
    memcpy(&bits, &mask, sizeof bits);
    return bits;
}

/* e ** x for x <= 0, with a relative error of about 2e-7; e ** -87 for x < -87. x = n ln 2 + r with |r| <= ln 2 / 2, and a
 * Taylor polynomial of degree 6 in r. */
ALWAYS_INLINE floats exponential(floats x) {
    floats bounded = larger(x, spread(-87.0f));
    floats n = __builtin_elementwise_rint(bounded * spread(1.44269504f));
    floats r = multiply_add(n, spread(-0.693359375f), bounded);
    r = multiply_add(n, spread(2.12194440e-4f), r);
    floats sum = spread(1.0f / 720);
    sum = multiply_add(sum, r, spread(1.0f / 120));
    sum = multiply_add(sum, r, spread(1.0f / 24));
    sum = multiply_add(sum, r, spread(1.0f / 6));
    sum = multiply_add(sum, r, spread(0.5f));
    sum = multiply_add(sum, r, spread(1.0f));
    sum = multiply_add(sum, r, spread(1.0f));
    return (floats)((ints)sum + (__builtin_convertvector(n, ints) << 23));
}

#endif
