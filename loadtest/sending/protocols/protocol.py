"""Values and interface that all protocols share: a request to send, and the content of its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from loadtest.workload.requests import TextRequest


class WrongAnswer(Exception):
    """An answer with status 200 that does not answer the request."""


@dataclass(frozen=True, slots=True)
class HttpCall:
    """An HTTP request. `path` starts with a slash and includes the query."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A translation of each text. Token counts are None if the protocol does not report them."""

    texts: tuple[str, ...]
    source_tokens: int | None = None
    target_tokens: int | None = None


class ProtocolModule(Protocol):
    """Interface of the protocol modules in this folder."""

    def http_request(self, request: TextRequest, bypass_cache: bool = False) -> HttpCall:
        """Return the HTTP request; `bypass_cache` sets Cache-Control: no-cache."""
        ...

    def read_answer(self, body: bytes, headers: Mapping[str, str], request: TextRequest) -> Answer:
        """Return the answer in the body of a 200. Raises `WrongAnswer`."""
        ...
