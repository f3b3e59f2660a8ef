/* What the operators that begin with a product share. */
#ifndef KVASIR_LINEAR_OPERATOR_H
#define KVASIR_LINEAR_OPERATOR_H

#include "operator.h"

typedef struct {
    const Definition *definition;
    int64_t zero_point;
    float epsilon;
    Constants constants;
} LinearKernel;

/* Read and check the first five inputs: hidden [.., inputs], weight, scales, sums, bias [outputs]. */
Status *linear_inputs(const Context *context, const LinearKernel *kernel, Tensor *hidden, Linear *linear);

/* Quantise hidden states row by row. The result is valid until the next call of this thread. */
Status *quantize_rows(const LinearKernel *kernel, const Tensor *hidden, Linear *linear);

#endif
