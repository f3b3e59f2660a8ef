/* The instructions of AVX-512 that the kernels name, in plain C: a processor with AVX2 runs the sources for AVX512-VNNI.
 *
 * Included before everything else (-include). Vectors of the compiler need no emulation. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define __AVX512F__ 1
#define __AVX512BW__ 1
#define __AVX512CD__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1
#define __AVX512VNNI__ 1

typedef long long emulated_512 __attribute__((vector_size(64)));

#define EMULATED static inline __attribute__((unused)) emulated_512

/* sums[i] += the products of the `count` numbers of `a` and `b` in lane i. */
#define EMULATE_PRODUCT(name, type_a, type_b, count)                                                                   \
    EMULATED name(emulated_512 sums, emulated_512 a, emulated_512 b) {                                                 \
        int32_t lanes[16];                                                                                             \
        type_a from_a[16 * count];                                                                                     \
        type_b from_b[16 * count];                                                                                     \
        memcpy(lanes, &sums, sizeof lanes);                                                                            \
        memcpy(from_a, &a, sizeof from_a);                                                                             \
        memcpy(from_b, &b, sizeof from_b);                                                                             \
        for (int i = 0; i < 16 * count; i++) lanes[i / count] += from_a[i] * from_b[i];                                \
        memcpy(&sums, lanes, sizeof sums);                                                                             \
        return sums;                                                                                                   \
    }

/* Of each 128 bits of `a` and `b` the numbers of the lower (half 0) or upper half, in turns. */
#define EMULATE_UNPACK(name, type, half)                                                                               \
    EMULATED name(emulated_512 a, emulated_512 b) {                                                                    \
        enum { COUNT = 16 / sizeof(type) };                                                                            \
        type from_a[4][COUNT], from_b[4][COUNT], to[4][COUNT];                                                         \
        memcpy(from_a, &a, sizeof from_a);                                                                             \
        memcpy(from_b, &b, sizeof from_b);                                                                             \
        for (int lane = 0; lane < 4; lane++) {                                                                         \
            for (int i = 0; i < COUNT / 2; i++) {                                                                      \
                to[lane][2 * i] = from_a[lane][i + half * COUNT / 2];                                                  \
                to[lane][2 * i + 1] = from_b[lane][i + half * COUNT / 2];                                              \
            }                                                                                                          \
        }                                                                                                              \
        memcpy(&a, to, sizeof a);                                                                                      \
        return a;                                                                                                      \
    }

EMULATE_PRODUCT(emulated_dpbusd, uint8_t, int8_t, 4)
EMULATE_PRODUCT(emulated_dpwssd, int16_t, int16_t, 2)
EMULATE_UNPACK(emulated_unpacklo_epi8, int8_t, 0)
EMULATE_UNPACK(emulated_unpackhi_epi8, int8_t, 1)
EMULATE_UNPACK(emulated_unpacklo_epi16, int16_t, 0)
EMULATE_UNPACK(emulated_unpackhi_epi16, int16_t, 1)

EMULATED emulated_set1_epi32(int32_t number) {
    int32_t lanes[16];
    emulated_512 all;
    for (int i = 0; i < 16; i++) lanes[i] = number;
    memcpy(&all, lanes, sizeof all);
    return all;
}

EMULATED emulated_loadu_si512(const void *from) {
    emulated_512 loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

EMULATED emulated_maskz_compress_epi32(uint16_t mask, emulated_512 from) {
    int32_t lanes[16], to[16] = {0};
    memcpy(lanes, &from, sizeof lanes);
    for (int i = 0, count = 0; i < 16; i++) {
        if (mask >> i & 1) to[count++] = lanes[i];
    }
    memcpy(&from, to, sizeof from);
    return from;
}

#undef _mm256_dpwssd_epi32
#define _mm256_dpwssd_epi32(sums, a, b) _mm256_add_epi32(sums, _mm256_madd_epi16(a, b))
#define __m512i emulated_512
#define _mm512_dpbusd_epi32 emulated_dpbusd
#define _mm512_dpwssd_epi32 emulated_dpwssd
#define _mm512_loadu_si512 emulated_loadu_si512
#define _mm512_maskz_compress_epi32 emulated_maskz_compress_epi32
#define _mm512_set1_epi32 emulated_set1_epi32
#define _mm512_unpackhi_epi16 emulated_unpackhi_epi16
#define _mm512_unpackhi_epi8 emulated_unpackhi_epi8
#define _mm512_unpacklo_epi16 emulated_unpacklo_epi16
#define _mm512_unpacklo_epi8 emulated_unpacklo_epi8
