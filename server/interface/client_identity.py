"""The client of the running call: its API key or address. Requests of one client share its part of the engine."""

from contextvars import ContextVar

client_of_call: ContextVar[str] = ContextVar("client_of_call", default="")
