/* Rows of a KV cache, as searches move them. */
#ifndef KVASIR_CACHE_H
#define KVASIR_CACHE_H

#include <stdint.h>

#define FREE -1

/* The arrays of kernels/cache_rows.py, which documents them. Sizes are in bytes. A row of a cache consists of blocks of
 * positions: one for each head, or a single one of all heads. With a recurrent
 * decoder there are states [planes / 2, rows, state_size] instead of a past; otherwise `state_size` is 0. If rows share
 * sources, the row `source_rows[row]` of the cross cache has the keys and values of a row's source. */
typedef struct {
    int64_t planes, rows, blocks, position_size, self_block_size, cross_block_size, last_size, state_size, is_int8,
        shares_sources;
    float *step; /* [1] of int8 numbers */
    char *self_cache, *cross_cache, *last_cross, *states;
    int32_t *previous_tokens, *past_lengths, *source_lengths, *list_of_row, *source_rows, *source_places;
    int64_t *owners, *cross_owners; /* of rows; FREE */
    int64_t *num_live;              /* [1] */
} Cache;

/* Let every beam of `num` requests continue its parent with its token, and write the new rows of the beams to `rows` [num,
 * beam_size]. `parents` [num, beam_size] are beams of the same request. The first child stays in its parent's row; others
 * are copied to rows of beams without children. A request that has only its first row (all of its `rows` are equal) is
 * assigned the others, and all its beams continue that row. Finished requests stay as they are. `common` [num, beam_size,
 * beam_size], or NULL, is the number of tokens that two beams have in common: in an int8 cache their rows are equal so
 * far, and are not copied. Returns 0, or -1 if there were too few free rows. */
int continue_beams(const Cache *cache, int64_t num, int64_t beam_size, int64_t *rows, const int64_t *parents,
                   const int32_t *tokens, const uint8_t *finished, const int32_t *common);

/* Free the rows of finished requests. */
void release_finished(const Cache *cache, int64_t num, int64_t beam_size, const int64_t *rows, const uint8_t *finished);

#endif
