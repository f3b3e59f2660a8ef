/* The table of kernels. Compiled once for each instruction set; KERNELS is the table's name. */
#include "attention.h"
#include "cached_attention.h"
#include "kernels.h"
#include "listed_product.h"
#include "normalization.h"
#include "product.h"
#include "quantization.h"
#include "ranking.h"
#include "shared_attention.h"

#if defined(__AMX_INT8__)
#include "tiles.h"
#define NAME "amx"
#define MULTIPLY multiply_in_tiles
#define FIND_USED find_used_without_tiles
#elif defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define NAME "avx512vnni"
#elif defined(__AVXVNNI__)
#define NAME "avxvnni"
#elif defined(ONE_MULTIPLIER)
#define NAME "avx2one"
#elif defined(__AVX2__)
#define NAME "avx2"
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#define NAME "i8mm"
#elif defined(__ARM_FEATURE_DOTPROD)
#define NAME "dotprod"
#else
#define NAME "portable"
#endif
#ifndef MULTIPLY
#define MULTIPLY multiply
#define FIND_USED find_used
static int uses_tiles(int64_t rows, int64_t inputs) {
    (void)rows;
    (void)inputs;
    return 0;
}
#endif

const Kernels KERNELS = {NAME, quantize, FIND_USED, MULTIPLY, uses_tiles, multiply_listed, normalize,
                         append, attend, attend_together, attend_in_source, rank, add_sums};
