"""What an engine in a process of its own is told, and what it tells; the pipe carries these, pickled."""

from dataclasses import dataclass, field, fields
from typing import Self

import numpy as np

from server.interface.decoding_options import DecodingOptions
from server.interface.request import FinishReason, Hypothesis, Request, SentenceParams, Timings

_DEFAULT_PARAMS = SentenceParams()
_RESOLVED_NAMES = tuple(param.name for param in fields(SentenceParams) if param.init and param.name != "options")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What an engine must know to open its runner; see `ReplicaOptions`."""

    device: str
    threads: int
    max_rows: int
    max_encoder_tokens: int
    niceness: int


@dataclass(frozen=True, slots=True)
class SubmitMessage:
    """A request to decode, as little of it as its engine needs: pickling whole ones takes several times as long."""

    id: int
    source: bytes
    options: dict[str, object]
    params: dict[str, object]
    streams: bool

    @classmethod
    def of(cls, request: Request) -> Self:
        """What is sent."""
        differing = {
            name: value
            for name in _RESOLVED_NAMES
            if (value := getattr(request.params, name)) != getattr(_DEFAULT_PARAMS, name)
        }
        options = request.params.options.changed()
        return cls(request.id, request.source.tobytes(), options, differing, request.on_progress is not None)

    def request(self) -> Request:
        """What is decoded. Its listener is in the other process, and one that hears nothing stands for it."""
        params = SentenceParams(DecodingOptions.given(self.options), **self.params)  # type: ignore[arg-type]  # its own
        source = np.frombuffer(self.source, np.int32)
        return Request(source, params, Timings(0.0), on_progress=_unheard if self.streams else None, id=self.id)


@dataclass(frozen=True, slots=True)
class Orders:
    """Requests that were admitted, and the ids of requests that nobody waits for any more."""

    admitted: list[SubmitMessage]
    dropped: list[int]


@dataclass(frozen=True, slots=True)
class CompletionMessage:
    """A completion without its request. `stations` are the times from `Timings.encoded` on, `error` is a message."""

    id: int
    hypotheses: list[Hypothesis]
    finish_reason: FinishReason
    error: str | None
    stations: tuple[float, float, float, float]


@dataclass(slots=True)
class StatusMessage:
    """What has happened since the last one; `steps` has rows and seconds of each decoder step."""

    ended: list[CompletionMessage] = field(default_factory=list)
    progress: list[tuple[int, list[int]]] = field(default_factory=list)
    steps: list[tuple[int, float]] = field(default_factory=list)
    num_rows_taken: int = 0


def _unheard(tokens: list[int], is_complete: bool) -> None:
    pass
