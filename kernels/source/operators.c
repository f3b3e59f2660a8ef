/* Operators of the domain "kvasir" for ONNX Runtime on the CPU.
 *
 * Each is also a function in the graphs that use it, made of ONNX Runtime's own operators, which says what it computes and
 * takes its place where this library is not loaded. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "onnxruntime_api.h"

static const void *const *api;
static const Kernels *kernels;

#define RETURN_IF_ERROR(expression)                \
    do {                                           \
        Status *status_ = (expression);            \
        if (status_ != NULL) return status_;       \
    } while (0)
#define REQUIRE(condition, message)                                                  \
    do {                                                                             \
        if (!(condition)) return create_status(INVALID_ARGUMENT, "kvasir: " message); \
    } while (0)

/* Products of fewer multiplications than this are done by one thread: waking others takes about as long. */
#define PARALLEL_FROM_MULTIPLICATIONS (1 << 21)
#define CACHED_BYTES_OF_A_TASK (1 << 17)
#define MAX_TASKS 64
#define MAX_DIMENSIONS 4

/* Memory of one thread that is kept from call to call: allocating is dear on virtual machines. */
typedef struct {
    void *memory;
    size_t size;
} Scratch;

static _Thread_local Scratch quantized_scratch, scale_scratch, score_scratch, logit_scratch, rank_scratch;

static void *reserve(Scratch *scratch, size_t size) {
    if (scratch->size < size) {
        free(scratch->memory);
        scratch->size = 0;
        scratch->memory = aligned_alloc(64, (size + 63) / 64 * 64);
        if (scratch->memory != NULL) scratch->size = size;
    }
    return scratch->memory;
}

typedef struct {
    void *data;
    int64_t dimensions[MAX_DIMENSIONS];
    size_t num_dimensions;
    int64_t size;
} Tensor;

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

static Status *input(const Context *context, size_t place, Tensor *tensor) {
    const Value *value;
    RETURN_IF_ERROR(get_input(context, place, &value));
    return describe(value, tensor);
}

static Status *output(Context *context, size_t place, const int64_t *dimensions, size_t num_dimensions, void **data) {
    Value *value;
    RETURN_IF_ERROR(get_output(context, place, dimensions, num_dimensions, &value));
    return get_data(value, data);
}

/* An operator with its name and the types of its inputs and outputs. */
typedef struct {
    Operator operator;
    const char *name;
    int num_inputs, num_outputs;
    int input_types[8], output_types[3];
    int relu, residual, normalization; /* of a linear operator */
} Described;

static const char *name_of(const Operator *operator) { return ((const Described *)operator)->name; }
static const char *provider_of(const Operator *operator) {
    (void)operator;
    return NULL; /* the CPU */
}
static size_t num_inputs_of(const Operator *operator) { return (size_t)((const Described *)operator)->num_inputs; }
static size_t num_outputs_of(const Operator *operator) { return (size_t)((const Described *)operator)->num_outputs; }
static int input_type_of(const Operator *operator, size_t place) {
    return ((const Described *)operator)->input_types[place];
}
static int output_type_of(const Operator *operator, size_t place) {
    return ((const Described *)operator)->output_types[place];
}
static int always_zero(const Operator *operator, size_t place) {
    (void)operator, (void)place;
    return 0;
}

/* Linear: hidden [.., inputs], weight, scales, sums, bias [outputs], then residual [.., outputs], then the weight and the
 * bias of a layer normalisation [outputs]. */

typedef struct {
    const Described *described;
    int64_t zero_point;
    float epsilon;
} LinearKernel;

static Status *create_linear(const Operator *operator, const void *const *given_api, const NodeInfo *info,
                             void **kernel) {
    (void)given_api;
    LinearKernel made = {(const Described *)operator, 128, 0.0f};
    RETURN_IF_ERROR(get_int_attribute(info, "zero_point", &made.zero_point));
    REQUIRE(made.zero_point == 0 || made.zero_point == 128, "the zero point of activations must be 0 or 128");
    if (made.described->normalization) RETURN_IF_ERROR(get_float_attribute(info, "epsilon", &made.epsilon));
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

/* The first five inputs, checked. */
static Status *linear_inputs(const Context *context, const LinearKernel *kernel, Tensor *hidden, Linear *linear) {
    Tensor weight, scales, sums, bias;
    RETURN_IF_ERROR(input(context, 0, hidden));
    RETURN_IF_ERROR(input(context, 1, &weight));
    RETURN_IF_ERROR(input(context, 2, &scales));
    RETURN_IF_ERROR(input(context, 3, &sums));
    RETURN_IF_ERROR(input(context, 4, &bias));
    REQUIRE(hidden->num_dimensions > 0, "hidden states have no dimensions");
    linear->inputs = hidden->dimensions[hidden->num_dimensions - 1];
    linear->rows = linear->inputs > 0 ? hidden->size / linear->inputs : 0;
    linear->outputs = scales.size;
    const int64_t columns = (linear->outputs + PANEL_COLUMNS - 1) / PANEL_COLUMNS * PANEL_COLUMNS;
    REQUIRE(linear->inputs > 0 && linear->inputs % 4 == 0 && weight.size == columns * linear->inputs, "a weight does not fit its input");
    REQUIRE(sums.size == linear->outputs && bias.size == linear->outputs, "scales, sums and bias differ in size");
    linear->weight = weight.data;
    linear->scales = scales.data;
    linear->sums = sums.data;
    linear->bias = bias.data;
    linear->zero_point = (int32_t)kernel->zero_point;
    return NULL;
}

static Status *quantize_rows(const LinearKernel *kernel, const Tensor *hidden, Linear *linear) {
    uint8_t *quantized = reserve(&quantized_scratch, (size_t)(linear->rows * linear->inputs) + 64);
    float *row_scales = reserve(&scale_scratch, (size_t)linear->rows * sizeof(float) + 64);
    REQUIRE(quantized != NULL && row_scales != NULL, "out of memory");
    kernels->quantize(hidden->data, linear->rows, linear->inputs, kernel->zero_point == 0, quantized, row_scales);
    linear->quantized = quantized;
    linear->row_scales = row_scales;
    return NULL;
}

static Status *compute_linear(void *data, Context *context) {
    const LinearKernel *kernel = data;
    const Described *described = kernel->described;
    Tensor hidden, residual, norm_weight, norm_bias;
    Linear linear = {.relu = described->relu};
    RETURN_IF_ERROR(linear_inputs(context, kernel, &hidden, &linear));
    hidden.dimensions[hidden.num_dimensions - 1] = linear.outputs;
    void *to;
    RETURN_IF_ERROR(output(context, 0, hidden.dimensions, hidden.num_dimensions, &to));
    linear.output = to;
    if (described->residual) {
        RETURN_IF_ERROR(input(context, 5, &residual));
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
    if (described->normalization) {
        RETURN_IF_ERROR(input(context, 6, &norm_weight));
        RETURN_IF_ERROR(input(context, 7, &norm_bias));
        REQUIRE(norm_weight.size == linear.outputs && norm_bias.size == linear.outputs,
                "a normalisation has another size than the product");
        kernels->normalize(to, linear.rows, linear.outputs, norm_weight.data, norm_bias.data, kernel->epsilon);
    }
    return NULL;
}

/* Attention of one token for each row over its int8 cache.
 *
 * SelfAttention: queries, keys and values side by side [rows, .., 3 * width], the cached keys and values
 * [rows, heads, cache_len, head_dim] and positions [rows], where the new ones are put; the cache again, in place if it is
 * bound to the same memory, as outputs.
 * CrossAttention: the same with queries [rows, .., width], and the last key and value, which stand in the cache already. */

typedef struct {
    const Described *described;
    int64_t heads;
    float scale, step;
} AttentionKernel;

static Status *create_attention(const Operator *operator, const void *const *given_api, const NodeInfo *info,
                                void **kernel) {
    (void)given_api;
    AttentionKernel made = {.described = (const Described *)operator};
    RETURN_IF_ERROR(get_int_attribute(info, "num_heads", &made.heads));
    RETURN_IF_ERROR(get_float_attribute(info, "scale", &made.scale));
    REQUIRE(made.heads > 0, "attention without heads");
    if (made.described->num_outputs == 3) RETURN_IF_ERROR(get_float_attribute(info, "step", &made.step));
    AttentionKernel *kept = malloc(sizeof *kept);
    REQUIRE(kept != NULL, "out of memory");
    *kept = made;
    *kernel = kept;
    return NULL;
}

typedef struct {
    CachedAttention attention;
    const float *fused;
    int64_t rows, stride, tasks;
    int appends;
    int8_t *keys, *values;
    const int32_t *positions;
    float *output;
    int out_of_memory;
} CachedTasks;

static void attend_task(void *data, size_t task) {
    CachedTasks *all = data;
    const CachedAttention *attention = &all->attention;
    const int64_t width = attention->heads * attention->head_dim, plane = width * attention->cache_len;
    float *scores = reserve(&score_scratch, (size_t)(attention->cache_len + 32) * sizeof(float));
    if (scores == NULL) {
        all->out_of_memory = 1;
        return;
    }
    int64_t end = all->rows * ((int64_t)task + 1) / all->tasks;
    for (int64_t row = all->rows * (int64_t)task / all->tasks; row < end; row++) {
        const float *query = all->fused + row * all->stride;
        int8_t *keys = all->keys + row * plane, *values = all->values + row * plane;
        if (all->appends) {
            kernels->append(attention, query + width, all->positions[row], keys);
            kernels->append(attention, query + 2 * width, all->positions[row], values);
        }
        kernels->attend(attention, query, keys, values, all->positions[row] + 1,
                        row + 1 < end ? all->positions[row + 1] + 1 : 0, scores, all->output + row * width);
    }
}

static Status *compute_cached_attention(void *data, Context *context) {
    const AttentionKernel *kernel = data;
    const int appends = kernel->described->num_inputs == 4; /* SelfAttention */
    const size_t first_cache = appends ? 1 : 3;
    Tensor fused, caches[2], positions;
    RETURN_IF_ERROR(input(context, 0, &fused));
    RETURN_IF_ERROR(input(context, first_cache, &caches[0]));
    RETURN_IF_ERROR(input(context, first_cache + 1, &caches[1]));
    RETURN_IF_ERROR(input(context, first_cache + 2, &positions));
    const int64_t *dimensions = caches[0].dimensions;
    REQUIRE(caches[0].num_dimensions == 4 && caches[0].size == caches[1].size, "caches differ in size");
    REQUIRE(fused.num_dimensions > 0, "queries have no dimensions");
    CachedTasks tasks = {
        .attention = {dimensions[1], dimensions[3], dimensions[2], kernel->scale, kernel->step},
        .fused = fused.data, .rows = dimensions[0], .appends = appends, .positions = positions.data};
    const int64_t width = dimensions[1] * dimensions[3];
    tasks.stride = appends ? 3 * width : width;
    REQUIRE(dimensions[1] == kernel->heads && dimensions[3] > 0 && dimensions[3] <= MAX_HEAD_DIM,
            "heads are too large or of another number than in the cache");
    REQUIRE(fused.size == tasks.rows * tasks.stride && positions.size == tasks.rows, "queries do not fit the cache");
    int64_t cached_bytes = 0;
    for (int64_t row = 0; row < tasks.rows; row++) {
        int32_t position = tasks.positions[row];
        REQUIRE(position >= 0 && position < dimensions[2], "a position is outside the cache");
        cached_bytes += 2 * width * (position + 1);
    }
    int64_t output_dimensions[MAX_DIMENSIONS];
    for (size_t i = 0; i < fused.num_dimensions; i++) output_dimensions[i] = fused.dimensions[i];
    output_dimensions[fused.num_dimensions - 1] = width;
    void *attended, *present[2];
    RETURN_IF_ERROR(output(context, 0, output_dimensions, fused.num_dimensions, &attended));
    for (int kind = 0; kind < 2; kind++) {
        RETURN_IF_ERROR(output(context, (size_t)kind + 1, dimensions, 4, &present[kind]));
        if (present[kind] != caches[kind].data) memcpy(present[kind], caches[kind].data, (size_t)caches[kind].size);
    }
    tasks.keys = present[0];
    tasks.values = present[1];
    tasks.output = attended;
    tasks.tasks = cached_bytes / CACHED_BYTES_OF_A_TASK + 1;
    if (tasks.tasks > tasks.rows) tasks.tasks = tasks.rows;
    if (tasks.tasks > 1) {
        RETURN_IF_ERROR(parallel_for(context, attend_task, (size_t)tasks.tasks, 0, &tasks));
    } else if (tasks.rows > 0) {
        attend_task(&tasks, 0);
    }
    REQUIRE(!tasks.out_of_memory, "out of memory");
    return NULL;
}

/* SourceAttention: bidirectional attention in the encoder. Queries, keys and values side by side
 * [rows, source_len, 3 * width] and each row's last position [rows]; what stands behind it becomes zero. */

typedef struct {
    SourceAttention attention;
    const float *fused;
    const int32_t *last_positions;
    float *output;
    int out_of_memory;
} SourceTasks;

static void attend_in_source_task(void *data, size_t task) {
    SourceTasks *all = data;
    const SourceAttention *attention = &all->attention;
    const int64_t row = (int64_t)task / attention->heads, head = (int64_t)task % attention->heads;
    const int64_t width = attention->heads * attention->head_dim, length = all->last_positions[row] + 1;
    float *scores = reserve(&score_scratch, (size_t)(attention->source_len + 32) * sizeof(float));
    if (scores == NULL) {
        all->out_of_memory = 1;
        return;
    }
    float *to = all->output + row * attention->source_len * width;
    kernels->attend_in_source(attention, all->fused + row * attention->source_len * 3 * width, head, length, scores, to);
    if (head == 0) memset(to + length * width, 0, (size_t)((attention->source_len - length) * width) * sizeof(float));
}

static Status *compute_source_attention(void *data, Context *context) {
    const AttentionKernel *kernel = data;
    Tensor fused, last_positions;
    RETURN_IF_ERROR(input(context, 0, &fused));
    RETURN_IF_ERROR(input(context, 1, &last_positions));
    REQUIRE(fused.num_dimensions == 3 && fused.dimensions[2] % (3 * kernel->heads) == 0,
            "queries, keys and values do not divide into heads");
    REQUIRE(fused.dimensions[2] <= 3 * kernel->heads * MAX_HEAD_DIM, "heads are too large");
    const int64_t rows = fused.dimensions[0], source_len = fused.dimensions[1], width = fused.dimensions[2] / 3;
    SourceTasks tasks = {.attention = {source_len, kernel->heads, width / kernel->heads, kernel->scale},
                         .fused = fused.data, .last_positions = last_positions.data};
    REQUIRE(last_positions.size == rows, "there must be one last position for each row");
    for (int64_t row = 0; row < rows; row++) {
        REQUIRE(tasks.last_positions[row] >= 0 && tasks.last_positions[row] < source_len,
                "a last position is outside the source");
    }
    void *attended;
    const int64_t dimensions[] = {rows, source_len, width};
    RETURN_IF_ERROR(output(context, 0, dimensions, 3, &attended));
    tasks.output = attended;
    const size_t num_tasks = (size_t)(rows * kernel->heads);
    if (rows * source_len * source_len * width >= PARALLEL_FROM_MULTIPLICATIONS) {
        RETURN_IF_ERROR(parallel_for(context, attend_in_source_task, num_tasks, 0, &tasks));
    } else {
        for (size_t task = 0; task < num_tasks; task++) attend_in_source_task(&tasks, task);
    }
    REQUIRE(!tasks.out_of_memory, "out of memory");
    return NULL;
}

/* BestTokens: hidden [rows, inputs], weight, scales, sums, bias [outputs] as in Linear, mask [outputs], how many candidates
 * [1], whether log normalisers are wanted [1]. Gives the best logits and their tokens [rows, candidates], and the logarithm
 * of the sum of all exponentials [rows], NaN where it was not wanted. Chunks of columns are looked through on their own and
 * put together in order, so threads and other rows change nothing. */

typedef struct {
    Linear linear;
    Ranking ranking;
    Best *found;           /* [chunks, rows] */
    _Atomic float *floors; /* [rows] what a logit must reach, after the chunks that are done, to be among the best */
    int out_of_memory;
} RankingTasks;

static void rank_task(void *data, size_t chunk) {
    RankingTasks *all = data;
    Linear linear = all->linear;
    const int64_t first = (int64_t)chunk * CHUNK_COLUMNS;
    const int64_t left = linear.outputs - first, count = left < CHUNK_COLUMNS ? left : CHUNK_COLUMNS;
    float *logits = reserve(&logit_scratch, (size_t)(linear.rows * count + 32) * sizeof(float));
    if (logits == NULL) {
        all->out_of_memory = 1;
        return;
    }
    linear.weight += first * linear.inputs;
    linear.scales += first;
    linear.sums += first;
    linear.bias += first;
    linear.outputs = count;
    linear.output = logits;
    kernels->multiply(&linear, 0, (count + PANEL_COLUMNS - 1) / PANEL_COLUMNS);
    /* From the last row on: a row may be written behind its end. */
    for (int64_t row = linear.rows - 1; row >= 0; row--) {
        Best *best = all->found + (int64_t)chunk * linear.rows + row;
        float floor = atomic_load_explicit(all->floors + row, memory_order_relaxed);
        kernels->rank(&all->ranking, logits + row * count, first, count, floor, best);
        /* Another thread may lower it again, which costs it a look at more logits and changes nothing. */
        if (best->count == all->ranking.num_best && best->logits[best->count - 1] > floor) {
            atomic_store_explicit(all->floors + row, best->logits[best->count - 1], memory_order_relaxed);
        }
    }
}

/* Two rankings of the same row, of earlier and of later columns, to `merged`, which has room for `num_best`. */
static void merge(const Best *earlier, const Best *later, int64_t num_best, Best *merged) {
    int64_t a = 0, b = 0;
    for (merged->count = 0; merged->count < num_best && (a < earlier->count || b < later->count); merged->count++) {
        int take_later = a == earlier->count || (b < later->count && later->logits[b] > earlier->logits[a]);
        merged->logits[merged->count] = take_later ? later->logits[b] : earlier->logits[a];
        merged->tokens[merged->count] = take_later ? later->tokens[b] : earlier->tokens[a];
        b += take_later;
        a += !take_later;
    }
    merged->all = kernels->add_sums(earlier->all, later->all);
}

static Status *compute_best_tokens(void *data, Context *context) {
    const LinearKernel *kernel = data;
    Tensor hidden, mask, num_candidates, with_scores;
    RankingTasks tasks = {0};
    RETURN_IF_ERROR(linear_inputs(context, kernel, &hidden, &tasks.linear));
    RETURN_IF_ERROR(input(context, 5, &mask));
    RETURN_IF_ERROR(input(context, 6, &num_candidates));
    RETURN_IF_ERROR(input(context, 7, &with_scores));
    const int64_t rows = tasks.linear.rows, outputs = tasks.linear.outputs;
    REQUIRE(mask.size == outputs && num_candidates.size == 1 && with_scores.size == 1, "a ranking with wrong sizes");
    const int64_t num_best = *(const int64_t *)num_candidates.data;
    REQUIRE(num_best > 0 && num_best <= outputs, "more candidates wanted than there are tokens, or none");
    tasks.ranking = (Ranking){num_best, *(const uint8_t *)with_scores.data != 0, mask.data};
    const int64_t chunks = (outputs + CHUNK_COLUMNS - 1) / CHUNK_COLUMNS;
    const int64_t num_found = chunks * rows, room = num_found * num_best;
    const int64_t dimensions[] = {rows, num_best};
    void *logits, *tokens, *normalizers;
    RETURN_IF_ERROR(output(context, 0, dimensions, 2, &logits));
    RETURN_IF_ERROR(output(context, 1, dimensions, 2, &tokens));
    RETURN_IF_ERROR(output(context, 2, dimensions, 1, &normalizers));
    /* All chunks' rankings, and room for two of one row: tokens first, for they need the strictest alignment. */
    char *memory = reserve(&rank_scratch, (size_t)((room + 2 * num_best) * (int64_t)(sizeof(int64_t) + sizeof(float)) +
                                                   num_found * (int64_t)sizeof(Best) + rows * (int64_t)sizeof(float)));
    REQUIRE(memory != NULL, "out of memory");
    tasks.found = (Best *)memory;
    int64_t *all_tokens = (int64_t *)(tasks.found + num_found);
    float *all_logits = (float *)(all_tokens + room + 2 * num_best);
    tasks.floors = (_Atomic float *)(all_logits + room + 2 * num_best);
    for (int64_t row = 0; row < rows; row++) atomic_init(tasks.floors + row, -INFINITY);
    for (int64_t i = 0; i < num_found; i++) {
        tasks.found[i] = (Best){all_logits + i * num_best, all_tokens + i * num_best, 0, {-INFINITY, 0.0f}};
    }
    RETURN_IF_ERROR(quantize_rows(kernel, &hidden, &tasks.linear));
    if (chunks > 1 && rows * tasks.linear.inputs * outputs >= PARALLEL_FROM_MULTIPLICATIONS) {
        RETURN_IF_ERROR(parallel_for(context, rank_task, (size_t)chunks, 0, &tasks));
    } else {
        for (int64_t chunk = 0; chunk < chunks; chunk++) rank_task(&tasks, (size_t)chunk);
    }
    REQUIRE(!tasks.out_of_memory, "out of memory");
    for (int64_t row = 0; row < rows; row++) {
        Best best = tasks.found[row];
        for (int64_t chunk = 1; chunk < chunks; chunk++) {
            int64_t offset = room + chunk % 2 * num_best;
            Best merged = {all_logits + offset, all_tokens + offset, 0, {0.0f, 0.0f}};
            merge(&best, &tasks.found[chunk * rows + row], num_best, &merged);
            best = merged;
        }
        for (int64_t i = 0; i < num_best; i++) {
            /* Of a row that is not numbers nothing is best; what is named must at least be a token. */
            ((float *)logits)[row * num_best + i] = i < best.count ? best.logits[i] : -INFINITY;
            ((int64_t *)tokens)[row * num_best + i] = i < best.count ? best.tokens[i] : 0;
        }
        ((float *)normalizers)[row] = tasks.ranking.with_sum ? best.all.largest + logf(best.all.sum) : NAN;
    }
    return NULL;
}

#define OPERATOR(make, run)                                                                              \
    {                                                                                                    \
        .version = API_VERSION, .get_name = name_of, .get_provider = provider_of,                        \
        .get_input_type = input_type_of, .get_num_inputs = num_inputs_of, .get_output_type = output_type_of, \
        .get_num_outputs = num_outputs_of, .destroy = free, .get_input_kind = always_zero,               \
        .get_output_kind = always_zero, .get_input_memory = always_zero, .create_or_status = make,       \
        .compute_or_status = run                                                                         \
    }
#define LINEAR(operator_name, inputs, ...)                                                       \
    {                                                                                            \
        .operator= OPERATOR(create_linear, compute_linear), .name = operator_name,               \
        .num_inputs = inputs, .num_outputs = 1,                                                  \
        .input_types = {FLOAT, INT8, FLOAT, INT32, FLOAT, FLOAT, FLOAT, FLOAT}, .output_types = {FLOAT}, __VA_ARGS__ \
    }

static const Described operators[] = {
    LINEAR("Linear", 5, .relu = 0),
    LINEAR("LinearOfSome", 5, .relu = 0),
    LINEAR("LinearRelu", 5, .relu = 1),
    LINEAR("LinearAdd", 6, .residual = 1),
    LINEAR("LinearAddNormalization", 8, .residual = 1, .normalization = 1),
    {.operator= OPERATOR(create_attention, compute_cached_attention), .name = "SelfAttention", .num_inputs = 4,
     .num_outputs = 3, .input_types = {FLOAT, INT8, INT8, INT32}, .output_types = {FLOAT, INT8, INT8}},
    {.operator= OPERATOR(create_attention, compute_cached_attention), .name = "CrossAttention", .num_inputs = 6,
     .num_outputs = 3, .input_types = {FLOAT, FLOAT, FLOAT, INT8, INT8, INT32}, .output_types = {FLOAT, INT8, INT8}},
    {.operator= OPERATOR(create_attention, compute_source_attention), .name = "SourceAttention", .num_inputs = 2,
     .num_outputs = 1, .input_types = {FLOAT, INT32}, .output_types = {FLOAT}},
    {.operator= OPERATOR(create_linear, compute_best_tokens), .name = "BestTokens", .num_inputs = 8, .num_outputs = 3,
     .input_types = {FLOAT, INT8, FLOAT, INT32, FLOAT, FLOAT, INT64, BOOL}, .output_types = {FLOAT, INT64, FLOAT}},
};

/* ONNX Runtime calls this when the library is registered with a session's options. KVASIR_KERNELS names the instruction set
 * to use instead of the best one. */
__attribute__((visibility("default"))) Status *RegisterCustomOps(SessionOptions *options, const ApiBase *base) {
    api = base->get_api(API_VERSION);
    if (api == NULL) return NULL; /* older than any version that Kvasir runs on: the functions in the graph serve */
    kernels = choose_kernels(getenv("KVASIR_KERNELS"));
    REQUIRE(kernels != NULL, "KVASIR_KERNELS names no kernels that this processor can run");
    Domain *domain;
    RETURN_IF_ERROR(create_domain("kvasir", &domain));
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        RETURN_IF_ERROR(add_to_domain(domain, &operators[i].operator));
    }
    return add_domain(options, domain);
}

/* The instruction set whose kernels run here. */
__attribute__((visibility("default"))) const char *kvasir_kernels_name(void) {
    const Kernels *chosen = choose_kernels(getenv("KVASIR_KERNELS"));
    return chosen == NULL ? NULL : chosen->name;
}
