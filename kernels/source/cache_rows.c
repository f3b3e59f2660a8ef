/* Copies between rows of a KV cache. */
#include <stdint.h>
#include <string.h>

#define CACHE_LINE 64
#define AHEAD 4

static void prefetch(const char *from, char *to, int64_t size) {
    for (int64_t at = 0; at < size; at += CACHE_LINE) {
        __builtin_prefetch(from + at);
        __builtin_prefetch(to + at, 1);
    }
}

/* Copy the first sizes[i] bytes of every block of row sources[i] to row destinations[i], in every plane. `cache` is
 * [planes, rows, blocks, block_size] bytes. No row is both a source and a destination. */
__attribute__((visibility("default"))) void kvasir_copy_rows(char *cache, int64_t planes, int64_t rows, int64_t blocks,
                                                             int64_t block_size, const int64_t *sources,
                                                             const int64_t *destinations, const int64_t *sizes,
                                                             int64_t count) {
    const int64_t row_size = blocks * block_size, num_blocks = planes * blocks;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t ahead = 0; ahead < num_blocks + AHEAD; ahead++) {
            /* Blocks are far apart: the next ones are prefetched while one is copied. */
            if (ahead < num_blocks) {
                int64_t offset = ahead / blocks * rows * row_size + ahead % blocks * block_size;
                prefetch(cache + offset + sources[i] * row_size, cache + offset + destinations[i] * row_size, sizes[i]);
            }
            int64_t block = ahead - AHEAD;
            if (block < 0) continue;
            int64_t offset = block / blocks * rows * row_size + block % blocks * block_size;
            memcpy(cache + offset + destinations[i] * row_size, cache + offset + sources[i] * row_size, (size_t)sizes[i]);
        }
    }
}
