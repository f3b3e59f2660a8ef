/* What the operators of the domain "kvasir" share: error handling, inputs and outputs, memory, definitions.
 *
 * Each operator is also a function in the graphs that use it, made of ONNX Runtime's own operators. The function defines
 * the result, and runs where this library is not loaded. */
#ifndef KVASIR_OPERATOR_H
#define KVASIR_OPERATOR_H

#include "kernels.h"
#include "onnxruntime_api.h"

/* Both are set when the library is registered. */
extern const void *const *api;
extern const Kernels *kernels;

#define RETURN_IF_ERROR(expression)                \
    do {                                           \
        Status *status_ = (expression);            \
        if (status_ != NULL) return status_;       \
    } while (0)
#define REQUIRE(condition, message)                                                  \
    do {                                                                             \
        if (!(condition)) return create_status(INVALID_ARGUMENT, "kvasir: " message); \
    } while (0)

/* Products of fewer multiplications run on one thread: waking others takes about as long. */
#define PARALLEL_FROM_MULTIPLICATIONS (1 << 21)
#define MAX_DIMENSIONS 4

typedef struct {
    void *data;
    int64_t dimensions[MAX_DIMENSIONS];
    size_t num_dimensions;
    int64_t size;
} Tensor;

#define MAX_INPUTS 11

/* The inputs of a node that are the same in every run, read once: their descriptions are far apart in memory. `data` of the
 * others is NULL. */
typedef struct {
    Tensor of[MAX_INPUTS];
} Constants;

Status *read_constants(const NodeInfo *info, size_t num_inputs, Constants *constants);
Status *read_input(const Context *context, size_t index, Tensor *tensor);
/* Read an input that is usually a constant. */
Status *read_given(const Context *context, const Constants *constants, size_t index, Tensor *tensor);
Status *create_output(Context *context, size_t index, const int64_t *dimensions, size_t num_dimensions, void **data);

/* Memory of one thread that is kept from call to call: allocation is slow on virtual machines. */
typedef struct {
    void *memory;
    size_t size;
} Scratch;

/* Uninitialised memory of at least `size` bytes, aligned to 64; NULL if there is none. Valid until the next call. */
void *reserve(Scratch *scratch, size_t size);

/* An operator with its name and the element types of its inputs and outputs. */
typedef struct {
    Operator operator;
    const char *name;
    int num_inputs, num_outputs;
    int input_types[MAX_INPUTS], output_types[3];
    int relu, residual, normalization; /* of a linear operator */
} Definition;

Status *create_linear(const Operator *operator, const void *const *given_api, const NodeInfo *info, void **kernel);
Status *compute_linear(void *data, Context *context);
Status *compute_best_tokens(void *data, Context *context); /* its kernel is made by create_linear */
Status *create_listed(const Operator *operator, const void *const *given_api, const NodeInfo *info, void **kernel);
Status *compute_best_listed_tokens(void *data, Context *context);
void destroy_listed(void *kernel);
Status *create_embedding(const Operator *operator, const void *const *given_api, const NodeInfo *info, void **kernel);
Status *compute_embedding(void *data, Context *context);
Status *create_attention(const Operator *operator, const void *const *given_api, const NodeInfo *info, void **kernel);
Status *compute_cached_attention(void *data, Context *context);
Status *compute_source_attention(void *data, Context *context);

#endif
