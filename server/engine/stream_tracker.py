"""Tokens that became final in the answers of streaming requests."""

from collections.abc import Sequence
from typing import NamedTuple

from server.engine.search_group import SearchGroup
from server.interface.request import Request


class StreamUpdate(NamedTuple):
    """Tokens with which the answer of a running request begins, its target prefix included."""

    request: Request
    token_ids: list[int]


class StreamTracker:
    """Streaming requests of one engine, and how many of their tokens were reported. Free without such requests."""

    def __init__(self) -> None:
        self._num_streamed: dict[Request, int] = {}

    def add(self, request: Request) -> None:
        """Follow a request that has its rows, if it streams."""
        if request.on_progress is not None:
            self._num_streamed[request] = 0

    def remove(self, request: Request) -> None:
        """Stop following a request that ended."""
        if self._num_streamed:
            self._num_streamed.pop(request, None)

    def clear(self) -> None:
        """Stop following all requests."""
        self._num_streamed.clear()

    @property
    def num_followed(self) -> int:
        """Number of streaming requests."""
        return len(self._num_streamed)

    def updates(self, groups: Sequence[SearchGroup]) -> list[StreamUpdate]:
        """Return the running requests of which more tokens became final in this step."""
        found: list[StreamUpdate] = []
        if not self._num_streamed:
            return found
        for group in groups:
            if group.is_forced:
                continue
            for index, request in enumerate(group.requests):
                if request not in self._num_streamed:
                    continue
                tokens = group.search.final_tokens(index)
                if len(tokens) > self._num_streamed[request]:
                    self._num_streamed[request] = len(tokens)
                    found.append(StreamUpdate(request, [*request.params.target_prefix, *tokens.tolist()]))
        return found
