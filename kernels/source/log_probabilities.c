/* Log-probabilities of candidates. */
#include <stdint.h>

/* Subtract each row's normalizer from its logits [rows, num_candidates]. */
__attribute__((visibility("default"))) void kvasir_log_probabilities(const float *logits, const float *normalizers,
                                                                     float *log_probs, int64_t rows,
                                                                     int64_t num_candidates) {
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = row * num_candidates; i < (row + 1) * num_candidates; i++) log_probs[i] = logits[i] - normalizers[row];
    }
}
