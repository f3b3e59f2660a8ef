/* Inputs, outputs and memory of the operators. */
#include "operator.h"

#include <stdlib.h>

const void *const *api;
const Kernels *kernels;

void *reserve(Scratch *scratch, size_t size) {
    if (scratch->size < size) {
        free(scratch->memory);
        scratch->size = 0;
        scratch->memory = aligned_alloc(64, (size + 63) / 64 * 64);
        if (scratch->memory != NULL) scratch->size = size;
    }
    return scratch->memory;
}

static Status *describe(const Value *value, Tensor *tensor) {
    Shape *shape;
    RETURN_IF_ERROR(get_data(value, &tensor->data));
    RETURN_IF_ERROR(get_shape(value, &shape));
    Status *status = get_num_dimensions(shape, &tensor->num_dimensions);
    if (status == NULL && tensor->num_dimensions > MAX_DIMENSIONS) {
        status = create_status(INVALID_ARGUMENT, "kvasir: a tensor has more than four dimensions");
    }
    if (status == NULL) status = get_dimensions(shape, tensor->dimensions, tensor->num_dimensions);
    release_shape(shape);
    tensor->size = 1;
    for (size_t i = 0; status == NULL && i < tensor->num_dimensions; i++) tensor->size *= tensor->dimensions[i];
    return status;
}

Status *read_input(const Context *context, size_t index, Tensor *tensor) {
    const Value *value;
    RETURN_IF_ERROR(get_input(context, index, &value));
    return describe(value, tensor);
}

Status *read_constants(const NodeInfo *info, size_t num_inputs, Constants *constants) {
    *constants = (Constants){0};
    for (size_t index = 0; index < num_inputs; index++) {
        int is_constant = 0;
        const Value *value = NULL;
        RETURN_IF_ERROR(get_constant_input(info, index, &is_constant, &value));
        if (is_constant) RETURN_IF_ERROR(describe(value, &constants->of[index]));
    }
    return NULL;
}

Status *read_given(const Context *context, const Constants *constants, size_t index, Tensor *tensor) {
    if (constants->of[index].data == NULL) return read_input(context, index, tensor);
    *tensor = constants->of[index];
    return NULL;
}

Status *create_output(Context *context, size_t index, const int64_t *dimensions, size_t num_dimensions, void **data) {
    Value *value;
    RETURN_IF_ERROR(get_output(context, index, dimensions, num_dimensions, &value));
    return get_data(value, data);
}
