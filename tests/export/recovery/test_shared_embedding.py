import numpy as np

from export.int8.steps import quantize_columns, quantize_in_pairs
from export.recovery.shared_embedding import within_both_roundings


def test_one_matrix_rounds_to_the_table_and_to_the_projection() -> None:
    original = np.random.default_rng(1).normal(size=(500, 64)).astype(np.float32)
    original[7] = 0
    scale = np.float32(8)
    table, table_steps = quantize_columns(original.T * scale)
    projection, projection_steps = quantize_in_pairs(np.ascontiguousarray(original.T))
    found = within_both_roundings(table.T, table_steps, projection.T, projection_steps, float(scale))

    np.testing.assert_array_equal(quantize_columns(found.T * scale)[0], table)
    again, steps = quantize_in_pairs(np.ascontiguousarray(found.T))
    np.testing.assert_array_equal(again, projection)
    np.testing.assert_allclose(steps, projection_steps, rtol=2e-7)
    rounded = table.T * (table_steps / scale)[:, None]
    assert np.square(found - original).mean() < 0.9 * np.square(rounded - original).mean()


def test_a_table_that_no_projection_fits_keeps_its_own_steps() -> None:
    table = np.array([[127, -3, 5, 0]], np.int8)
    steps = np.array([0.5], np.float32)
    found = within_both_roundings(table, steps, -table, steps, 1.0)
    np.testing.assert_array_equal(found, table * 0.5)
