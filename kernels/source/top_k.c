/* The best numbers of rows, such as the best tokens of rows of logits. */
#include <stdint.h>
#include <string.h>

#define GROUP 16

/* Return the position of a value behind those that are not smaller; `values` descend. */
static int64_t position_of(float value, const float *values, int64_t count) {
    int64_t low = 0;
    while (low < count) {
        const int64_t middle = (low + count) / 2;
        if (values[middle] >= value) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

/* Find the largest `num_best` of `size` numbers, largest first and equal ones in order; see kernels/candidates.py. NaN counts as
 * minus infinity. */
static void best_of_row(const float *row, int64_t size, int64_t num_best, int64_t *indices, float *values) {
    int64_t found = 0;
    for (int64_t first = 0; first < size; first += GROUP) {
        const int64_t end = first + GROUP < size ? first + GROUP : size;
        if (found == num_best && end - first == GROUP) {
            /* Few groups have a number that is large enough. This loop has no branch, so compilers use vectors. */
            const float threshold = values[num_best - 1];
            int32_t is_better = 0;
            for (int64_t i = 0; i < GROUP; i++) is_better |= row[first + i] > threshold;
            if (!is_better) continue;
        }
        for (int64_t i = first; i < end; i++) {
            const float value = row[i] == row[i] ? row[i] : -__builtin_inff();
            if (found == num_best && !(value > values[num_best - 1])) continue;
            if (found < num_best) found++;
            const int64_t at = position_of(value, values, found - 1), moved = found - 1 - at;
            memmove(values + at + 1, values + at, (size_t)moved * sizeof *values);
            memmove(indices + at + 1, indices + at, (size_t)moved * sizeof *indices);
            values[at] = value;
            indices[at] = i;
        }
    }
}

/* Find the best numbers of each row; `indices` and `values` are [rows, num_best], and num_best is at most `size`. */
__attribute__((visibility("default"))) void kvasir_top_k(const float *scores, int64_t rows, int64_t size, int64_t num_best,
                                                         int64_t *indices, float *values) {
    for (int64_t row = 0; row < rows; row++) {
        best_of_row(scores + row * size, size, num_best, indices + row * num_best, values + row * num_best);
    }
}
