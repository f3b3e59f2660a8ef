/* The instructions of AVX-VNNI that the kernels name, in plain C: a processor with AVX2 runs the sources for AVX-VNNI.
 *
 * Included before everything else (-include). */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define __AVXVNNI__ 1

/* sums[i] += the products of the `count` numbers of `a` and `b` in lane i. */
#define EMULATE_PRODUCT(name, type_a, type_b, count)                                                                   \
    static inline __attribute__((unused)) __m256i name(__m256i sums, __m256i a, __m256i b) {                           \
        int32_t lanes[8];                                                                                              \
        type_a from_a[8 * count];                                                                                      \
        type_b from_b[8 * count];                                                                                      \
        memcpy(lanes, &sums, sizeof lanes);                                                                            \
        memcpy(from_a, &a, sizeof from_a);                                                                             \
        memcpy(from_b, &b, sizeof from_b);                                                                             \
        for (int i = 0; i < 8 * count; i++) lanes[i / count] += from_a[i] * from_b[i];                                 \
        memcpy(&sums, lanes, sizeof sums);                                                                             \
        return sums;                                                                                                   \
    }

EMULATE_PRODUCT(emulated_dpbusd, uint8_t, int8_t, 4)
EMULATE_PRODUCT(emulated_dpwssd, int16_t, int16_t, 2)

#undef _mm256_dpbusd_avx_epi32
#undef _mm256_dpwssd_avx_epi32
#define _mm256_dpbusd_avx_epi32 emulated_dpbusd
#define _mm256_dpwssd_avx_epi32 emulated_dpwssd
