"""Rows of keys and values: their content, memory and sources against plain lists."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from numpy.typing import NDArray

from kernels import cache_rows
from kernels.cache_rows import SOURCE_PLACE_UNIT, CacheMoves
from kernels.layout import from_native, to_native
from server.engine.kv_cache import CacheShapes, KVCache, SourceRows, fill_holes

SHAPES = CacheShapes(num_layers=2, num_heads=2, head_dim=3, max_source_tokens=5, max_target_tokens=7)
PLANES = 2 * SHAPES.num_layers
START = 99


@dataclass
class Row:
    """Expected content of a row: keys and values of its source, one block for each past position, its next input."""

    source: NDArray[np.number]  # [planes, heads, source_len, head_dim]
    past: list[NDArray[np.number]] = field(default_factory=list)  # each [planes, heads, head_dim]
    previous_token: int = START

    def copy(self) -> "Row":
        return Row(self.source, list(self.past), self.previous_token)


def _numbers(first: int, *shape: int) -> NDArray[np.float32]:
    """Return unique numbers, if `first` is new and there are fewer than a thousand of them."""
    return (first * 1000 + np.arange(np.prod(shape))).astype(np.float32).reshape(shape)


def _read(cache: KVCache, row: int) -> Row:
    past_len, source_len = cache.past_lengths[row], cache.source_lengths[row]
    distance, length_in_place = divmod(int(cache.sources.places[row]), SOURCE_PLACE_UNIT)
    assert (row + distance, length_in_place) == (cache.sources.rows[row], source_len)
    source = cache.cross_cache[:, row + distance, :, :source_len]
    if not cache.sources.is_shared:
        assert np.array_equal(cache.last_cross[:, row, 0], source[:, :, -1].reshape(PLANES, -1))
    past = list(np.moveaxis(cache.self_cache[:, row, :, :past_len], 2, 0))
    return Row(source, past, int(cache.previous_tokens[row]))


def _memory(cache: KVCache) -> list[NDArray[np.number]]:
    """Return copies of the three buffers with the row as their first axis."""
    return [np.moveaxis(buffer, 1, 0).copy() for buffer in (cache.self_cache, cache.cross_cache, cache.last_cross)]


class CacheAgainstPlainLists(RuleBasedStateMachine):
    """All operations of an engine on rows, compared with a model in which every row is a list."""

    MAX_ROWS = 9
    is_native = False

    @initialize()
    def start(self) -> None:
        self.cache = KVCache(SHAPES, self.MAX_ROWS, is_native=self.is_native)
        self.requests: dict[int, list[int]] = {}  # the rows of each request's beams, all equal until it spreads
        self.beams: dict[int, list[Row]] = {}
        self.num_written = 0

    def _reserved(self) -> int:
        return sum(len(rows) for rows in self.requests.values())

    def _next(self) -> int:
        self.num_written += 1
        return self.num_written

    @rule(beam_size=st.integers(1, 4), source_len=st.integers(1, SHAPES.max_source_tokens))
    def admit(self, beam_size: int, source_len: int) -> None:
        if self._reserved() + beam_size > self.MAX_ROWS:
            return
        owner = self._next()
        source = _numbers(owner, PLANES, SHAPES.num_heads, source_len, SHAPES.head_dim)
        self.requests[owner] = [self.cache.begin(owner, source, START)] * beam_size
        self.beams[owner] = [Row(source) for _ in range(beam_size)]

    @precondition(lambda self: self.requests)
    @rule()
    def step(self) -> None:
        """Write one position to every row, as a decoder step does, and count it, as the engine does."""
        if any(len(beam.past) == SHAPES.max_target_tokens for beams in self.beams.values() for beam in beams):
            return
        for owner, rows in self.requests.items():
            written = {row: _numbers(self._next(), PLANES, SHAPES.num_heads, SHAPES.head_dim) for row in rows}
            for row, block in written.items():
                self.cache.self_cache[:, row, :, self.cache.past_lengths[row]] = block
            for row, beam in zip(rows, self.beams[owner], strict=True):
                beam.past.append(written[row])
        self.cache.past_lengths[: self.cache.num_rows] += 1

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def advance(self, data: st.DataObject) -> None:
        """Choose parents for the beams of some requests of one beam size; others are finished."""
        beam_size = data.draw(st.sampled_from(sorted({len(rows) for rows in self.requests.values()})))
        of_that_size = [owner for owner, rows in self.requests.items() if len(rows) == beam_size]
        owners = data.draw(st.lists(st.sampled_from(of_that_size), unique=True, min_size=1))
        finished = [data.draw(st.booleans()) for _ in owners]
        beams = st.lists(st.integers(0, beam_size - 1), min_size=beam_size, max_size=beam_size)
        parents = [data.draw(beams) for _ in owners]
        before = _memory(self.cache)
        rows = np.array([self.requests[owner] for owner in owners])
        tokens = np.array([[self._next() for _ in range(beam_size)] for _ in owners], np.int32)
        self.cache.advance(rows, tokens, np.array(parents), np.array(finished))
        num_moved = 0
        for owner, chosen, new_rows, new_tokens, has_finished in zip(
            owners, parents, rows.tolist(), tokens.tolist(), finished, strict=True
        ):
            if has_finished:
                assert new_rows == self.requests[owner]
                continue
            old_rows = self.requests[owner]
            parent_rows = [old_rows[parent] for parent in chosen]
            moved = set(new_rows) - set(parent_rows)
            num_moved += len(moved)
            assert len(moved) == beam_size - len(set(parent_rows)), "every parent's first child stays where it is"
            assert len(set(new_rows)) == beam_size
            self.requests[owner] = new_rows
            self.beams[owner] = [self.beams[owner][parent].copy() for parent in chosen]
            for beam, token in zip(self.beams[owner], new_tokens, strict=True):
                beam.previous_token = token
        self._assert_at_most_rows_changed(before, num_moved)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        owner = data.draw(st.sampled_from(sorted(self.requests)))
        before = _memory(self.cache)
        self.cache.release(np.array(self.requests.pop(owner)))
        del self.beams[owner]
        self._assert_at_most_rows_changed(before, 0)

    @rule()
    def close_holes(self) -> None:
        before = _memory(self.cache)
        num_holes = len({row for rows in self.requests.values() for row in rows} - set(range(self.cache.num_live)))
        moved_to = self.cache.close_holes()
        assert (moved_to is None) == (num_holes == 0)
        if moved_to is not None:
            self.requests = {owner: moved_to[rows].tolist() for owner, rows in self.requests.items()}
        assert self.cache.num_rows == self.cache.num_live
        self._assert_at_most_rows_changed(before, num_holes)

    def _assert_at_most_rows_changed(self, before: list[NDArray[np.number]], num_rows: int) -> None:
        """Check that only the valid prefixes of assigned rows have changed."""
        lengths = (self.cache.past_lengths, self.cache.source_lengths, np.ones(self.MAX_ROWS, np.int32))
        most = (num_rows, 0, 0) if self.is_native else [num_rows] * 3
        for old, new, valid, allowed in zip(before, _memory(self.cache), lengths, most, strict=True):
            changed = np.flatnonzero((old != new).reshape(self.MAX_ROWS, -1).any(axis=1))
            assert len(changed) <= allowed
            for row in changed.tolist():
                behind = slice(int(valid[row]), None)  # of the last axis but one, the positions of every buffer
                assert np.array_equal(old[row, ..., behind, :], new[row, ..., behind, :])

    @invariant()
    def every_beam_has_its_own_past_and_source(self) -> None:
        for owner, rows in self.requests.items():
            for row, expected in zip(rows, self.beams[owner], strict=True):
                found = _read(self.cache, row)
                assert np.array_equal(found.source, expected.source)
                assert np.array_equal(np.array(found.past), np.array(expected.past))
                assert found.previous_token == expected.previous_token

    @invariant()
    def rows_in_use_are_those_of_requests(self) -> None:
        rows = {row for rows in self.requests.values() for row in rows}
        assert self.cache.num_live == len(rows)
        assert self.cache.num_rows == max(rows, default=-1) + 1


class NativeCacheAgainstPlainLists(CacheAgainstPlainLists):
    is_native = True

    @invariant()
    def a_request_has_one_source_of_its_own(self) -> None:
        places = [{int(self.cache.sources.rows[row]) for row in rows} for rows in self.requests.values()]
        assert all(len(of_request) == 1 for of_request in places)
        assert len(set().union(*places)) == len(places)


@pytest.mark.parametrize("machine", [CacheAgainstPlainLists, NativeCacheAgainstPlainLists])
@pytest.mark.parametrize("is_native", [True, False])
def test_every_move_keeps_the_content_of_rows_and_copies_nothing_else(
    machine: type[CacheAgainstPlainLists], is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_native:
        monkeypatch.setattr(cache_rows, "_library", None)
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=25, stateful_step_count=30, deadline=None, derandomize=True, database=None),
    )


@pytest.mark.parametrize("is_live", [[], [0], [1], [0, 0, 1], [1, 0, 1, 0, 0, 1], [0, 1, 1, 1], [1, 1, 0]])
def test_holes_are_filled_with_the_fewest_moves(is_live: list[int]) -> None:
    live = np.array(is_live, np.bool_)
    holes, movers = fill_holes(live)
    places = np.where(live, np.arange(live.size), -1)
    places[holes] = places[movers]
    num_live = int(live.sum())
    assert sorted(places[:num_live].tolist()) == np.flatnonzero(live).tolist()
    assert len(holes) == int((~live[:num_live]).sum())


@pytest.mark.parametrize("is_native", [True, False])
def test_the_state_of_a_recurrent_decoder_follows_the_beam_and_the_hole(
    is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_native:
        monkeypatch.setattr(cache_rows, "_library", None)
    cache = KVCache(CacheShapes(2, 2, 3, max_source_tokens=5, max_target_tokens=7, state_width=8), max_rows=6)
    assert cache.self_cache.size == 0
    assert (cache.moves is not None) == (is_native and CacheMoves.is_available())
    first = cache.begin(1, _numbers(1, PLANES, 2, 4, 3), START)
    rows = np.full((1, 3), cache.begin(2, _numbers(2, PLANES, 2, 4, 3), START))
    tokens, running = np.array([[3, 4, 5]], np.int32), np.array([False])
    cache.past_lengths[:2] = 1
    cache.advance(rows, tokens, np.array([[0, 0, 0]]), running)
    cache.states[:] = np.arange(6)[None, :, None, None]
    assert rows.tolist() == [[1, 2, 3]]
    # Two tokens in common save nothing: a state has no positions.
    cache.advance(rows, tokens, np.array([[2, 2, 0]]), running, np.full((1, 3, 3), 2, np.int32))
    assert cache.states[:, rows[0], 0, 0].tolist() == [[3, 3, 1]] * 2
    assert np.array_equal(cache.cross_cache[:, rows[0, 1], :, :4], _numbers(2, PLANES, 2, 4, 3))
    cache.release(np.array([first]))
    moved_to = cache.close_holes()
    assert moved_to is not None
    assert cache.states[:, moved_to[rows[0]], 0, 7].tolist() == [[3, 3, 1]] * 2


def test_rows_with_their_own_sources_have_lengths_as_places() -> None:
    lengths = np.array([3, 5, 7], np.int32)
    sources = SourceRows(lengths, is_shared=False)
    assert sources.begin(1, np.array([True, True, False])) == 1
    lengths[2] = lengths[1]
    sources.follow(np.array([1]), np.array([2]))
    assert sources.rows.tolist() == [0, 1, 2]
    assert sources.places.tolist() == [3, 5, 5]


def test_a_row_begins_with_the_first_source_that_no_other_live_row_reads() -> None:
    sources = SourceRows(np.full(4, 9, np.int32), is_shared=True)
    is_live = np.array([False, False, False, True])
    assert sources.begin(3, is_live) == 0
    is_live[1] = True
    assert sources.begin(1, is_live) == 1
    is_live[3] = False
    is_live[0] = True
    assert sources.begin(0, is_live) == 0


def test_the_place_of_a_source_leads_from_the_row_to_it_in_both_directions() -> None:
    lengths = np.array([9, 9, 65535, 9], np.int32)
    sources = SourceRows(lengths, is_shared=True)
    sources.rows[2] = 1
    lengths[[0, 3]] = lengths[2]
    sources.follow(np.array([2, 2]), np.array([0, 3]))
    assert sources.rows.tolist() == [1, 1, 1, 1]
    assert [divmod(place, SOURCE_PLACE_UNIT) for place in sources.places[[0, 3]].tolist()] == [(1, 65535), (-2, 65535)]
    assert ((sources.places[[0, 3]] - 1) >> 16).tolist() == [1, -2]


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


@pytest.mark.parametrize("seed", range(20))
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
