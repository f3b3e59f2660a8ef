"""Admission of requests that need an engine."""

from fastapi import Request

from server.http.state import RequestRecord, ServerState, request_record, server_state


async def check_admission(request: Request) -> None:
    """Raise `QueueFull` or `Draining` if no model accepts a request now.

    A dependency of routes that translate texts of the query. Middleware has checked requests with a body.
    """
    admit(server_state(request), request_record(request))


def admit(server: ServerState, record: RequestRecord) -> None:
    """Admit a request once: a full server with a cache admits a sample of the requests that it counts."""
    if not record.is_admitted:
        server.check_admission()
        record.is_admitted = True
