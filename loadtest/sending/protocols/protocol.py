"""What all protocols have in common: a request to send, and what an answer says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from loadtest.workload.requests import TextRequest


class WrongAnswer(Exception):
    """An answer with a good status that is not an answer to what was asked."""


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request as bytes. `path` starts with a slash and holds the query, if any."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: a translation of each text. Tokens are None where the protocol does not tell."""

    texts: tuple[str, ...]
    source_tokens: int | None = None
    target_tokens: int | None = None


class ProtocolModule(Protocol):
    """A module of this folder."""

    def http_request(self, request: TextRequest, fresh: bool = False) -> HttpCall:
        """The call that asks for it; `fresh` bypasses the server's cache of sentences (Cache-Control: no-cache)."""
        ...

    def read_answer(self, body: bytes, headers: Mapping[str, str], request: TextRequest) -> Answer:
        """The answer to the request in the body of a 200. Raises `WrongAnswer`."""
        ...
