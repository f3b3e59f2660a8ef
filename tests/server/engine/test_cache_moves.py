import numpy as np
import pytest

from kernels import cache_moves
from kernels.cache_moves import CacheMoves
from server.engine.kv_cache import CacheShapes, KVCache

SHAPES = CacheShapes(num_layers=2, num_heads=2, head_dim=3, max_source_tokens=5, max_target_tokens=7)
PLANES = 2 * SHAPES.num_layers
START = 1


def test_a_beam_copies_only_positions_behind_the_tokens_in_common() -> None:
    if not CacheMoves.is_available():
        pytest.skip("the library was not built")
    cache = KVCache(SHAPES, max_rows=2, dtype=np.int8)
    source = np.ones((PLANES, SHAPES.num_heads, 2, SHAPES.head_dim), np.int8)
    rows = np.array([[cache.begin(7, source, START)] * 2])
    tokens, running = np.array([[3, 4]], np.int32), np.array([False])
    cache.past_lengths[:1] = 1
    cache.advance(rows, tokens, np.array([[0, 0]]), running, np.zeros((1, 2, 2), np.int32))
    assert rows.tolist() == [[0, 1]]
    cache.past_lengths[:] = 5
    cache.self_cache[:, 0], cache.self_cache[:, 1] = 10, 20  # the same positions would have the same numbers
    cache.advance(rows, tokens, np.array([[0, 0]]), running, np.array([[[4, 2], [2, 4]]], np.int32))
    assert rows.tolist() == [[0, 1]]
    # The start token and two tokens in common; the last position is behind the past.
    assert cache.self_cache[0, 1, 0, :7, 0].tolist() == [20, 20, 20, 10, 10, 20, 20]
    assert (cache.self_cache[:, 1] == cache.self_cache[0, 1, 0, None, :, :1]).all()


def test_the_rows_of_a_native_step_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows_of_steps() -> list[list[list[int]]]:
        random = np.random.default_rng(0)
        cache = KVCache(SHAPES, max_rows=12)
        found = []
        for owner in range(4):
            cache.begin(owner, np.full((PLANES, SHAPES.num_heads, 3, SHAPES.head_dim), owner, np.float32), START)
        cache.release(np.array([1]))
        moved = cache.close_holes()
        assert moved is not None
        rows = np.repeat(moved[[0, 2, 3], None], 3, axis=1)
        for _ in range(9):
            cache.advance(rows, np.ones((3, 3), np.int32), random.integers(0, 3, (3, 3)), random.random(3) < 0.3)
            found.append(rows.tolist())
        return found

    native = rows_of_steps()
    monkeypatch.setattr(cache_moves, "_library", None)
    assert native == rows_of_steps()
