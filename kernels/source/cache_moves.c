/* Rows of a KV cache: their beginning, moves after a beam step, and the closing of holes. */
#include <string.h>

#include "cache.h"
#include "kernels.h"

#define EXPORTED __attribute__((visibility("default")))
#define AHEAD 4
/* See SOURCE_PLACE_UNIT in kernels/cache_rows.py. */
#define PLACE_UNIT 65536

/* Copy bytes begin to end of every block of a row to another row, in every plane. */
static void copy_row(char *cache, const Cache *all, int64_t block_size, int64_t from, int64_t to, int64_t begin,
                     int64_t end) {
    const int64_t row_size = all->blocks * block_size, num_blocks = all->planes * all->blocks;
    for (int64_t ahead = 0; ahead < num_blocks + AHEAD; ahead++) {
        /* Blocks are far apart: the next ones are prefetched while one is copied. */
        if (ahead < num_blocks) {
            const int64_t offset = ahead / all->blocks * all->rows * row_size + ahead % all->blocks * block_size;
            for (int64_t at = begin; at < end; at += CACHE_LINE) {
                __builtin_prefetch(cache + offset + from * row_size + at);
                __builtin_prefetch(cache + offset + to * row_size + at, 1);
            }
        }
        const int64_t block = ahead - AHEAD;
        if (block < 0) continue;
        char *first = cache + block / all->blocks * all->rows * row_size + block % all->blocks * block_size;
        memcpy(first + to * row_size + begin, first + from * row_size + begin, (size_t)(end - begin));
    }
}

/* Let a row have a source, of so many tokens, in a row of the cross cache. */
static void assign_source(const Cache *all, int64_t row, int64_t source_row, int64_t source_len) {
    all->source_lengths[row] = (int32_t)source_len;
    all->source_rows[row] = (int32_t)source_row;
    all->source_places[row] = (int32_t)(source_len + (source_row - row) * PLACE_UNIT);
}

/* Copy a row with its source, from past position `begin` on; what is before is equal in both rows. */
static void move_row(const Cache *all, int64_t from, int64_t to, int64_t begin) {
    const int64_t position = all->position_size;
    if (all->state_size > 0) {
        for (int64_t layer = 0; layer < all->planes / 2; layer++) {
            char *first = all->states + layer * all->rows * all->state_size;
            memcpy(first + to * all->state_size, first + from * all->state_size, (size_t)all->state_size);
        }
    } else {
        const int64_t end = all->past_lengths[from] * position;
        copy_row(all->self_cache, all, all->self_block_size, from, to, begin * position, end);
    }
    if (!all->shares_sources && all->cross_owners[from] != all->cross_owners[to]) {
        copy_row(all->cross_cache, all, all->cross_block_size, from, to, 0, all->source_lengths[from] * position);
        for (int64_t plane = 0; plane < all->planes; plane++) {
            char *first = all->last_cross + plane * all->rows * all->last_size;
            memcpy(first + to * all->last_size, first + from * all->last_size, (size_t)all->last_size);
        }
        all->cross_owners[to] = all->cross_owners[from];
    }
    all->previous_tokens[to] = all->previous_tokens[from];
    all->past_lengths[to] = all->past_lengths[from];
    assign_source(all, to, all->shares_sources ? all->source_rows[from] : to, all->source_lengths[from]);
    all->list_of_row[to] = all->list_of_row[from];
}

/* Return the first free row from `row` on; `rows` if there is none. */
static int64_t free_row(const Cache *all, int64_t row) {
    while (row < all->rows && all->owners[row] != FREE) row++;
    return row;
}

/* Return the first row of the cross cache that no live row reads. There is one while a row is free. */
static int64_t free_source_row(const Cache *all) {
    uint8_t is_read[all->rows];
    memset(is_read, 0, sizeof is_read);
    for (int64_t row = 0; row < all->rows; row++) {
        if (all->owners[row] != FREE) is_read[all->source_rows[row]] = 1;
    }
    int64_t row = 0;
    while (is_read[row]) row++;
    return row;
}

/* Assign the first free row to a request, and begin it with its cross keys and values and an empty past. `cross` [planes,
 * heads, source_len, head_dim] has planes and heads at these distances in bytes. Returns the row, or -1 if none is free. */
EXPORTED int64_t kvasir_begin_row(const Cache *all, int64_t owner, const char *cross, int64_t plane_stride,
                                  int64_t head_stride, int64_t num_heads, int64_t source_len, int64_t start_token) {
    const int64_t row = free_row(all, 0), heads_of_block = num_heads / all->blocks, block_size = all->cross_block_size;
    const int64_t head_size = all->position_size / heads_of_block, last = (source_len - 1) * head_size;
    if (row == all->rows) return -1;
    const int64_t source_row = all->shares_sources ? free_source_row(all) : row;
    for (int64_t plane = 0; plane < all->planes; plane++) {
        char *first = all->cross_cache + (plane * all->rows + source_row) * all->blocks * block_size;
        char *last_cross = all->last_cross + (plane * all->rows + row) * all->last_size;
        for (int64_t head = 0; head < num_heads; head++) {
            const char *from = cross + plane * plane_stride + head * head_stride;
            char *to = first + head / heads_of_block * block_size + head % heads_of_block * head_size;
            for (int64_t position = 0; position < source_len; position++) {
                memcpy(to + position * all->position_size, from + position * head_size, (size_t)head_size);
            }
            if (all->shares_sources) continue; /* the last position is read there */
            if (!all->is_int8) {
                memcpy(last_cross + head * head_size, from + last, (size_t)head_size);
                continue;
            }
            float *numbers = (float *)last_cross + head * head_size;
            for (int64_t i = 0; i < head_size; i++) numbers[i] = (float)((const int8_t *)from + last)[i] * *all->step;
        }
    }
    all->owners[row] = all->cross_owners[row] = owner;
    ++*all->num_live;
    assign_source(all, row, source_row, source_len);
    all->past_lengths[row] = 0;
    all->previous_tokens[row] = (int32_t)start_token;
    all->list_of_row[row] = -1;
    return row;
}

/* Continue the beams of a request. See continue_beams. */
static void continue_request(const Cache *all, int64_t beam_size, int64_t *rows, const int64_t *parents,
                             const int32_t *common) {
    int64_t own[beam_size], childless[beam_size], num_childless = 0, num_copied = 0;
    memcpy(own, rows, sizeof own);
    for (int64_t beam = 0; beam < beam_size; beam++) {
        int continues = 0;
        for (int64_t child = 0; child < beam_size; child++) continues |= parents[child] == beam;
        if (!continues) childless[num_childless++] = beam;
    }
    for (int64_t child = 0; child < beam_size; child++) {
        const int64_t parent = parents[child];
        int is_first = 1;
        for (int64_t earlier = 0; earlier < child; earlier++) is_first &= parents[earlier] != parent;
        rows[child] = own[parent];
        if (is_first) continue;
        const int64_t other = childless[num_copied++];
        rows[child] = own[other];
        /* The start token precedes the tokens that both have in common. */
        int64_t begin = common == NULL ? 0 : common[parent * beam_size + other] + 1;
        const int64_t end = all->past_lengths[own[parent]];
        move_row(all, own[parent], own[other], begin < end ? begin : end);
    }
}

int continue_beams(const Cache *all, int64_t num, int64_t beam_size, int64_t *rows, const int64_t *parents,
                   const int32_t *tokens, const uint8_t *finished, const int32_t *common) {
    int64_t unassigned = 0;
    if (!all->is_int8) common = NULL; /* in floats, rows of a product may differ in their last bits */
    for (int64_t request = 0; request < num; request++, rows += beam_size, parents += beam_size, tokens += beam_size) {
        if (finished[request]) continue;
        if (beam_size > 1 && rows[0] == rows[beam_size - 1]) {
            for (int64_t beam = 1; beam < beam_size; beam++) {
                unassigned = free_row(all, unassigned);
                if (unassigned == all->rows) return -1;
                all->owners[unassigned] = all->owners[rows[0]];
                move_row(all, rows[0], unassigned, 0);
                rows[beam] = unassigned;
                ++*all->num_live;
            }
        } else {
            const int32_t *own = common == NULL ? NULL : common + request * beam_size * beam_size;
            continue_request(all, beam_size, rows, parents, own);
        }
        for (int64_t beam = 0; beam < beam_size; beam++) all->previous_tokens[rows[beam]] = tokens[beam];
    }
    return 0;
}

void release_finished(const Cache *all, int64_t num, int64_t beam_size, const int64_t *rows, const uint8_t *finished) {
    for (int64_t request = 0; request < num; request++) {
        for (int64_t i = request * beam_size; finished[request] && i < (request + 1) * beam_size; i++) {
            if (all->owners[rows[i]] != FREE) --*all->num_live; /* before its first step, all rows of a request are one */
            all->owners[rows[i]] = all->cross_owners[rows[i]] = FREE;
        }
    }
}

EXPORTED int64_t kvasir_continue_beams(const Cache *all, int64_t num, int64_t beam_size, int64_t *rows,
                                       const int64_t *parents, const int32_t *tokens, const uint8_t *finished,
                                       const int32_t *common) {
    return continue_beams(all, num, beam_size, rows, parents, tokens, finished, common);
}

/* Move the last live rows into the free rows before them. Writes the new index of each row to `moved_to` [rows], and
 * returns the number of moves. */
EXPORTED int64_t kvasir_close_holes(const Cache *all, int64_t *moved_to) {
    int64_t num_live = 0, num_moves = 0;
    for (int64_t row = 0; row < all->rows; row++) {
        moved_to[row] = row;
        num_live += all->owners[row] != FREE;
    }
    int64_t mover = num_live - 1;
    for (int64_t hole = free_row(all, 0); hole < num_live; hole = free_row(all, hole)) {
        do mover++;
        while (all->owners[mover] == FREE);
        move_row(all, mover, hole, 0);
        all->owners[hole] = all->owners[mover];
        all->owners[mover] = all->cross_owners[mover] = FREE;
        moved_to[mover] = hole;
        num_moves++;
    }
    return num_moves;
}
