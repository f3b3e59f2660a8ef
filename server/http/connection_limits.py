"""Limits of connections."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Size and time limits of one connection.

    `max_head_bytes` holds for request line and headers together, and again for trailers and chunk extensions.
    `body_seconds` grows with the bytes received. `write_seconds` is the time without progress of a response.
    """

    max_head_bytes: int
    head_seconds: float
    body_seconds: float
    write_seconds: float
