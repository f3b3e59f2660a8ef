import numpy as np
import pytest
from numpy.typing import NDArray

from kernels import cache_rows
from kernels.cache_rows import CacheMoves
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
    monkeypatch.setattr(cache_rows, "_library", None)
    assert native == rows_of_steps()


def _drawn_cache(random: np.random.Generator, max_rows: int) -> KVCache:
    """Return an empty cache of any shape, one head or one number in a head included, in one of the orders of memory."""
    shapes = CacheShapes(
        num_layers=int(random.integers(1, 3)),
        num_heads=int(random.choice([1, 1, 2, *range(3, 17)])),
        head_dim=int(random.choice([1, int(random.integers(1, 257))])),
        max_source_tokens=int(random.integers(1, 9)),
        max_target_tokens=int(random.integers(10, 14)),
        state_width=int(random.choice([0, 0, 3])),
    )
    is_native = bool(random.integers(2))
    dtype = np.int8 if is_native or random.integers(2) else np.float32
    return KVCache(shapes, max_rows, dtype, is_native=is_native)


def _contents(cache: KVCache) -> list[NDArray[np.generic]]:
    """Return everything that a live row reads."""
    found: list[NDArray[np.generic]] = [cache.per_row.copy(), cache.sources.places.copy()]
    for row in range(cache.num_rows):
        source = cache.cross_cache[:, cache.sources.rows[row], :, : cache.source_lengths[row]]
        past = cache.self_cache[:, row, :, : cache.past_lengths[row]]
        found += [source.copy(), past.copy(), cache.states[:, row].copy()]
    return found


@pytest.mark.parametrize("seed", range(60))
def test_rows_of_any_shape_keep_in_native_moves_what_they_keep_in_those_of_numpy(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contents_of_steps() -> list[list[NDArray[np.generic]]]:
        random = np.random.default_rng(seed)
        num_requests, beam_size = int(random.integers(1, 5)), int(random.integers(1, 5))
        cache = _drawn_cache(random, num_requests * beam_size)
        shapes, found = cache.shapes, []
        rows = np.zeros((num_requests, beam_size), np.intp)
        for owner in range(num_requests):
            source = (2 * shapes.num_layers, shapes.num_heads, random.integers(1, shapes.max_source_tokens + 1))
            cross = random.integers(-128, 128, (*source, shapes.head_dim)).astype(np.int8)
            rows[owner] = cache.begin(owner, cross, START)
        running = np.zeros(num_requests, np.bool_)
        for step in range(6):
            for row in range(cache.num_rows):  # the decoder appends a position to each live row
                past, state = cache.self_cache[:, row, :, step : step + 1], cache.states[:, row]
                past[:] = random.integers(-128, 128, past.shape)
                state[:] = random.integers(-128, 128, state.shape)
                cache.past_lengths[row] += 1
            parents = random.integers(0, beam_size if step else 1, rows.shape)
            cache.advance(rows, np.full(rows.shape, step, np.int32), parents, running)
            found.append(_contents(cache))
        cache.release(rows[0])
        cache.close_holes()
        return [*found, _contents(cache)]

    native = contents_of_steps()
    monkeypatch.setattr(cache_rows, "_library", None)
    for of_native, of_numpy in zip(native, contents_of_steps(), strict=True):
        for one, other in zip(of_native, of_numpy, strict=True):
            assert np.array_equal(one, other)
