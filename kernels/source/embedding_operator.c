/* EmbedTokens: tokens [..], the panels of a matrix [width, tokens] and the scale of each of its columns, to [.., width].
 * The panels are those of the output projection where a model shares both: the library reads one copy. */
#include <stdlib.h>

#include "operator.h"

typedef struct {
    int64_t width;
    Constants constants;
} EmbeddingKernel;

Status *create_embedding(const Operator *operator, const void *const *given_api, const NodeInfo *info, void **kernel) {
    (void)given_api;
    EmbeddingKernel made;
    RETURN_IF_ERROR(get_int_attribute(info, "width", &made.width));
    REQUIRE(made.width > 0, "the width of an embedding must be positive");
    RETURN_IF_ERROR(read_constants(info, (size_t)((const Definition *)operator)->num_inputs, &made.constants));
    EmbeddingKernel *kept = malloc(sizeof *kept);
    REQUIRE(kept != NULL, "out of memory");
    *kept = made;
    *kernel = kept;
    return NULL;
}

Status *compute_embedding(void *data, Context *context) {
    const EmbeddingKernel *kernel = data;
    const int64_t width = kernel->width, quads = (width + 3) / 4;
    Tensor tokens, panels, scales;
    RETURN_IF_ERROR(read_input(context, 0, &tokens));
    RETURN_IF_ERROR(read_given(context, &kernel->constants, 1, &panels));
    RETURN_IF_ERROR(read_given(context, &kernel->constants, 2, &scales));
    REQUIRE(tokens.num_dimensions < MAX_DIMENSIONS, "tokens have more than three dimensions");
    REQUIRE(panels.size % (quads * 4 * PANEL_COLUMNS) == 0 && panels.size >= quads * 4 * scales.size,
            "a table of embeddings does not fit its width and scales");
    const int32_t *ids = tokens.data;
    for (int64_t i = 0; i < tokens.size; i++) {
        REQUIRE(ids[i] >= 0 && ids[i] < scales.size, "a token is outside the vocabulary");
    }
    tokens.dimensions[tokens.num_dimensions] = width;
    void *to;
    RETURN_IF_ERROR(create_output(context, 0, tokens.dimensions, tokens.num_dimensions + 1, &to));
    float *vector = to;
    for (int64_t i = 0; i < tokens.size; i++, vector += width) {
        const int64_t panel = ids[i] / PANEL_COLUMNS, column = ids[i] % PANEL_COLUMNS;
        const int8_t *quad = (const int8_t *)panels.data + (panel * quads * PANEL_COLUMNS + column) * 4;
        const float scale = ((const float *)scales.data)[ids[i]];
        for (int64_t d = 0; d < width; d++) vector[d] = (float)quad[d / 4 * 4 * PANEL_COLUMNS + d % 4] * scale;
    }
    return NULL;
}
