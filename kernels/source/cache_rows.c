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

/* Copy the first sizes[i] bytes of every head of row sources[i] to row destinations[i], in every plane. `cache` is
 * [planes, rows, heads, head_size] bytes. No row is both a source and a destination. */
__attribute__((visibility("default"))) void kvasir_copy_rows(char *cache, int64_t planes, int64_t rows, int64_t heads,
                                                             int64_t head_size, const int64_t *sources,
                                                             const int64_t *destinations, const int64_t *sizes,
                                                             int64_t count) {
    const int64_t row_size = heads * head_size, num_heads = planes * heads;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t ahead = 0; ahead < num_heads + AHEAD; ahead++) {
            /* Heads are far apart: the next ones are prefetched while one is copied. */
            if (ahead < num_heads) {
                int64_t offset = ahead / heads * rows * row_size + ahead % heads * head_size;
                prefetch(cache + offset + sources[i] * row_size, cache + offset + destinations[i] * row_size, sizes[i]);
            }
            int64_t head = ahead - AHEAD;
            if (head < 0) continue;
            int64_t offset = head / heads * rows * row_size + head % heads * head_size;
            memcpy(cache + offset + destinations[i] * row_size, cache + offset + sources[i] * row_size, (size_t)sizes[i]);
        }
    }
}
