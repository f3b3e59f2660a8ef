"""Admission of requests that need an engine."""

from collections.abc import Sequence
from functools import lru_cache

from starlette.types import Scope

from server.http.protocols.protocol import Protocol
from server.http.requests.admission import admit
from server.http.state import ServerState

_KEPT_PATHS = 256


class EngineAdmission:
    """Check whether a model accepts another request, for the requests of all protocols that need one.

    A POST request to a protocol's path needs an engine, unless the protocol lists the path as `engine_free_paths` or as
    `upload_paths`, which have an admission of their own. So a new route is covered without an entry anywhere.
    """

    def __init__(self, server: ServerState, protocols: Sequence[Protocol]) -> None:
        self._server = server
        self._protocols = protocols
        self._needs_engine = lru_cache(_KEPT_PATHS)(self._path_needs_engine)

    def check(self, scope: Scope, *paths: str) -> None:
        """Raise `QueueFull` or `Draining` if no model accepts a request to one of `paths` now."""
        if scope["method"] == "POST" and any(map(self._needs_engine, paths)):
            admit(self._server, scope["state"]["record"])

    def _path_needs_engine(self, path: str) -> bool:
        owners = [protocol for protocol in self._protocols if protocol.owns(path)]
        exact = [protocol for protocol in owners if path in protocol.paths]
        return any(protocol.needs_engine(path) for protocol in exact or owners)
