/* The table of operators, and its registration with ONNX Runtime. */
#include <stdlib.h>

#include "operator.h"

static const char *name_of(const Operator *operator) { return ((const Definition *)operator)->name; }
static const char *provider_of(const Operator *operator) {
    (void)operator;
    return NULL; /* the CPU */
}
static size_t num_inputs_of(const Operator *operator) { return (size_t)((const Definition *)operator)->num_inputs; }
static size_t num_outputs_of(const Operator *operator) { return (size_t)((const Definition *)operator)->num_outputs; }
static int input_type_of(const Operator *operator, size_t index) {
    return ((const Definition *)operator)->input_types[index];
}
static int output_type_of(const Operator *operator, size_t index) {
    return ((const Definition *)operator)->output_types[index];
}
static int always_zero(const Operator *operator, size_t index) {
    (void)operator, (void)index;
    return 0;
}

#define OPERATOR(make, run) OPERATOR_WITH(make, run, free)
#define OPERATOR_WITH(make, run, end)                                                                    \
    {                                                                                                    \
        .version = API_VERSION, .get_name = name_of, .get_provider = provider_of,                        \
        .get_input_type = input_type_of, .get_num_inputs = num_inputs_of, .get_output_type = output_type_of, \
        .get_num_outputs = num_outputs_of, .destroy = end, .get_input_kind = always_zero,                \
        .get_output_kind = always_zero, .get_input_memory = always_zero, .create_or_status = make,       \
        .compute_or_status = run                                                                         \
    }
#define LINEAR(operator_name, inputs, ...)                                                       \
    {                                                                                            \
        .operator= OPERATOR(create_linear, compute_linear), .name = operator_name,               \
        .num_inputs = inputs, .num_outputs = 1,                                                  \
        .input_types = {FLOAT, INT8, FLOAT, INT32, FLOAT, FLOAT, FLOAT, FLOAT}, .output_types = {FLOAT}, __VA_ARGS__ \
    }

static const Definition operators[] = {
    LINEAR("Linear", 5, .relu = 0),
    LINEAR("LinearOfSome", 5, .relu = 0),
    LINEAR("LinearRelu", 5, .relu = 1),
    LINEAR("LinearAdd", 6, .residual = 1),
    LINEAR("LinearAddNormalization", 8, .residual = 1, .normalization = 1),
    {.operator= OPERATOR(create_embedding, compute_embedding), .name = "EmbedTokens", .num_inputs = 3,
     .num_outputs = 1, .input_types = {INT32, INT8, FLOAT}, .output_types = {FLOAT}},
    {.operator= OPERATOR(create_attention, compute_cached_attention), .name = "SelfAttention", .num_inputs = 4,
     .num_outputs = 3, .input_types = {FLOAT, INT8, INT8, INT32}, .output_types = {FLOAT, INT8, INT8}},
    {.operator= OPERATOR(create_attention, compute_cached_attention), .name = "BiasedSelfAttention", .num_inputs = 5,
     .num_outputs = 3, .input_types = {FLOAT, INT8, INT8, INT32, FLOAT}, .output_types = {FLOAT, INT8, INT8}},
    {.operator= OPERATOR(create_attention, compute_source_attention), .name = "BiasedSourceAttention", .num_inputs = 3,
     .num_outputs = 1, .input_types = {FLOAT, INT32, FLOAT}, .output_types = {FLOAT}},
    {.operator= OPERATOR(create_attention, compute_cached_attention), .name = "CrossAttention", .num_inputs = 6,
     .num_outputs = 3, .input_types = {FLOAT, FLOAT, FLOAT, INT8, INT8, INT32}, .output_types = {FLOAT, INT8, INT8}},
    {.operator= OPERATOR(create_attention, compute_source_attention), .name = "SourceAttention", .num_inputs = 2,
     .num_outputs = 1, .input_types = {FLOAT, INT32}, .output_types = {FLOAT}},
    {.operator= OPERATOR(create_linear, compute_best_tokens), .name = "BestTokens", .num_inputs = 8, .num_outputs = 3,
     .input_types = {FLOAT, INT8, FLOAT, INT32, FLOAT, FLOAT, INT64, BOOL}, .output_types = {FLOAT, INT64, FLOAT}},
    {.operator= OPERATOR_WITH(create_listed, compute_best_listed_tokens, destroy_listed), .name = "BestListedTokens",
     .num_inputs = 11, .num_outputs = 3,
     .input_types = {FLOAT, INT8, FLOAT, INT32, FLOAT, FLOAT, INT64, BOOL, INT32, INT32, INT32},
     .output_types = {FLOAT, INT64, FLOAT}},
};

/* ONNX Runtime calls this when the library is registered with the options of a session. KVASIR_KERNELS selects an
 * instruction set instead of the best one. */
__attribute__((visibility("default"))) Status *RegisterCustomOps(SessionOptions *options, const ApiBase *base) {
    api = base->get_api(API_VERSION);
    if (api == NULL) return NULL; /* an older version than Kvasir supports: the functions in the graph run */
    kernels = choose_kernels(getenv("KVASIR_KERNELS"));
    REQUIRE(kernels != NULL, "KVASIR_KERNELS must name kernels that this processor can run");
    Domain *domain;
    RETURN_IF_ERROR(create_domain("kvasir", &domain));
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        RETURN_IF_ERROR(add_to_domain(domain, &operators[i].operator));
    }
    return add_domain(options, domain);
}

/* The name of the instruction set whose kernels run here. */
__attribute__((visibility("default"))) const char *kvasir_kernels_name(void) {
    const Kernels *chosen = choose_kernels(getenv("KVASIR_KERNELS"));
    return chosen == NULL ? NULL : chosen->name;
}
