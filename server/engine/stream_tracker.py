"""What became final in the answers of requests that stream."""

from collections.abc import Sequence

from server.engine.search_group import SearchGroup
from server.interface.request import Request


class StreamTracker:
    """Of one engine. Costs nothing while nobody streams."""

    def __init__(self) -> None:
        self._num_told: dict[Request, int] = {}  # tokens of those that stream, while they have rows
        self.found: list[tuple[Request, list[int]]] = []
        """After a step: the requests that got on without ending, and the tokens their answers begin with."""

    def follow(self, request: Request) -> None:
        """Look at this one after each step, if it streams."""
        if request.on_progress is not None:
            self._num_told[request] = 0

    def forget(self, request: Request) -> None:
        """It has ended."""
        if self._num_told:
            self._num_told.pop(request, None)

    def forget_all(self) -> None:
        """They have all ended."""
        self._num_told.clear()

    @property
    def followed(self) -> int:
        """Requests that stream."""
        return len(self._num_told)

    def look(self, groups: Sequence[SearchGroup]) -> None:
        """After a step. Walks over all requests, so only when somebody streams."""
        if not self._num_told:
            return
        for group in groups:
            for place, request in enumerate(group.requests):
                if request not in self._num_told or group.reads:
                    continue
                tokens = group.search.final_tokens(place)
                if len(tokens) > self._num_told[request]:
                    self._num_told[request] = len(tokens)
                    self.found.append((request, [*request.params.target_prefix, *tokens.tolist()]))
