/* Products in tiles of AMX: one instruction multiplies 16 rows with 16 columns of 64 inputs. The sums are those of
 * product.h, bit by bit. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18. */
#ifndef KVASIR_TILES_H
#define KVASIR_TILES_H

#include "product.h"

#define TILE_ROWS ROWS_IN_MEMORY
#define TILE_BYTES 64           /* of a row of a tile: inputs of a row, or four inputs of 16 columns */
#define PANEL_STRIDE (4 * PANEL_COLUMNS) /* bytes from four inputs of a panel's columns to the next four */
/* Any number of rows takes as long in a tile as 16: fewer than these are faster without tiles. */
#define MIN_TILE_ROWS 7

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} TileConfig;

/* Eight tiles of 16 x 64 bytes: all that there are. */
static const TileConfig tile_config = {
    .palette = 1,
    .bytes = {TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES},
    .rows = {TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS},
};

/* Sums of up to 32 rows with a panel. */
typedef struct {
    _Alignas(CACHE_LINE) int32_t of[2 * TILE_ROWS][PANEL_COLUMNS];
} PanelSums;

/* Prefetch some lines of the panel that follows. */
ALWAYS_INLINE const int8_t *fetch_lines(const int8_t *next, int64_t lines) {
    for (int64_t line = 0; line < lines; line++) __builtin_prefetch(next + line * CACHE_LINE, 0, 2);
    return next + lines * CACHE_LINE;
}

/* 32 rows with a panel, 32 columns at a time. Of the panel that is needed after this one, `lines` lines from `next` on are
 * prefetched with every 64 inputs. Return the line after these. */
static const int8_t *sum_two_tiles(const uint8_t *rows, int64_t inputs, const int8_t *panel, const int8_t *next, int64_t lines,
                                   PanelSums *sums) {
    for (int half = 0; half < 2; half++) {
        const int8_t *columns = panel + 2 * half * TILE_BYTES;
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (int64_t input = 0; input < inputs; input += TILE_BYTES) {
            _tile_loadd(6, columns + input * PANEL_COLUMNS, PANEL_STRIDE);
            _tile_loadd(4, rows + input, inputs);
            _tile_dpbusd(0, 4, 6);
            _tile_loadd(7, columns + input * PANEL_COLUMNS + TILE_BYTES, PANEL_STRIDE);
            _tile_dpbusd(1, 4, 7);
            _tile_loadd(5, rows + TILE_ROWS * inputs + input, inputs);
            _tile_dpbusd(2, 5, 6);
            _tile_dpbusd(3, 5, 7);
            next = fetch_lines(next, lines);
        }
        int32_t *to = sums->of[0] + 2 * half * TILE_ROWS;
        _tile_stored(0, to, PANEL_STRIDE);
        _tile_stored(1, to + TILE_ROWS, PANEL_STRIDE);
        _tile_stored(2, to + TILE_ROWS * PANEL_COLUMNS, PANEL_STRIDE);
        _tile_stored(3, to + TILE_ROWS * PANEL_COLUMNS + TILE_ROWS, PANEL_STRIDE);
    }
    return next;
}

/* 16 rows with a panel, and the same. */
static const int8_t *sum_one_tile(const uint8_t *rows, int64_t inputs, const int8_t *panel, const int8_t *next, int64_t lines,
                                  PanelSums *sums) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t input = 0; input < inputs; input += TILE_BYTES) {
        const int8_t *columns = panel + input * PANEL_COLUMNS;
        _tile_loadd(4, rows + input, inputs);
        _tile_loadd(5, columns, PANEL_STRIDE);
        _tile_dpbusd(0, 4, 5);
        _tile_loadd(6, columns + TILE_BYTES, PANEL_STRIDE);
        _tile_dpbusd(1, 4, 6);
        _tile_loadd(7, columns + 2 * TILE_BYTES, PANEL_STRIDE);
        _tile_dpbusd(2, 4, 7);
        _tile_loadd(5, columns + 3 * TILE_BYTES, PANEL_STRIDE);
        _tile_dpbusd(3, 4, 5);
        next = fetch_lines(next, lines);
    }
    _tile_stored(0, sums->of[0], PANEL_STRIDE);
    _tile_stored(1, sums->of[0] + TILE_ROWS, PANEL_STRIDE);
    _tile_stored(2, sums->of[0] + 2 * TILE_ROWS, PANEL_STRIDE);
    _tile_stored(3, sums->of[0] + 3 * TILE_ROWS, PANEL_STRIDE);
    return next;
}

/* Write `count` rows from their sums with the panel whose first column is `column`. */
ALWAYS_INLINE void write_panel(const Linear *linear, const PanelSums *sums, int64_t first_row, int64_t count,
                               int64_t column, int is_whole, int relu, int residual) {
    Columns columns[PANEL_COLUMNS / LANES];
#pragma clang loop unroll(full)
    for (int group = 0; group < PANEL_COLUMNS / LANES; group++) {
        columns[group] = read_columns(linear, column + group * LANES, is_whole);
    }
    for (int64_t row = 0; row < count; row++) {
#pragma clang loop unroll(full)
        for (int group = 0; group < PANEL_COLUMNS / LANES; group++) {
            if (columns[group].width <= 0) break;
            ints found;
            memcpy(&found, sums->of[row] + group * LANES, sizeof found);
            write_sums(linear, &columns[group], found + columns[group].of_zero_point, first_row + row,
                       column + group * LANES, relu, residual);
        }
    }
}

/* All rows with the panel whose first column is `column`. Rows are read up to a multiple of TILE_ROWS. */
ALWAYS_INLINE void multiply_panel(const Linear *linear, int64_t column, int is_whole, int relu, int residual) {
    PanelSums sums;
    const int8_t *panel = columns_at(linear, column), *following = columns_at(linear, column + PANEL_COLUMNS);
    /* Spread over all rows: a core has few requests in flight. */
    const int64_t blocks = (linear->rows + 2 * TILE_ROWS - 1) / (2 * TILE_ROWS);
    const int64_t lines = following ? (PANEL_COLUMNS / 2 + blocks - 1) / blocks : 0;
    const int8_t *next = following ? following : panel;
    int64_t row = 0;
    for (int64_t left; (left = linear->rows - row) >= MIN_TILE_ROWS;) {
        const uint8_t *rows = linear->quantized + row * linear->inputs;
        const int64_t count = left < 2 * TILE_ROWS ? left : 2 * TILE_ROWS;
        if (count > TILE_ROWS) {
            next = sum_two_tiles(rows, linear->inputs, panel, next, lines, &sums);
        } else {
            next = sum_one_tile(rows, linear->inputs, panel, next, 2 * lines, &sums);
        }
        write_panel(linear, &sums, row, count, column, is_whole, relu, residual);
        row += count;
    }
    if (row < linear->rows) multiply_all_rows(linear, panel, NULL, row, column, GROUPS, 0, is_whole, relu, residual);
}

static int uses_tiles(int64_t rows, int64_t inputs) { return rows >= MIN_TILE_ROWS && inputs % TILE_BYTES == 0; }

/* Products in tiles skip nothing. */
static int find_used_without_tiles(const uint8_t *quantized, int64_t rows, int64_t inputs, int32_t *used,
                                   int32_t *num_used) {
    return !uses_tiles(rows, inputs) && find_used(quantized, rows, inputs, used, num_used);
}

static void multiply_in_tiles(const Linear *linear, int64_t first_panel, int64_t end_panel) {
    if (!uses_tiles(linear->rows, linear->inputs)) {
        multiply(linear, first_panel, end_panel);
        return;
    }
    _tile_loadconfig(&tile_config);
    for (int64_t column = first_panel * PANEL_COLUMNS; column < end_panel * PANEL_COLUMNS; column += PANEL_COLUMNS) {
        if (column + PANEL_COLUMNS > linear->outputs) {
            multiply_panel(linear, column, 0, linear->relu, linear->residual != 0);
        } else if (linear->relu) {
            multiply_panel(linear, column, 1, 1, 0);
        } else if (linear->residual) {
            multiply_panel(linear, column, 1, 0, 1);
        } else {
            multiply_panel(linear, column, 1, 0, 0);
        }
    }
    _tile_release();
}

#endif
