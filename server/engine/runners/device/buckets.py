"""How many rows a run has, and of which runs a CUDA graph is captured."""

from collections.abc import Hashable, Iterator

NOT_CAPTURED = -1
"""The graph id with which ONNX Runtime just runs."""


def bucket(number: int, largest: int) -> int:
    """The next power of two, or `largest`: so few sizes that each can have buffers, bindings and graphs of its own."""
    assert 0 < number <= largest
    return min(1 << (number - 1).bit_length(), largest)


class Captures:
    """Gives each kind of run the id of its graph, once it has come up often enough to be worth one.

    ONNX Runtime captures at the first run with an id and replays at all others; to capture, it runs several times. A
    captured run reads and writes where it did at first, so a kind names everything that decides on addresses, too.
    """

    def __init__(self, new_ids: Iterator[int] | None, after: int = 0, most: int = 256) -> None:
        """Capture kinds that have run `after` times; at most `most`, each of which takes memory of the device.

        `new_ids` are those of the sessions: whoever uses them, too, has other addresses. Without them nothing is
        captured.
        """
        self._new_ids = new_ids
        self._after = after
        self._most = most
        self._runs: dict[Hashable, int] = {}
        self._ids: dict[Hashable, int] = {}

    def graph_id(self, kind: Hashable) -> int:
        """The id to run this kind with, now."""
        if self._new_ids is None:
            return NOT_CAPTURED
        graph = self._ids.get(kind)
        if graph is not None:
            return graph
        runs = self._runs[kind] = self._runs.get(kind, 0) + 1
        if runs <= self._after or len(self._ids) == self._most:
            return NOT_CAPTURED
        self._ids[kind] = next(self._new_ids)
        return self._ids[kind]

    @property
    def num_captured(self) -> int:
        """Graphs there are."""
        return len(self._ids)
