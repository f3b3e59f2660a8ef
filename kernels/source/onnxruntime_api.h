/* The part of ONNX Runtime's C interface that custom operators need.
 *
 * Its table of functions only grows at the end, so the index of a function never changes. Indices and signatures come from
 * `OrtApi` and `OrtCustomOp` in onnxruntime_c_api.h, version 17 of the interface (ONNX Runtime 1.17 and later). */
#ifndef KVASIR_ONNXRUNTIME_API_H
#define KVASIR_ONNXRUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

#define API_VERSION 17

typedef struct Status Status;             /* NULL is success */
typedef struct Value Value;               /* a tensor */
typedef struct Shape Shape;
typedef struct Context Context;           /* of one run of one node */
typedef struct NodeInfo NodeInfo;         /* of a node, while its kernel is created */
typedef struct SessionOptions SessionOptions;
typedef struct Domain Domain;

typedef struct {
    const void *const *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
} ApiBase;

enum ElementType { FLOAT = 1, INT8 = 3, INT32 = 6, INT64 = 7, BOOL = 9 };
enum ErrorCode { FAIL = 1, INVALID_ARGUMENT = 2 };

/* API(index, result, argument types...) is the function at that index. */
#define API(index, result, ...) ((result(*)(__VA_ARGS__))api[index])
#define create_status API(0, Status *, int, const char *)
#define create_domain API(26, Status *, const char *, Domain **)
#define add_to_domain API(27, Status *, Domain *, const struct Operator *)
#define add_domain API(28, Status *, SessionOptions *, Domain *)
#define get_data API(51, Status *, const Value *, void **)
#define get_num_dimensions API(61, Status *, const Shape *, size_t *)
#define get_dimensions API(62, Status *, const Shape *, int64_t *, size_t)
#define get_shape API(65, Status *, const Value *, Shape **)
#define get_float_attribute API(85, Status *, const NodeInfo *, const char *, float *)
#define get_int_attribute API(86, Status *, const NodeInfo *, const char *, int64_t *)
#define get_input API(90, Status *, const Context *, size_t, const Value **)
#define get_output API(91, Status *, Context *, size_t, const int64_t *, size_t, Value **)
#define release_shape API(99, void, Shape *)
#define get_constant_input API(249, Status *, const NodeInfo *, size_t, int *, const Value **)
#define parallel_for API(274, Status *, const Context *, void (*)(void *, size_t), size_t, size_t, void *)

/* An operator. ONNX Runtime prefers the newer functions (`..._or_status`) if they are set. */
typedef struct Operator {
    uint32_t version;
    void *(*create)(const struct Operator *, const void *const *api, const NodeInfo *);
    const char *(*get_name)(const struct Operator *);
    const char *(*get_provider)(const struct Operator *);
    int (*get_input_type)(const struct Operator *, size_t);
    size_t (*get_num_inputs)(const struct Operator *);
    int (*get_output_type)(const struct Operator *, size_t);
    size_t (*get_num_outputs)(const struct Operator *);
    void (*compute)(void *kernel, Context *);
    void (*destroy)(void *kernel);
    int (*get_input_kind)(const struct Operator *, size_t);   /* 0: required */
    int (*get_output_kind)(const struct Operator *, size_t);
    int (*get_input_memory)(const struct Operator *, size_t); /* 0: the provider's memory */
    int (*get_min_variadic_inputs)(const struct Operator *);
    int (*is_variadic_input_homogeneous)(const struct Operator *);
    int (*get_min_variadic_outputs)(const struct Operator *);
    int (*is_variadic_output_homogeneous)(const struct Operator *);
    Status *(*create_or_status)(const struct Operator *, const void *const *api, const NodeInfo *, void **kernel);
    Status *(*compute_or_status)(void *kernel, Context *);
    Status *(*infer_shapes)(const struct Operator *, void *context);
    int (*get_first_version)(const struct Operator *);
    int (*get_last_version)(const struct Operator *);
} Operator;

#endif
