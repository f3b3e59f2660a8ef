"""The client of the running call: its API key or address. Requests of one client share its part of the engine."""

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits of one client in addition to those of the server. None means no limit.

    `waiting_sentences` are those in the queue of a model, `documents` are queued, in progress and stored ones. Texts of
    a client that `joins_lines` are lines of one text, unless a request tells otherwise.
    """

    waiting_sentences: int | None = None
    documents: int | None = None
    joins_lines: bool = False


NO_LIMITS = ClientLimits()

client_of_call: ContextVar[str] = ContextVar("client_of_call", default="")
limits_of_client: ContextVar[ClientLimits] = ContextVar("limits_of_client", default=NO_LIMITS)
