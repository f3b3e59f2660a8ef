/* BestTokens: hidden [rows, inputs], weight, scales, sums, bias [outputs] as in Linear, mask [outputs], the number of
 * candidates [1], whether log normalisers are required [1].
 *
 * Returns the best logits and their tokens [rows, candidates], and the logarithm of the sum of all exponentials [rows], NaN
 * where it is not required. Without candidates nothing is multiplied. Chunks of columns are ranked separately and merged in
 * order, so the result depends on neither threads nor other rows. */
#include <math.h>
#include <stdatomic.h>

#include "ranking_operator.h"

static _Thread_local Scratch logit_scratch, rank_scratch;

typedef struct {
    Linear linear;
    Ranking ranking;
    Best *found;           /* [chunks, rows] */
    _Atomic float *floors; /* [rows] lower bound of the best logits after the finished chunks */
    int out_of_memory;
} RankingTasks;

Linear multiply_chunk(const Linear *linear, size_t chunk) {
    const int64_t first = (int64_t)chunk * CHUNK_COLUMNS, left = linear->outputs - first;
    Linear part = *linear;
    part.weight += first * part.inputs;
    part.scales += first;
    part.sums += first;
    part.bias += first;
    part.outputs = left < CHUNK_COLUMNS ? left : CHUNK_COLUMNS;
    /* Rows whose distance is a power of two compete for the same lines of a cache. */
    part.stride = ROUND_UP(part.outputs, 16) + 16;
    part.output = reserve(&logit_scratch, (size_t)(part.rows * part.stride) * sizeof(float));
    if (part.output != NULL) kernels->multiply(&part, 0, (part.outputs + PANEL_COLUMNS - 1) / PANEL_COLUMNS);
    return part;
}

static void rank_task(void *data, size_t chunk) {
    RankingTasks *all = data;
    const Linear linear = multiply_chunk(&all->linear, chunk);
    if (linear.output == NULL) {
        all->out_of_memory = 1;
        return;
    }
    const int64_t first = (int64_t)chunk * CHUNK_COLUMNS, count = linear.outputs;
    for (int64_t row = 0; row < linear.rows; row++) {
        Best *best = all->found + (int64_t)chunk * linear.rows + row;
        float floor = atomic_load_explicit(all->floors + row, memory_order_relaxed);
        kernels->rank(&all->ranking, linear.output + row * linear.stride, first, count, floor, best);
        /* Another thread can lower it again: more logits are compared, the result is the same. */
        if (best->count == all->ranking.num_best && best->logits[best->count - 1] > floor) {
            atomic_store_explicit(all->floors + row, best->logits[best->count - 1], memory_order_relaxed);
        }
    }
}

/* Merge the rankings of earlier and later columns of a row into `merged`, which has a capacity of `num_best`. */
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

Status *read_ranking(const Context *context, const LinearKernel *kernel, int64_t outputs, Ranking *ranking) {
    Tensor mask, num_candidates, with_scores;
    RETURN_IF_ERROR(read_given(context, &kernel->constants, 5, &mask));
    RETURN_IF_ERROR(read_input(context, 6, &num_candidates));
    RETURN_IF_ERROR(read_input(context, 7, &with_scores));
    REQUIRE(mask.size == outputs && num_candidates.size == 1 && with_scores.size == 1,
            "the mask or an option of a ranking has the wrong size");
    const int64_t num_best = *(const int64_t *)num_candidates.data;
    REQUIRE(num_best >= 0 && num_best <= outputs, "the number of candidates must be from 0 to the number of tokens");
    *ranking = (Ranking){num_best, *(const uint8_t *)with_scores.data != 0, mask.data};
    return NULL;
}

Status *create_ranked(Context *context, int64_t rows, const Ranking *ranking, RankedRows *ranked) {
    const int64_t dimensions[] = {rows, ranking->num_best};
    void *logits, *tokens, *normalizers;
    RETURN_IF_ERROR(create_output(context, 0, dimensions, 2, &logits));
    RETURN_IF_ERROR(create_output(context, 1, dimensions, 2, &tokens));
    RETURN_IF_ERROR(create_output(context, 2, dimensions, 1, &normalizers));
    *ranked = (RankedRows){logits, tokens, normalizers};
    for (int64_t row = 0; ranking->num_best == 0 && row < rows; row++) ranked->normalizers[row] = NAN;
    return NULL;
}

void write_ranked(const Ranking *ranking, const Best *best, int64_t row, const RankedRows *ranked) {
    for (int64_t i = 0; i < ranking->num_best; i++) {
        /* A row of NaN has no best tokens; the output must be valid tokens all the same. */
        ranked->logits[row * ranking->num_best + i] = i < best->count ? best->logits[i] : -INFINITY;
        ranked->tokens[row * ranking->num_best + i] = i < best->count ? best->tokens[i] : 0;
    }
    ranked->normalizers[row] = ranking->with_sum ? best->all.largest + logf(best->all.sum) : NAN;
}

Status *rank_all(Context *context, const Linear *linear, const Ranking *ranking, const int64_t *places,
                 const RankedRows *ranked) {
    RankingTasks tasks = {.linear = *linear, .ranking = *ranking};
    const int64_t rows = linear->rows, num_best = ranking->num_best;
    const int64_t chunks = (linear->outputs + CHUNK_COLUMNS - 1) / CHUNK_COLUMNS;
    const int64_t num_found = chunks * rows, num_kept = num_found * num_best;
    /* The rankings of all chunks, and two more for merging. Ordered by alignment, the strictest first. */
    char *memory = reserve(&rank_scratch, (size_t)((num_kept + 2 * num_best) * (int64_t)(sizeof(int64_t) + sizeof(float)) +
                                                   num_found * (int64_t)sizeof(Best) + rows * (int64_t)sizeof(float)));
    REQUIRE(memory != NULL, "out of memory");
    tasks.found = (Best *)memory;
    int64_t *all_tokens = (int64_t *)(tasks.found + num_found);
    float *all_logits = (float *)(all_tokens + num_kept + 2 * num_best);
    tasks.floors = (_Atomic float *)(all_logits + num_kept + 2 * num_best);
    for (int64_t row = 0; row < rows; row++) atomic_init(tasks.floors + row, -INFINITY);
    for (int64_t i = 0; i < num_found; i++) {
        tasks.found[i] = (Best){all_logits + i * num_best, all_tokens + i * num_best, 0, {-INFINITY, 0.0f}};
    }
    if (chunks > 1 && rows * linear->inputs * linear->outputs >= PARALLEL_FROM_MULTIPLICATIONS) {
        RETURN_IF_ERROR(parallel_for(context, rank_task, (size_t)chunks, 0, &tasks));
    } else {
        for (int64_t chunk = 0; chunk < chunks; chunk++) rank_task(&tasks, (size_t)chunk);
    }
    REQUIRE(!tasks.out_of_memory, "out of memory");
    for (int64_t row = 0; row < rows; row++) {
        Best best = tasks.found[row];
        for (int64_t chunk = 1; chunk < chunks; chunk++) {
            int64_t offset = num_kept + chunk % 2 * num_best;
            Best merged = {all_logits + offset, all_tokens + offset, 0, {0.0f, 0.0f}};
            merge(&best, &tasks.found[chunk * rows + row], num_best, &merged);
            best = merged;
        }
        write_ranked(ranking, &best, places == NULL ? row : places[row], ranked);
    }
    return NULL;
}

Status *compute_best_tokens(void *data, Context *context) {
    const LinearKernel *kernel = data;
    Tensor hidden;
    Linear linear = {0};
    Ranking ranking;
    RankedRows ranked;
    RETURN_IF_ERROR(linear_inputs(context, kernel, &hidden, &linear));
    RETURN_IF_ERROR(read_ranking(context, kernel, linear.outputs, &ranking));
    RETURN_IF_ERROR(create_ranked(context, linear.rows, &ranking, &ranked));
    if (ranking.num_best == 0) return NULL;
    RETURN_IF_ERROR(quantize_rows(kernel, &hidden, &linear));
    return rank_all(context, &linear, &ranking, NULL, &ranked);
}
