/* Candidates of a decoder step, from the logits that its graph returns. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Add one to the length of each row, and return how many rows have a best logit that is no finite number; `logits` is
 * [rows, num_candidates], best first; without candidates nothing is wrong. Unless `log_probs` is NULL, also write the
 * log-probabilities, which are the logits without the row's normalizer. */
__attribute__((visibility("default"))) int64_t kvasir_step_candidates(const float *logits, const float *normalizers,
                                                                      float *log_probs, int32_t *lengths, int64_t rows,
                                                                      int64_t num_candidates) {
    int64_t num_not_finite = 0;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t first = row * num_candidates, end = first + num_candidates;
        lengths[row]++;
        num_not_finite += num_candidates > 0 && !isfinite(logits[first]);
        if (log_probs == NULL) continue;
        for (int64_t i = first; i < end; i++) log_probs[i] = logits[i] - normalizers[row];
    }
    return num_not_finite;
}
