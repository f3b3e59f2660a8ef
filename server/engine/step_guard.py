"""Failures of a step, turned into completions of the requests concerned."""

import logging
from collections.abc import Callable
from types import TracebackType

from server.interface.errors import EngineFailed
from server.interface.request import Completion, FinishReason, Request

_log = logging.getLogger("kvasir.engine")


class StepGuard:
    """Context manager that turns an exception into failed completions, appended to `ended`.

    `take_requests` is called after an exception; it returns the requests that fail with it and releases what they hold.
    """

    __slots__ = ("_ended", "_take_requests")

    def __init__(self, ended: list[Completion], take_requests: Callable[[], list[Request]]) -> None:
        self._ended = ended
        self._take_requests = take_requests

    def __enter__(self) -> None:
        """Do nothing; the exit does the work."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Suppress an `Exception`; others pass."""
        if not isinstance(error, Exception):
            return False
        self._ended += failed_completions(self._take_requests(), error)
        return True


def failed_completions(requests: list[Request], error: Exception) -> list[Completion]:
    """Return completions of requests without rows, each with an error of its own."""
    _log.error("requests failed in the engine", extra={"requests": len(requests)}, exc_info=error)
    message = f"the model failed on this request: {type(error).__name__}"
    return [Completion(request, [], FinishReason.CANCELLED, EngineFailed(message)) for request in requests]
