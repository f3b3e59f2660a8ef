/* What the operators that rank the logits of a projection share. */
#ifndef KVASIR_RANKING_OPERATOR_H
#define KVASIR_RANKING_OPERATOR_H

#include "linear_operator.h"

/* Outputs of a ranking: logits and tokens [rows, num_best], normalisers [rows]. */
typedef struct {
    float *logits;
    int64_t *tokens;
    float *normalizers;
} RankedRows;

/* Read and check the mask [outputs], the number of candidates [1], and whether normalisers are required [1]. */
Status *read_ranking(const Context *context, const LinearKernel *kernel, int64_t outputs, Ranking *ranking);
Status *create_ranked(Context *context, int64_t rows, const Ranking *ranking, RankedRows *ranked);
void write_ranked(const Ranking *ranking, const Best *best, int64_t row, const RankedRows *ranked);

/* Multiply rows with the columns of a chunk. Return the product with its output, which belongs to this thread and has memory
 * for a vector after each row; or an output that is NULL if memory is short. */
Linear multiply_chunk(const Linear *linear, size_t chunk);

/* Rank all columns of quantised rows. Row `i` is written to `places[i]`, or to `i` if `places` is NULL. */
Status *rank_all(Context *context, const Linear *linear, const Ranking *ranking, const int64_t *places,
                 const RankedRows *ranked);

#endif
