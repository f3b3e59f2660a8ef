/* Sums of products of neighbouring numbers, in registers: the instructions of each processor.
 *
 * Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2; Arm C Language Extensions. */
#ifndef KVASIR_DOT_PRODUCTS_H
#define KVASIR_DOT_PRODUCTS_H

#include "vectors.h"

/* What the rows' unsigned numbers have lost when they are multiplied: the products of a column's sum with it are missing. */
#define LOST 0

#if defined(__AVX2__)
#include <immintrin.h>

/* sums[i] += four unsigned bytes of lane i of `a` times four signed bytes of `b`. AVX2 alone adds two products in sixteen
 * bits, exactly: two adjacent weights of one sign are at most 128 together, and 255 * 128 fits. */
ALWAYS_INLINE __m256i dot_bytes(__m256i sums, __m256i a, __m256i b) {
#if defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(sums, a, b);
#else
    return _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
#endif
}

/* sums[i] += two numbers of lane i of `a` times two numbers of `b`, of sixteen bits each. */
ALWAYS_INLINE __m256i dot_pairs(__m256i sums, __m256i a, __m256i b) {
#if defined(__AVX512VNNI__)
    return _mm256_dpwssd_epi32(sums, a, b);
#elif defined(__AVXVNNI__)
    return _mm256_dpwssd_avx_epi32(sums, a, b);
#else
    return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
#endif
}
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

#if defined(__ARM_FEATURE_MATMUL_INT8)
/* sums[i] += four unsigned bytes of lane i of `a` times four signed bytes of `b`. */
#define DOT_BYTES(sums, a, b) vusdotq_s32(sums, a, b)
/* The same with lane 0 of `a` for all sums. */
#define DOT_FIRST(sums, a, b) vsudotq_laneq_s32(sums, b, a, 0)
#else
/* Both factors are signed here, so 128 is taken off the unsigned ones. */
#undef LOST
#define LOST 128
#define SIGNED(a) vreinterpretq_s8_u8(veorq_u8(a, vdupq_n_u8(LOST)))
#define DOT_BYTES(sums, a, b) vdotq_s32(sums, SIGNED(a), b)
#define DOT_FIRST(sums, a, b) vdotq_laneq_s32(sums, b, SIGNED(a), 0)
#endif
#endif

/* sums[i] += the product of four unsigned bytes of lane i of a row with four signed bytes of a column, of 64 bytes each,
 * without LOST. */
ALWAYS_INLINE ints multiply_line(ints sums, const uint8_t *row, const int8_t *column) {
#if defined(__AVX512VNNI__)
    return (ints)_mm512_dpbusd_epi32((__m512i)sums, _mm512_loadu_si512(row), _mm512_loadu_si512(column));
#elif defined(__AVX2__)
    __m256i halves[2];
    memcpy(halves, &sums, sizeof halves);
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; half++) {
        halves[half] = dot_bytes(halves[half], _mm256_loadu_si256((const __m256i *)(row + 32 * half)),
                                 _mm256_loadu_si256((const __m256i *)(column + 32 * half)));
    }
    memcpy(&sums, halves, sizeof sums);
    return sums;
#elif defined(__ARM_FEATURE_DOTPROD)
    int32x4_t quarters[4];
    memcpy(quarters, &sums, sizeof quarters);
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++) {
        quarters[i] = DOT_BYTES(quarters[i], vld1q_u8(row + 16 * i), vld1q_s8(column + 16 * i));
    }
    memcpy(&sums, quarters, sizeof sums);
    return sums;
#else
    for (int lane = 0; lane < LANES; lane++) {
        for (int byte = 4 * lane; byte < 4 * lane + 4; byte++) sums[lane] += row[byte] * column[byte];
    }
    return sums;
#endif
}

/* The same for four bytes of a row, which all lanes multiply. */
ALWAYS_INLINE ints multiply_four(ints sums, int32_t row, const int8_t *columns) {
#if defined(__AVX512VNNI__)
    return (ints)_mm512_dpbusd_epi32((__m512i)sums, _mm512_set1_epi32(row), _mm512_loadu_si512(columns));
#elif defined(__AVX2__)
    __m256i halves[2];
    memcpy(halves, &sums, sizeof halves);
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; half++) {
        const __m256i weights = _mm256_loadu_si256((const __m256i *)(columns + 32 * half));
        halves[half] = dot_bytes(halves[half], _mm256_set1_epi32(row), weights);
    }
    memcpy(&sums, halves, sizeof sums);
    return sums;
#elif defined(__ARM_FEATURE_DOTPROD)
    int32x4_t quarters[4];
    memcpy(quarters, &sums, sizeof quarters);
    const uint8x16_t numbers = vreinterpretq_u8_s32((int32x4_t){row});
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i++) quarters[i] = DOT_FIRST(quarters[i], numbers, vld1q_s8(columns + 16 * i));
    memcpy(&sums, quarters, sizeof sums);
    return sums;
#else
    for (int lane = 0; lane < LANES; lane++) {
        for (int byte = 0; byte < 4; byte++) sums[lane] += (row >> (8 * byte) & 0xff) * columns[4 * lane + byte];
    }
    return sums;
#endif
}

#endif
