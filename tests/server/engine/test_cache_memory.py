"""Order and numbers of the memory of keys and values."""

import numpy as np

from kernels.cache_order import from_native, to_native
from server.engine.kv_cache import CacheShapes, KVCache

SHAPES = CacheShapes(num_layers=2, num_heads=2, head_dim=3, max_source_tokens=5, max_target_tokens=7)
PLANES = 2 * SHAPES.num_layers


def test_memory_by_position_has_all_heads_of_a_position_side_by_side() -> None:
    cache = KVCache(SHAPES, max_rows=3, is_native=True)
    cache.self_cache[:] = np.arange(cache.self_cache.size).reshape(cache.self_cache.shape)
    declared = cache.declared(cache.self_cache, 1, 2)
    assert declared.base is not None, "a copy would not be what the graph changes"
    assert declared.shape == cache.self_cache[1, :2].shape
    expected = cache.self_cache[1, :2].swapaxes(1, 2)
    assert np.array_equal(declared.ravel(), expected.ravel())
    assert np.array_equal(from_native(declared), cache.self_cache[1, :2])
    assert np.array_equal(to_native(cache.self_cache[1, :2]), declared)


def test_an_int8_cache_keeps_the_last_source_position_as_real_numbers() -> None:
    cache = KVCache(SHAPES, max_rows=3, dtype=np.int8)
    shape = (PLANES, SHAPES.num_heads, 4, SHAPES.head_dim)
    source = (np.arange(np.prod(shape)) - 60).astype(np.int8).reshape(shape)
    cache.write_source(1, source, start_token=99)
    assert np.array_equal(cache.cross_cache[:, 1, :, :4], source)
    last = cache.last_cross[:, 1, 0]
    assert last.dtype == np.float32
    np.testing.assert_allclose(last * 127, source[:, :, -1].reshape(PLANES, -1), rtol=1e-6)
