/* Linear: hidden [.., inputs], weight, scales, sums, bias [outputs], then residual [.., outputs], then the weight and the
 * bias of a layer normalisation [outputs]. */
#include "linear_operator.h"

#include <stdlib.h>

#define MAX_TASKS 64

static _Thread_local Scratch quantized_scratch, scale_scratch, used_scratch;

Status *create_linear(const Operator *operator, const void *const *given_api, const NodeInfo *info, void **kernel) {
    (void)given_api;
    LinearKernel made = {.definition = (const Definition *)operator, .zero_point = 128};
    RETURN_IF_ERROR(get_int_attribute(info, "zero_point", &made.zero_point));
    REQUIRE(made.zero_point == 0 || made.zero_point == 128, "the zero point of activations must be 0 or 128");
    if (made.definition->normalization) RETURN_IF_ERROR(get_float_attribute(info, "epsilon", &made.epsilon));
    RETURN_IF_ERROR(read_constants(info, (size_t)made.definition->num_inputs, &made.constants));
    LinearKernel *kept = malloc(sizeof *kept);
    REQUIRE(kept != NULL, "out of memory");
    *kept = made;
    *kernel = kept;
    return NULL;
}

typedef struct {
    const Linear *linear;
    int64_t panels, tasks;
} LinearTasks;

static void multiply_task(void *data, size_t task) {
    const LinearTasks *all = data;
    int64_t first = all->panels * (int64_t)task / all->tasks, end = all->panels * ((int64_t)task + 1) / all->tasks;
    kernels->multiply(all->linear, first, end);
}

Status *linear_inputs(const Context *context, const LinearKernel *kernel, Tensor *hidden, Linear *linear) {
    Tensor weight, scales, sums, bias;
    RETURN_IF_ERROR(read_input(context, 0, hidden));
    RETURN_IF_ERROR(read_given(context, &kernel->constants, 1, &weight));
    RETURN_IF_ERROR(read_given(context, &kernel->constants, 2, &scales));
    RETURN_IF_ERROR(read_given(context, &kernel->constants, 3, &sums));
    RETURN_IF_ERROR(read_given(context, &kernel->constants, 4, &bias));
    REQUIRE(hidden->num_dimensions > 0, "hidden states have no dimensions");
    linear->inputs = hidden->dimensions[hidden->num_dimensions - 1];
    linear->rows = linear->inputs > 0 ? hidden->size / linear->inputs : 0;
    linear->outputs = linear->stride = scales.size;
    const int64_t columns = (linear->outputs + PANEL_COLUMNS - 1) / PANEL_COLUMNS * PANEL_COLUMNS;
    REQUIRE(linear->inputs > 0 && linear->inputs % 4 == 0 && weight.size == columns * linear->inputs,
            "a weight does not fit its input");
    REQUIRE(sums.size == linear->outputs && bias.size == linear->outputs, "scales, sums and bias differ in size");
    linear->weight = weight.data;
    linear->scales = scales.data;
    linear->sums = sums.data;
    linear->bias = bias.data;
    linear->zero_point = (int32_t)kernel->zero_point;
    return NULL;
}

/* Behind a ReLU most numbers are zero, in trained models up to 99 of 100: their weights are not read. */
static Status *skip_zeros(Linear *linear) {
    const int64_t fours = linear->rows * (linear->inputs / 4);
    int32_t *num_used = reserve(&used_scratch, (size_t)(linear->rows + fours) * sizeof(int32_t) + CACHE_LINE);
    REQUIRE(num_used != NULL, "out of memory");
    int32_t *used = num_used + linear->rows;
    if (kernels->find_used(linear->quantized, linear->rows, linear->inputs, used, num_used)) {
        linear->used = used;
        linear->num_used = num_used;
    }
    return NULL;
}

Status *quantize_rows(const LinearKernel *kernel, const Tensor *hidden, Linear *linear) {
    uint8_t *quantized =
        reserve(&quantized_scratch, (size_t)((linear->rows + ROWS_IN_MEMORY - 1) * linear->inputs) + CACHE_LINE);
    float *row_scales = reserve(&scale_scratch, (size_t)linear->rows * sizeof(float) + 64);
    REQUIRE(quantized != NULL && row_scales != NULL, "out of memory");
    kernels->quantize(hidden->data, linear->rows, linear->inputs, kernel->zero_point == 0, quantized, row_scales);
    linear->quantized = quantized;
    linear->row_scales = row_scales;
    return kernel->zero_point == 0 && linear->residual != NULL ? skip_zeros(linear) : NULL;
}

Status *compute_linear(void *data, Context *context) {
    const LinearKernel *kernel = data;
    const Definition *definition = kernel->definition;
    Tensor hidden, residual, norm_weight, norm_bias;
    Linear linear = {.relu = definition->relu};
    RETURN_IF_ERROR(linear_inputs(context, kernel, &hidden, &linear));
    hidden.dimensions[hidden.num_dimensions - 1] = linear.outputs;
    void *to;
    RETURN_IF_ERROR(create_output(context, 0, hidden.dimensions, hidden.num_dimensions, &to));
    linear.output = to;
    if (definition->residual) {
        RETURN_IF_ERROR(read_input(context, 5, &residual));
        REQUIRE(residual.size == linear.rows * linear.outputs, "a residual has another size than the product");
        linear.residual = residual.data;
    }
    RETURN_IF_ERROR(quantize_rows(kernel, &hidden, &linear));
    const int64_t panels = (linear.outputs + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
    if (linear.rows * linear.inputs * linear.outputs >= PARALLEL_FROM_MULTIPLICATIONS && panels > 1) {
        LinearTasks tasks = {&linear, panels, panels < MAX_TASKS ? panels : MAX_TASKS};
        RETURN_IF_ERROR(parallel_for(context, multiply_task, (size_t)tasks.tasks, 0, &tasks));
    } else {
        kernels->multiply(&linear, 0, panels);
    }
    if (definition->normalization) {
        RETURN_IF_ERROR(read_given(context, &kernel->constants, 6, &norm_weight));
        RETURN_IF_ERROR(read_given(context, &kernel->constants, 7, &norm_bias));
        REQUIRE(norm_weight.size == linear.outputs && norm_bias.size == linear.outputs,
                "a normalisation has another size than the product");
        kernels->normalize(to, linear.rows, linear.outputs, norm_weight.data, norm_bias.data, kernel->epsilon);
    }
    return NULL;
}
