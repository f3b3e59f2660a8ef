"""Messages between a process and its worker processes; the pipe carries them pickled."""

from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from server.interface.decoding_options import DecodingOptions
from server.interface.request import FinishReason, Hypothesis, Request, SentenceParams, Timings

_DEFAULT_PARAMS = SentenceParams()
_RESOLVED_NAMES = tuple(param.name for param in fields(SentenceParams) if param.init and param.name != "options")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings with which a worker process opens its runner; see `PoolOptions`."""

    device: str
    threads: int
    max_rows: int
    max_encoder_tokens: int
    niceness: int


class SubmitMessage(NamedTuple):
    """The parts of a request that its engine needs: pickling a whole one takes several times as long.

    `options` and `params` have the names and values that differ from the defaults. Many requests have the same ones.
    """

    id: int
    source: bytes
    options: tuple[tuple[str, object], ...]
    params: tuple[tuple[str, object], ...]
    streams: bool

    @classmethod
    def of(cls, request: Request) -> Self:
        """Return the message for a request."""
        return cls(request.id, request.source.tobytes(), *_changed(request.params), request.on_progress is not None)

    def request(self) -> Request:
        """Return the request to decode. Its listener, in the other process, is replaced by one that does nothing."""
        params, source = _params(self.options, self.params), np.frombuffer(self.source, np.int32)
        return Request(source, params, Timings(0.0), on_progress=_ignore if self.streams else None, id=self.id)


_Changes = tuple[tuple[str, object], ...]


@lru_cache(maxsize=256)
def _changed(params: SentenceParams) -> tuple[_Changes, _Changes]:
    changed = (
        (name, value) for name in _RESOLVED_NAMES if (value := getattr(params, name)) != getattr(_DEFAULT_PARAMS, name)
    )
    return tuple(params.options.changed().items()), tuple(changed)


@lru_cache(maxsize=256)
def _params(options: _Changes, params: _Changes) -> SentenceParams:
    return SentenceParams(DecodingOptions.given(dict(options)), **dict(params))  # type: ignore[arg-type]  # values of these types


class AdmissionMessage(NamedTuple):
    """Admitted requests, and the ids of requests that the scheduler dropped."""

    admitted: list[SubmitMessage]
    dropped: list[int]


class CompletionMessage(NamedTuple):
    """A completion without its request. `times` are those of `Timings` from `encoded` on, `error` is a message."""

    id: int
    hypotheses: list[Hypothesis]
    finish_reason: FinishReason
    error: str | None
    times: tuple[float, float, float, float]


@dataclass(slots=True)
class StatusMessage:
    """Events since the previous status; `steps` has rows and seconds of each decoder step."""

    ended: list[CompletionMessage] = field(default_factory=list)
    stream_updates: list[tuple[int, list[int]]] = field(default_factory=list)
    steps: list[tuple[int, float]] = field(default_factory=list)
    num_rows_taken: int = 0


def _ignore(tokens: list[int], is_complete: bool) -> None:
    pass
