/* BestListedTokens: the inputs of BestTokens, then lists [lists, capacity] of columns in ascending order, the length of each
 * list [lists], and the list of each row [rows], or -1 for a row of all columns.
 *
 * Returns what BestTokens returns. A row with a list has the columns of its list only: candidates as well as the sum of the
 * exponentials. Each row is computed by itself, so its result does not depend on other rows or their lists. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ranking_operator.h"

static _Thread_local Scratch logit_scratch, place_scratch, collected_scratch;

typedef struct {
    LinearKernel linear; /* the first member: what the operators share reads it */
    int8_t *_Atomic by_column;
} ListedKernel;

typedef struct {
    const Linear *linear;
    const Ranking *ranking;
    const RankedRows *ranked;
    ColumnMatrix matrix;
    int64_t capacity;
    const int32_t *lists, *lengths, *list_of_row;
    const int64_t *rows;   /* that have lists */
    const int64_t *groups; /* [tasks + 1] places in `rows` where the tasks begin, each with rows of one list, and the end */
    int64_t num_rows;
    float *collected;      /* [num_rows, row_stride] the logits of each row's list, or NULL */
    int64_t row_stride;
    _Atomic int64_t *places; /* [num_rows] where the next chunk of a row's list probably begins */
    int out_of_memory;
} ListedTasks;

Status *create_listed(const Operator *operator, const void *const *given_api, const NodeInfo *info, void **kernel) {
    void *linear;
    RETURN_IF_ERROR(create_linear(operator, given_api, info, &linear));
    ListedKernel *kept = malloc(sizeof *kept);
    if (kept != NULL) *kept = (ListedKernel){*(const LinearKernel *)linear, NULL};
    free(linear);
    REQUIRE(kept != NULL, "out of memory");
    *kernel = kept;
    return NULL;
}

void destroy_listed(void *kernel) {
    free(((ListedKernel *)kernel)->by_column);
    free(kernel);
}

/* Return the first place of a column that is not below `least`, in ascending columns: `guess` if it is right. */
static int64_t first_place(const int32_t *columns, int64_t count, int64_t least, int64_t guess) {
    int64_t begin = 0;
    if ((guess == 0 || columns[guess - 1] < least) && (guess == count || columns[guess] >= least)) return guess;
    for (int64_t end = count; begin < end;) {
        const int64_t middle = (begin + end) / 2;
        if (columns[middle] < least) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin;
}

/* Return the weights of the matrix column by column, followed by their factors, or NULL if memory is short. They are made
 * when the first list is used. */
static const int8_t *columns_of(ListedKernel *kernel, const Linear *linear, int64_t width) {
    int8_t *made = kernel->by_column;
    if (made != NULL) return made;
    const int64_t size = linear->outputs * width, factors_size = linear->outputs * (int64_t)sizeof(ColumnFactors);
    made = aligned_alloc(CACHE_LINE, (size_t)(size + ROUND_UP(factors_size, CACHE_LINE)));
    if (made == NULL) return NULL;
    ColumnFactors *factors = (ColumnFactors *)(made + size);
    for (int64_t column = 0; column < linear->outputs; column++) {
        const int64_t in_panel = column % PANEL_COLUMNS;
        const int8_t *from = linear->weight + (column - in_panel) * linear->inputs + in_panel * 4;
        for (int64_t input = 0; input < width; input++) {
            made[column * width + input] = input < linear->inputs ? from[input / 4 * 4 * PANEL_COLUMNS + input % 4] : 0;
        }
        factors[column] = (ColumnFactors){linear->scales[column], linear->bias[column], linear->sums[column], 0};
    }
    int8_t *expected = NULL; /* unless another thread was faster */
    if (atomic_compare_exchange_strong(&kernel->by_column, &expected, made)) {
        return made;
    }
    free(made);
    return expected;
}

/* Multiply a chunk of all columns, and collect what is in lists. */
static void collect_chunk(void *data, size_t chunk) {
    ListedTasks *all = data;
    const Linear part = multiply_chunk(all->linear, chunk);
    if (part.output == NULL) {
        all->out_of_memory = 1;
        return;
    }
    const int64_t first_column = (int64_t)chunk * CHUNK_COLUMNS;
    for (int64_t i = 0; i < all->num_rows; i++) {
        const int64_t list = all->list_of_row[all->rows[i]], length = all->lengths[list];
        const int32_t *columns = all->lists + list * all->capacity;
        const float *from = part.output + all->rows[i] * part.stride;
        float *to = all->collected + i * all->row_stride;
        const int64_t guess = atomic_load_explicit(all->places + i, memory_order_relaxed);
        int64_t place = first_place(columns, length, first_column, guess);
        for (; place < length && columns[place] < first_column + part.outputs; place++) {
            to[place] = from[columns[place] - first_column];
        }
        atomic_store_explicit(all->places + i, place, memory_order_relaxed);
    }
}

static void rank_listed(void *data, size_t task) {
    ListedTasks *all = data;
    const int64_t *rows = all->rows + all->groups[task], num_rows = all->groups[task + 1] - all->groups[task];
    const int64_t num_best = all->ranking->num_best, stride = CHUNK_COLUMNS + 32;
    const int64_t list = all->list_of_row[rows[0]], length = all->lengths[list];
    const int32_t *columns = all->lists + list * all->capacity;
    /* Logits of each row and the mask of a chunk, each for whole vectors, and the best. Ordered by alignment, the strictest
     * first. */
    const size_t best_size = (size_t)num_best * (sizeof(int64_t) + sizeof(float));
    const size_t chunk_size = (size_t)stride * sizeof(float);
    char *memory = reserve(&logit_scratch, LISTED_ROWS * (best_size + chunk_size) + chunk_size);
    if (memory == NULL) {
        all->out_of_memory = 1;
        return;
    }
    int64_t *tokens = (int64_t *)memory;
    float *logits = (float *)(tokens + LISTED_ROWS * num_best), *mask = logits + LISTED_ROWS * stride;
    Best best[LISTED_ROWS];
    for (int64_t i = 0; i < num_rows; i++) {
        best[i] = (Best){mask + stride + i * num_best, tokens + i * num_best, 0, {-INFINITY, 0.0f}};
    }
    for (int64_t first = 0; first < length; first += CHUNK_COLUMNS) {
        const int64_t left = length - first, count = left < CHUNK_COLUMNS ? left : CHUNK_COLUMNS;
        if (all->collected == NULL) {
            kernels->multiply_listed(all->linear, &all->matrix, rows, num_rows, columns + first, count, logits, stride);
        }
        for (int64_t i = 0; i < count; i++) mask[i] = all->ranking->mask[columns[first + i]];
        const Ranking ranking = {num_best, all->ranking->with_sum, mask - first};
        for (int64_t i = 0; i < num_rows; i++) {
            float *of_row = logits + i * stride;
            if (all->collected != NULL) of_row = all->collected + (all->groups[task] + i) * all->row_stride + first;
            kernels->rank(&ranking, of_row, first, count, -INFINITY, &best[i]);
        }
    }
    for (int64_t i = 0; i < num_rows; i++) {
        for (int64_t place = 0; place < best[i].count; place++) best[i].tokens[place] = columns[best[i].tokens[place]];
        write_ranked(all->ranking, &best[i], rows[i], all->ranked);
    }
}

static Status *check_lists(const Tensor *lists, const Tensor *lengths, const Tensor *list_of_row, const Linear *linear) {
    REQUIRE(lists->num_dimensions == 2 && lengths->size == lists->dimensions[0] && list_of_row->size == linear->rows,
            "lists of columns, their lengths and the rows differ in size");
    for (int64_t row = 0; row < linear->rows; row++) {
        const int64_t list = ((const int32_t *)list_of_row->data)[row];
        REQUIRE(list >= -1 && list < lengths->size, "a row has a list that does not exist");
        if (list < 0) continue;
        const int64_t length = ((const int32_t *)lengths->data)[list];
        REQUIRE(length > 0 && length <= lists->dimensions[1], "the length of a list does not fit");
        const int32_t *columns = (const int32_t *)lists->data + list * lists->dimensions[1];
        /* In ascending order the first and the last are the bounds. */
        REQUIRE(columns[0] >= 0 && columns[length - 1] < linear->outputs, "a list has a column that does not exist");
    }
    return NULL;
}

static Status *run_tasks(Context *context, void (*task)(void *, size_t), int64_t count, int is_parallel, ListedTasks *tasks) {
    if (is_parallel) return parallel_for(context, task, (size_t)count, 0, tasks);
    for (int64_t i = 0; i < count; i++) task(tasks, (size_t)i);
    return NULL;
}

/* Rank rows that have lists: in tiles with all columns, if the lists have as many together, else with their columns. */
static Status *rank_lists(Context *context, ListedKernel *kernel, int64_t num_groups, int64_t num_products,
                          ListedTasks *tasks) {
    const Linear *linear = tasks->linear;
    const int is_parallel = num_groups > 1 && num_products * linear->inputs >= PARALLEL_FROM_MULTIPLICATIONS;
    if (num_products >= linear->outputs && kernels->uses_tiles(linear->rows, linear->inputs)) {
        tasks->row_stride = tasks->capacity + 32; /* ranking can write after the end */
        const size_t row_size = (size_t)tasks->row_stride * sizeof(float);
        tasks->places = reserve(&collected_scratch, (size_t)tasks->num_rows * (sizeof *tasks->places + row_size));
        REQUIRE(tasks->places != NULL, "out of memory");
        tasks->collected = (float *)(tasks->places + tasks->num_rows);
        for (int64_t i = 0; i < tasks->num_rows; i++) atomic_init(tasks->places + i, 0);
        const int64_t num_chunks = (linear->outputs + CHUNK_COLUMNS - 1) / CHUNK_COLUMNS;
        RETURN_IF_ERROR(run_tasks(context, collect_chunk, num_chunks, is_parallel, tasks));
    } else {
        const int64_t width = ROUND_UP(linear->inputs, CACHE_LINE);
        const int8_t *weights = columns_of(kernel, linear, width);
        REQUIRE(weights != NULL, "out of memory");
        tasks->matrix = (ColumnMatrix){weights, (const ColumnFactors *)(weights + linear->outputs * width), width};
    }
    RETURN_IF_ERROR(run_tasks(context, rank_listed, num_groups, is_parallel, tasks));
    REQUIRE(!tasks->out_of_memory, "out of memory");
    return NULL;
}

Status *compute_best_listed_tokens(void *data, Context *context) {
    ListedKernel *kernel = data;
    Tensor hidden, lists, lengths, list_of_row;
    Linear linear = {0};
    Ranking ranking;
    RankedRows ranked;
    RETURN_IF_ERROR(linear_inputs(context, &kernel->linear, &hidden, &linear));
    RETURN_IF_ERROR(read_ranking(context, &kernel->linear, linear.outputs, &ranking));
    RETURN_IF_ERROR(read_input(context, 8, &lists));
    RETURN_IF_ERROR(read_input(context, 9, &lengths));
    RETURN_IF_ERROR(read_input(context, 10, &list_of_row));
    RETURN_IF_ERROR(check_lists(&lists, &lengths, &list_of_row, &linear));
    RETURN_IF_ERROR(create_ranked(context, linear.rows, &ranking, &ranked));
    if (ranking.num_best == 0) return NULL;
    RETURN_IF_ERROR(quantize_rows(&kernel->linear, &hidden, &linear));
    int64_t *places = reserve(&place_scratch, (size_t)(2 * linear.rows + 1) * sizeof(int64_t) + 64);
    REQUIRE(places != NULL, "out of memory");
    int64_t *groups = places + linear.rows, num_groups = 0;
    const int32_t *list_of = list_of_row.data;
    int64_t num_listed = 0, num_products = 0; /* of a group and a column */
    for (int64_t row = 0; row < linear.rows; row++) {
        if (list_of[row] < 0) continue;
        const int64_t begun = num_groups == 0 ? 0 : groups[num_groups - 1];
        if (num_listed == 0 || num_listed - begun == LISTED_ROWS || list_of[places[begun]] != list_of[row]) {
            groups[num_groups++] = num_listed;
            num_products += ((const int32_t *)lengths.data)[list_of[row]];
        }
        places[num_listed++] = row;
    }
    groups[num_groups] = num_listed;
    if (num_listed > 0) {
        ListedTasks tasks = {.linear = &linear, .ranking = &ranking, .ranked = &ranked, .capacity = lists.dimensions[1],
                             .lists = lists.data, .lengths = lengths.data, .list_of_row = list_of, .rows = places,
                             .groups = groups, .num_rows = num_listed};
        RETURN_IF_ERROR(rank_lists(context, kernel, num_groups, num_products, &tasks));
    }
    if (num_listed == linear.rows) return NULL;
    /* The other rows, side by side. Their memory belongs to this thread. */
    uint8_t *quantized = (uint8_t *)linear.quantized;
    float *row_scales = (float *)linear.row_scales;
    int64_t num_whole = 0;
    for (int64_t row = 0; row < linear.rows; row++) {
        if (list_of[row] >= 0) continue;
        memmove(quantized + num_whole * linear.inputs, quantized + row * linear.inputs, (size_t)linear.inputs);
        row_scales[num_whole] = row_scales[row];
        places[num_whole++] = row;
    }
    linear.rows = num_whole;
    return rank_all(context, &linear, &ranking, places, &ranked);
}
