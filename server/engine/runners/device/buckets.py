"""Sizes of runs, and the runs that are captured as CUDA graphs."""

from collections.abc import Hashable, Iterator

NOT_CAPTURED = -1
"""The graph id with which ONNX Runtime runs without capturing."""


def bucket(number: int, largest: int) -> int:
    """Return the next power of two, or `largest`: few enough sizes for bindings and graphs of each."""
    assert 0 < number <= largest
    return min(1 << (number - 1).bit_length(), largest)


class Captures:
    """Ids of CUDA graphs for kinds of runs that are frequent enough.

    ONNX Runtime captures at the first run with an id, which it runs several times, and replays at all others. A
    captured run always uses the same addresses, so a kind contains everything that determines them.
    """

    def __init__(self, new_ids: Iterator[int] | None, after: int = 0, max_captures: int = 256) -> None:
        """Capture kinds after `after` runs, at most `max_captures`; each takes memory of the device.

        `new_ids` are those of the sessions, so no other user of the sessions has the same ids. Without them nothing is
        captured.
        """
        self._new_ids = new_ids
        self._after = after
        self._max_captures = max_captures
        self._runs: dict[Hashable, int] = {}
        self._ids: dict[Hashable, int] = {}

    def graph_id(self, kind: Hashable) -> int:
        """Return the id for the next run of this kind."""
        if self._new_ids is None:
            return NOT_CAPTURED
        graph = self._ids.get(kind)
        if graph is not None:
            return graph
        runs = self._runs[kind] = self._runs.get(kind, 0) + 1
        if runs <= self._after or len(self._ids) == self._max_captures:
            return NOT_CAPTURED
        self._ids[kind] = next(self._new_ids)
        return self._ids[kind]

    @property
    def num_captured(self) -> int:
        """Number of captured graphs."""
        return len(self._ids)
