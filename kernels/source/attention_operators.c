/* SelfAttention and CrossAttention: one token of each row over the row's int8 cache.
 * SourceAttention: bidirectional attention in the encoder.
 *
 * SelfAttention: queries, keys and values side by side [rows, .., 3 * width], the cached keys and values
 * [rows, heads, cache_len, head_dim] and positions [rows], at which the new ones are stored. Outputs are the result and the
 * cache, which is updated in place if both are bound to the same memory. The memory of a cache is in another order than its
 * shape says: [rows, cache_len, heads, head_dim], see kernels/layout.py. A cache of one row belongs to all rows: they are
 * tokens of one sequence, each of which attends to those before it, and gets the bits that it gets alone.
 * BiasedSelfAttention and BiasedSourceAttention have one more input, biases of the scores by the key's position minus the
 * query's: [heads, n] from -(n - 1) to 0, and [heads, 2 * n - 1] from -(n - 1) to n - 1.
 * CrossAttention: queries [rows, .., width], the last key and value, which the cache contains already, then as above. Rows
 * can share a cache: the upper 16 bits of a position are how many rows further on the row's keys and values are, so caches
 * can have another number of rows than queries. Without that the upper bits are zero, as everywhere else.
 * SourceAttention: queries, keys and values side by side [rows, source_len, 3 * width] and the last position of each row
 * [rows]. Results after it are zero. */
#include <stdlib.h>
#include <string.h>

#include "operator.h"

#define CACHED_BYTES_OF_A_TASK (1 << 17)

static _Thread_local Scratch score_scratch, order_scratch;

typedef struct {
    const Definition *definition;
    int64_t heads;
    float scale, step;
} AttentionKernel;

Status *create_attention(const Operator *operator, const void *const *given_api, const NodeInfo *info, void **kernel) {
    (void)given_api;
    AttentionKernel made = {.definition = (const Definition *)operator};
    RETURN_IF_ERROR(get_int_attribute(info, "num_heads", &made.heads));
    RETURN_IF_ERROR(get_float_attribute(info, "scale", &made.scale));
    REQUIRE(made.heads > 0, "`num_heads` must be at least 1");
    if (made.definition->num_outputs == 3) RETURN_IF_ERROR(get_float_attribute(info, "step", &made.step));
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
    int appends, is_sequence;
    int8_t *keys, *values;
    const int32_t *positions;
    const int32_t *order; /* [rows], those with one cache after each other; or NULL */
    float *output;
    int out_of_memory;
} CachedTasks;

/* The row of the caches that has the keys and values of a row. */
static int64_t cache_of(const CachedTasks *all, int64_t row) {
    if (all->appends) return all->is_sequence ? 0 : row;
    return row + (all->positions[row] >> 16);
}

static int64_t position_of(const CachedTasks *all, int64_t row) {
    return all->appends ? all->positions[row] : all->positions[row] & 0xffff;
}

static int64_t row_at(const CachedTasks *all, int64_t at) { return all->order == NULL ? at : all->order[at]; }

static CachedRow cached_row(const CachedTasks *all, int64_t row) {
    const CachedAttention *attention = &all->attention;
    const int64_t first = cache_of(all, row) * attention->heads * attention->head_dim * attention->cache_len;
    return (CachedRow){all->keys + first, all->values + first, position_of(all, row) + 1};
}

/* Where the rows of a task begin: at the first row of a cache, near an equal share of all rows. */
static int64_t begin_of_task(const CachedTasks *all, size_t task) {
    int64_t at = all->rows * (int64_t)task / all->tasks;
    if (all->order == NULL) return at;
    while (at > 0 && at < all->rows && cache_of(all, row_at(all, at)) == cache_of(all, row_at(all, at - 1))) at++;
    return at;
}

/* How many of the rows from `at` on are attended together. */
static int64_t rows_together(const CachedTasks *all, int64_t at) {
    const CachedRow first = cached_row(all, row_at(all, at));
    if (all->order == NULL || at + SHARING_ROWS > all->rows || first.length > MAX_SHARED_POSITIONS) return 1;
    for (int64_t other = at + 1; other < at + SHARING_ROWS; other++) {
        const CachedRow row = cached_row(all, row_at(all, other));
        if (row.keys != first.keys || row.length != first.length) return 1;
    }
    return SHARING_ROWS;
}

/* Store the new key and value of a row. */
static void append_row(const CachedTasks *all, int64_t row) {
    const CachedAttention *attention = &all->attention;
    const int64_t width = attention->heads * attention->head_dim;
    const float *key = all->fused + row * all->stride + width;
    const CachedRow cached = cached_row(all, row);
    kernels->append(attention, key, all->positions[row], cached.keys);
    kernels->append(attention, key + width, all->positions[row], cached.values);
}

static void attend_task(void *data, size_t task) {
    CachedTasks *all = data;
    const CachedAttention *attention = &all->attention;
    const int64_t width = attention->heads * attention->head_dim;
    void *scratch =
        reserve(&score_scratch, SHARED_SCRATCH(attention->heads, attention->head_dim, attention->cache_len));
    if (scratch == NULL) {
        all->out_of_memory = 1;
        return;
    }
    const int64_t end = begin_of_task(all, task + 1);
    for (int64_t at = begin_of_task(all, task), count; at < end; at += count) {
        const float *queries[SHARING_ROWS];
        float *outputs[SHARING_ROWS];
        count = rows_together(all, at);
        for (int64_t i = 0; i < count; i++) {
            queries[i] = all->fused + row_at(all, at + i) * all->stride;
            outputs[i] = all->output + row_at(all, at + i) * width;
        }
        const int64_t row = row_at(all, at);
        const CachedRow cached = cached_row(all, row);
        if (all->appends && !all->is_sequence) append_row(all, row);
        /* After the last row of a task too: a thread usually gets neighbouring tasks. */
        CachedRow next = cached_row(all, row_at(all, at + count < all->rows ? at + count : at));
        if (at + count == all->rows) next.length = 0;
        if (count == SHARING_ROWS) {
            kernels->attend_together(attention, queries, cached, next, scratch, outputs);
        } else {
            kernels->attend(attention, queries[0], cached, next, scratch, outputs[0]);
        }
    }
}

/* Return the rows, those with one cache after each other; NULL if there is no memory. */
static const int32_t *rows_by_cache(const CachedTasks *all, int64_t num_caches) {
    int32_t *first = reserve(&order_scratch, (size_t)(num_caches + 1 + all->rows) * sizeof *first);
    if (first == NULL) return NULL;
    int32_t *order = first + num_caches + 1;
    memset(first, 0, (size_t)(num_caches + 1) * sizeof *first);
    for (int64_t row = 0; row < all->rows; row++) first[cache_of(all, row) + 1]++;
    for (int64_t cache = 1; cache <= num_caches; cache++) first[cache] += first[cache - 1];
    for (int64_t row = 0; row < all->rows; row++) order[first[cache_of(all, row)]++] = (int32_t)row;
    return order;
}

/* Read biases [heads, number of offsets] at this index. */
static Status *read_biases(const Context *context, size_t index, const AttentionKernel *kernel, const float **biases,
                           int64_t *num_biases) {
    Tensor tensor;
    RETURN_IF_ERROR(read_input(context, index, &tensor));
    REQUIRE(tensor.num_dimensions == 2 && tensor.dimensions[0] == kernel->heads, "biases do not fit the heads");
    *biases = tensor.data;
    *num_biases = tensor.dimensions[1];
    return NULL;
}

Status *compute_cached_attention(void *data, Context *context) {
    const AttentionKernel *kernel = data;
    const int is_biased = kernel->definition->num_inputs == 5;
    const int appends = kernel->definition->num_inputs < 6; /* SelfAttention */
    const size_t first_cache = appends ? 1 : 3;
    Tensor fused, caches[2], positions;
    RETURN_IF_ERROR(read_input(context, 0, &fused));
    RETURN_IF_ERROR(read_input(context, first_cache, &caches[0]));
    RETURN_IF_ERROR(read_input(context, first_cache + 1, &caches[1]));
    RETURN_IF_ERROR(read_input(context, first_cache + 2, &positions));
    const int64_t *dimensions = caches[0].dimensions;
    REQUIRE(caches[0].num_dimensions == 4 && caches[0].size == caches[1].size, "caches differ in size");
    REQUIRE(fused.num_dimensions > 0, "queries have no dimensions");
    CachedTasks tasks = {
        .attention = {dimensions[1], dimensions[3], dimensions[2], kernel->scale, kernel->step, NULL, 0},
        .fused = fused.data, .rows = positions.size, .appends = appends, .positions = positions.data};
    const int64_t width = dimensions[1] * dimensions[3];
    tasks.stride = appends ? 3 * width : width;
    REQUIRE(dimensions[1] == kernel->heads && dimensions[3] > 0 && dimensions[3] <= MAX_HEAD_DIM,
            "heads are too large or their number differs from the cache");
    tasks.is_sequence = appends && dimensions[0] == 1 && tasks.rows > 1;
    REQUIRE(fused.size == tasks.rows * tasks.stride && (!appends || tasks.is_sequence || dimensions[0] == tasks.rows),
            "queries do not fit the cache");
    REQUIRE(appends || dimensions[2] <= 1 << 16, "a position of the cache takes more than 16 bits");
    int64_t max_positions = dimensions[2];
    if (is_biased) {
        RETURN_IF_ERROR(read_biases(context, 4, kernel, &tasks.attention.biases, &tasks.attention.num_biases));
        if (tasks.attention.num_biases < max_positions) max_positions = tasks.attention.num_biases;
    }
    int64_t cached_bytes = 0;
    for (int64_t row = 0; row < tasks.rows; row++) {
        const int64_t position = position_of(&tasks, row), cache = cache_of(&tasks, row);
        REQUIRE(position >= 0 && position < max_positions, "a position is outside the cache");
        REQUIRE(cache >= 0 && cache < dimensions[0], "a row is outside the cache");
        cached_bytes += 2 * width * (position + 1);
    }
    int64_t output_dimensions[MAX_DIMENSIONS];
    for (size_t i = 0; i < fused.num_dimensions; i++) output_dimensions[i] = fused.dimensions[i];
    output_dimensions[fused.num_dimensions - 1] = width;
    void *attended, *present[2];
    RETURN_IF_ERROR(create_output(context, 0, output_dimensions, fused.num_dimensions, &attended));
    for (int kind = 0; kind < 2; kind++) {
        RETURN_IF_ERROR(create_output(context, (size_t)kind + 1, dimensions, 4, &present[kind]));
        /* Without rows there may be no memory. */
        if (caches[kind].size == 0 || present[kind] == caches[kind].data) continue;
        memcpy(present[kind], caches[kind].data, (size_t)caches[kind].size);
    }
    tasks.keys = present[0];
    tasks.values = present[1];
    tasks.output = attended;
    for (int64_t row = 0; tasks.is_sequence && row < tasks.rows; row++) append_row(&tasks, row);
    if (!appends) {
        tasks.order = rows_by_cache(&tasks, dimensions[0]);
        REQUIRE(tasks.order != NULL, "out of memory");
    }
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
    void *scratch = reserve(&score_scratch, SOURCE_SCRATCH(attention->source_len));
    if (scratch == NULL) {
        all->out_of_memory = 1;
        return;
    }
    float *to = all->output + row * attention->source_len * width;
    kernels->attend_in_source(attention, all->fused + row * attention->source_len * 3 * width, head, length, scratch, to);
    if (head == 0) memset(to + length * width, 0, (size_t)((attention->source_len - length) * width) * sizeof(float));
}

Status *compute_source_attention(void *data, Context *context) {
    const AttentionKernel *kernel = data;
    Tensor fused, last_positions;
    RETURN_IF_ERROR(read_input(context, 0, &fused));
    RETURN_IF_ERROR(read_input(context, 1, &last_positions));
    REQUIRE(fused.num_dimensions == 3 && fused.dimensions[2] % (3 * kernel->heads) == 0,
            "queries, keys and values do not divide into heads");
    REQUIRE(fused.dimensions[2] <= 3 * kernel->heads * MAX_HEAD_DIM, "heads are too large");
    const int64_t rows = fused.dimensions[0], source_len = fused.dimensions[1], width = fused.dimensions[2] / 3;
    SourceTasks tasks = {.attention = {source_len, kernel->heads, width / kernel->heads, kernel->scale, NULL, 0},
                         .fused = fused.data, .last_positions = last_positions.data};
    REQUIRE(last_positions.size == rows, "there must be one last position for each row");
    if (kernel->definition->num_inputs == 3) {
        RETURN_IF_ERROR(read_biases(context, 2, kernel, &tasks.attention.biases, &tasks.attention.num_biases));
        REQUIRE(source_len <= (tasks.attention.num_biases + 1) / 2, "there are too few biases for the source");
    }
    for (int64_t row = 0; row < rows; row++) {
        REQUIRE(tasks.last_positions[row] >= 0 && tasks.last_positions[row] < source_len,
                "a last position is outside the source");
    }
    void *attended;
    const int64_t dimensions[] = {rows, source_len, width};
    RETURN_IF_ERROR(create_output(context, 0, dimensions, 3, &attended));
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
