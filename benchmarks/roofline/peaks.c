// Speed limits of one core: int8 multiply-adds with both factors in registers or one from memory, and reads.
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
typedef __m512i Vector;
#define KIND "avx512-vnni"
#define LOAD(address) _mm512_loadu_si512((const void *)(address))
#define MULTIPLY_ADD(sum, left, right) _mm512_dpbusd_epi32(sum, left, right)
#define FILL(value) _mm512_set1_epi8(value)
#define ADD(left, right) _mm512_add_epi32(left, right)
#elif defined(__AVXVNNI__)
typedef __m256i Vector;
#define KIND "avx-vnni"
#define LOAD(address) _mm256_loadu_si256((const __m256i *)(address))
#define MULTIPLY_ADD(sum, left, right) _mm256_dpbusd_avx_epi32(sum, left, right)
#define FILL(value) _mm256_set1_epi8(value)
#define ADD(left, right) _mm256_add_epi32(left, right)
#elif defined(__AVX2__)
typedef __m256i Vector;
#define KIND "avx2"
#define LOAD(address) _mm256_loadu_si256((const __m256i *)(address))
#define MULTIPLY_ADD(sum, left, right) \
    _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(left, right), _mm256_set1_epi16(1)))
#define FILL(value) _mm256_set1_epi8(value)
#define ADD(left, right) _mm256_add_epi32(left, right)
#else
typedef struct { int32_t lanes[4]; } Vector;
#define KIND "portable"
static Vector LOAD(const int8_t *address) { return *(const Vector *)address; }
static Vector FILL(int8_t value) { Vector all; for (int i = 0; i < 16; i++) ((int8_t *)&all)[i] = value; return all; }
static Vector ADD(Vector left, Vector right) { for (int i = 0; i < 4; i++) left.lanes[i] += right.lanes[i]; return left; }
static Vector MULTIPLY_ADD(Vector sum, Vector left, Vector right) {
    const uint8_t *a = (const uint8_t *)&left; const int8_t *b = (const int8_t *)&right;
    for (int i = 0; i < 16; i++) sum.lanes[i / 4] += a[i] * b[i];
    return sum;
}
#endif

// The factor may have changed, as far as the compiler can see, so it computes nothing ahead of the loop.
#if defined(__AVX512F__)
#define KEEP(factor) __asm__ volatile("" : "+v"(factor))
#elif defined(__AVX2__)
#define KEEP(factor) __asm__ volatile("" : "+x"(factor))
#else
#define KEEP(factor) __asm__ volatile("" : "+m"(factor))
#endif

enum { SUMS = 12 };  // independent sums: the latency of an instruction is hidden

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static volatile int32_t sink;

static void keep(const Vector *sums) {
    Vector total = sums[0];
    for (int i = 1; i < SUMS; i++) total = ADD(total, sums[i]);
    sink = *(const int32_t *)&total;
}

const char *kind(void) { return KIND; }

// Multiply-adds a second with factors in registers.
double register_speed(long rounds) {
    Vector sums[SUMS], left = FILL(3), right = FILL(2);
    for (int i = 0; i < SUMS; i++) sums[i] = FILL(0);
    double start = now();
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < SUMS; i++) sums[i] = MULTIPLY_ADD(sums[i], left, right);
        KEEP(right);
    }
    double seconds = now() - start;
    keep(sums);
    return (double)rounds * SUMS * sizeof(Vector) / seconds;
}

// Multiply-adds a second with one factor read from `bytes` of memory, again and again.
double cached_speed(const int8_t *memory, size_t bytes, long rounds) {
    const size_t stride = SUMS * sizeof(Vector);
    Vector sums[SUMS], left = FILL(3);
    for (int i = 0; i < SUMS; i++) sums[i] = FILL(0);
    size_t blocks = bytes / stride;
    double start = now();
    for (long round = 0; round < rounds; round++)
        for (size_t block = 0; block < blocks; block++)
            for (int i = 0; i < SUMS; i++)
                sums[i] = MULTIPLY_ADD(sums[i], left, LOAD(memory + block * stride + (size_t)i * sizeof(Vector)));
    double seconds = now() - start;
    keep(sums);
    return (double)rounds * (double)(blocks * stride) / seconds;
}
