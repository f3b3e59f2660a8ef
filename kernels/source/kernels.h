/* The kernels that the operators call: one table of functions for each instruction set. */
#ifndef KVASIR_KERNELS_H
#define KVASIR_KERNELS_H

#include <stdint.h>

/* Columns of a matrix that are stored together: [ceil(outputs / 64), inputs / 4, 64, 4], zeros after the last column. */
#define PANEL_COLUMNS 64
#define MAX_HEAD_DIM 256
#define CACHE_LINE 64 /* bytes */
#define ROWS_IN_MEMORY 16

typedef struct {
    int64_t rows, inputs, outputs;
    const int8_t *weight;      /* in panels */
    const float *scales;       /* [outputs] factors of the columns' int8 numbers */
    const int32_t *sums;       /* [outputs] sums of the columns' int8 numbers */
    const float *bias;         /* [outputs] */
    const uint8_t *quantized;  /* [rows, inputs], in memory for a multiple of ROWS_IN_MEMORY rows */
    const float *row_scales;   /* [rows] */
    int32_t zero_point;
    int relu;
    const float *residual;     /* [rows, stride], or NULL */
    float *output;             /* [rows, stride] */
    int64_t stride;            /* `outputs` or more */
    /* Of each block of rows: the fours of inputs that are not all zero, [blocks, inputs / 4], and how many, [blocks]. Only
     * products with a residual skip others. NULL: none is skipped. */
    const int32_t *used, *num_used;
} Linear;

#define ROUND_UP(number, unit) (((number) + (unit) - 1) / (unit) * (unit))
/* Numbers of each head in the scratch memory of attention over `length` positions: whole vectors, and one more. */
#define PADDED_LENGTH(length) (ROUND_UP(length, 16) + 16)
/* Bytes: queries in 16 bits, two numbers of each head, then a float and two bytes for each position. */
#define ATTENTION_SCRATCH(heads, head_dim, length) \
    ((size_t)((heads) * (2 * ROUND_UP(head_dim, 16) + 8 + 6 * PADDED_LENGTH(length))))

typedef struct {
    int64_t heads, head_dim, cache_len;
    float scale;               /* of products of queries and keys */
    float step;                /* of int8 keys and values */
    const float *biases;       /* [heads, num_biases] added to scores, by the key's offset; the last is 0. Or NULL */
    int64_t num_biases;
} CachedAttention;

/* The first `length` positions of the keys and values of a row, [cache_len, heads, head_dim]. */
typedef struct {
    int8_t *keys, *values;
    int64_t length;
} CachedRow;

/* Rows with one cache that are attended together: the beams of a request. Their sums hold this many positions. */
#define SHARING_ROWS 4
#define MAX_SHARED_POSITIONS 1024
/* Bytes: four times the above. Shares have two bytes as well. */
#define SHARED_SCRATCH(heads, head_dim, length) (SHARING_ROWS * ATTENTION_SCRATCH(heads, head_dim, length))

/* Bytes: the scores of two queries. */
#define SOURCE_SCRATCH(length) ((size_t)(2 * PADDED_LENGTH(length)) * sizeof(float))

typedef struct {
    int64_t source_len, heads, head_dim;
    float scale;
    const float *biases;       /* [heads, num_biases] added to scores, by the key's offset; the middle is 0. Or NULL */
    int64_t num_biases;
} SourceAttention;

/* Columns of logits that are ranked together. The same for every batch: sums of exponentials depend on it. */
#define CHUNK_COLUMNS 1024

/* What belongs to a column besides its weights: one load reads all of it. */
typedef struct {
    float scale, bias;
    int32_t sum, unused;
} ColumnFactors;

/* A matrix column by column: in panels, the numbers of a column are 256 bytes apart. */
typedef struct {
    const int8_t *weights;     /* [outputs, width], zeros after the inputs, up to a multiple of CACHE_LINE */
    const ColumnFactors *factors;
    int64_t width;
} ColumnMatrix;

/* Rows with one list that are multiplied with a column while it is near: the beams of a request. */
#define LISTED_ROWS 4

typedef struct {
    int64_t num_best;
    int with_sum;
    const float *mask;         /* [outputs] at most 0; added to logits that are ranked, not to those that are summed */
} Ranking;

/* A sum of exponentials: `sum` times e ** `largest`. */
typedef struct {
    float largest, sum;
} Sum;

/* Ranking of one row after some columns: the best `count`, best first and equal ones in order, and the sum of all. */
typedef struct {
    float *logits;
    int64_t *tokens;
    int64_t count;
    Sum all;
} Best;

typedef struct {
    const char *name;
    /* Rows of `inputs` floats to unsigned bytes with one scale for each row: zero point 128, or 0 if `is_positive`. */
    void (*quantize)(const float *hidden, int64_t rows, int64_t inputs, int is_positive, uint8_t *quantized,
                     float *row_scales);
    /* Find the fours of inputs that `multiply` must read, as in Linear, and return whether enough others can be skipped.
     * `used` has a capacity of [rows, inputs / 4] and sixteen more, `num_used` of [rows]. */
    int (*find_used)(const uint8_t *quantized, int64_t rows, int64_t inputs, int32_t *used, int32_t *num_used);
    /* Some panels of a product, with bias, ReLU and residual. */
    void (*multiply)(const Linear *, int64_t first_panel, int64_t end_panel);
    /* Whether `multiply` takes 16 rows and columns at once, so that few columns take as long as many. */
    int (*uses_tiles)(int64_t rows, int64_t inputs);
    /* Products of up to LISTED_ROWS rows with `count` columns, with bias, to `output` [num_rows, stride], in memory for a
     * multiple of four columns. Rows can be read up to the matrix's width. The numbers are those of `multiply`. */
    void (*multiply_listed)(const Linear *, const ColumnMatrix *, const int64_t *rows, int64_t num_rows,
                            const int32_t *columns, int64_t count, float *output, int64_t stride);
    void (*normalize)(float *hidden, int64_t rows, int64_t width, const float *weight, const float *bias, float epsilon);
    /* [heads * head_dim] floats to int8 numbers at one position of a cache [cache_len, heads, head_dim]. */
    void (*append)(const CachedAttention *, const float *values, int64_t position, int8_t *cache);
    /* One row's query over its keys and values. `next` is read next, and has the length 0 if nothing is. `scratch` has a
     * capacity of ATTENTION_SCRATCH bytes. */
    void (*attend)(const CachedAttention *, const float *query, CachedRow row, CachedRow next, void *scratch, float *output);
    /* The same, bit by bit, for SHARING_ROWS queries over at most MAX_SHARED_POSITIONS keys and values, without biases.
     * `scratch` has a capacity of SHARED_SCRATCH bytes. */
    void (*attend_together)(const CachedAttention *, const float *const *queries, CachedRow row, CachedRow next,
                            void *scratch, float *const *outputs);
    /* The first `length` positions of one head of one sentence: queries, keys and values side by side in `fused`
     * [source_len, 3 * heads * head_dim], to `output` [source_len, heads * head_dim]. `scratch` has a capacity of
     * SOURCE_SCRATCH bytes. */
    void (*attend_in_source)(const SourceAttention *, const float *fused, int64_t head, int64_t length, void *scratch,
                             float *output);
    /* Add the logits of columns from `first` on to the ranking of a row: at most CHUNK_COLUMNS, in memory for whole
     * vectors. Logits below `floor` can be skipped. */
    void (*rank)(const Ranking *, float *logits, int64_t first, int64_t count, float floor, Best *);
    Sum (*add_sums)(Sum earlier, Sum later);
} Kernels;

/* Return the best table that this processor can run, or the named one ("amx", "avx512vnni", "avxvnni", "avx2one", "avx2",
 * "i8mm", "dotprod", "portable"), or NULL. */
const Kernels *choose_kernels(const char *name);

#endif
